/* buf.h - a growing byte buffer with a hard maximum. Once an append fails (no memory, or over the maximum) the buffer stays
 * failed and keeps what it had, so that a chain of appends needs one check at the end. */
#ifndef MICA_BASE_BUF_H
#define MICA_BASE_BUF_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mica_buf {
    char *data; /* terminated when length > 0 or after mica_buf_take */
    size_t length, capacity, maximum;
    bool failed;
    bool no_memory; /* that is why it failed; else it is over the maximum */
} mica_buf;

void mica_buf_init(mica_buf *buf, size_t maximum);
void mica_buf_free(mica_buf *buf);
bool mica_buf_append(mica_buf *buf, const void *data, size_t length);
bool mica_buf_puts(mica_buf *buf, const char *text);
bool mica_buf_putc(mica_buf *buf, char c);
bool mica_buf_printf(mica_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Hands over the terminated bytes (free with free()) and empties the buffer; NULL if it has failed. */
char *mica_buf_take(mica_buf *buf, size_t *length);

#endif
