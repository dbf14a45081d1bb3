/* tool_parser.c - calls out of the stream of a reply.
 *
 * Invariants:
 *  1. Every byte that was fed is in exactly one of: an event, `text` or the arguments (told at the end of the feed at the
 * latest), `held`
 *     (may be an opening, or blanks beside one), `raw` (of the call under way).
 *  2. `held` is short: an opening and HELD_MAX bytes of blanks at most.
 *  3. Bytes are read one at a time, so it makes no difference where a reply is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tool/tool_call.h"
#include "tool/tools.h"

#define HELD_MAX 256 /* more blanks than that are text */
#define ID_MAX   40

enum { TEXT, LIST_OPEN, CALL, LIST_NEXT, CLOSE, FENCE, BROKEN };

typedef enum match { NO_MATCH, PARTIAL_MATCH, FULL_MATCH } match;

struct mica_tool_parser {
    const mica_tools *tools;
    const mica_tool_format *format;
    int (*on_event)(void *user, const mica_tool_event *event);
    void *user;
    mica_rng rng;
    int state;
    bool bare;        /* only calls and blanks so far: a bare opening counts */
    bool bare_call;   /* the call under way has no marker */
    bool fenced;      /* it stands in a fence */
    bool after_call;  /* nothing but blanks since the last call */
    bool begun;       /* the call under way has been told of */
    mica_buf held, text, raw;
    size_t close_at;  /* bytes of `close` that were read */
    size_t broken_at; /* length of raw when the call turned out to be none */
    const char *why;
    mica_call call;
    size_t told;      /* of the arguments */
    int32_t n_begun, n_calls;
    char id[ID_MAX];
    mica_status status; /* of the first failure; sticks */
    mica_error error;
};

/* ---- Events ---- */

static bool fail(mica_tool_parser *p, mica_status status)
{
    p->status = status;
    if (status == MICA_CANCELLED)
        mica_fail(&p->error, status, "the reply's reader stopped it");
    else
        mica_fail_nomem(&p->error, 0, "a reply's calls");
    return false;
}

static bool tell(mica_tool_parser *p, mica_tool_event event)
{
    const char *name = p->begun && p->call.tool >= 0 ? p->tools->list.tool[p->call.tool].name : "";
    bool of_call = event.kind != MICA_TOOL_TEXT && p->begun;
    event.index = of_call ? p->n_begun - 1 : -1;
    event.id = of_call ? p->id : "";
    event.name = of_call ? name : "";
    event.text = event.length ? event.text : "";
    event.message = event.message ? event.message : "";
    return p->on_event(p->user, &event) ? fail(p, MICA_CANCELLED) : true;
}

static bool flush_text(mica_tool_parser *p)
{
    size_t n = p->text.length;
    p->text.length = 0;
    return n == 0 || tell(p, (mica_tool_event){.kind = MICA_TOOL_TEXT, .text = p->text.data, .length = n});
}

static bool flush_arguments(mica_tool_parser *p)
{
    const mica_buf *a = &p->call.arguments;
    size_t from = p->told;
    if (!p->begun || p->state != CALL || from >= a->length)
        return true;
    p->told = a->length;
    return tell(p, (mica_tool_event){.kind = MICA_TOOL_ARGUMENTS, .text = a->data + from, .length = a->length - from});
}

static bool say(mica_tool_parser *p, const char *text, size_t n)
{
    if (n > 0)
        p->after_call = false;
    return n == 0 || mica_buf_append(&p->text, text, n) || fail(p, MICA_OUT_OF_MEMORY);
}

static void make_id(mica_tool_parser *p)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = p->format->id_digits ? (size_t)p->format->id_digits : 24, at = 0;
    if (!p->format->id_digits)
        for (const char *c = "call_"; *c; c++)
            p->id[at++] = *c;
    for (size_t i = 0; i < n; i++)
        p->id[at++] = digits[mica_rng_next(&p->rng) >> 60];
    p->id[at] = '\0';
}

static bool begin(mica_tool_parser *p)
{
    if (!flush_text(p))
        return false;
    make_id(p);
    p->begun = true;
    p->n_begun++;
    return tell(p, (mica_tool_event){.kind = MICA_TOOL_CALL_BEGIN});
}

