/* nfc.c - decompose, order the marks, compose, encode.
 *
 * utf8proc orders combining marks by exchanging neighbours, which is quadratic in the length of a run of marks; a text of
 * nothing but marks would stall it. So the marks are ordered here, with a counting sort, before utf8proc composes.
 */
#include "text/nfc.h"

#include "base/mem.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Longest canonical decomposition of one code point (U+1F82 and others: 4). */
#define MAX_DECOMPOSITION 4

/* Every code point below U+0300 is in NFC and is not changed by what follows, as long as that is below U+0300 as well. In UTF-8
 * those are exactly the texts without a lead byte of 0xCC or more. */
static bool needs_work(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] >= 0xCC) {
            return true;
        }
    }
    return false;
}

static unsigned mark_class(utf8proc_int32_t code)
{
    return code < 0x300 ? 0 : (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
}

/* Stable counting sort of one run of marks by combining class. `scratch` has room for n. */
static void sort_marks(utf8proc_int32_t *codes, size_t n, utf8proc_int32_t *scratch)
{
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) {
        at[mark_class(codes[i]) + 1]++;
    }
    for (unsigned c = 0; c < 256; c++) {
        at[c + 1] += at[c];
    }
    for (size_t i = 0; i < n; i++) {
        scratch[at[mark_class(codes[i])]++] = codes[i];
    }
    memcpy(codes, scratch, n * sizeof(*codes));
}

/* Orders every run of marks. Short runs, nearly all there are, by insertion. */
static void order_marks(utf8proc_int32_t *codes, size_t n, utf8proc_int32_t *scratch)
{
    for (size_t i = 0; i < n;) {
        if (!mark_class(codes[i])) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < n && mark_class(codes[end])) {
            end++;
        }
        if (end - i > 16) {
            sort_marks(codes + i, end - i, scratch);
        } else {
            for (size_t k = i + 1; k < end; k++) {
                utf8proc_int32_t code = codes[k];
                size_t to = k;
                for (; to > i && mark_class(codes[to - 1]) > mark_class(code); to--) {
                    codes[to] = codes[to - 1];
                }
                codes[to] = code;
            }
        }
        i = end;
    }
}

static size_t decompose(const char *text, size_t n, utf8proc_int32_t *codes)
{
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        i += mica_utf8_read(text + i, &code);
        int boundary = 0;
        utf8proc_ssize_t got = code < 0xC0 ? -1
                                           : utf8proc_decompose_char((utf8proc_int32_t)code, codes + count, MAX_DECOMPOSITION,
                                                                     UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
        if (got < 1 || got > MAX_DECOMPOSITION) {
            codes[count] = (utf8proc_int32_t)code;
            got = 1;
        }
        count += (size_t)got;
    }
    return count;
}

mica_status mica_nfc(const char *text, size_t n, char **out, size_t *out_length, mica_error *err)
{
    *out = NULL;
    *out_length = n;
    if (!needs_work(text, n)) {
        return MICA_OK;
    }
    /* A code point of b bytes decomposes into at most b + 2 code points (3 bytes into 4, 2 into 3): 2 n + 4 is ample. */
    size_t room = 2 * n + MAX_DECOMPOSITION;
    utf8proc_int32_t *codes = mica_new_array(room, 2 * sizeof(*codes));
    if (!codes) {
        return mica_fail_nomem(err, room * 2 * sizeof(*codes), "normalising text");
    }
    size_t count = decompose(text, n, codes);
    order_marks(codes, count, codes + room);
    utf8proc_ssize_t composed = utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    char *bytes = composed < 0 ? NULL : malloc((size_t)composed * 4 + 1);
    if (!bytes) {
        free(codes);
        return mica_fail_nomem(err, count * 4, "normalising text");
    }
    size_t length = 0;
    for (utf8proc_ssize_t i = 0; i < composed; i++) {
        length += mica_utf8_write((uint32_t)codes[i], bytes + length);
    }
    free(codes);
    *out = bytes;
    *out_length = length;
    return MICA_OK;
}
