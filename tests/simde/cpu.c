/* cpu.c - in place of src/kern/cpu.c where kernels are compiled for an emulation: what has AVX2 "has" AVX-VNNI,
 * AVX-512 and AMX. */
#include "kern/cpu.h"

bool mica_cpu_always(void) { return true; }

bool mica_cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool mica_cpu_has_avx_vnni(void) { return mica_cpu_has_avx2(); }

bool mica_cpu_has_avx512_vnni(void) { return mica_cpu_has_avx2(); }

bool mica_cpu_has_amx(void) { return mica_cpu_has_avx2(); }
