/* sign_key.h - the secret key for a signature: asks for its password if it has one. Called by cmd_sign.c and cmd_report.c. */
#ifndef MICA_PROGRAMS_SIGN_KEY_H
#define MICA_PROGRAMS_SIGN_KEY_H
#include "bench/sign.h"
#include "opts.h"

enum { MICA_PASSWORD = 1024 };

/** The first line of --password-file, or what is typed at the terminal; `twice`: typed twice, for a new key. */
int mica_sign_password(const mica_opts *o, bool twice, char out[MICA_PASSWORD]);
/** An exit code; on a failure one line is printed. Wipe the key afterwards. */
int mica_sign_key_open(const mica_opts *o, const char *path, mica_secret_key *out);
/** Signs a file with the key at key_path; --comment and --legacy count. */
int mica_sign_with(const mica_opts *o, const char *path, const char *key_path);

#endif
