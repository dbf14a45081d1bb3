/* qwen2.c - Qwen2 and Qwen2.5 (Yang et al. 2024): biases on q, k and v. */
#include "model/arch.h"

const mica_arch mica_arch_qwen2 = {.name = "qwen2", .rope_neox = true, .qkv_bias = true, .activation = MICA_ACT_SILU};
