/* amx_tiles.h - in place of src/kern/x86/amx_tiles.h where kernels are compiled for an emulation: the tiles in plain C. */
#ifndef MICA_KERN_X86_AMX_TILES_H
#define MICA_KERN_X86_AMX_TILES_H
#include <stdint.h>
#include <string.h>

#include "kern/target.h"

enum { TILE_ss, TILE_su };

static struct tiles {
    uint8_t bytes[8][16][64];
    int weights; /* of a step; 0: not configured, and every use is an error that the comparison shows */
} tiles;

static inline void tiles_configure(int weights)
{
    memset(&tiles, 0, sizeof tiles);
    tiles.weights = weights;
}

static inline void tiles_release(void) { memset(&tiles, 0, sizeof tiles); }

static inline void tile_load(int i, const void *from, int64_t stride)
{
    int rows = i < 6 ? 16 : tiles.weights / 4, n = i == 4 || i == 5 ? tiles.weights : 64;
    for (int r = 0; r < rows; r++)
        memcpy(tiles.bytes[i][r], (const char *)from + r * stride, (size_t)n);
}

static inline int tile_product(int op, int8_t x, uint8_t w) { return x * (op == TILE_su ? (int)w : (int)(int8_t)w); }

static inline void tile_add(int op, int sums, int weights)
{
    for (int t = 0; t < 16; t++)
        for (int r = 0; r < 16; r++) {
            int32_t sum;
            memcpy(&sum, &tiles.bytes[sums][t][4 * r], 4);
            for (int k = 0; k < tiles.weights; k++)
                sum += tile_product(op, (int8_t)tiles.bytes[4][t][k], tiles.bytes[weights][k / 4][4 * r + k % 4]);
            memcpy(&tiles.bytes[sums][t][4 * r], &sum, 4);
        }
}

#define TILE_ZERO(i) memset(tiles.bytes[i], 0, sizeof tiles.bytes[i])
#define TILE_LOAD(i, from, stride) tile_load(i, from, stride)
#define TILE_STORE(i, to) memcpy(to, tiles.bytes[i], sizeof tiles.bytes[i])
#define TILE_ADD(op, sums, weights) tile_add(TILE_##op, sums, weights)

#endif
