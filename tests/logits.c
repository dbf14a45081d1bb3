/* logits.c - the hash of all logits of small models, one line for each model, cache type and prompt: what must be equal on
 * every processor. tests/emulated.py compares these lines between this machine and emulated ones.
 *
 *     logits write FOLDER              writes a random model of each weight type
 *     logits hash KERNELS FILE...      KERNELS: a set, or "best"; the first line names the set that ran
 *
 * Uses the layers up to src/model only, so that few files need the cross compiler and no library of another architecture.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "kern/kern.h"
#include "model/forward.h"
#include "model/gguf.h"
#include "unit/random_model.h"

#ifndef MICA_LOGITS_THREADS
#define MICA_LOGITS_THREADS 2
#endif

enum { N_VOCAB = 288, MAX_CTX = 128, CHUNK = 64 }; /* all models here have this vocabulary */

static int complain(const char *what)
{
    fprintf(stderr, "logits: %s\n", what);
    return 1;
}

static void *reserve(size_t bytes)
{
    void *memory = aligned_alloc(64, mica_round_up(bytes, 64));
    if (!memory)
        exit(complain("out of memory"));
    memset(memory, 0, bytes);
    return memory;
}

static uint64_t hash_bytes(uint64_t h, const void *data, size_t n) /* FNV-1a */
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3ull;
    return h;
}

typedef struct prompt {
    int32_t n_prefill, n; /* tokens computed together, then one by one */
} prompt;

static uint64_t hash_prompt(mica_exec *e, mica_kv *kv, prompt p)
{
    int32_t tokens[MAX_CTX];
    uint64_t h = 0xCBF29CE484222325ull;
    for (int32_t i = 0; i < p.n; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
    for (int32_t pos = 0, n; pos < p.n; pos += n) {
        n = pos == 0 ? p.n_prefill : 1;
        mica_span span = {.kv = kv, .tokens = tokens + pos, .n = n, .pos = pos, .n_logits = n};
        mica_forward(e, &span, 1);
        h = hash_bytes(h, e->logits, (size_t)n * N_VOCAB * sizeof *e->logits);
    }
    return h;
}

static uint64_t hash_cache(const mica_weights *w, const mica_kernels *kern, mica_pool *pool, const mica_quant *quant, prompt p)
{
    int threads = mica_pool_threads(pool);
    size_t half = mica_kv_half_bytes(&w->h, quant, MAX_CTX, CHUNK);
    void *k = reserve(half), *v = reserve(half), *work = reserve(mica_exec_bytes(w, CHUNK, CHUNK, threads));
    mica_kv kv;
    mica_kv_init(&kv, &w->h, MAX_CTX, CHUNK, quant, quant, k, v);
    mica_exec e = {.w = w, .kern = kern, .pool = pool, .chunk = CHUNK, .logits_max = CHUNK};
    mica_exec_layout(&e, work, threads, MAX_CTX);
    uint64_t h = hash_prompt(&e, &kv, p);
    free(k);
    free(v);
    free(work);
    return h;
}

static int hash_file(const char *path, const mica_kernels *kern, mica_pool *pool)
{
    static const mica_type caches[] = {MICA_TYPE_F16, MICA_TYPE_Q8_0, MICA_TYPE_Q4_0};
    static const prompt prompts[] = {{9, 11}, {64, 70}};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    mica_gguf *g;
    mica_weights w;
    mica_error err;
    if (mica_gguf_open(path, &g, &err))
        return complain(err.message);
    if (mica_weights_bind(g, N_VOCAB, NULL, NULL, &w, &err)) {
        mica_gguf_close(g);
        return complain(err.message);
    }
    size_t n_prompts = strncmp(name, "random-", 7) == 0 ? 1 : 2; /* those are larger, and emulators slow */
    for (size_t c = 0; c < 3; c++) {
        const mica_quant *quant = mica_quant_of(caches[c]);
        for (size_t i = 0; i < n_prompts && mica_kv_fits(&w.h, quant); i++)
            printf("%s %s %d: %016llx\n", name, quant->name, prompts[i].n,
                   (unsigned long long)hash_cache(&w, kern, pool, quant, prompts[i]));
    }
    mica_weights_free(&w);
    mica_gguf_close(g);
    return 0;
}

static int hash_files(const char *set, char **paths, int n)
{
    mica_kernels kern;
    mica_pool *pool;
    mica_error err;
    int status = 0;
    if (mica_kernels_choose(strcmp(set, "best") == 0 ? NULL : set, &kern, &err) || mica_kernels_check(&kern, NULL, &err) ||
        mica_pool_new(MICA_LOGITS_THREADS, NULL, &pool, &err))
        return complain(err.message);
    printf("kernels %s\n", kern.name);
    for (int i = 0; i < n && status == 0; i++)
        status = hash_file(paths[i], &kern, pool);
    mica_pool_free(pool);
    return status;
}

static int write_models(const char *folder)
{
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
        char path[4096];
        if (!mica_quant_of(type))
            continue;
        snprintf(path, sizeof path, "%s/random-%s.gguf", folder, mica_quant_of(type)->name);
        if (!write_random_model(path, (mica_type)type))
            return complain("cannot write the models");
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_models(argv[2]);
    if (argc > 3 && strcmp(argv[1], "hash") == 0)
        return hash_files(argv[2], argv + 3, argc - 3);
    return complain("usage: logits write FOLDER | logits hash KERNELS FILE...");
}
