/* cmd_sign.c - mica sign: signs a file, or makes the keys for that. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "load.h"
#include "sign_key.h"

static int generate(const mica_opts *o)
{
    char password[MICA_PASSWORD] = "", id[17];
    mica_error err;
    if (!o->pubkey || o->n_args > 0)
        return mica_term_usage("mica sign --generate: --key FILE and --pubkey FILE name the new files; nothing is signed");
    if (o->no_password && o->password_file)
        return mica_term_usage("--no-password and --password-file exclude each other");
    int code = o->no_password ? CODE_OK : mica_sign_password(o, true, password);
    if (code == CODE_OK && mica_keys_make(o->key, o->pubkey, o->no_password ? NULL : password, id, &err))
        code = mica_load_failed(&err);
    explicit_bzero(password, sizeof password);
    if (code == CODE_OK)
        printf("made the key %s: keep %s to yourself, give %s away\n", id, o->key, o->pubkey);
    return code;
}

int mica_cmd_sign(const mica_opts *o)
{
    if (!o->key)
        return mica_term_usage("mica sign: --key FILE, the secret key, is missing");
    if (o->generate)
        return generate(o);
    if (o->n_args != 1 || o->pubkey || o->no_password)
        return mica_term_usage("mica sign signs one FILE with --key; --pubkey and --no-password go with --generate");
    return mica_sign_with(o, o->args[0], o->key);
}
