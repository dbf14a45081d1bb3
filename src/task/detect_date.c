/* detect_date.c - calendar dates that exist: the day within its month, leap years, years 1800 to 2199.
 *
 *  2021-03-14  2021/3/14  2021.03.14     14.03.2021  14/3/21  3/14/2021  14-03-2021
 *  14 March 2021  14th of March, 2021  14. März 2021  14 de marzo de 2021     March 14, 2021  Mar 14th 2021  March 14
 *
 * Two-digit years only with three numbers. Without a year, the month's name must begin with a capital. Names of months and
 * their usual abbreviations in English, German, French, Spanish, Italian and Portuguese. */
#include "task/chars.h"
#include "task/detect.h"

#include <string.h>

/* Reading position; the parsers leave it behind what they have read. */
typedef struct place {
    const char *text;
    size_t length, at;
} place;

static const struct month_name {
    const char *name;
    int month;
} month_names[] = {
    {"january", 1},   {"jan", 1},        {"januar", 1},     {"jänner", 1},    {"janvier", 1},   {"enero", 1},
    {"gennaio", 1},   {"janeiro", 1},    {"february", 2},   {"feb", 2},       {"februar", 2},   {"février", 2},
    {"febrero", 2},   {"febbraio", 2},   {"fevereiro", 2},  {"march", 3},     {"mar", 3},       {"märz", 3},
    {"mars", 3},      {"marzo", 3},      {"março", 3},      {"april", 4},     {"apr", 4},       {"avril", 4},
    {"abril", 4},     {"aprile", 4},     {"may", 5},        {"mai", 5},       {"mayo", 5},      {"maggio", 5},
    {"maio", 5},      {"june", 6},       {"jun", 6},        {"juni", 6},      {"juin", 6},      {"junio", 6},
    {"giugno", 6},    {"junho", 6},      {"july", 7},       {"jul", 7},       {"juli", 7},      {"juillet", 7},
    {"julio", 7},     {"luglio", 7},     {"julho", 7},      {"august", 8},    {"aug", 8},       {"août", 8},
    {"agosto", 8},    {"september", 9},  {"sep", 9},        {"sept", 9},      {"septembre", 9}, {"septiembre", 9},
    {"settembre", 9}, {"setembro", 9},   {"october", 10},   {"oct", 10},      {"oktober", 10},  {"okt", 10},
    {"octobre", 10},  {"octubre", 10},   {"ottobre", 10},   {"outubro", 10},  {"november", 11}, {"nov", 11},
    {"novembre", 11}, {"noviembre", 11}, {"novembro", 11},  {"december", 12}, {"dec", 12},      {"dezember", 12},
    {"dez", 12},      {"décembre", 12},  {"diciembre", 12}, {"dicembre", 12}, {"dezembro", 12},
};

static bool is_date(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1800 || year > 2199 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (month == 2 && leap);
}

/* A number of `least` to `most` digits that is not a part of a longer one; -1 if there is none. */
static int read_number(place *p, size_t least, size_t most)
{
    size_t start = p->at;
    int value = 0;
    while (p->at < p->length && mica_is_digit(p->text[p->at]) && p->at - start < most)
        value = 10 * value + (p->text[p->at++] - '0');
    return p->at - start < least || mica_is_digit(mica_byte_at(p->text, p->length, p->at)) ? -1 : value;
}

