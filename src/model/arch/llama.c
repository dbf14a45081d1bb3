/* llama.c - Llama 1 to 3.x, SmolLM2, Mistral and what else calls itself "llama". Llama 3.x's RoPE scaling arrives as the tensor
 * rope_freqs.weight, which the loader binds for every architecture. */
#include "model/arch.h"

const mica_arch mica_arch_llama = {.name = "llama", .activation = MICA_ACT_SILU};
