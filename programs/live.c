#include "live.h"

#include <langinfo.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_NS 200000000
enum { USUAL_COLUMNS = 80, MAX_COLUMNS = 240, LINE = 1024 };

mica_live mica_live_begin(void)
{
    return (mica_live){.terminal = isatty(STDERR_FILENO)};
}

void mica_live_rate(mica_live *live, double rate)
{
    if (!isfinite(rate))
        return;
    if (live->n_rates == MICA_LIVE_RATES)
        memmove(live->rates, live->rates + 1, (size_t)--live->n_rates * sizeof *live->rates);
    live->rates[live->n_rates++] = rate;
}

/* ---- Pieces ---- */

void mica_live_bar(double part, char out[MICA_LIVE_BAR + 1])
{
    int full = part >= 1 ? MICA_LIVE_BAR : part > 0 ? (int)(part * MICA_LIVE_BAR) : 0;
    memset(out, '#', (size_t)full);
    memset(out + full, '-', (size_t)(MICA_LIVE_BAR - full));
    out[MICA_LIVE_BAR] = '\0';
}

void mica_live_duration(double seconds, char out[MICA_LIVE_TIME])
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    int i = 0;
    if (!isfinite(seconds) || seconds > 1e12) {
        snprintf(out, MICA_LIVE_TIME, "unknown");
        return;
    }
    seconds = ceil(seconds);
    while (i < 3 && seconds < units[i].seconds)
        i++;
    double whole = floor(seconds / units[i].seconds);
    if (i == 3)
        snprintf(out, MICA_LIVE_TIME, "%.0f s", seconds);
    else
        snprintf(out, MICA_LIVE_TIME, "%.0f %s %.0f %s", whole, units[i].name,
                 floor((seconds - whole * units[i].seconds) / units[i + 1].seconds), units[i + 1].name);
}

/* A level a rate. The bottom is the lowest rate, or 80 % of the highest, so that noise looks like noise and a throttle like a
 * step. */
static void sparkline(const mica_live *live, char *out, size_t size)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    const char *const *levels = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? blocks : plain;
    double low = INFINITY, high = 0;
    size_t at = 0;
    for (int i = 0; i < live->n_rates; i++) {
        low = fmin(low, live->rates[i]);
        high = fmax(high, live->rates[i]);
    }
    low = fmin(low, 0.8 * high);
    out[0] = '\0';
    for (int i = 0; i < live->n_rates && live->n_rates > 1; i++) {
        int level = high > low ? (int)((live->rates[i] - low) / (high - low) * 7 + 0.5) : 7;
        at += (size_t)snprintf(out + at, size - at, "%s", levels[level]);
    }
}

/* ---- The line ---- */

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_COLUMNS;
    return size.ws_col < MAX_COLUMNS ? size.ws_col : MAX_COLUMNS;
}

/* Characters of UTF-8, each taken for a column wide. */
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void cut(char *text, int n)
{
    while (*text && (n > 0 || ((unsigned char)*text & 0xC0) == 0x80))
        n -= ((unsigned char)*++text & 0xC0) != 0x80;
    *text = '\0';
}

static void compose(const mica_live *live, double part, double left_s, const char *text, char out[LINE])
{
    char bar[MICA_LIVE_BAR + 1], rates[4 * MICA_LIVE_RATES + 1], left[MICA_LIVE_TIME + 8] = "", span[MICA_LIVE_TIME];
    int room = columns() - 1; /* a full line would wrap */
    mica_live_bar(part, bar);
    sparkline(live, rates, sizeof rates);
    if (isfinite(left_s)) {
        mica_live_duration(left_s, span);
        snprintf(left, sizeof left, "  %s left", span);
    }
    const char *gap = *rates ? "  " : "";
    int n = snprintf(out, LINE, "[%s] %5.1f %%  ", bar, 100 * part);
    if (n + width(text) + width(rates) + 2 + width(left) > room) /* the sparkline goes first, then the end of the text */
        rates[0] = '\0', gap = "";
    snprintf(out + n, LINE - (size_t)n, "%s", text);
    cut(out, room - width(gap) - width(rates) - width(left));
    n = (int)strlen(out);
    snprintf(out + n, LINE - (size_t)n, "%s%s%s", gap, rates, left);
    cut(out, room);
}

void mica_live_show(mica_live *live, double part, double left_s, bool at_once, const char *format, ...)
{
    char text[LINE / 2], line[LINE];
    int64_t now_ns = mica_now_ns();
    va_list args;
    if (!live->terminal || (!at_once && live->shown && now_ns - live->last_ns < REDRAW_NS))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    part = part > 0 ? part < 1 ? part : 1 : 0;
    compose(live, part, left_s, text, line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    live->shown = true;
    live->last_ns = now_ns;
}

void mica_live_end(mica_live *live)
{
    if (live->shown)
        fputs("\r\033[K", stderr);
    live->shown = false;
}
