/* vocab_special.c - special tokens: which ids play which part, which end a reply, and which are matched in raw text. */
#include "base/mem.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

#include <stddef.h>
#include <stdio.h>

typedef void (*warning_fn)(void *user, const char *message);

/* The parts, the keys that name their tokens (the second is an older spelling), and the texts to look for when no key does. */
static const struct {
    size_t member;
    const char *keys[2];
    const char *texts[10];
    bool spm_only; /* look for the texts in SentencePiece vocabularies only */
} parts[] = {
#define PART(member) offsetof(mica_vocab_special, member)
    {PART(bos), {"tokenizer.ggml.bos_token_id"}, {"<s>"}, true},
    {PART(eos), {"tokenizer.ggml.eos_token_id"}, {"</s>"}, true},
    {PART(eot), {"tokenizer.ggml.eot_token_id"},
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|END_OF_TURN_TOKEN|>", "<EOT>", "_<EOT>",
      "<end_of_utterance>"},
     false},
    {PART(eom), {"tokenizer.ggml.eom_token_id"}, {"<|eom_id|>"}, false},
    {PART(unk), {"tokenizer.ggml.unknown_token_id"}, {"<unk>"}, true},
    {PART(pad), {"tokenizer.ggml.padding_token_id"}, {0}, false},
    {PART(sep), {"tokenizer.ggml.seperator_token_id", "tokenizer.ggml.separator_token_id"}, {0}, false}, /* [sic] */
    {PART(fim_prefix), {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>"},
     false},
    {PART(fim_suffix), {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>"},
     false},
    {PART(fim_middle), {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>"},
     false},
#undef PART
};

/* Texts that end a turn or a document in chat templates and training data. Those that may also be plain markup count when they
 * are control tokens only. */
static const struct {
    const char *text;
    bool control_only;
} endings[] = {
    {"<|im_end|>", false},      {"<|eot_id|>", false},           {"<|eom_id|>", false},
    {"<|end|>", false},         {"<|endoftext|>", false},        {"<|end_of_text|>", false},
    {"<|return|>", false},      {"<|call|>", false},             {"<end_of_turn>", false},
    {"<turn|>", false},         {"<|END_OF_TURN_TOKEN|>", false}, {"<end_of_utterance>", false},
    {"<｜end▁of▁sentence｜>", false}, {"<EOT>", true},               {"_<EOT>", true},
    {"[EOT]", true},            {"[EOS]", true},                 {"</s>", true},
    {"<eos>", true},
};

static void warn(warning_fn on_warning, void *user, const char *key, int64_t id, int32_t n)
{
    char message[200];
    if (on_warning) {
        snprintf(message, sizeof(message), "%s is %lld, but the vocabulary has %d tokens: taken as absent", key, (long long)id,
                 n);
        on_warning(user, message);
    }
}

/* Reads one of the part's keys into *id; leaves -1 when none is there or the id is outside the vocabulary. */
static mica_status read_part(const mica_vocab *v, const mica_gguf *g, const char *const keys[2], warning_fn on_warning,
                             void *user, int32_t *id, bool *named, mica_error *err)
{
    for (int k = 0; k < 2 && keys[k] && !*named; k++) {
        if (!mica_gguf_find(g, keys[k])) {
            continue;
        }
        int64_t value = -1;
        mica_status status = mica_gguf_get_i64(g, keys[k], true, INT64_MIN, INT64_MAX, &value, err);
        if (status) {
            return status;
        }
        *named = true;
        if (value >= 0 && value < v->n) {
            *id = (int32_t)value;
        } else {
            warn(on_warning, user, keys[k], value, v->n);
        }
    }
    return MICA_OK;
}

static bool is_added(const mica_vocab *v, int32_t id)
{
    return v->types[id] == MICA_TOKEN_CONTROL || v->types[id] == MICA_TOKEN_USER || v->types[id] == MICA_TOKEN_UNKNOWN;
}

/* The first of `texts` that is an added token of the vocabulary, or -1. */
static int32_t find_text(const mica_vocab *v, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n && texts[i]; i++) {
        int32_t id = mica_vocab_find(v, texts[i], strlen(texts[i]));
        if (id >= 0 && is_added(v, id)) {
            return id;
        }
    }
    return -1;
}

static mica_status load_parts(mica_vocab *v, const mica_gguf *g, warning_fn on_warning, void *user, mica_error *err)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int32_t id = -1;
        bool named = false;
        mica_status status = read_part(v, g, parts[i].keys, on_warning, user, &id, &named, err);
        if (status) {
            return status;
        }
        if (!named && (!parts[i].spm_only || v->kind == MICA_VOCAB_SPM)) {
            id = find_text(v, parts[i].texts, sizeof(parts[i].texts) / sizeof(parts[i].texts[0]));
        }
        memcpy((char *)&v->special + parts[i].member, &id, sizeof(id));
    }
    return MICA_OK;
}

/* Defaults where the file is silent: SentencePiece models were made with BOS and a leading space, byte-level ones without,
 * except for the families whose row says so. */
static mica_status load_switches(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    mica_vocab_special *s = &v->special;
    s->add_bos = v->kind != MICA_VOCAB_BYTE_BPE || (mica_pretok_flags(v->pretok) & MICA_PRETOK_BOS);
    s->add_eos = false;
    s->add_space_prefix = v->kind == MICA_VOCAB_SPM;
    mica_status status = mica_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", false, &s->add_bos, err);
    if (!status) {
        status = mica_gguf_get_bool(g, "tokenizer.ggml.add_eos_token", false, &s->add_eos, err);
    }
    if (!status) {
        status = mica_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", false, &s->add_space_prefix, err);
    }
    s->add_bos = s->add_bos && s->bos >= 0;
    s->add_eos = s->add_eos && s->eos >= 0;
    s->add_space_prefix = s->add_space_prefix && v->kind == MICA_VOCAB_SPM; /* byte-level files carry the key idly */
    return status;
}

