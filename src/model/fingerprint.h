/* fingerprint.h - a number that tells one model from another without reading its weights. Called by session/snapshot. */
#ifndef MICA_MODEL_FINGERPRINT_H
#define MICA_MODEL_FINGERPRINT_H
#include "model/gguf.h"

/** XXH64 over what a KV cache depends on (docs/snapshots.md has the list): the architecture's metadata, the token texts, every
 * tensor's name, type and shape, all of the small tensors and samples of the large ones. Takes a few milliseconds. Chat
 * template, names and comments of the file do not count, nor whether it is split. Never 0. */
uint64_t mica_model_fingerprint(const mica_gguf *g);

#endif
