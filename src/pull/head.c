#include "pull/head.h"

#include <string.h>
#include <strings.h>

/* The value of the field `name` ("ETag:"), without blanks around it; NULL if the line is another. */
static const char *value_of(const char *line, size_t length, const char *name, size_t *n)
{
    size_t at = strlen(name);
    if (length < at || strncasecmp(line, name, at) != 0)
        return NULL;
    while (at < length && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (length > at && (unsigned char)line[length - 1] <= ' ')
        length--;
    *n = length - at;
    return line + at;
}

/* Keeps a value that is printable ASCII and has room; anything else is as if it had not come. */
static void keep(char *out, size_t room, const char *value, size_t n)
{
    bool good = n < room;
    for (size_t i = 0; i < n && good; i++)
        good = value[i] >= ' ' && value[i] < 0x7F;
    memcpy(out, value, good ? n : 0);
    out[good ? n : 0] = '\0';
}

/* Digits at *p up to a number that cannot overflow; false if there is none. */
static bool number(const char **p, const char *end, int64_t *out)
{
    const char *start = *p;
    *out = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && *p - start < 18; ++*p)
        *out = *out * 10 + (**p - '0');
    return *p > start && (*p == end || **p < '0' || **p > '9');
}

static bool byte(const char **p, const char *end, char c)
{
    bool there = *p < end && **p == c;
    *p += there;
    return there;
}

/* "bytes 5-9/10", "bytes 5-9/ *", "bytes * /10" (RFC 9110, 14.4). */
static void read_range(mica_head *head, const char *value, size_t n)
{
    const char *p = value + 6, *end = value + n;
    head->has_range = false;
    if (n < 6 || strncasecmp(value, "bytes ", 6) != 0)
        return;
    head->first = head->last = head->total = -1;
    bool whole = byte(&p, end, '*');
    bool good = whole || (number(&p, end, &head->first) && byte(&p, end, '-') && number(&p, end, &head->last) &&
                          head->last >= head->first);
    good = good && byte(&p, end, '/') && (byte(&p, end, '*') || number(&p, end, &head->total)) && p == end;
    head->has_range = good && (head->total < 0 ? !whole : head->last < head->total);
}

void mica_head_line(mica_head *head, const char *line, size_t length)
{
    const char *value;
    size_t n;
    if (length >= 5 && memcmp(line, "HTTP/", 5) == 0)
        *head = (mica_head){.first = -1};
    else if ((value = value_of(line, length, "ETag:", &n)))
        keep(head->etag, sizeof head->etag, value,
             n > 0 && *value == '"' ? n : 0); /* W/"..." says "much the same": no use here */
    else if ((value = value_of(line, length, "Last-Modified:", &n)))
        keep(head->modified, sizeof head->modified, value, n);
    else if ((value = value_of(line, length, "Content-Range:", &n)))
        read_range(head, value, n);
    else if ((value = value_of(line, length, "Content-Encoding:", &n)))
        head->encoded = n > 0 && !(n == 8 && strncasecmp(value, "identity", 8) == 0);
}

const char *mica_head_validator(const mica_head *head)
{
    return *head->etag ? head->etag : head->modified;
}
