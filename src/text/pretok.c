/* pretok.c - see pretok.h. The rows are in pretok_list.h.
 *
 * Bounds: no pattern nests repeats of groups, so a match needs constant stack whatever the text; single-character repeats step
 * back at most once over their length. PCRE2's own limits are lifted, as they count steps and not memory.
 */
#include "text/pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/mem.h"

#include <pcre2.h>
#include <string.h>

typedef struct row {
    const char *names;
    unsigned flags;
    const char *patterns[MICA_PRETOK_STAGES];
} row;

static const row rows[] = {
#define ROW(names, flags, ...) {names, flags, {__VA_ARGS__}},
#include "text/pretok_list.h"
#undef ROW
};

struct mica_pretok {
    const row *row;
    pcre2_code *codes[MICA_PRETOK_STAGES];
    unsigned n_stages;
    bool jit[MICA_PRETOK_STAGES];
};

/* Whether `name` is one of the space-separated `names`. */
static bool has_name(const char *names, const char *name, size_t length)
{
    while (*names) {
        size_t n = strcspn(names, " ");
        if (n == length && !memcmp(names, name, n)) {
            return true;
        }
        names += n + (names[n] == ' ');
    }
    return false;
}

static const row *find_row(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (has_name(rows[i].names, name, length)) {
            return &rows[i];
        }
    }
    return NULL;
}

static mica_status compile_stage(mica_pretok *p, const char *pattern, bool use_jit, mica_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_UTF_CHECK | PCRE2_NO_AUTO_CAPTURE;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (!compiled) {
        return mica_fail(err, MICA_UNSUPPORTED, "the installed PCRE2 cannot compile the pre-tokenizer %s (error %d at %zu)",
                         p->row->names, code, (size_t)at);
    }
    p->jit[p->n_stages] = use_jit && pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE) == 0;
    p->codes[p->n_stages++] = compiled;
    return MICA_OK;
}

mica_status mica_pretok_new(const char *name, size_t length, bool use_jit, mica_pretok **out, mica_error *err)
{
    *out = NULL;
    const row *found = find_row(name, length);
    if (!found) {
        return mica_fail(err, MICA_UNSUPPORTED, "the pre-tokenizer \"%.*s\" (tokenizer.ggml.pre) is not known to this build",
                         (int)(length < 64 ? length : 64), name);
    }
    mica_pretok *p = mica_new_array(1, sizeof(*p));
    if (!p) {
        return mica_fail_nomem(err, sizeof(*p), "the pre-tokenizer");
    }
    p->row = found;
    for (unsigned i = 0; i < MICA_PRETOK_STAGES && found->patterns[i]; i++) {
        mica_status status = compile_stage(p, found->patterns[i], use_jit, err);
        if (status) {
            mica_pretok_free(p);
            return status;
        }
    }
    *out = p;
    return MICA_OK;
}

void mica_pretok_free(mica_pretok *p)
{
    for (unsigned i = 0; p && i < p->n_stages; i++) {
        pcre2_code_free(p->codes[i]);
    }
    free(p);
}

unsigned mica_pretok_flags(const mica_pretok *p) { return p->row->flags; }

bool mica_pretok_jitted(const mica_pretok *p)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        if (!p->jit[i]) {
            return false;
        }
    }
    return true;
}

void mica_pretok_run_free(mica_pretok_run *run)
{
    pcre2_match_data_free(run->match);
    pcre2_match_context_free(run->context);
    free(run->ends);
    free(run->next_ends);
    memset(run, 0, sizeof(*run));
}

static mica_status start_run(mica_pretok_run *run, mica_error *err)
{
    if (run->match) {
        return MICA_OK;
    }
    run->match = pcre2_match_data_create(1, NULL);
    run->context = pcre2_match_context_create(NULL);
    if (!run->match || !run->context) {
        return mica_fail_nomem(err, 1024, "the pre-tokenizer");
    }
    pcre2_set_match_limit(run->context, UINT32_MAX);
    return MICA_OK;
}

/* Appends to next_ends. */
static bool push_end(mica_pretok_run *run, size_t *count, size_t end)
{
    if (*count == run->next_room) {
        size_t room = run->next_room ? 2 * run->next_room : 64;
        uint32_t *bigger = realloc(run->next_ends, room * sizeof(*bigger));
        if (!bigger) {
            return false;
        }
        run->next_ends = bigger;
        run->next_room = room;
    }
    run->next_ends[(*count)++] = (uint32_t)end;
    return true;
}

/* The next match of stage s in text[0..n) from `at` on. Returns 1 and its bounds, 0 for none, below 0 for PCRE2's error. */
static int next_match(const mica_pretok *p, unsigned s, mica_pretok_run *run, const char *text, size_t n, size_t at,
                      size_t *from, size_t *to)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = PCRE2_ERROR_JIT_BADOPTION;
    if (p->jit[s]) {
        rc = pcre2_jit_match(p->codes[s], subject, n, at, PCRE2_NOTEMPTY, run->match, run->context);
    }
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) { /* no machine code, or its stack was too small */
        uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT | PCRE2_NOTEMPTY;
        rc = pcre2_match(p->codes[s], subject, n, at, options, run->match, run->context);
    }
    if (rc < 0) {
        return rc == PCRE2_ERROR_NOMATCH ? 0 : rc;
    }
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(run->match);
    *from = bounds[0];
    *to = bounds[1];
    return *to > *from; /* NOTEMPTY keeps it so; no progress would be an endless loop */
}

/* Cuts text[begin..end) with stage s and appends the ends of the pieces to next_ends. */
static mica_status split_piece(const mica_pretok *p, unsigned s, mica_pretok_run *run, const char *text, size_t begin,
                               size_t end, size_t *count, mica_error *err)
{
    size_t at = 0, n = end - begin;
    bool fits = true;
    while (at < n && fits) {
        size_t from, to;
        int found = next_match(p, s, run, text + begin, n, at, &from, &to);
        if (found < 0) {
            return mica_fail(err, MICA_OUT_OF_MEMORY, "the pre-tokenizer stopped with PCRE2 error %d", found);
        }
        if (!found) {
            from = to = n;
        }
        if (from > at) {
            fits = push_end(run, count, begin + from);
        }
        if (to > from) {
            fits = fits && push_end(run, count, begin + to);
        }
        at = to;
    }
    return fits ? MICA_OK : mica_fail_nomem(err, n * sizeof(uint32_t), "splitting text");
}

static void swap_ends(mica_pretok_run *run)
{
    uint32_t *ends = run->ends;
    size_t room = run->room;
    run->ends = run->next_ends;
    run->room = run->next_room;
    run->next_ends = ends;
    run->next_room = room;
}

mica_status mica_pretok_split(const mica_pretok *p, mica_pretok_run *run, const char *text, size_t n, size_t *n_words,
                              mica_error *err)
{
    mica_status status = start_run(run, err);
    size_t count = 0;
    if (!status && n && !push_end(run, &count, n)) {
        status = mica_fail_nomem(err, 64 * sizeof(uint32_t), "splitting text");
    }
    for (unsigned s = 0; s < p->n_stages && !status; s++) {
        size_t n_pieces = count, begin = 0;
        swap_ends(run); /* what the stage before wrote is what this one reads */
        count = 0;
        for (size_t i = 0; i < n_pieces && !status; i++) {
            size_t end = run->ends[i];
            status = split_piece(p, s, run, text, begin, end, &count, err);
            begin = end;
        }
    }
    swap_ends(run);
    *n_words = count;
    return status;
}
