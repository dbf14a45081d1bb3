/* intrinsics.h - arm_neon.h with the intrinsics of the extensions that single functions are compiled for. To be included before
 * MICA_TARGET_BEGIN. */
#ifndef MICA_KERN_ARM_INTRINSICS_H
#define MICA_KERN_ARM_INTRINSICS_H

/* clang before 16 declares those of an extension only where the whole file is compiled for it. They are inline functions
 * without a target of their own: declared, they become part of the functions that call them, which have the target. */
#if defined(__clang__) && __clang_major__ < 16
#ifndef __ARM_FEATURE_DOTPROD
#define __ARM_FEATURE_DOTPROD 1
#endif
#ifndef __ARM_FEATURE_MATMUL_INT8
#define __ARM_FEATURE_MATMUL_INT8 1
#endif
#endif
#include <arm_neon.h>

#endif
