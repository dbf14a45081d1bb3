/* recipe.h - which format each tensor of a model gets: recipes as data, a user's own rules before them. Called by quantize.c. */
#ifndef MICA_CONVERT_RECIPE_H
#define MICA_CONVERT_RECIPE_H
#include "model/gguf.h"

/** Layers that a rule is about. Errors in the first and last layers cost more than those between, which is why recipes give
 * them more bits. */
typedef enum mica_recipe_layers {
    MICA_LAYERS_ALL = 0,
    MICA_LAYERS_SENSITIVE,   /* the first and the last eighth, and every third between */
    MICA_LAYERS_FIRST_EIGHTH,
    MICA_LAYERS_FIRST_16TH,
    MICA_LAYERS_FIRST_4,
    MICA_LAYERS_FIRST_2,
} mica_recipe_layers;

typedef struct mica_recipe_rule {
    const char *role; /* of blk.N.ROLE.weight */
    mica_recipe_layers layers;
    mica_type type;
} mica_recipe_rule;

#define MICA_RECIPE_RULES 8

typedef struct mica_recipe {
    const char *name;
    int32_t file_type; /* general.file_type, as other tools number the mixes */
    mica_type base;    /* of matrices that no rule names */
    mica_type output;  /* output.weight, and token_embd.weight where that is the output matrix too */
    mica_recipe_rule rules[MICA_RECIPE_RULES]; /* the first that fits; role NULL ends them */
} mica_recipe;

/** "Q4_K_M", in any case; Q3_K, Q4_K and Q5_K are their _M. NULL if unknown. */
const mica_recipe *mica_recipe_find(const char *name);
/** The names, separated by ", ". Static. */
const char *mica_recipe_names(void);

/** Matrices are converted; vectors (norms, biases) are F32 whatever the recipe: so the engine wants them. */
bool mica_recipe_is_matrix(const mica_gguf_tensor *tensor);

/** The format that the recipe gives to a matrix. `n_layers` 0: unknown; `tied`: token_embd.weight is the output too. Rows that no
 * block of 256 divides get a format of 32 weights with about the same bits, rows that no 32 divides F16. */
const mica_quant *mica_recipe_type(const mica_recipe *recipe, const mica_gguf_tensor *tensor, int32_t n_layers, bool tied);

/** `quant`, or what takes its place in rows of so many weights. */
const mica_quant *mica_recipe_fit(const mica_quant *quant, int64_t cols);

/** Does `name` fit `pattern`? '*' is any text and '?' any byte; a pattern without them fits where it stands anywhere in the name. */
bool mica_recipe_match(const char *pattern, mica_str name);

#endif