static bool end(mica_tool_parser *p)
{
    const mica_buf *a = &p->call.arguments;
    if (!flush_arguments(p))
        return false;
    p->n_calls++;
    bool going = tell(p, (mica_tool_event){.kind = MICA_TOOL_CALL_END, .text = a->data, .length = a->length});
    p->begun = false;
    return going;
}

static bool tell_error(mica_tool_parser *p, size_t n)
{
    if (!flush_text(p))
        return false;
    p->raw.data[n] = '\0';
    bool going = tell(p, (mica_tool_event){.kind = MICA_TOOL_ERROR, .text = p->raw.data, .length = n, .message = p->why});
    p->begun = false;
    p->raw.length = 0;
    p->bare = false;
    return going;
}

/* ---- Calls ---- */

static bool start_call(mica_tool_parser *p)
{
    mica_call_start(&p->call, &p->tools->list, p->format->shape);
    p->told = 0;
    p->state = CALL;
    return true;
}

static bool open_marked(mica_tool_parser *p)
{
    p->bare_call = p->fenced = false;
    if (!p->format->list)
        return start_call(p);
    p->state = LIST_OPEN;
    return true;
}

/* What looked like a call without a marker is the text that it is, as long as nobody has heard of it. */
static bool not_a_call(mica_tool_parser *p, const char *why)
{
    p->why = why;
    if (!flush_arguments(p))
        return false;
    if (p->bare_call && !p->begun && p->state == CALL) {
        p->state = TEXT;
        p->bare = false;
        bool said = say(p, p->raw.data, p->raw.length);
        p->raw.length = 0;
        return said;
    }
    p->state = BROKEN;
    p->broken_at = p->raw.length;
    return true;
}

static bool calls_over(mica_tool_parser *p)
{
    p->state = TEXT;
    p->raw.length = 0;
    p->after_call = true;
    p->bare = p->format->bare[0] != NULL;
    return true;
}

static bool closed(mica_tool_parser *p)
{
    p->close_at = 0;
    p->state = FENCE;
    return p->fenced || calls_over(p);
}

/* What has to follow the call, or what closes its fence. */
static const char *close_of(const mica_tool_parser *p)
{
    if (p->state == FENCE)
        return MICA_FENCE;
    return p->bare_call && p->format->marker_written ? "" : p->format->close;
}

static bool call_done(mica_tool_parser *p)
{
    if (!p->begun && !begin(p))
        return false;
    if (!end(p))
        return false;
    p->raw.length = 0;
    p->close_at = 0;
    p->after_call = true;
    p->state = p->format->list ? LIST_NEXT : CLOSE;
    return p->state == CLOSE && !*close_of(p) ? closed(p) : true;
}

static bool in_call(mica_tool_parser *p, char c)
{
    switch (mica_call_push(&p->call, c)) {
    case MICA_CALL_BAD:
        return not_a_call(p, p->call.why);
    case MICA_CALL_NO_MEMORY:
        return fail(p, MICA_OUT_OF_MEMORY);
    case MICA_CALL_END:
        return call_done(p);
    case MICA_CALL_MORE:
        break;
    }
    return !p->call.begun || p->begun || begin(p);
}

/* Some models put several objects between one pair of markers. */
static bool in_close(mica_tool_parser *p, char c)
{
    const char *close = close_of(p);
    if (p->close_at == 0 && mica_json_blank(c))
        return true;
    if (p->close_at == 0 && c == '{' && !p->bare_call && p->format->marker_written && p->format->shape == MICA_CALL_OBJECT)
        return start_call(p) && in_call(p, c);
    if (c != close[p->close_at])
        return not_a_call(p, "there is something between the call and its end");
    p->close_at++;
    return close[p->close_at] ? true : p->state == FENCE ? calls_over(p) : closed(p);
}

static bool in_list(mica_tool_parser *p, char c)
{
    if (mica_json_blank(c))
        return true;
    if (p->state == LIST_OPEN)
        return c == '[' ? start_call(p) : not_a_call(p, "the calls are no list");
    if (c == ']')
        return closed(p);
    return c == ',' ? start_call(p) : not_a_call(p, "there is something between two calls");
}

static bool raw_ends_with(const mica_tool_parser *p, const char *text)
{
    size_t n = strlen(text);
    return n > 0 && p->raw.length >= p->broken_at + n && memcmp(p->raw.data + p->raw.length - n, text, n) == 0;
}

