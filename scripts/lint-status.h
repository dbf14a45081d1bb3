/* For clang-tidy and gcc's analyzer, put in front of each file by scripts/lint: they read one file at a time, and so do not know that what reports a failure
 * returns one. */
#include "base/error.h"
#define mica_fail(err, code, ...) (mica_fail(err, code, __VA_ARGS__), (code))
#define mica_fail_at(err, code, position, ...) (mica_fail_at(err, code, position, __VA_ARGS__), (code))
#define mica_fail_nomem(err, bytes, what) (mica_fail_nomem(err, bytes, what), MICA_OUT_OF_MEMORY)
