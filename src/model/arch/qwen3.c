/* qwen3.c - Qwen3, dense: a norm on each head of q and k instead of biases. */
#include "model/arch.h"

const mica_arch mica_arch_qwen3 = {.name = "qwen3", .rope_neox = true, .qk_norm = true, .activation = MICA_ACT_SILU};
