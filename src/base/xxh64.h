/* xxh64.h - the 64-bit hash XXH64: finds damage in files and tells models apart. Not for secrets: it can be forged.
 *
 * Written from the public specification, "xxHash fast digest algorithm" 0.1.1 (doc/xxhash_spec.md of the xxHash project), so
 * that other tools can check our files. Gives the same number on every machine. Called by model/fingerprint and
 * session/snapshot. */
#ifndef MICA_BASE_XXH64_H
#define MICA_BASE_XXH64_H
#include <stddef.h>
#include <stdint.h>

/** A hash under way. Zero allocation; copy it to branch off. */
typedef struct mica_xxh64 {
    uint64_t lanes[4];
    uint64_t total;     /* bytes taken so far */
    uint8_t stripe[32]; /* the last total % 32 of them */
} mica_xxh64;

void mica_xxh64_start(mica_xxh64 *hash, uint64_t seed);
/** The next bytes; where the input is cut into pieces makes no difference. `data` may be NULL if length is 0. */
void mica_xxh64_add(mica_xxh64 *hash, const void *data, size_t length);
/** The hash of all bytes so far; more may follow. */
uint64_t mica_xxh64_value(const mica_xxh64 *hash);

/** Hash of one piece with seed 0. */
uint64_t mica_xxh64_of(const void *data, size_t length);

#endif
