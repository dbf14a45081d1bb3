/* amx_tiles.h - the tile instructions of AMX. tests/simde has the same names in plain C, for processors without.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "Intel AMX". They are assembly that clobbers memory: the
 * intrinsics of GCC 12 do not say what they read, so that stores to memory could be moved behind the load of a tile.
 */
#ifndef MICA_KERN_X86_AMX_TILES_H
#define MICA_KERN_X86_AMX_TILES_H
#include <stdint.h>

#include "kern/target.h"

typedef struct tile_config { /* palette 1: for each tile its rows, and the bytes of a row */
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the layout is the CPU's");

/* For steps over `weights` weights, 32 or 64: tiles 0 to 3 are 16 x 16 int32, 4 and 5 the bytes of 16 tokens, 6 and 7 those of 16 rows. */
MICA_INLINE void tiles_configure(int weights)
{
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(i < 6 ? 16 : weights / 4);
        c.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? weights : 64);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c) : "memory");
}

MICA_INLINE void tiles_release(void) { __asm__ volatile("tilerelease" ::: "memory"); }

#define TILE_ZERO(i) __asm__ volatile("tilezero %%tmm" #i ::: "memory")
/* Rows `stride` bytes apart. */
#define TILE_LOAD(i, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #i ::"r"(from), "r"((int64_t)(stride)) : "memory")
/* Rows of 64 bytes, one after another. */
#define TILE_STORE(i, to) __asm__ volatile("tilestored %%tmm" #i ", (%0,%1,1)" ::"r"(to), "r"((int64_t)64) : "memory")
/* Tile `sums` += tile 4 (signed bytes) times tile `weights`: signed bytes if op is ss, unsigned if su. */
#define TILE_ADD(op, sums, weights) __asm__ volatile("tdpb" #op "d %%tmm" #weights ", %%tmm4, %%tmm" #sums ::: "memory")

#endif
