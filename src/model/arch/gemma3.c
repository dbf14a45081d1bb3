/* gemma3.c - Gemma 3, text (Gemma Team 2025): norms on q and k, five windowed layers to one full one; windowed layers rotate with
 * base 10000 and no scaling, full ones with the model's own. */
#include <math.h>

#include "model/arch.h"

static mica_status configure(const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    h->embd_scale = sqrtf((float)h->n_embd);
    /* The 27B model scales by its width per head; the smaller ones by the head's size (query_pre_attn_scalar). */
    if (h->n_layers == 62)
        h->attn_scale = 1.0f / sqrtf((float)h->n_embd / (float)h->n_heads);
    h->has_rope_window = true;
    h->rope_window = (mica_rope){.base = 10000.0f, .scale = 1.0f, .magnitude = 1.0f};
    mica_status status = mica_arch_get_f32(g, "final_logit_softcapping", false, &h->final_softcap, err);
    if (!status)
        status = mica_arch_get_f32(g, "rope.freq_base_swa", false, &h->rope_window.base, err);
    return status ? status : mica_arch_window(g, h, 6, err);
}

const mica_arch mica_arch_gemma3 = {.name = "gemma3", .rope_neox = true, .qk_norm = true, .post_norms = true,
                                    .activation = MICA_ACT_GELU, .configure = configure};
