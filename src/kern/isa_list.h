/* One row an instruction set, weakest first. ISA(name, supported, fill, condition on the build) */
ISA(portable, mica_cpu_always, mica_kernels_fill_portable)
#if defined(__x86_64__)
ISA(avx2, mica_cpu_has_avx2, mica_kernels_fill_avx2)
ISA(avxvnni, mica_cpu_has_avx_vnni, mica_kernels_fill_avxvnni)
ISA(avx512, mica_cpu_has_avx512_vnni, mica_kernels_fill_avx512)
ISA(amx, mica_cpu_has_amx, mica_kernels_fill_amx)
#elif defined(__aarch64__)
ISA(neon, mica_cpu_always, mica_kernels_fill_neon)
ISA(neon_dotprod, mica_cpu_has_dotprod, mica_kernels_fill_neon_dotprod)
ISA(neon_i8mm, mica_cpu_has_i8mm, mica_kernels_fill_neon_i8mm)
#elif defined(__wasm_simd128__)
ISA(simd128, mica_cpu_always, mica_kernels_fill_simd128)
#if defined(__wasm_relaxed_simd__)
ISA(relaxed, mica_cpu_has_fused_madd, mica_kernels_fill_relaxed)
#endif
#endif
