/* utf8.h - UTF-8 checking, reading and writing. Strict: no overlong forms, surrogates or code points above U+10FFFF. */
#ifndef MICA_TEXT_UTF8_H
#define MICA_TEXT_UTF8_H
#include <stddef.h>
#include <stdint.h>

/** Length of the longest valid prefix: n when all of text[0..n) is valid, else the offset of the first bad sequence. */
size_t mica_utf8_check(const char *text, size_t n);

/** Bytes of the code point that starts with `lead`; 0 if none starts so. */
static inline unsigned mica_utf8_length(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

/** Whether byte `c` may stand at index k (1..3) of a sequence that starts with `lead` (Unicode Standard, table 3-7). */
static inline int mica_utf8_continues(unsigned char lead, unsigned k, unsigned char c)
{
    unsigned char low = 0x80, high = 0xBF;
    if (k == 1) {
        low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    }
    return c >= low && c <= high;
}

/** Reads one code point of valid text; returns its length in bytes. */
static inline unsigned mica_utf8_read(const char *text, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned length = mica_utf8_length(p[0]);
    uint32_t c = length < 2 ? p[0] : p[0] & (0x7Fu >> length);
    for (unsigned i = 1; i < length; i++) {
        c = c << 6 | (p[i] & 0x3Fu);
    }
    *code = c;
    return length ? length : 1;
}

/** Writes a code point; returns its length in bytes. */
static inline unsigned mica_utf8_write(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    unsigned length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = length - 1; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3F));
    }
    out[0] = (char)((0xF00u >> length & 0xFFu) | code);
    return length;
}

#endif
