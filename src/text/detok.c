/* detok.c - ids to bytes, and bytes to whole characters as they stream in. */
#include "base/mem.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

/* ---- Tokens to bytes ---- */

static size_t copy_out(const char *data, size_t n, char *out, size_t capacity)
{
    if (n && n <= capacity) {
        memcpy(out, data, n);
    }
    return n;
}

/* Appends n bytes at `length`, and returns the new length; with `out` NULL it only counts. */
static size_t put(char *out, size_t length, const char *data, size_t n)
{
    if (out && n) {
        memcpy(out + length, data, n);
    }
    return length + n;
}

/* A piece in the byte-level alphabet; characters outside it stand for themselves. */
static size_t put_alphabet(char *out, mica_str piece)
{
    size_t to = 0;
    for (size_t i = 0; i < piece.length;) {
        unsigned char c = (unsigned char)piece.data[i];
        unsigned length = mica_utf8_length(c);
        if (length == 0 || length > piece.length - i) { /* not UTF-8: as it is */
            length = 1;
        }
        uint32_t code = c;
        if (length > 1) {
            mica_utf8_read(piece.data + i, &code);
        }
        int byte = c >= 0x80 && length == 1 ? -1 : mica_vocab_alphabet_byte(code);
        char decoded = (char)byte;
        to = put(out, to, byte < 0 ? piece.data + i : &decoded, byte < 0 ? length : 1);
        i += length;
    }
    return to;
}

/* A SentencePiece piece: U+2581 is a space. */
static size_t put_spaces(char *out, mica_str piece)
{
    size_t begin = 0, i = 0, to = 0;
    while (i + MICA_SPM_SPACE_BYTES <= piece.length) {
        if (memcmp(piece.data + i, MICA_SPM_SPACE, MICA_SPM_SPACE_BYTES) != 0) {
            i++;
            continue;
        }
        to = put(out, to, piece.data + begin, i - begin);
        to = put(out, to, " ", 1);
        begin = i += MICA_SPM_SPACE_BYTES;
    }
    return put(out, to, piece.data + begin, piece.length - begin);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a piece such as <0x0A> names, or -1. */
static int named_byte(mica_str piece)
{
    if (piece.length != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>') {
        return -1;
    }
    int high = hex_digit(piece.data[3]), low = hex_digit(piece.data[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

size_t mica_vocab_bytes(const mica_vocab *v, int32_t id, bool show_special, char *out, size_t capacity)
{
    if (id < 0 || id >= v->n) {
        return 0;
    }
    mica_str piece = mica_strings_get(&v->pieces, (uint32_t)id);
    int byte = v->types[id] == MICA_TOKEN_BYTE ? named_byte(piece) : -1;
    char decoded = (char)byte;
    switch (v->types[id]) {
    case MICA_TOKEN_CONTROL:
    case MICA_TOKEN_UNKNOWN:
        return show_special ? copy_out(piece.data, piece.length, out, capacity) : 0;
    case MICA_TOKEN_USER:
        return copy_out(piece.data, piece.length, out, capacity);
    case MICA_TOKEN_BYTE:
        return byte < 0 ? copy_out(piece.data, piece.length, out, capacity) : copy_out(&decoded, 1, out, capacity);
    default:
        break;
    }
    size_t (*decode)(char *, mica_str) = v->kind == MICA_VOCAB_BYTE_BPE ? put_alphabet : put_spaces;
    if (piece.length > capacity) { /* text is never longer than its piece; it may be shorter */
        size_t length = decode(NULL, piece);
        return length > capacity || !capacity ? length : decode(out, piece);
    }
    return decode(out, piece);
}

/* Writes all of the tokens to out, which has room. The space that tokenising put before each run of text is left out again: a
 * run starts the text or follows a token that was matched in raw text. */
static size_t write_text(const mica_vocab *v, const int32_t *tokens, size_t n, bool show_special, char *out, size_t room)
{
    size_t length = 0;
    bool run_starts = true;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = mica_vocab_bytes(v, tokens[i], show_special, out + length, room - length);
        uint8_t type = v->types[tokens[i]];
        bool text = type == MICA_TOKEN_NORMAL || type == MICA_TOKEN_UNUSED || type == MICA_TOKEN_BYTE;
        if (v->special.add_space_prefix && run_starts && text && type != MICA_TOKEN_BYTE && bytes && out[length] == ' ') {
            memmove(out + length, out + length + 1, --bytes);
        }
        run_starts = !text;
        length += bytes;
    }
    return length;
}

mica_status mica_vocab_detokenize(const mica_vocab *v, const int32_t *tokens, size_t n, bool show_special, char **text,
                                  size_t *length, mica_error *err)
{
    size_t room = 0;
    *text = NULL;
    *length = 0;
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= v->n) {
            return mica_fail(err, MICA_INVALID_ARGUMENT, "token %d is not in the vocabulary, whose ids are 0 to %d", tokens[i],
                             v->n - 1);
        }
        if (!mica_add_size(room, mica_vocab_bytes(v, tokens[i], show_special, NULL, 0), &room)) {
            return mica_fail_nomem(err, SIZE_MAX, "the text");
        }
    }
    char *out = malloc(room + 1);
    if (!out) {
        return mica_fail_nomem(err, room + 1, "the text");
    }
    *length = write_text(v, tokens, n, show_special, out, room);
    out[*length] = 0;
    *text = out;
    return MICA_OK;
}

/* ---- Bytes to characters ---- */

static const char replacement[3] = {'\xEF', '\xBF', '\xBD'}; /* U+FFFD */

static size_t put_replacement(char *out)
{
    memcpy(out, replacement, sizeof(replacement));
    return sizeof(replacement);
}

size_t mica_detok_push(mica_detok *d, const char *bytes, size_t n, char *out)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (d->n_pending && !mica_utf8_continues((unsigned char)d->pending[0], d->n_pending, c)) {
            length += put_replacement(out + length); /* the longest valid beginning becomes one U+FFFD; c is looked at anew */
            d->n_pending = 0;
        }
        if (!d->n_pending && mica_utf8_length(c) == 0) {
            length += put_replacement(out + length);
            continue;
        }
        d->pending[d->n_pending++] = bytes[i];
        if (d->n_pending == mica_utf8_length((unsigned char)d->pending[0])) {
            memcpy(out + length, d->pending, d->n_pending);
            length += d->n_pending;
            d->n_pending = 0;
        }
    }
    return length;
}

size_t mica_detok_finish(mica_detok *d, char *out)
{
    size_t length = d->n_pending ? put_replacement(out) : 0;
    d->n_pending = 0;
    return length;
}
