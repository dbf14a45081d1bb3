#include "convert/imatrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "convert/gguf_write.h"

#define SUMS "in_sum2"
#define COUNTS "counts"

typedef struct entry {
    char name[MICA_IMATRIX_NAME];
    const uint8_t *data; /* of the model's tensor, while collecting */
    int64_t cols;
    int64_t tokens;
    double *sums;  /* [cols] while collecting */
    float *means;  /* [cols] when it was read */
} entry;

struct mica_imatrix {
    entry *entries;
    size_t n;
    size_t last; /* where the search begins: matrices come in turn */
};

void mica_imatrix_free(mica_imatrix *m)
{
    for (size_t i = 0; m && i < m->n; i++) {
        free(m->entries[i].sums);
        free(m->entries[i].means);
    }
    if (m)
        free(m->entries);
    free(m);
}

/* Room for `n` entries. */
static mica_status start(size_t n, mica_imatrix **out, mica_error *err)
{
    mica_imatrix *m = *out = mica_new_array(1, sizeof *m);
    if (m)
        m->entries = mica_new_array(n, sizeof *m->entries);
    if (m && m->entries)
        return MICA_OK;
    free(m);
    *out = NULL;
    return mica_fail_nomem(err, n * sizeof(entry), "an importance matrix");
}

/* ---- Collecting ---- */

/* Matrices whose inputs can be seen: those of the layers, with names that leave room for the file's suffix. */
static bool is_collected(const mica_gguf_tensor *t)
{
    return t->dims[1] > 1 && t->name.length > 4 && memcmp(t->name.data, "blk.", 4) == 0 && t->name.length + sizeof "." SUMS <= MICA_IMATRIX_NAME;
}

mica_status mica_imatrix_new(const mica_gguf *g, mica_imatrix **out, mica_error *err)
{
    size_t n = mica_gguf_tensor_count(g);
    mica_status status = start(n, out, err);
    for (size_t i = 0; i < n && !status; i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        if (!is_collected(t))
            continue;
        entry *e = &(*out)->entries[(*out)->n++];
        memcpy(e->name, t->name.data, t->name.length);
        e->data = t->data;
        e->cols = t->dims[0];
        e->sums = mica_new_array((size_t)e->cols, sizeof *e->sums);
        if (!e->sums)
            status = mica_fail_nomem(err, (size_t)e->cols * sizeof *e->sums, "an importance matrix");
    }
    if (status) {
        mica_imatrix_free(*out);
        *out = NULL;
    }
    return status;
}

static entry *find_data(mica_imatrix *m, const uint8_t *data)
{
    for (size_t i = 0; i < m->n; i++) {
        size_t at = (m->last + i) % m->n;
        if (m->entries[at].data == data) {
            m->last = at;
            return &m->entries[at];
        }
    }
    return NULL;
}

void mica_imatrix_add(void *imatrix, const mica_weight *w, const float *x, int32_t n)
{
    entry *e = find_data(imatrix, w->data);
    if (!e)
        return;
    for (int32_t t = 0; t < n; t++, x += e->cols)
        for (int64_t i = 0; i < e->cols; i++)
            e->sums[i] += (double)x[i] * (double)x[i];
    e->tokens += n;
}

int64_t mica_imatrix_tokens(const mica_imatrix *m)
{
    int64_t most = 0;
    for (size_t i = 0; i < m->n; i++)
        most = m->entries[i].tokens > most ? m->entries[i].tokens : most;
    return most;
}

/* ---- The file ---- */

static void name_tensors(const mica_imatrix *m, mica_gguf_writer *w)
{
    const mica_quant *f32 = mica_quant_of(MICA_TYPE_F32);
    for (size_t i = 0; i < m->n; i++) {
        const entry *e = &m->entries[i];
        char name[MICA_IMATRIX_NAME + 1];
        int n = snprintf(name, sizeof name, "%s." SUMS, e->name);
        mica_gguf_writer_tensor(w, (mica_str){name, (size_t)n}, f32, 2, (int64_t[]){e->cols, 1});
        n = snprintf(name, sizeof name, "%s." COUNTS, e->name);
        mica_gguf_writer_tensor(w, (mica_str){name, (size_t)n}, f32, 2, (int64_t[]){1, 1});
    }
}

/* The floats are written as they are in memory: every machine that this runs on is little-endian (base/endian.h). */
static mica_status write_entry(const entry *e, mica_gguf_writer *w, mica_error *err)
{
    float *sums = mica_new_array((size_t)e->cols, sizeof *sums), tokens = (float)e->tokens;
    if (!sums)
        return mica_fail_nomem(err, (size_t)e->cols * sizeof *sums, "an importance matrix");
    for (int64_t i = 0; i < e->cols; i++)
        sums[i] = (float)e->sums[i];
    mica_status status = mica_gguf_writer_data(w, sums, (size_t)e->cols * sizeof *sums, err);
    free(sums);
    return status ? status : mica_gguf_writer_data(w, &tokens, sizeof tokens, err);
}

