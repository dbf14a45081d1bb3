/* fuzz_snapshot.c - any bytes as a snapshot of the scripted model (tests/data/cases/_common/scripted.gguf). What is refused
 * must leave the session as it was; what is accepted must come back byte for byte and be fit for a reply. Because checksums
 * stop nearly every change, each input is tried a second time with its identity and checksums made right.
 *
 * corpus/snapshot: files of mica_session_save() with that model: of an empty session, a prompt, a prompt with a reply, a
 * cancelled prefill; and some damaged ones. */
#include <stdlib.h>
#include <string.h>

#include "base/xxh64.h"
#include "session/snapshot.h"

#ifndef MICA_FUZZ_VOCAB
#define MICA_FUZZ_VOCAB "tests/data/cases/_common/scripted.gguf"
#endif

#define CONTEXT 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Opened with the first input and kept. */
static mica_session *shared_session(void)
{
    static mica_session *session;
    if (!session) {
        mica_model *model;
        mica_session_options o = mica_session_options_default();
        o.n_ctx = CONTEXT;
        o.n_threads = 1;
        o.prefill_chunk = 16;
        must(!mica_model_open(MICA_FUZZ_VOCAB, NULL, &model, NULL) && !mica_session_new(model, &o, &session, NULL));
        mica_model_close(model);
    }
    return session;
}

/* A restored session must be able to go on. Its logits may be anything, and so may the outcome. */
static void use(mica_session *s)
{
    mica_generate_options o = mica_generate_options_default();
    int32_t next[CONTEXT];
    size_t n;
    const int32_t *tokens = mica_session_tokens(s, &n);
    must(n <= CONTEXT);
    o.max_tokens = 1;
    o.sampling.seed = 1;
    if (n > 0 && n < CONTEXT)
        (void)mica_session_generate(s, &o, NULL, NULL);
    n = n < CONTEXT - 2 ? n : CONTEXT - 2;
    memcpy(next, tokens, n * sizeof *next);
    next[n] = 5;
    must(mica_session_sync(s, next, n + 1, NULL) == MICA_OK);
}

static void try_restore(mica_session *s, const uint8_t *data, size_t size)
{
    void *before, *after;
    size_t n_before, n_after;
    mica_error err = {.code = MICA_OK};
    must(!mica_session_snapshot(s, &before, &n_before, NULL));
    mica_status status = mica_session_restore_memory(s, data, size, &err);
    must(!mica_session_snapshot(s, &after, &n_after, NULL));
    if (status == MICA_OK) {
        mica_snapshot_header a, b;
        must(!mica_snapshot_decode(data, size, MICA_SNAPSHOT_SESSION, "in", &a, NULL) && !mica_snapshot_decode(after, n_after, MICA_SNAPSHOT_SESSION, "out", &b, NULL));
        must(n_after == size);
        for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++)
            must(memcmp(data + a.sections[i].offset, (char *)after + b.sections[i].offset, (size_t)a.sections[i].bytes) == 0);
        use(s);
    } else {
        must(err.code == status && err.message[0] && n_before == n_after && memcmp(before, after, n_before) == 0);
    }
    free(before);
    free(after);
}

/* Counts and the sections' bytes are the input's; all else is what this session accepts. Returns the new length: what is too
 * much is cut off. */
static size_t repair(const mica_session *s, uint8_t *data, size_t size)
{
    mica_snapshot_header h;
    mica_snapshot_describe(s, &h);
    h.n_tokens = data[72]; /* where the header has them */
    h.n_computed = data[76];
    if (h.n_tokens <= CONTEXT && h.n_computed <= h.n_tokens)
        mica_snapshot_lay_out(s, &h);
    size = h.total_bytes < size ? (size_t)h.total_bytes : size;
    h.total_bytes = size;
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        uint64_t at = h.sections[i].offset, n = mica_snapshot_padded(h.sections[i].bytes);
        if (at <= size && n <= size - at)
            h.sections[i].checksum = mica_xxh64_of(data + at, (size_t)n);
    }
    mica_snapshot_encode(&h, data);
    return size;
}

/* In a block that ends where the input ends. */
static uint8_t *copy_input(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    must(copy != NULL);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_session *s = shared_session();
    uint8_t *first = copy_input(data, size);
    try_restore(s, first, size);
    if (size >= MICA_SNAPSHOT_HEADER) {
        size_t cut = repair(s, first, size);
        uint8_t *second = copy_input(first, cut);
        try_restore(s, second, cut);
        free(second);
    }
    free(first);
    return 0;
}
