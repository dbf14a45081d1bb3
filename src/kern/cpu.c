#include "kern/cpu.h"

bool mica_cpu_always(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

/* The CPU is asked, and not __builtin_cpu_supports: not every compiler's knows all names, and the run-time library of some, which static
 * programs get, says no to every one. Bits as in Intel's manual (volume 2, CPUID and XGETBV). */
enum { FMA = 1 << 12, OSXSAVE = 1 << 27, F16C = 1 << 29 }; /* leaf 1, ecx */
enum { AVX2 = 1 << 5 };                                    /* leaf 7, ebx; AVX-512 F, DQ, BW and VL: */
#define AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31)
enum { AVX512_VNNI = 1 << 11 }; /* leaf 7, ecx */

/* Whether the operating system saves all these registers, bits of XCR0. */
static bool saves(unsigned registers)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & registers) == registers;
}

bool mica_cpu_has_avx2(void)
{
    enum { YMM = 0x6 };
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & FMA) || !(c & F16C) || !saves(YMM))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & AVX2);
}

bool mica_cpu_has_avx_vnni(void)
{
    unsigned last, a, b, c, d;
    return mica_cpu_has_avx2() && __get_cpuid_count(7, 0, &last, &b, &c, &d) && last >= 1 &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

bool mica_cpu_has_avx512_vnni(void)
{
    enum { ZMM = 0xE6 }; /* masks, upper halves and registers 16 to 31 too */
    unsigned a, b, c, d;
    return mica_cpu_has_avx2() && saves(ZMM) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & AVX512) == AVX512 && (c & AVX512_VNNI);
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

bool mica_cpu_has_amx(void)
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

#elif defined(__wasm_relaxed_simd__)
#include <wasm_simd128.h>

bool mica_cpu_has_fused_madd(void)
{
    /* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, of which a product that is rounded loses the last term. volatile: asked when it runs */
    volatile float x = 1.0f + 0x1p-12f, c = -(1.0f + 0x1p-11f);
    v128_t r = wasm_f32x4_relaxed_madd(wasm_f32x4_splat(x), wasm_f32x4_splat(x), wasm_f32x4_splat(c));
    return wasm_f32x4_extract_lane(r, 0) == 0x1p-24f;
}
#endif
