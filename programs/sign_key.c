#include "sign_key.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "load.h"

/* One line without echo, in a buffer that stdio never saw. */
static int type_password(const char *prompt, char out[MICA_PASSWORD])
{
    struct termios before, quiet;
    size_t n = 0;
    char c = 0;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd < 0 || tcgetattr(fd, &before) != 0) {
        if (fd >= 0)
            close(fd);
        return mica_term_error("the secret key needs a password, and there is no terminal to ask at: give --password-file");
    }
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    dprintf(fd, "%s", prompt);
    tcsetattr(fd, TCSAFLUSH, &quiet);
    while (n + 1 < MICA_PASSWORD && read(fd, &c, 1) == 1 && c != '\n' && c != '\r')
        out[n++] = c;
    out[n] = '\0';
    tcsetattr(fd, TCSAFLUSH, &before);
    dprintf(fd, "\n");
    close(fd);
    return n > 0 ? CODE_OK : mica_term_error("the password is empty");
}

int mica_sign_password(const mica_opts *o, bool twice, char out[MICA_PASSWORD])
{
    char again[MICA_PASSWORD], *text;
    size_t length;
    if (o->password_file) {
        int code = mica_load_file(o->password_file, &text, &length);
        if (code != CODE_OK)
            return code;
        text[strcspn(text, "\r\n")] = '\0';
        bool fits = *text && strlen(text) < MICA_PASSWORD;
        snprintf(out, MICA_PASSWORD, "%s", text);
        explicit_bzero(text, length);
        free(text);
        return fits ? CODE_OK
                    : mica_term_error("%s has no password of 1 to %d bytes in its first line", o->password_file,
                                      MICA_PASSWORD - 1);
    }
    int code = type_password("Password of the secret key: ", out);
    if (code != CODE_OK || !twice)
        return code;
    code = type_password("The same again: ", again);
    bool same = code == CODE_OK && strcmp(out, again) == 0;
    explicit_bzero(again, sizeof again);
    return code != CODE_OK || same ? code : mica_term_error("that was not the same password");
}

int mica_sign_key_open(const mica_opts *o, const char *path, mica_secret_key *out)
{
    char password[MICA_PASSWORD] = "";
    bool locked;
    mica_error err;
    if (mica_secret_key_locked(path, &locked, &err))
        return mica_load_failed(&err);
    int code = locked ? mica_sign_password(o, false, password) : CODE_OK;
    if (code == CODE_OK && mica_secret_key_read(path, locked ? password : NULL, out, &err))
        code = mica_load_failed(&err);
    explicit_bzero(password, sizeof password);
    return code;
}

int mica_sign_with(const mica_opts *o, const char *path, const char *key_path)
{
    char signature[MICA_SIGN_PATH];
    mica_secret_key key;
    mica_error err;
    if (!o->signature && mica_signature_path(path, signature, &err))
        return mica_load_failed(&err);
    int code = mica_sign_key_open(o, key_path, &key);
    if (code != CODE_OK)
        return code;
    if (mica_file_sign(path, o->signature ? o->signature : signature, &key, o->comment, o->legacy, &err))
        code = mica_load_failed(&err);
    mica_secret_key_wipe(&key);
    return code;
}
