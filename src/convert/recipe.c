#include "convert/recipe.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define T(name) MICA_TYPE_##name
/* name, file type, base, output matrix */
#define UNIFORM(name, file_type, output) {#name, file_type, T(name), T(output), {{0}}}

/* The mixes under their common names: about as many bits as a file of that name has anywhere. What is given more: the output
 * matrix always; attn_v, which has few weights, and ffn_down, whose errors go straight into the residual stream. */
static const mica_recipe recipes[] = {
    UNIFORM(F32, 0, F32),
    UNIFORM(F16, 1, F16),
    UNIFORM(BF16, 32, BF16),
    UNIFORM(Q8_0, 7, Q8_0),
    UNIFORM(Q6_K, 18, Q6_K),
    {"Q5_K_M", 17, T(Q5_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_SENSITIVE, T(Q6_K)}, {"ffn_down", MICA_LAYERS_SENSITIVE, T(Q6_K)}, {"attn_qkv", MICA_LAYERS_ALL, T(Q6_K)}}},
    UNIFORM(Q5_K, 16, Q6_K), /* Q5_K_S */
    UNIFORM(Q5_1, 9, Q6_K),
    UNIFORM(Q5_0, 8, Q6_K),
    {"Q4_K_M", 15, T(Q4_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_SENSITIVE, T(Q6_K)}, {"ffn_down", MICA_LAYERS_SENSITIVE, T(Q6_K)}, {"attn_qkv", MICA_LAYERS_ALL, T(Q5_K)}}},
    {"Q4_K_S", 14, T(Q4_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_FIRST_4, T(Q5_K)}, {"ffn_down", MICA_LAYERS_FIRST_EIGHTH, T(Q5_K)}}},
    UNIFORM(Q4_1, 3, Q6_K),
    UNIFORM(Q4_0, 2, Q6_K),
    {"IQ4_NL", 25, T(IQ4_NL), T(Q6_K),
     {{"attn_v", MICA_LAYERS_ALL, T(Q5_K)}, {"ffn_down", MICA_LAYERS_FIRST_EIGHTH, T(Q5_K)}, {"attn_qkv", MICA_LAYERS_ALL, T(Q5_K)}}},
    {"IQ4_XS", 30, T(IQ4_XS), T(Q6_K),
     {{"attn_v", MICA_LAYERS_ALL, T(Q5_K)}, {"ffn_down", MICA_LAYERS_FIRST_EIGHTH, T(Q5_K)}, {"attn_qkv", MICA_LAYERS_ALL, T(Q5_K)}}},
    {"Q3_K_L", 13, T(Q3_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_ALL, T(Q5_K)}, {"ffn_down", MICA_LAYERS_ALL, T(Q5_K)}, {"attn_output", MICA_LAYERS_ALL, T(Q5_K)},
      {"attn_qkv", MICA_LAYERS_ALL, T(Q4_K)}}},
    {"Q3_K_M", 12, T(Q3_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_FIRST_2, T(Q5_K)}, {"attn_v", MICA_LAYERS_ALL, T(Q4_K)}, {"ffn_down", MICA_LAYERS_FIRST_16TH, T(Q5_K)},
      {"ffn_down", MICA_LAYERS_SENSITIVE, T(Q4_K)}, {"attn_output", MICA_LAYERS_ALL, T(Q4_K)}, {"attn_qkv", MICA_LAYERS_ALL, T(Q4_K)}}},
    UNIFORM(Q3_K, 11, Q6_K), /* Q3_K_S */
    {"Q2_K", 10, T(Q2_K), T(Q6_K),
     {{"attn_v", MICA_LAYERS_ALL, T(Q4_K)}, {"ffn_down", MICA_LAYERS_ALL, T(Q3_K)}, {"attn_output", MICA_LAYERS_ALL, T(Q3_K)}}},
};

enum { N_RECIPES = sizeof recipes / sizeof *recipes };

/* Names that are not those of the table. */
static const char *const aliases[][2] = {{"Q5_K_S", "Q5_K"}, {"Q3_K_S", "Q3_K"}, {"Q5_K", "Q5_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q3_K", "Q3_K_M"}};

