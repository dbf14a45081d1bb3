/* line.h - lines from standard input: with editing and history where it is a terminal and the build has libedit. */
#ifndef MICA_PROGRAMS_LINE_H
#define MICA_PROGRAMS_LINE_H
#include <stdbool.h>
#include <stddef.h>

typedef struct mica_line {
    const char *prompt;
    bool interactive; /* a person types */
    bool interrupted; /* Ctrl-C ended the input */
    bool warned;      /* the next Ctrl-C does */
    char *text;       /* the last line */
    size_t capacity;
    void *editor, *history; /* of libedit, or NULL */
} mica_line;

void mica_line_open(mica_line *line, const char *prompt);
/** The next line without its end, borrowed until the next call; NULL at the end of input, or when Ctrl-C came twice. */
const char *mica_line_read(mica_line *line);
void mica_line_close(mica_line *line);

#endif
