/* term.h - what the program writes: one-line messages and a progress bar on standard error, JSON on standard output. */
#ifndef MICA_PROGRAMS_TERM_H
#define MICA_PROGRAMS_TERM_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* exit codes */
    CODE_OK = 0,
    CODE_FAILED = 1,
    CODE_USAGE = 2,
    CODE_INTERRUPTED = 130, /* as a shell reports SIGINT */
};

/** "mica: ..." on one line: line ends become blanks, controls become '?'. Returns CODE_FAILED, for callers to return. */
int mica_term_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** The same, but CODE_USAGE. */
int mica_term_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** "mica: warning: ..."; fits mica_model_options.on_warning. */
void mica_term_warning(void *user, const char *message);
/** "mica: ..." without being a failure. */
void mica_term_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** A bar on standard error, if that is a terminal. Shown once the work has lasted a moment, at most 20 times a second. */
typedef struct mica_bar {
    const char *what;
    int64_t start_ns, last_ns; /* 0: not begun, not shown */
} mica_bar;

void mica_bar_show(mica_bar *bar, double done);
/** Removes it from the screen. */
void mica_bar_end(mica_bar *bar);

/** Writes and flushes standard output; false once that has failed. */
bool mica_term_write(const char *data, size_t length);
/** At the end of a command: a write error on standard output turns `code` into CODE_FAILED, with a message. */
int mica_term_finish(int code);

/** A JSON string of any bytes: what is not UTF-8 becomes "\xNN". NULL only without memory. */
json_t *mica_json_text(const char *data, size_t length);
/** A JSON number, or null if it is not finite. */
json_t *mica_json_real(double value);
/** From now on it is noticed when jansson gets no memory. Called by main(). */
void mica_json_watch(void);
/** Prints on one line and flushes; releases `object`. NULL (no memory) is a failure, and so is memory that was refused
 * while JSON was made: something may be missing. False when it failed. */
bool mica_json_line(json_t *object);

#endif
