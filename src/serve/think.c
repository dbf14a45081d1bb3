#include "serve/think.h"

#include <string.h>

static const char opening[] = "<think>", closing[] = "</think>";

void mica_think_start(mica_think *t, bool inside, void (*out)(void *, bool, const char *, size_t), void *user)
{
    *t = (mica_think){.state = inside ? MICA_THINK_OPENED : MICA_THINK_START, .out = out, .user = user};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void tell(mica_think *t, bool reasoning, const char *text, size_t length)
{
    if (length > 0)
        t->out(t->user, reasoning, text, length);
}

static void release(mica_think *t, bool reasoning)
{
    tell(t, reasoning, t->held, t->n_held);
    t->n_held = t->matched = 0;
}

static void hold(mica_think *t, char c)
{
    t->held[t->n_held++] = c;
}

/* Whether a blank may still wait in front of a mark of `mark` bytes. */
static bool has_room(const mica_think *t, size_t mark)
{
    return t->n_held + mark < MICA_THINK_HOLD;
}

/* At the beginning: blanks and the mark, or it is text. Whether the byte was taken; else it is the first of ordinary text. */
static bool start(mica_think *t, char c)
{
    bool mark = c == opening[t->matched];
    if (!mark && !(t->matched == 0 && is_blank(c) && has_room(t, sizeof opening))) {
        t->state = MICA_THINK_TEXT;
        release(t, false);
        return false;
    }
    hold(t, c);
    t->matched += mark;
    if (t->matched == sizeof opening - 1) {
        t->n_held = t->matched = 0;
        t->state = MICA_THINK_OPENED;
    }
    return true;
}

/* Inside: line ends and the beginning of the mark wait. The mark's first byte comes in it once, so a mismatch can only begin it
 * anew. */
static bool inside(mica_think *t, char c)
{
    if (c != closing[t->matched] && (t->matched > 0 || c != '\n' || !has_room(t, sizeof closing)))
        release(t, true);
    bool mark = c == closing[t->matched];
    if (!mark && c != '\n')
        return false;
    hold(t, c);
    t->matched += mark;
    if (t->matched == sizeof closing - 1) {
        t->n_held = t->matched = 0;
        t->state = MICA_THINK_CLOSED;
    }
    return true;
}

/* Runs of ordinary text in one piece. */
static size_t plain_run(const mica_think *t, const char *text, size_t length)
{
    if (t->state == MICA_THINK_TEXT)
        return length;
    size_t n = 0;
    while (t->state == MICA_THINK_INSIDE && t->n_held == 0 && n < length && text[n] != '<' && text[n] != '\n')
        n++;
    return n;
}

void mica_think_feed(mica_think *t, const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t run = plain_run(t, text + at, length - at);
        if (run > 0) {
            tell(t, t->state == MICA_THINK_INSIDE, text + at, run);
            at += run;
            continue;
        }
        char c = text[at];
        if (t->state == MICA_THINK_OPENED && !is_blank(c))
            t->state = MICA_THINK_INSIDE;
        if (t->state == MICA_THINK_CLOSED && !is_blank(c)) {
            t->state = MICA_THINK_TEXT;
            continue;
        }
        if (t->state == MICA_THINK_START)
            at += start(t, c);
        else if (t->state == MICA_THINK_INSIDE)
            at += inside(t, c);
        else
            at++; /* a blank behind a mark, which is dropped */
    }
}

void mica_think_finish(mica_think *t)
{
    release(t, t->state == MICA_THINK_INSIDE);
}
