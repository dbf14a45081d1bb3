/* engine.h - the inside of a mica_model: everything about a model that sessions share. Immutable after opening,
 * but for what is made at its first use. */
#ifndef MICA_SESSION_ENGINE_H
#define MICA_SESSION_ENGINE_H
#include <stdatomic.h>

#include "constraint/mask.h"
#include "kern/kern.h"
#include "model/weights.h"
#include "text/chat.h"
#include "text/vocab.h"

typedef struct mica_identity mica_identity;

struct mica_model {
    atomic_int references;
    mica_gguf *gguf;
    mica_weights weights;
    mica_kernels kernels;
    mica_vocab *vocab;
    char *chat_template;       /* text, "" if none */
    mica_template *compiled;   /* NULL if none, or if it does not compile: */
    mica_error template_error; /* then why */
    char *architecture, *name; /* terminated copies */
    double load_ms;
    bool locked;              /* the file is kept in memory */
    int64_t base_bytes;       /* resident memory of the process before the model was opened */
    _Atomic int64_t reserved; /* bytes of KV caches and workspaces of its sessions and batches */
    _Atomic(mica_token_trie *) trie; /* of the vocabulary, for constraints; NULL: nobody asked yet */
    _Atomic uint64_t fingerprint; /* mica_model_fingerprint(); 0: nobody asked yet */
    _Atomic(mica_identity *) identity; /* mica_model_identify(); NULL: nobody asked yet */
};

/** mica_model_chat_render() of a request that was read already, which does not change; info.c. */
mica_status mica_model_chat_run(const mica_model *m, json_t *request, int64_t now_unix, char **text, size_t *length,
                                mica_error *err);

#endif
