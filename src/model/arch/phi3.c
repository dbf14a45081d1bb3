/* phi3.c - Phi-3 and Phi-3.5 mini (Abdin et al. 2024): q, k, v in one matrix, gate and up in another; "longrope" frequency factors
 * for contexts beyond the original one; a sliding window on all layers where the file has the key. */
#include "model/arch.h"

static mica_status configure(const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    return mica_arch_window(g, h, 0, err);
}

const mica_arch mica_arch_phi3 = {.name = "phi3", .rope_neox = true, .fused_qkv = true, .fused_gate_up = true,
                                  .activation = MICA_ACT_SILU, .configure = configure};