/* A malformed call goes to its closing marker, to the next opening one, or to the reply's end. */
static bool in_broken(mica_tool_parser *p)
{
    const mica_tool_format *f = p->format;
    if (f->marker_written && raw_ends_with(p, f->close)) {
        if (!tell_error(p, p->raw.length))
            return false;
        calls_over(p);
        p->bare = false;
    } else if (raw_ends_with(p, f->marker)) {
        return tell_error(p, p->raw.length - strlen(f->marker)) && mica_buf_puts(&p->raw, f->marker) && open_marked(p);
    } else if (p->raw.length >= MICA_TOOLS_MAX_TEXT - 1) { /* the buffer's maximum: tell what there is, go on as text */
        p->state = TEXT;
        return tell_error(p, p->raw.length);
    }
    return true;
}

static bool in_marked(mica_tool_parser *p, char c)
{
    if (p->raw.length >= MICA_TOOLS_MAX_TEXT - 1)
        return not_a_call(p, "the call is too long") && in_broken(p);
    if (!mica_buf_putc(&p->raw, c))
        return fail(p, MICA_OUT_OF_MEMORY);
    switch (p->state) {
    case CALL:
        return in_call(p, c);
    case CLOSE:
    case FENCE:
        return in_close(p, c);
    case BROKEN:
        return in_broken(p);
    }
    return in_list(p, c);
}

/* ---- Text, and where a call opens in it ---- */

/* Whether text[*at..n) begins with `word`, and then *at is behind it. */
static match match_word(const char *word, const char *text, size_t n, size_t *at)
{
    size_t i = *at;
    for (; *word; word++, i++)
        if (i == n || text[i] != *word)
            return i == n ? PARTIAL_MATCH : NO_MATCH;
    *at = i;
    return FULL_MATCH;
}

/* Blanks, and a fence if there is one. */
static match match_fence(const char *text, size_t n, size_t *at, bool *fenced)
{
    while (*at < n && mica_json_blank(text[*at]))
        ++*at;
    *fenced = *at < n && text[*at] == MICA_FENCE[0];
    match fence = *fenced ? match_word(MICA_FENCE, text, n, at) : FULL_MATCH;
    if (!*fenced || fence != FULL_MATCH || *at == n || text[*at] != MICA_FENCE_WORD[0])
        return fence;
    return match_word(MICA_FENCE_WORD, text, n, at);
}

static match match_bare(const mica_tool_format *f, const char *text, size_t n, size_t *object, bool *fenced)
{
    size_t i = 0;
    match fence = match_fence(text, n, &i, fenced);
    if (fence != FULL_MATCH)
        return fence;
    for (int part = 0; part < MICA_BARE_PARTS && f->bare[part]; part++) {
        while (i < n && mica_json_blank(text[i]))
            i++;
        if (part == f->object_part)
            *object = i;
        match word = match_word(f->bare[part], text, n, &i);
        if (word != FULL_MATCH)
            return word;
    }
    if (f->object_part < 0)
        *object = i;
    return FULL_MATCH;
}

/* The first place where the marker is, or may be at the end of the text. */
static match match_marker(const char *marker, const char *text, size_t n, size_t *at)
{
    size_t m = strlen(marker);
    *at = n;
    for (size_t i = 0; m > 0 && i < n; i++) {
        size_t k = n - i < m ? n - i : m;
        if (memcmp(text + i, marker, k) != 0)
            continue;
        *at = i;
        return k == m ? FULL_MATCH : PARTIAL_MATCH;
    }
    return NO_MATCH;
}

static void drop_held(mica_tool_parser *p, size_t n)
{
    p->held.length -= n;
    memmove(p->held.data, p->held.data + n, p->held.length);
}

/* The object's beginning is read again, as such. Every bare opening is a beginning of a call, so none of its bytes ends one. */
static bool open_bare(mica_tool_parser *p, size_t object)
{
    size_t n = p->held.length;
    p->bare_call = true;
    p->raw.length = 0;
    if (!mica_buf_append(&p->raw, p->held.data, object))
        return fail(p, MICA_OUT_OF_MEMORY);
    start_call(p);
    for (size_t i = object; i < n; i++)
        if (!in_marked(p, p->held.data[i]))
            return false;
    p->held.length = 0;
    return true;
}

