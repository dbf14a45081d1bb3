/* shed.c - memory of KV caches that holds nothing any more goes back to the system. It stays mapped, and is zeros when it is
 * used again: what is not computed is never read. */
#include "base/map.h"
#include "mica/mica_memory.h"
#include "session/kv_blocks.h"
#include "session/session.h"

/* Slots [from, to) of all layers of a kind. */
static void forget_slots(const mica_kv *kv, int kind, int32_t from, int32_t to)
{
    const mica_hparams *h = kv->h;
    size_t count = (size_t)(to - from) * (size_t)h->head_dim;
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads && h->windowed[layer] == kind; head++) {
            size_t row = mica_kv_slot_row(kv, layer, head, from);
            mica_map_forget(mica_kv_key(kv, row), mica_quant_bytes(kv->k_quant, count));
            mica_map_forget(mica_kv_value(kv, row), mica_quant_bytes(kv->v_quant, count));
        }
}

static bool is_free(const mica_kv_blocks *p, int kind, int32_t block)
{
    return kind == MICA_KV_FULL ? p->block[block].uses == 0 : p->window_uses[block] == 0;
}

/* Neighbours together: a block alone may be less than a page. */
void mica_kv_blocks_give_back(const mica_kv_blocks *p)
{
    for (int kind = 0; kind < MICA_KV_KINDS; kind++)
        for (int32_t from = 0, to; from < p->n[kind]; from = to + 1) {
            for (to = from; to < p->n[kind] && is_free(p, kind, to); to++)
                ;
            if (to > from)
                forget_slots(&p->kv, kind, from * MICA_KV_BLOCK, to * MICA_KV_BLOCK);
        }
}

/* In a ring that has begun to turn, every slot is of a position that may be needed. */
void mica_session_shed(mica_session *s)
{
    const mica_kv *kv = &s->kv;
    if (s->batch)
        return;
    for (int kind = 0; kind < MICA_KV_KINDS; kind++)
        if (s->n_computed < kv->slots[kind] && (kind == MICA_KV_FULL || kv->first == 0 || s->n_computed == 0))
            forget_slots(kv, kind, s->n_computed, kv->slots[kind]);
}
