/* cpu.h - what this CPU can run. */
#ifndef MICA_KERN_CPU_H
#define MICA_KERN_CPU_H
#include <stdbool.h>

bool mica_cpu_always(void);

/* x86-64 */
bool mica_cpu_has_avx2(void); /* AVX2, FMA, F16C and an operating system that saves their registers */
bool mica_cpu_has_avx_vnni(void); /* and AVX2, as above */
bool mica_cpu_has_avx512_vnni(void); /* AVX-512 F, BW, VL, DQ and VNNI, as above */
bool mica_cpu_has_amx(void);         /* and AMX with int8; asks Linux to let this process use it */

/* 64-bit ARM. NEON is part of every one; of cores that differ, what all have */
bool mica_cpu_has_dotprod(void);
bool mica_cpu_has_i8mm(void); /* and dotprod */

/* WebAssembly with relaxed vector instructions: the engine and the CPU below it round a relaxed multiply-add once */
bool mica_cpu_has_fused_madd(void);

#endif
