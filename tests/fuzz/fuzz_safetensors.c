/* libFuzzer target: weights of a Hugging Face folder, from a stranger. What is taken keeps the invariants of safetensors.h. */
#include "convert/safetensors.h"
#include "fuzz_util.h"

static void check_tensor(const mica_safetensors *s, size_t i, const uint8_t *data, size_t size)
{
    const mica_hf_tensor *t = mica_safetensors_at(s, i);
    if (t->data < data + 8 || t->n_bytes > size || t->data > data + size - t->n_bytes || t->n_dims < 0 || t->n_dims > MICA_SAFETENSORS_DIMS)
        abort();
    uint64_t weights = 1;
    for (int32_t d = 0; d < t->n_dims; d++)
        weights *= (uint64_t)t->dims[d];
    if (t->quant && t->n_bytes != mica_quant_bytes(t->quant, weights))
        abort();
    if (mica_safetensors_find(s, t->name) != t || (i > 0 && strcmp(mica_safetensors_at(s, i - 1)->name, t->name) >= 0))
        abort();
    volatile uint8_t sum = 0;
    for (uint64_t k = 0; k < t->n_bytes; k++)
        sum = (uint8_t)(sum + t->data[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_safetensors *s;
    mica_error err = {0};
    mica_status status = mica_safetensors_open_memory(data, size, "x.safetensors", &s, &err);
    fuzz_check(status, &err, s != NULL);
    uint64_t bytes = 0;
    for (size_t i = 0; s && i < mica_safetensors_count(s); i++) {
        check_tensor(s, i, data, size);
        bytes += mica_safetensors_at(s, i)->n_bytes;
    }
    if (s && bytes > size - 8)
        abort();
    mica_safetensors_close(s);
    return 0;
}
