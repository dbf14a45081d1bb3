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

bool mica_cpu_has_avx_vnni(void) /* asked of the CPU for the same reason */
{
    unsigned last, a, b, c, d;
    return mica_cpu_has_avx2() && __get_cpuid_count(7, 0, &last, &b, &c, &d) && last >= 1 &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

bool mica_cpu_has_avx512_vnni(void)
{
    return mica_cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/* Linux gives a process the tiles' 8 KiB of state only if it asks (its documentation: arch/x86/xstate.rst). Threads that exist get it too;
 * it is refused where some thread's signal stack is too small for it, and asking again does no harm. */
static bool may_use_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
static bool may_use_tiles(void) { return false; } /* no way to ask */
#endif

bool mica_cpu_has_amx(void) /* asked of the CPU because not every compiler's __builtin_cpu_supports knows it */
{
    enum { TILE = 1 << 24, INT8 = 1 << 25 };
    unsigned a, b, c, d;
    return mica_cpu_has_avx512_vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & INT8) && may_use_tiles();
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

/* Bits of the kernel's interface, as in its asm/hwcap.h, which older headers lack. */
#define HAS_ASIMDDP (1ul << 20) /* AT_HWCAP */
#define HAS_I8MM (1ul << 13)    /* AT_HWCAP2 */

bool mica_cpu_has_dotprod(void) { return (getauxval(AT_HWCAP) & HAS_ASIMDDP) != 0; }

bool mica_cpu_has_i8mm(void) { return mica_cpu_has_dotprod() && (getauxval(AT_HWCAP2) & HAS_I8MM) != 0; }

#elif defined(__aarch64__) && defined(__APPLE__)
#include <stddef.h>
#include <sys/sysctl.h>

static bool has_feature(const char *name)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}

bool mica_cpu_has_dotprod(void) { return has_feature("hw.optional.arm.FEAT_DotProd"); }

bool mica_cpu_has_i8mm(void) { return mica_cpu_has_dotprod() && has_feature("hw.optional.arm.FEAT_I8MM"); }

#elif defined(__aarch64__)
bool mica_cpu_has_dotprod(void) { return false; } /* no way to ask: the baseline is always right */

bool mica_cpu_has_i8mm(void) { return false; }
#endif