static bool read_text(place *p, const char *wanted)
{
    size_t n = strlen(wanted);
    if (p->length - p->at < n || strncasecmp(p->text + p->at, wanted, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool read_spaces(place *p)
{
    size_t start = p->at;
    while (p->at < p->length && p->at - start < 3) {
        if (p->text[p->at] == ' ')
            p->at++;
        else if (!read_text(p, "\xC2\xA0"))
            break;
    }
    return p->at > start;
}

/* The month whose name begins here and ends with its word, a dot of abbreviation included; 0 if there is none. */
static int read_month(place *p)
{
    for (size_t i = 0; i < sizeof month_names / sizeof *month_names; i++) {
        place q = *p;
        if (!read_text(&q, month_names[i].name) || mica_word_at(q.text, q.length, q.at))
            continue;
        if (mica_byte_at(q.text, q.length, q.at) == '.' && strlen(month_names[i].name) <= 4)
            q.at++;
        *p = q;
        return month_names[i].month;
    }
    return 0;
}

static bool ends_well(const place *p)
{
    char c = mica_byte_at(p->text, p->length, p->at);
    bool joins = c == '-' || c == '/' || c == '.';
    return !mica_word_at(p->text, p->length, p->at) && !(joins && mica_is_digit(mica_byte_at(p->text, p->length, p->at + 1)));
}

/* Three numbers with one kind of separator. "T10:00" may follow an ISO date. */
static bool read_numeric(place *p)
{
    size_t start = p->at;
    int first = read_number(p, 1, 4);
    char separator = mica_byte_at(p->text, p->length, p->at);
    bool year_first = p->at - start == 4;
    if (first < 0 || p->at - start == 3 || (separator != '-' && separator != '/' && separator != '.'))
        return false;
    p->at++;
    int second = read_number(p, 1, 2);
    if (second < 0 || mica_byte_at(p->text, p->length, p->at) != separator)
        return false;
    size_t last = ++p->at;
    int third = read_number(p, 1, year_first ? 2 : 4);
    size_t digits = p->at - last;
    if (third < 0 || (!year_first && digits != 4 && (digits != 2 || separator == '-')))
        return false;
    bool time = mica_byte_at(p->text, p->length, p->at) == 'T' && mica_is_digit(mica_byte_at(p->text, p->length, p->at + 1));
    if (!ends_well(p) && !(year_first && time))
        return false;
    int year = year_first ? first : digits == 2 ? 2000 + third : third;
    return year_first ? is_date(year, second, third) : is_date(year, second, first) || is_date(year, first, second);
}

/* An optional year behind day and month. Moves only if there is one. */
static int read_year(place *p)
{
    place q = *p;
    read_text(&q, ",");
    read_spaces(&q);
    if (read_text(&q, "de ") || read_text(&q, "del "))
        read_spaces(&q);
    int year = q.at > p->at ? read_number(&q, 4, 4) : -1;
    if (year < 1800 || year > 2199 || !ends_well(&q))
        return -1;
    *p = q;
    return year;
}

static bool read_ordinal(place *p)
{
    return read_text(p, "st") || read_text(p, "nd") || read_text(p, "rd") || read_text(p, "th") || read_text(p, "er") ||
           read_text(p, "º") || read_text(p, ".");
}

/* The first year that is tried where none is written: 29 February is a date. */
#define ANY_YEAR 2000

static bool read_day_first(place *p)
{
    int day = read_number(p, 1, 2);
    if (day < 1)
        return false;
    read_ordinal(p);
    bool apart = read_spaces(p) || mica_byte_at(p->text, p->length, p->at) == '-';
    if (!apart)
        return false;
    read_text(p, "-");
    if (read_text(p, "of ") || read_text(p, "de "))
        read_spaces(p);
    char initial = mica_byte_at(p->text, p->length, p->at);
    int month = read_month(p);
    if (!month)
        return false;
    bool capital = initial < 'a' || initial > 'z';
    read_text(p, mica_byte_at(p->text, p->length, p->at) == '-' ? "-" : "");
    size_t end = p->at;
    int year = p->text[p->at - 1] == '-' ? read_number(p, 4, 4) : read_year(p);
    if (year < 0) {
        p->at = end;
        return capital && p->text[p->at - 1] != '-' && ends_well(p) && is_date(ANY_YEAR, month, day);
    }
    return is_date(year, month, day) && ends_well(p);
}

static bool read_month_first(place *p)
{
    char initial = p->text[p->at];
    int month = read_month(p);
    if (!month || !read_spaces(p))
        return false;
    size_t start = p->at;
    int day = read_number(p, 1, 2), year;
    if (day < 1) { /* "March 2021" tells no day, and is left */
        p->at = start;
        return false;
    }
    place q = *p;
    if (read_ordinal(&q) && q.text[q.at - 1] != '.')
        *p = q;
    if (mica_word_at(p->text, p->length, p->at))
        return false;
    year = read_year(p);
    if (year < 0)
        return initial >= 'A' && initial <= 'Z' && ends_well(p) && mica_byte_at(p->text, p->length, p->at) != ':' &&
               is_date(ANY_YEAR, month, day);
    return is_date(year, month, day);
}

void mica_detect_date(const char *text, size_t length, mica_finds *finds)
{
    for (size_t at = 0; at < length; at++) {
        char before = at > 0 ? text[at - 1] : ' ';
        bool joins = before == '-' || before == '/' || before == '.';
        bool digit = mica_is_digit(text[at]), letter = mica_is_letter(text[at]);
        if ((!digit && !letter) || (joins && at > 1 && mica_is_digit(text[at - 2])) || mica_word_before(text, at))
            continue;
        place p = {text, length, at}, q = p;
        bool found = digit ? read_numeric(&p) : read_month_first(&p);
        if (digit && !found && (found = read_day_first(&q)))
            p = q;
        if (!found)
            continue;
        mica_finds_add(finds, (mica_find){.start = at, .end = p.at});
        at = p.at - 1;
    }
}
