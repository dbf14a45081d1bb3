/* quant.c - the table of formats, lookups, and the decoding that all block formats share. Called by model (reading tensors),
 * kern (the portable dot product) and the tools that write GGUF files. */
#include "quant/quant.h"
#include "base/selection.h"
#include "quant/formats.h"

#define FLOAT_ROW(NAME, lower, bytes)                                                                                     \
    MICA_ROW(TYPE_##lower,                                                                                                \
             [MICA_TYPE_##NAME] = {MICA_TYPE_##NAME, #NAME, 1, bytes, false, NULL, mica_##lower##_decode, mica_##lower##_encode}, )
#define BLOCK_ROW(NAME, lower, weights, mins)                                                          \
    MICA_ROW(TYPE_##lower,                                                                             \
             [MICA_TYPE_##NAME] = {MICA_TYPE_##NAME,                                                   \
                                   #NAME,                                                              \
                                   weights,                                                            \
                                   (int32_t)sizeof(mica_block_##lower),                                \
                                   mins,                                                               \
                                   mica_##lower##_unpack,                                              \
                                   mica_quant_decode_blocks,                                           \
                                   mica_##lower##_encode}, )

/* Indexed by type id; the rows of ids that this build cannot read are zero. */
static const mica_quant quant_table[MICA_TYPE_COUNT] = {MICA_QUANT_LIST(FLOAT_ROW, BLOCK_ROW)};

const mica_quant *mica_quant_of(uint32_t type)
{
    return type < MICA_TYPE_COUNT && quant_table[type].name ? &quant_table[type] : NULL;
}

#define NAME_OF(NAME, ...) [MICA_TYPE_##NAME] = #NAME,

const char *mica_quant_known(uint32_t type)
{
    static const char names[MICA_TYPE_COUNT][8] = {MICA_QUANT_LIST(NAME_OF, NAME_OF)};
    return type < MICA_TYPE_COUNT && names[type][0] ? names[type] : NULL;
}

static char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }

const mica_quant *mica_quant_by_name(const char *name)
{
    for (uint32_t type = 0; name && type < MICA_TYPE_COUNT; type++) {
        const char *known = quant_table[type].name;
        size_t i = 0;
        while (known && known[i] && ascii_upper(name[i]) == known[i])
            i++;
        if (known && !known[i] && !name[i])
            return &quant_table[type];
    }
    return NULL;
}

#define FLOAT_NAME(NAME, lower, bytes) MICA_ROW(TYPE_##lower, ", " #NAME)
#define BLOCK_NAME(NAME, lower, weights, mins) MICA_ROW(TYPE_##lower, ", " #NAME)

const char *mica_quant_names(void)
{
    static const char names[] = MICA_QUANT_LIST(FLOAT_NAME, BLOCK_NAME);
    return names + 2; /* without the first separator */
}

/* Without mins nothing is added: adding 0 would turn -0 into +0, and the reference decoders keep -0. */
static void decode_group(const mica_block_ints *ints, int group, bool has_min, float *out)
{
    float scale = ints->d * (float)ints->scale[group];
    float min = ints->m * (float)ints->min[group];
    const int8_t *q = ints->q + 16 * group;
    for (int i = 0; i < 16; i++) {
        float product = scale * (float)q[i];
        out[i] = has_min ? product + min : product;
    }
}

void mica_quant_decode_blocks(const mica_quant *quant, const void *blocks, float *out, size_t n)
{
    const uint8_t *block = blocks;
    mica_block_ints ints;
    size_t n_blocks = n / (size_t)quant->block_weights;
    for (size_t b = 0; b < n_blocks; b++, block += quant->block_bytes) {
        quant->unpack(block, &ints);
        for (int group = 0; group < quant->block_weights / 16; group++, out += 16)
            decode_group(&ints, group, quant->has_min, out);
    }
}
