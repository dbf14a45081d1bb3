/* identity.h - which model this is, to the bit: SHA-256 of its file, its tokenizer and its chat template. Reading a file of
 * gigabytes takes seconds, so it is done once for a model, by whoever asks first, and a small file may keep what was found.
 * Called by receipt.c. */
#ifndef MICA_SESSION_IDENTITY_H
#define MICA_SESSION_IDENTITY_H
#include "base/sha256.h"
#include "session/engine.h"

struct mica_identity {
    char model[MICA_SHA256_TEXT];         /* of the file's bytes; of a split model those of all files, one after another */
    char tokenizer[MICA_SHA256_TEXT];     /* of the metadata entries tokenizer.* but the templates, as they stand in the file */
    char chat_template[MICA_SHA256_TEXT]; /* of the template in use, which may not be the file's; "" if there is none */
    bool from_cache;                      /* `model` was not computed now, but found under the file's path, size and time */
};

/** Borrowed until the model is closed. `cache`: a file of hashes, made if it is not there; NULL: none. From any thread. */
mica_status mica_model_identify(mica_model *m, const char *cache, const mica_identity **out, mica_error *err);

/** What a model owns, when it is closed. NULL is fine. */
void mica_identity_free(mica_identity *identity);

#endif
