/* gguf_sniff.c - recognises what people have instead of a GGUF file, so that the message can say what went wrong. */
#include "model/gguf_parse.h"

#include <string.h>
#include <strings.h>

static bool starts(const uint8_t *data, uint64_t length, const char *magic, size_t n)
{
    return length >= n && memcmp(data, magic, n) == 0;
}

static bool all_zero(const uint8_t *data, uint64_t length)
{
    for (uint64_t i = 0; i < length && i < 64; i++)
        if (data[i] != 0)
            return false;
    return true;
}

/* Web pages may begin with a byte order mark and blanks. */
static bool is_page(const uint8_t *data, uint64_t length)
{
    static const char *const tags[] = {"<!doctype", "<html", "<head", "<body", "<?xml"};
    uint64_t at = starts(data, length, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < length && at < 256 && memchr(" \t\r\n", data[at], 4))
        at++;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t n = strlen(tags[i]);
        if (length - at >= n && strncasecmp((const char *)data + at, tags[i], n) == 0)
            return true;
    }
    return false;
}

/* The magic was a 32-bit number, written in the order of the machine. */
static bool is_old_ggml(const uint8_t *data, uint64_t length)
{
    static const char magics[][5] = {"lmgg", "fmgg", "tjgg", "algg", "ggml", "ggmf", "ggjt", "ggla"};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (starts(data, length, magics[i], 4))
            return true;
    return false;
}

/* 8 bytes with the length of a JSON header (at most 100 MB by its definition), then the header. */
static bool is_safetensors(const uint8_t *data, uint64_t length)
{
    return length >= 9 && mica_gguf_le64(data) >= 2 && mica_gguf_le64(data) <= 100000000 && data[8] == '{';
}

const char *mica_gguf_sniff(const uint8_t *data, uint64_t length)
{
    if (length == 0)
        return "empty (0 bytes); download it again";
    if (all_zero(data, length))
        return "not GGUF: it begins with zeros, as after a download that never finished; download it again";
    if (is_page(data, length))
        return "not GGUF but a web page (HTML), probably the error or login page of a server; download it again";
    if (starts(data, length, "version https://git-lfs", 23))
        return "not GGUF but a Git LFS pointer, the text that stands for the real file; download it again with git lfs pull";
    if (is_old_ggml(data, length))
        return "not GGUF but an old GGML container (ggml, ggmf, ggjt), which is no longer read; download it again as GGUF";
    if (is_safetensors(data, length))
        return "not GGUF but a safetensors file; convert it, or download it again as GGUF";
    if (starts(data, length, "PK\3\4", 4) || starts(data, length, "PK\5\6", 4))
        return "not GGUF but a ZIP archive (or a PyTorch file); unpack it, or download it again as GGUF";
    if (starts(data, length, "\x1F\x8B", 2))
        return "not GGUF but compressed with gzip; unpack it, or download it again as GGUF";
    if (starts(data, length, "{\"", 2))
        return "not GGUF but JSON text, perhaps the error message of a server; download it again";
    return NULL;
}
