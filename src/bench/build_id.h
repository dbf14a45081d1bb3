/* build_id.h - which build of mica measured: the id that the linker gave the program, which any change of its code changes.
 * Called by measure.c. */
#ifndef MICA_BENCH_BUILD_ID_H
#define MICA_BENCH_BUILD_ID_H
#include <stdbool.h>

/** Hexadecimal digits of the running program's GNU build id; false: it was linked without one. */
bool mica_build_id(char out[65]);

#endif
