/* adapter_util.h - folders with manifests for the fake adapter, for tests. Each function fails the test on error. */
#ifndef MICA_TESTS_ADAPTER_UTIL_H
#define MICA_TESTS_ADAPTER_UTIL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/fake_tree.h"
#include "bench/adapter.h"

/** Time limits that keep tests short but leave a busy machine its time: what must be late waits for 1 s, everything else for 60
 * s. */
#define FAKE_LIMITS "\"hello_s\": 60, \"load_s\": 60, \"start_s\": 60, \"first_token_s\": 60, \"token_s\": 60, \"quit_s\": 60"

/** A folder whose adapter is the fake one in this mode. `limits` are members of "timeouts". */
static inline void fake_folder(const fake_tree *t, const char *mode, const char *limits)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"name\": \"fake\", \"protocol\": 1, \"command\": [\"python3\", \"-B\", \"%s/fake_adapter.py\", \"%s\"], "
             "\"timeouts\": {%s}}",
             MICA_BENCH_TESTS, mode, limits);
    tree_line(t, "manifest.json", text);
}

#endif
