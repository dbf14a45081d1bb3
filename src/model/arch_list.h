/* One line an architecture: NAME of arch/NAME.c, which defines mica_arch_NAME. */
ARCH(llama)
ARCH(qwen2)
ARCH(qwen3)
ARCH(gemma2)
ARCH(gemma3)
ARCH(phi3)
