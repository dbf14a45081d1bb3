#include "kern/cpu.h"

bool mica_cpu_always(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_f16c(void) /* not among the names that every compiler's __builtin_cpu_supports knows */
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* __builtin_cpu_supports checks XGETBV as well: a CPU whose registers the kernel does not save counts as without. */
bool mica_cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool mica_cpu_has_avx512_vnni(void)
{
    return mica_cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}
#endif
