/* libFuzzer target: an importance matrix for mica quantize, from a stranger. What is taken has means that are numbers. */
#include <math.h>

#include "convert/imatrix.h"
#include "fuzz_util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"blk.0.attn_q.weight", "blk.0.ffn_down.weight", ""};
    char path[40];
    mica_imatrix *m;
    mica_error err = {0};
    int fd = fuzz_file(data, size, path);
    mica_status status = mica_imatrix_read(path, &m, &err);
    fuzz_check(status, &err, m != NULL);
    for (size_t i = 0; m && i < sizeof names / sizeof *names; i++) {
        int64_t n = 0;
        const float *means = mica_imatrix_find(m, (mica_str){names[i], strlen(names[i])}, &n);
        for (int64_t k = 0; means && k < n; k++)
            if (!isfinite(means[k]) || means[k] < 0.0f)
                abort();
    }
    mica_imatrix_free(m);
    close(fd);
    return 0;
}
