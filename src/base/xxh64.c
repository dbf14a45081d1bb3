#include "base/xxh64.h"

#include <string.h>

#include "base/endian.h"
#include "base/rng.h"

#define STRIPE 32

static const uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu, prime3 = 0x165667B19E3779F9u,
                      prime4 = 0x85EBCA77C2B2AE63u, prime5 = 0x27D4EB2F165667C5u;

static uint64_t round_lane(uint64_t lane, uint64_t input) { return mica_rotl64(lane + input * prime2, 31) * prime1; }

/* Step 2 of the specification over whole stripes; returns what is left of the length. */
static size_t take_stripes(uint64_t lanes[4], const uint8_t *p, size_t length)
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; length >= STRIPE; p += STRIPE, length -= STRIPE) {
        a = round_lane(a, mica_load_le64(p));
        b = round_lane(b, mica_load_le64(p + 8));
        c = round_lane(c, mica_load_le64(p + 16));
        d = round_lane(d, mica_load_le64(p + 24));
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
    return length;
}

void mica_xxh64_start(mica_xxh64 *hash, uint64_t seed)
{
    *hash = (mica_xxh64){.lanes = {seed + prime1 + prime2, seed + prime2, seed, seed - prime1}};
}

void mica_xxh64_add(mica_xxh64 *hash, const void *data, size_t length)
{
    const uint8_t *p = data;
    size_t held = (size_t)(hash->total % STRIPE);
    if (length == 0)
        return;
    hash->total += length;
    if (held > 0) {
        size_t part = length < STRIPE - held ? length : STRIPE - held;
        memcpy(hash->stripe + held, p, part);
        p += part;
        length -= part;
        if (held + part < STRIPE)
            return;
        take_stripes(hash->lanes, hash->stripe, STRIPE);
    }
    size_t rest = take_stripes(hash->lanes, p, length);
    memcpy(hash->stripe, p + (length - rest), rest);
}

/* Step 3: the four lanes become one. */
static uint64_t converge(const uint64_t lanes[4])
{
    uint64_t h = mica_rotl64(lanes[0], 1) + mica_rotl64(lanes[1], 7) + mica_rotl64(lanes[2], 12) + mica_rotl64(lanes[3], 18);
    for (int i = 0; i < 4; i++)
        h = (h ^ round_lane(0, lanes[i])) * prime1 + prime4;
    return h;
}

uint64_t mica_xxh64_value(const mica_xxh64 *hash)
{
    const uint8_t *p = hash->stripe, *end = p + hash->total % STRIPE;
    /* lanes[2] is still the seed while no stripe is full */
    uint64_t h = (hash->total < STRIPE ? hash->lanes[2] + prime5 : converge(hash->lanes)) + hash->total;
    for (; end - p >= 8; p += 8)
        h = mica_rotl64(h ^ round_lane(0, mica_load_le64(p)), 27) * prime1 + prime4;
    if (end - p >= 4) {
        h = mica_rotl64(h ^ mica_load_le32(p) * prime1, 23) * prime2 + prime3;
        p += 4;
    }
    for (; p < end; p++)
        h = mica_rotl64(h ^ *p * prime5, 11) * prime1;
    h = (h ^ (h >> 33)) * prime2;
    h = (h ^ (h >> 29)) * prime3;
    return h ^ (h >> 32);
}

uint64_t mica_xxh64_of(const void *data, size_t length)
{
    mica_xxh64 hash;
    mica_xxh64_start(&hash, 0);
    mica_xxh64_add(&hash, data, length);
    return mica_xxh64_value(&hash);
}
