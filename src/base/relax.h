/* relax.h - one turn of a spin loop. The instruction tells the core that it waits, which frees an SMT sibling and saves power;
 * no portable C says that, so this is the base layer's one look at the instruction set. Called by pool.c. */
#ifndef MICA_BASE_RELAX_H
#define MICA_BASE_RELAX_H

static inline void mica_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

#endif
