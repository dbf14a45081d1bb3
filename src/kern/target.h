/* target.h - compiles the functions between MICA_TARGET_BEGIN and MICA_TARGET_END for an instruction set, whatever the flags of
 * the build, so that one plain `cc` line builds every kernel set. */
#ifndef MICA_KERN_TARGET_H
#define MICA_KERN_TARGET_H

#define MICA_PRAGMA(text) _Pragma(#text)
#if defined(MICA_NO_TARGET) /* tests that compile a set for an emulation of its instructions: tests/simde */
#define MICA_TARGET_BEGIN(features)
#define MICA_TARGET_END
#elif defined(__clang__)
#define MICA_TARGET_BEGIN(features) MICA_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define MICA_TARGET_END MICA_PRAGMA(clang attribute pop)
#else
#define MICA_TARGET_BEGIN(features) MICA_PRAGMA(GCC push_options) MICA_PRAGMA(GCC target(features))
#define MICA_TARGET_END MICA_PRAGMA(GCC pop_options)
#endif

/* gcc asks for an architecture, clang 14 knows extensions only. */
#if defined(__clang__)
#define MICA_TARGET_DOTPROD "dotprod"
#define MICA_TARGET_I8MM "dotprod,i8mm"
#else
#define MICA_TARGET_DOTPROD "arch=armv8.2-a+dotprod"
#define MICA_TARGET_I8MM "arch=armv8.2-a+dotprod+i8mm"
#endif

/* Before a loop whose arrays are to live in registers. */
#define UNROLL MICA_PRAGMA(GCC unroll 8)
#define MICA_INLINE static inline __attribute__((always_inline))

#endif
