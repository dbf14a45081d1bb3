/* tile_config.h - put in front of every file of llama.cpp by build_options.py; for GCC and processors with AMX.

   GCC 12's _tile_loadconfig() tells the optimiser that the instruction reads one pointer's size of the 64 bytes that it reads.
   Of a configuration on the stack the rest is then never stored, and ldtilecfg faults: llama.cpp ends with a segmentation
   fault in its first matrix product. Here all 64 bytes are an input. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AMX_TILE__)
#include <immintrin.h>
struct mica_tile_config {
    unsigned char bytes[64];
};
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(const struct mica_tile_config *)(config)))
#endif