mica_status mica_imatrix_write(const mica_imatrix *m, const char *path, const char *text, int32_t window, mica_error *err)
{
    mica_gguf_writer *w;
    mica_status status = mica_gguf_writer_new(path, &w, err);
    if (status)
        return status;
    mica_gguf_writer_text(w, "general.type", "imatrix");
    mica_gguf_writer_texts(w, "imatrix.datasets", &text, 1);
    mica_gguf_writer_u32(w, "imatrix.chunk_count", (uint32_t)(mica_imatrix_tokens(m) / window));
    mica_gguf_writer_u32(w, "imatrix.chunk_size", (uint32_t)window);
    name_tensors(m, w);
    status = mica_gguf_writer_begin(w, err);
    for (size_t i = 0; i < m->n && !status; i++)
        status = write_entry(&m->entries[i], w, err);
    if (!status)
        status = mica_gguf_writer_finish(w, err);
    mica_gguf_writer_free(w);
    return status;
}

/* ---- Reading ---- */

static float f32_at(const mica_gguf_tensor *t, int64_t i)
{
    float value;
    memcpy(&value, t->data + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* The name before ".in_sum2"; false: another tensor. */
static bool matrix_name(const mica_gguf_tensor *t, char name[MICA_IMATRIX_NAME])
{
    size_t suffix = sizeof "." SUMS - 1, length = t->name.length;
    if (length <= suffix || length - suffix >= MICA_IMATRIX_NAME || memcmp(t->name.data + length - suffix, "." SUMS, suffix) != 0)
        return false;
    memcpy(name, t->name.data, length - suffix);
    name[length - suffix] = '\0';
    return true;
}

static mica_status fail_tensor(const mica_gguf *g, const char *name, const char *what, mica_error *err)
{
    return mica_fail(err, MICA_BAD_FILE, "%s: the importance of %s %s", mica_gguf_path(g), name, what);
}

static mica_status read_entry(const mica_gguf *g, const mica_gguf_tensor *t, entry *e, mica_error *err)
{
    char counts_name[MICA_IMATRIX_NAME + 16];
    snprintf(counts_name, sizeof counts_name, "%s." COUNTS, e->name);
    const mica_gguf_tensor *counts = mica_gguf_tensor_find(g, counts_name);
    if (!counts || counts->quant->type != MICA_TYPE_F32 || t->quant->type != MICA_TYPE_F32)
        return fail_tensor(g, e->name, "is not F32, or has no counts", err);
    if (t->dims[1] != 1 || t->dims[2] != 1 || t->dims[3] != 1)
        return fail_tensor(g, e->name, "is of a mixture of experts, which is not supported", err);
    float tokens = f32_at(counts, 0);
    e->cols = t->dims[0];
    e->means = mica_new_array((size_t)e->cols, sizeof *e->means);
    if (!e->means)
        return mica_fail_nomem(err, (size_t)e->cols * sizeof *e->means, "an importance matrix");
    for (int64_t i = 0; i < e->cols; i++) {
        e->means[i] = tokens > 0.0f ? f32_at(t, i) / tokens : 0.0f;
        if (!isfinite(e->means[i]) || e->means[i] < 0.0f)
            return fail_tensor(g, e->name, "has values that are no mean squares", err);
    }
    e->tokens = tokens > 0.0f && tokens < 9e18f ? (int64_t)tokens : 0;
    return MICA_OK;
}

static mica_status read_entries(const mica_gguf *g, mica_imatrix *m, mica_error *err)
{
    mica_str type = {0};
    mica_status status = mica_gguf_get_str(g, "general.type", false, &type, err);
    if (!status && (type.length != 7 || memcmp(type.data, "imatrix", 7) != 0))
        status = mica_fail(err, MICA_BAD_FILE, "%s is not an importance matrix (general.type is not imatrix); mica imatrix makes one",
                           mica_gguf_path(g));
    for (size_t i = 0; i < mica_gguf_tensor_count(g) && !status; i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        if (matrix_name(t, m->entries[m->n].name)) {
            m->n++;
            status = read_entry(g, t, &m->entries[m->n - 1], err);
        }
    }
    if (!status && m->n == 0)
        status = mica_fail(err, MICA_BAD_FILE, "%s holds no tensor NAME." SUMS, mica_gguf_path(g));
    return status;
}

mica_status mica_imatrix_read(const char *path, mica_imatrix **out, mica_error *err)
{
    mica_gguf *g;
    *out = NULL;
    mica_status status = mica_gguf_open(path, &g, err);
    if (status)
        return status;
    status = start(mica_gguf_tensor_count(g), out, err);
    if (!status)
        status = read_entries(g, *out, err);
    if (status) {
        mica_imatrix_free(*out);
        *out = NULL;
    }
    mica_gguf_close(g);
    return status;
}

const float *mica_imatrix_find(const mica_imatrix *m, mica_str name, int64_t *n)
{
    for (size_t i = 0; i < m->n; i++) {
        const entry *e = &m->entries[i];
        if (strlen(e->name) == name.length && memcmp(e->name, name.data, name.length) == 0) {
            *n = e->cols;
            return e->tokens > 0 ? e->means : NULL;
        }
    }
    return NULL;
}