const mica_recipe *mica_recipe_find(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(aliases[i][0], name) == 0) {
            name = aliases[i][1];
            break;
        }
    for (size_t i = 0; i < N_RECIPES; i++)
        if (strcasecmp(recipes[i].name, name) == 0)
            return &recipes[i];
    return NULL;
}

const char *mica_recipe_names(void)
{
    return "F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_K_S, Q5_1, Q5_0, Q4_K_M, Q4_K_S, Q4_1, Q4_0, IQ4_NL, IQ4_XS, Q3_K_L, Q3_K_M, Q3_K_S, Q2_K";
}

bool mica_recipe_is_matrix(const mica_gguf_tensor *t) { return t->dims[1] > 1; }

/* In rows of 32-weight blocks: of 256-weight formats those with about their bits. */
static const struct {
    mica_type type, instead;
} short_rows[] = {{T(Q2_K), T(IQ4_NL)}, {T(Q3_K), T(IQ4_NL)}, {T(IQ4_XS), T(IQ4_NL)},
                  {T(Q4_K), T(Q5_0)},   {T(Q5_K), T(Q5_1)},   {T(Q6_K), T(Q8_0)}};

const mica_quant *mica_recipe_fit(const mica_quant *quant, int64_t cols)
{
    if (cols % quant->block_weights == 0)
        return quant;
    for (size_t i = 0; i < sizeof short_rows / sizeof *short_rows && cols % 32 == 0; i++)
        if (short_rows[i].type == quant->type)
            return mica_quant_of(short_rows[i].instead);
    return mica_quant_of(MICA_TYPE_F16);
}

static bool in_layers(mica_recipe_layers layers, int32_t i, int32_t n)
{
    int32_t eighth = n / 8;
    switch (layers) {
    case MICA_LAYERS_SENSITIVE: return i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2;
    case MICA_LAYERS_FIRST_EIGHTH: return i < eighth;
    case MICA_LAYERS_FIRST_16TH: return i < n / 16;
    case MICA_LAYERS_FIRST_4: return i < 4;
    case MICA_LAYERS_FIRST_2: return i < 2;
    case MICA_LAYERS_ALL: break;
    }
    return true;
}

/* "blk.12.ffn_down.weight" -> 12, "ffn_down". */
static bool split_name(mica_str name, int32_t *layer, char role[32])
{
    char text[80];
    if (name.length >= sizeof text)
        return false;
    memcpy(text, name.data, name.length);
    text[name.length] = '\0';
    return sscanf(text, "blk.%d.%31[a-z_].weight", layer, role) == 2;
}

static bool is_named(const mica_gguf_tensor *t, const char *name)
{
    return t->name.length == strlen(name) && memcmp(t->name.data, name, t->name.length) == 0;
}

const mica_quant *mica_recipe_type(const mica_recipe *recipe, const mica_gguf_tensor *tensor, int32_t n_layers, bool tied)
{
    mica_type type = recipe->base;
    int32_t layer;
    char role[32];
    if (is_named(tensor, "output.weight") || (tied && is_named(tensor, "token_embd.weight")))
        type = recipe->output;
    else if (split_name(tensor->name, &layer, role))
        for (const mica_recipe_rule *r = recipe->rules; r < recipe->rules + MICA_RECIPE_RULES && r->role; r++)
            if (strcmp(r->role, role) == 0 && in_layers(r->layers, layer, n_layers)) {
                type = r->type;
                break;
            }
    return mica_recipe_fit(mica_quant_of(type), tensor->dims[0]);
}

/* One star at a time: on a mismatch the last star takes one byte more. */
static bool match_glob(const char *p, const char *text, size_t length)
{
    const char *star = NULL;
    size_t i = 0, after = 0;
    while (i < length) {
        if (*p == '*') {
            star = p++;
            after = i;
        } else if (*p && (*p == '?' || *p == text[i])) {
            p++;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++after;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}

bool mica_recipe_match(const char *pattern, mica_str name)
{
    if (strpbrk(pattern, "*?"))
        return match_glob(pattern, name.data, name.length);
    return memmem(name.data, name.length, pattern, strlen(pattern)) != NULL;
}
