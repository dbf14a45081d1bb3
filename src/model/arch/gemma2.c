/* gemma2.c - Gemma 2 (Gemma Team 2024): scaled embeddings, norms on both sides of each branch, soft-capped attention and logits,
 * a sliding window on every other layer beginning with the first. */
#include <math.h>

#include "model/arch.h"

static mica_status configure(const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    h->embd_scale = sqrtf((float)h->n_embd);
    h->attn_softcap = 50.0f;
    h->final_softcap = 30.0f;
    /* The 27B model scales by its width per head; the smaller ones by the head's size (query_pre_attn_scalar). */
    if (h->n_layers == 46)
        h->attn_scale = 1.0f / sqrtf((float)h->n_embd / (float)h->n_heads);
    mica_status status = mica_arch_get_f32(g, "attn_logit_softcapping", false, &h->attn_softcap, err);
    if (!status)
        status = mica_arch_get_f32(g, "final_logit_softcapping", false, &h->final_softcap, err);
    return status ? status : mica_arch_window(g, h, 2, err);
}

const mica_arch mica_arch_gemma2 = {.name = "gemma2", .rope_neox = true, .post_norms = true, .activation = MICA_ACT_GELU,
                                    .configure = configure};
