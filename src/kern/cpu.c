#include "kern/cpu.h"

bool mica_cpu_always(void) { return true; }

#if defined(__x86_64__)
/* __builtin_cpu_supports checks XGETBV as well: a CPU whose registers the kernel does not save counts as without. */
bool mica_cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
#endif
