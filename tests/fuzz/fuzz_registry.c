/* libFuzzer target: the bytes as a registry file, and line by line as the head of a download's answer. A file is taken, and
 * then holds only what is safe in paths and requests, or is refused with a message that is UTF-8. */
#include "pull/entry.h"
#include "pull/head.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const mica_pull_entry *e)
{
    if (!mica_name_good(e->name) || !mica_sha256_good(e->sha256) || e->n_urls < 1 || e->n_urls > MICA_ENTRY_URLS ||
        e->bytes < 1)
        abort();
    for (size_t i = 0; i < e->n_urls; i++)
        if (strncmp(e->url[i], "http", 4) != 0 || strpbrk(e->url[i], " \r\n\t"))
            abort();
    for (size_t i = 0; i < e->n_chunks; i++)
        if (!mica_sha256_good(e->chunk[i]))
            abort();
    if (e->n_chunks > 0 && (int64_t)e->n_chunks != (e->bytes + e->chunk_bytes - 1) / e->chunk_bytes)
        abort();
}

static void check_head(const mica_head *h)
{
    if (strpbrk(mica_head_validator(h), "\r\n"))
        abort();
    if (h->has_range &&
        ((h->first < 0 && h->total < 0) || (h->first >= 0 && h->last < h->first) || (h->total >= 0 && h->last >= h->total)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    mica_pull_entry entry;
    mica_head head = {.first = -1};
    mica_error err = {0};
    mica_status status = mica_pull_entry_parse(text, size, "fuzz", &entry, &err);
    if (status == MICA_OK)
        check_entry(&entry);
    else if (err.code != status || !err.message[0] || mica_utf8_check(err.message, strlen(err.message)) != strlen(err.message))
        abort();
    mica_pull_entry_free(&entry);
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - (data + at)) + 1 : size - at;
        mica_head_line(&head, text + at, n);
        check_head(&head);
        at += n;
    }
    return 0;
}
