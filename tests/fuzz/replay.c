/* replay.c - runs a fuzz target over the files named on the command line, for compilers without libFuzzer:
 *     find tests/data/cases -name '*.gguf' -exec replay_gguf {} +
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The whole of a file; NULL if it cannot be read. Yours. */
static uint8_t *read_file(const char *path, size_t *size)
{
    size_t capacity = 1 << 16;
    uint8_t *data = malloc(capacity);
    FILE *file = data ? fopen(path, "rb") : NULL;
    *size = 0;
    if (!file) {
        free(data);
        return NULL;
    }
    for (size_t n; (n = fread(data + *size, 1, capacity - *size, file)) > 0;) {
        *size += n;
        if (*size < capacity)
            continue;
        uint8_t *more = realloc(data, capacity *= 2);
        if (!more)
            break;
        data = more;
    }
    if (ferror(file) || !feof(file)) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t size;
        uint8_t *data = read_file(argv[i], &size);
        if (!data) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    printf("%d inputs replayed\n", argc - 1);
    return argc < 2; /* nothing replayed is no success */
}