static void mark_ending(mica_vocab *v, int32_t id)
{
    if (id >= 0) {
        v->ends_generation[id] = 1;
    }
}

static mica_status load_endings(mica_vocab *v, mica_error *err)
{
    v->ends_generation = mica_new_array((size_t)v->n, 1);
    if (!v->ends_generation) {
        return mica_fail_nomem(err, (size_t)v->n, "the vocabulary");
    }
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        int32_t id = mica_vocab_find(v, endings[i].text, strlen(endings[i].text));
        if (id >= 0 && (v->types[id] == MICA_TOKEN_CONTROL || (v->types[id] == MICA_TOKEN_USER && !endings[i].control_only))) {
            mark_ending(v, id);
        }
    }
    /* In the format that has <|return|>, <|end|> closes one message of a reply that goes on (reasoning, then answer). */
    int32_t returns = mica_vocab_find(v, "<|return|>", 10), end = mica_vocab_find(v, "<|end|>", 7);
    if (returns >= 0 && end >= 0 && is_added(v, returns)) {
        v->ends_generation[end] = 0;
        v->special.eot = v->special.eot == end ? -1 : v->special.eot;
    }
    mark_ending(v, v->special.eos);
    mark_ending(v, v->special.eot);
    mark_ending(v, v->special.eom);
    return MICA_OK;
}

mica_status mica_vocab_load_special(mica_vocab *v, const mica_gguf *g, warning_fn on_warning, void *user, mica_error *err)
{
    mica_status status = load_parts(v, g, on_warning, user, err);
    if (!status) {
        status = load_switches(v, g, err);
    }
    return status ? status : load_endings(v, err);
}

/* ---- Added tokens in raw text ---- */

static int compare_added(const void *a, const void *b)
{
    const mica_added *x = a, *y = b;
    if (x->prefix != y->prefix) {
        return x->prefix < y->prefix ? -1 : 1;
    }
    size_t n = x->piece.length < y->piece.length ? x->piece.length : y->piece.length;
    int order = memcmp(x->piece.data, y->piece.data, n);
    if (order) {
        return order;
    }
    if (x->piece.length != y->piece.length) {
        return x->piece.length < y->piece.length ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t first_bytes(mica_str piece)
{
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) {
        prefix = prefix << 8 | (i < piece.length ? (unsigned char)piece.data[i] : 0);
    }
    return prefix;
}

mica_status mica_vocab_index_added(mica_vocab *v, mica_error *err)
{
    uint32_t count = 0;
    for (int32_t id = 0; id < v->n; id++) {
        count += is_added(v, id);
    }
    v->added = mica_new_array(count, sizeof(*v->added));
    if (!v->added) {
        return mica_fail_nomem(err, count * sizeof(*v->added), "the vocabulary");
    }
    for (int32_t id = 0; id < v->n; id++) {
        mica_str piece = mica_strings_get(&v->pieces, (uint32_t)id);
        /* A piece that is not whole characters must not match: it would cut valid text inside a character. */
        if (is_added(v, id) && piece.length && mica_utf8_check(piece.data, piece.length) == piece.length) {
            bool user = v->types[id] == MICA_TOKEN_USER;
            v->added[v->n_added++] = (mica_added){first_bytes(piece), piece, id, user};
            v->added_user[(unsigned char)piece.data[0]] |= user;
        }
    }
    qsort(v->added, v->n_added, sizeof(*v->added), compare_added);
    for (uint32_t i = 0; i < v->n_added; i++) {
        v->added_from[(unsigned char)v->added[i].piece.data[0] + 1] = i + 1;
    }
    for (int c = 0; c < 256; c++) { /* characters that start no token take over where the one before ends */
        if (v->added_from[c + 1] < v->added_from[c]) {
            v->added_from[c + 1] = v->added_from[c];
        }
    }
    return MICA_OK;
}

/* First entry in [low, high), all longer than `depth`, whose byte at `depth` is at least c. */
static uint32_t lower_bound(const mica_added *added, uint32_t low, uint32_t high, size_t depth, unsigned c)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((unsigned char)added[middle].piece.data[depth] < c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int32_t mica_vocab_match_added(const mica_vocab *v, const char *text, size_t n, bool special, size_t *length)
{
    unsigned c = (unsigned char)text[0];
    uint32_t low = v->added_from[c], high = v->added_from[c + 1];
    int32_t best = -1;
    if (!special && !v->added_user[c]) {
        return -1;
    }
    for (size_t depth = 1; low < high; depth++) {
        /* Every entry in [low, high) starts with text[0..depth); those that end here come first. */
        bool taken = false;
        for (; low < high && v->added[low].piece.length == depth; low++) {
            if (!taken && (special || v->added[low].user)) {
                best = v->added[low].id;
                *length = depth;
                taken = true; /* duplicates: the lowest id */
            }
        }
        if (depth == n) {
            break;
        }
        c = (unsigned char)text[depth];
        low = lower_bound(v->added, low, high, depth, c);
        high = lower_bound(v->added, low, high, depth, c + 1);
    }
    return best;
}