/* Tells of held[0..n) all but the blanks at its end; those stay, as does what follows. */
static bool say_held(mica_tool_parser *p, size_t n)
{
    size_t told = n;
    while (told > 0 && mica_json_blank(p->held.data[told - 1]))
        told--;
    if (n - told > HELD_MAX)
        told = n;
    if (!say(p, p->held.data, told))
        return false;
    drop_held(p, told);
    return true;
}

static bool in_text(mica_tool_parser *p, char c)
{
    size_t at = 0;
    if (!mica_buf_putc(&p->held, c))
        return fail(p, MICA_OUT_OF_MEMORY);
    if (p->bare) {
        match bare = match_bare(p->format, p->held.data, p->held.length, &at, &p->fenced);
        if (bare == FULL_MATCH)
            return open_bare(p, at);
        if (bare == PARTIAL_MATCH && p->held.length <= HELD_MAX)
            return true;
        p->bare = false;
    }
    match marker = match_marker(p->format->marker, p->held.data, p->held.length, &at);
    if (!say_held(p, at))
        return false;
    if (marker != FULL_MATCH)
        return true;
    p->held.length = 0; /* blanks and the marker */
    p->raw.length = 0;
    return mica_buf_puts(&p->raw, p->format->marker) ? open_marked(p) : fail(p, MICA_OUT_OF_MEMORY);
}

/* ---- The interface ---- */

static mica_status report(const mica_tool_parser *p, mica_error *err)
{
    if (p->status && err)
        *err = p->error;
    return p->status;
}

mica_status mica_tool_parser_new(const mica_tools *tools, int64_t seed,
                                 int (*on_event)(void *user, const mica_tool_event *event),
                                 void *user, mica_tool_parser **out, mica_error *err)
{
    *out = NULL;
    if (!tools || !on_event)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a parser of calls needs tools and on_event");
    if (seed < 0 && !mica_rng_fresh_seed(&seed))
        return mica_fail(err, MICA_IO_ERROR, "the system gives no random numbers");
    mica_tool_parser *p = mica_new_array(1, sizeof *p);
    if (!p)
        return mica_fail_nomem(err, sizeof *p, "a parser of calls");
    p->tools = tools;
    p->format = tools->format;
    p->on_event = on_event;
    p->user = user;
    p->bare = p->format->bare[0] != NULL;
    mica_rng_seed(&p->rng, (uint64_t)seed);
    mica_buf_init(&p->held, 2 * HELD_MAX);
    mica_buf_init(&p->text, (size_t)1 << 30);
    mica_buf_init(&p->raw, MICA_TOOLS_MAX_TEXT + 1);
    mica_call_init(&p->call);
    *out = p;
    return MICA_OK;
}

void mica_tool_parser_free(mica_tool_parser *p)
{
    if (!p)
        return;
    mica_buf_free(&p->held);
    mica_buf_free(&p->text);
    mica_buf_free(&p->raw);
    mica_call_free(&p->call);
    free(p);
}

mica_status mica_tool_parser_feed(mica_tool_parser *p, const char *text, size_t length, mica_error *err)
{
    bool going = !p->status;
    if (going && p->tools->choice == MICA_TOOL_NONE)
        going = say(p, text, length);
    else
        for (size_t i = 0; i < length && going; i++)
            going = p->state == TEXT ? in_text(p, text[i]) : in_marked(p, text[i]);
    if (going)
        going = flush_text(p) && flush_arguments(p);
    return report(p, err);
}

/* What the reply's end makes of a call that is under way. After whole calls only a closing marker may be missing. */
static bool cut_off(mica_tool_parser *p)
{
    if (p->state == CLOSE || p->state == FENCE || p->state == LIST_NEXT)
        return true;
    if (p->state != BROKEN && !not_a_call(p, "the reply ended inside of the call"))
        return false;
    return p->state != BROKEN || tell_error(p, p->raw.length);
}

mica_status mica_tool_parser_finish(mica_tool_parser *p, mica_error *err)
{
    bool going = !p->status;
    if (going && p->state != TEXT)
        going = cut_off(p);
    size_t blanks = 0;
    while (blanks < p->held.length && mica_json_blank(p->held.data[blanks]))
        blanks++;
    if (going && !(p->after_call && blanks == p->held.length))
        going = say(p, p->held.data, p->held.length);
    if (going)
        going = flush_text(p);
    p->held.length = p->raw.length = 0;
    p->state = TEXT;
    return report(p, err);
}

int32_t mica_tool_parser_calls(const mica_tool_parser *p) { return p->n_calls; }
