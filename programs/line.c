#include "line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#ifdef MICA_HAVE_LIBEDIT
#include <histedit.h>
#endif

#include "interrupt.h"
#include "term.h"

enum { HISTORY_LINES = 1000 };

/* ---- libedit ---- */

#ifdef MICA_HAVE_LIBEDIT
static char *show_prompt(EditLine *editor)
{
    const mica_line *line;
    el_get(editor, EL_CLIENTDATA, &line);
    return (char *)(size_t)line->prompt; /* libedit only reads it */
}

/* One character from the terminal. libedit's own reader hides the first Ctrl-C; this one ends the line at each. */
static int read_character(EditLine *editor, wchar_t *out)
{
    mbstate_t state;
    char byte;
    (void)editor;
    memset(&state, 0, sizeof state);
    for (;;) {
        if (!mica_interrupt_wait_input(STDIN_FILENO)) {
            errno = EINTR;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0)
            return (int)n;
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used == (size_t)-2)
            continue; /* the character goes on */
        if (used == (size_t)-1)
            *out = L'?';
        return 1;
    }
}

static void open_editor(mica_line *line)
{
    HistEvent event;
    EditLine *editor = el_init("mica", stdin, stdout, stderr);
    History *past = history_init();
    line->editor = editor;
    line->history = past;
    if (!editor)
        return;
    el_set(editor, EL_CLIENTDATA, line);
    el_set(editor, EL_PROMPT, show_prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_GETCFN, read_character);
    if (past) {
        history(past, &event, H_SETSIZE, HISTORY_LINES);
        el_set(editor, EL_HIST, history, past);
    }
    el_source(editor, NULL);
}

static const char *read_edited(mica_line *line)
{
    int n = 0;
    HistEvent event;
    const char *text = el_gets(line->editor, &n);
    if (text && n > 1 && line->history)
        history(line->history, &event, H_ENTER, text);
    return n > 0 ? text : NULL;
}

static void close_editor(mica_line *line)
{
    if (line->history)
        history_end(line->history);
    if (line->editor)
        el_end(line->editor);
}
#else
static void open_editor(mica_line *line) { line->editor = NULL; }

static const char *read_edited(mica_line *line)
{
    (void)line;
    return NULL;
}

static void close_editor(mica_line *line) { (void)line; }
#endif

/* ---- Both ---- */

void mica_line_open(mica_line *line, const char *prompt)
{
    memset(line, 0, sizeof *line);
    line->prompt = prompt;
    line->interactive = isatty(STDIN_FILENO);
    if (line->interactive)
        open_editor(line);
}

static const char *read_plain(mica_line *line)
{
    if (line->interactive)
        fputs(line->prompt, stderr);
    return getline(&line->text, &line->capacity, stdin) >= 0 ? line->text : NULL;
}

/* The line in our own memory, without its end. */
static const char *keep(mica_line *line, const char *text)
{
    size_t n = strcspn(text, "\r\n");
    if (text != line->text) {
        char *copy = realloc(line->text, n + 1);
        if (!copy) {
            mica_term_error("not enough memory for the line");
            return NULL;
        }
        memcpy(copy, text, n);
        line->text = copy;
        line->capacity = n + 1;
    }
    line->text[n] = '\0';
    return line->text;
}

const char *mica_line_read(mica_line *line)
{
    for (;;) {
        const char *text = line->editor ? read_edited(line) : read_plain(line);
        if (text) {
            line->warned = false;
            return keep(line, text);
        }
        line->interrupted = mica_interrupt_count() > 0;
        if (!line->interrupted || line->warned || !line->interactive)
            return NULL;
        mica_interrupt_reset();
        clearerr(stdin);
        fputc('\n', stderr);
        mica_term_note("Ctrl-C again, or /quit, leaves");
        line->warned = true;
    }
}

void mica_line_close(mica_line *line)
{
    close_editor(line);
    free(line->text);
}
