/* live.h - what a long run shows while it goes on. On a terminal one line, rewritten: a bar, the part that is done, what the
 * caller says, a sparkline of the last rates, the time that is left. Elsewhere nothing: the caller writes a line a step.
 *
 *     mica_live live = mica_live_begin();
 *     mica_live_rate(&live, tokens_per_second);                           // now and then
 *     mica_live_show(&live, 0.4, 75, false, "decode  %.1f tok/s", rate);  // as often as one likes
 *     mica_live_end(&live);                                               // before anything else is written to the terminal
 *
 * The line is on standard error and fits the terminal's width. Called by cmd_bench.c, cmd_compare.c and campaign_text.c. */
#ifndef MICA_PROGRAMS_LIVE_H
#define MICA_PROGRAMS_LIVE_H
#include <stdbool.h>
#include <stdint.h>

enum { MICA_LIVE_RATES = 20, MICA_LIVE_BAR = 30, MICA_LIVE_TIME = 48 };

typedef struct mica_live {
    bool terminal;   /* standard error is one */
    bool shown;      /* the line is on the screen */
    int64_t last_ns; /* when it was drawn */
    int n_rates;
    double rates[MICA_LIVE_RATES]; /* the oldest first */
} mica_live;

mica_live mica_live_begin(void);

/** A further point of the sparkline; what is not finite is none. */
void mica_live_rate(mica_live *live, double rate);

/** Draws the line: five times a second, or `at_once`. `part` 0..1; `left_s` NAN: not known. The text may hold anything;
 * controls become '?'. */
void mica_live_show(mica_live *live, double part, double left_s, bool at_once, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/** Takes the line from the screen. */
void mica_live_end(mica_live *live);

/** "[####----]" without the brackets. */
void mica_live_bar(double part, char out[MICA_LIVE_BAR + 1]);

/** "2 d 3 h", "26 min 15 s"; "unknown". */
void mica_live_duration(double seconds, char out[MICA_LIVE_TIME]);

#endif
