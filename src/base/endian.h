/* endian.h - little-endian integers in files, whatever the machine. Compilers make one instruction of each. Called by the code
 * of formats of our own. */
#ifndef MICA_BASE_ENDIAN_H
#define MICA_BASE_ENDIAN_H
#include <stdint.h>

static inline uint32_t mica_load_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* One expression: gcc 12 does not make a single load of two calls of the above. */
static inline uint64_t mica_load_le64(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline void mica_store_le32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static inline void mica_store_le64(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

#endif
