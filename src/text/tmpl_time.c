#include "text/tmpl_text.h"

#include <stdio.h>
#include <string.h>

typedef struct civil {
    int64_t year;
    int month, day, hour, minute, second; /* month and day from 1 */
    int weekday, yearday;                 /* Sunday 0; 1 January 0 */
} civil;

static bool is_leap(int64_t y) { return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0); }

/* The proleptic Gregorian calendar in UTC. Days are counted from 1 March of year 0, so that leap days end a year. */
static civil civil_of(int64_t unix)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t days = unix / 86400, rest = unix % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int64_t z = days + 719468, era = z / 146097, doe = z % 146097; /* z > 0: the caller has checked the year */
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    civil c = {.hour = (int)(rest / 3600), .minute = (int)(rest / 60 % 60), .second = (int)(rest % 60)};
    c.day = (int)(doy - (153 * mp + 2) / 5 + 1);
    c.month = (int)(mp < 10 ? mp + 3 : mp - 9);
    c.year = yoe + era * 400 + (c.month <= 2);
    c.weekday = (int)((days % 7 + 11) % 7); /* 1 January 1970 was a Thursday */
    c.yearday = before[c.month - 1] + c.day - 1 + (c.month > 2 && is_leap(c.year));
    return c;
}

static int week_of(const civil *c, int first_day) { return (c->yearday + 7 - (c->weekday - first_day + 7) % 7) / 7; }

/* ISO 8601 week and the year that it belongs to. */
static int iso_week(const civil *c, int64_t *year)
{
    int weekday = (c->weekday + 6) % 7; /* Monday 0 */
    int week = (c->yearday - weekday + 10) / 7;
    *year = c->year;
    if (week < 1) {
        int last = 365 + is_leap(c->year - 1), yearday = c->yearday + last;
        *year = c->year - 1;
        return (yearday - weekday + 10) / 7;
    }
    if (week == 53 && c->yearday - weekday + 3 >= 365 + is_leap(c->year)) {
        *year = c->year + 1;
        return 1;
    }
    return week;
}

static const char *const day_names[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"January", "February", "March", "April", "May", "June", "July", "August", "September",
                                          "October", "November", "December"};

static void put_number(mica_buf *buf, int64_t n, int width, char pad, char flag)
{
    if (flag == '-')
        width = 0;
    else if (flag == '_' || flag == '0')
        pad = flag == '_' ? ' ' : '0';
    if (pad == '0')
        mica_buf_printf(buf, "%0*lld", width, (long long)n);
    else
        mica_buf_printf(buf, "%*lld", width, (long long)n);
}

static void put_name(mica_buf *buf, const char *name, int length, char flag)
{
    for (int i = 0; i < length && name[i]; i++)
        mica_buf_putc(buf, (char)(flag == '^' && name[i] >= 'a' && name[i] <= 'z' ? name[i] - 32 : name[i]));
}

/* Directives that stand for others. */
static const char *composite(char directive)
{
    switch (directive) {
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    case 'x': case 'D':
        return "%m/%d/%y";
    case 'X': case 'T':
        return "%H:%M:%S";
    case 'F':
        return "%Y-%m-%d";
    case 'R':
        return "%H:%M";
    case 'r':
        return "%I:%M:%S %p";
    default:
        return NULL;
    }
}

static bool put_directive(mica_buf *buf, const civil *c, int64_t unix, char directive, char flag)
{
    int64_t year;
    int hour12 = c->hour % 12 ? c->hour % 12 : 12;
    switch (directive) {
    case 'a': case 'A':
        put_name(buf, day_names[c->weekday], directive == 'a' ? 3 : 99, flag);
        return true;
    case 'b': case 'B': case 'h':
        put_name(buf, month_names[c->month - 1], directive == 'B' ? 99 : 3, flag);
        return true;
    case 'p': case 'P':
        mica_buf_puts(buf, directive == 'P' || flag == '#' ? (c->hour < 12 ? "am" : "pm") : (c->hour < 12 ? "AM" : "PM"));
        return true;
    case 'd': put_number(buf, c->day, 2, '0', flag); return true;
    case 'e': put_number(buf, c->day, 2, ' ', flag); return true;
    case 'f': mica_buf_puts(buf, "000000"); return true;
    case 'g': (void)iso_week(c, &year); put_number(buf, year % 100, 2, '0', flag); return true;
    case 'G': (void)iso_week(c, &year); put_number(buf, year, 1, '0', flag); return true;
    case 'H': put_number(buf, c->hour, 2, '0', flag); return true;
    case 'I': put_number(buf, hour12, 2, '0', flag); return true;
    case 'j': put_number(buf, c->yearday + 1, 3, '0', flag); return true;
    case 'k': put_number(buf, c->hour, 2, ' ', flag); return true;
    case 'l': put_number(buf, hour12, 2, ' ', flag); return true;
    case 'm': put_number(buf, c->month, 2, '0', flag); return true;
    case 'M': put_number(buf, c->minute, 2, '0', flag); return true;
    case 'n': mica_buf_putc(buf, '\n'); return true;
    case 't': mica_buf_putc(buf, '\t'); return true;
    case 's': put_number(buf, unix, 1, '0', flag); return true;
    case 'S': put_number(buf, c->second, 2, '0', flag); return true;
    case 'u': put_number(buf, c->weekday ? c->weekday : 7, 1, '0', flag); return true;
    case 'w': put_number(buf, c->weekday, 1, '0', flag); return true;
    case 'U': put_number(buf, week_of(c, 0), 2, '0', flag); return true;
    case 'W': put_number(buf, week_of(c, 1), 2, '0', flag); return true;
    case 'V': put_number(buf, iso_week(c, &year), 2, '0', flag); return true;
    case 'y': put_number(buf, c->year % 100, 2, '0', flag); return true;
    case 'Y': put_number(buf, c->year, 1, '0', flag); return true;
    case 'C': put_number(buf, c->year / 100, 2, '0', flag); return true;
    case 'z': case 'Z': return true; /* datetime.now() knows no zone */
    case '%': mica_buf_putc(buf, '%'); return true;
    default:
        return false;
    }
}

static bool expand(mica_run *run, mica_buf *buf, const civil *c, int64_t unix, const char *p, const char *end)
{
    while (p < end) {
        if (*p != '%') {
            mica_buf_putc(buf, *p++);
            continue;
        }
        char flag = 0;
        if (++p < end && *p && strchr("-_0^#", *p))
            flag = *p++;
        if (p == end)
            return mica_run_fail(run, "the time format ends inside a directive");
        char directive = *p++;
        const char *parts = composite(directive);
        if (parts ? !expand(run, buf, c, unix, parts, parts + strlen(parts)) : !put_directive(buf, c, unix, directive, flag))
            return mica_run_fail(run, "strftime directive %%%c is not supported",
                                 (unsigned char)directive < 0x80 ? directive : '?');
    }
    return true;
}

bool mica_text_strftime(mica_run *run, const mica_val *format, int64_t unix, mica_val *out)
{
    mica_buf buf;
    if (format->len > 4096)
        return mica_run_fail(run, "the time format is longer than 4096 bytes");
    if (unix < -62135596800 || unix > 253402300799) /* years 1 to 9999, as datetime has them */
        return mica_run_fail(run, "the time is outside of the years 1 to 9999");
    civil c = civil_of(unix);
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!expand(run, &buf, &c, unix, format->s, format->s + format->len)) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(run, &buf, out);
}
