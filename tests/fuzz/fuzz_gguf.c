/* fuzz_gguf.c - any bytes as a GGUF file; what is accepted is read in full. */
#include <stdlib.h>
#include <string.h>

#include "../unit/gguf_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_gguf *g = NULL;
    mica_error err;
    uint64_t sum;
    uint8_t *copy = malloc(size ? size : 1); /* aligned, and ending where the input ends */
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    mica_status status = mica_gguf_open_memory(copy, size, "input", &g, &err);
    if (status == MICA_OK) {
        if (!touch_all(g, &sum))
            abort();
    } else if (err.code != status || err.message[0] == '\0') {
        abort();
    }
    mica_gguf_close(g);
    free(copy);
    return 0;
}
