/* setjmp.h - named by tests, and not used by what stands in for cmocka here. */
