/* regex_unicode.c - the properties in \p{...}: names of ECMA-262's tables, data of utf8proc. */
#include "constraint/regex_impl.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define BIT(category) (1u << UTF8PROC_CATEGORY_##category)
#define CASED (BIT(LU) | BIT(LL) | BIT(LT))
#define LETTER (CASED | BIT(LM) | BIT(LO))
#define MARK (BIT(MN) | BIT(MC) | BIT(ME))
#define NUMBER (BIT(ND) | BIT(NL) | BIT(NO))
#define PUNCTUATION (BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO))
#define SYMBOL (BIT(SM) | BIT(SC) | BIT(SK) | BIT(SO))
#define SEPARATOR (BIT(ZS) | BIT(ZL) | BIT(ZP))
#define OTHER (BIT(CC) | BIT(CF) | BIT(CS) | BIT(CO) | BIT(CN))
#define ALL (LETTER | MARK | NUMBER | PUNCTUATION | SYMBOL | SEPARATOR | OTHER)

/* ECMA-262, table "Value aliases and canonical values for the Unicode property General_Category". */
static const struct category_name {
    const char *name;
    uint32_t categories;
} category_names[] = {
    {"L", LETTER},       {"Letter", LETTER},
    {"LC", CASED},       {"Cased_Letter", CASED},
    {"Lu", BIT(LU)},     {"Uppercase_Letter", BIT(LU)},
    {"Ll", BIT(LL)},     {"Lowercase_Letter", BIT(LL)},
    {"Lt", BIT(LT)},     {"Titlecase_Letter", BIT(LT)},
    {"Lm", BIT(LM)},     {"Modifier_Letter", BIT(LM)},
    {"Lo", BIT(LO)},     {"Other_Letter", BIT(LO)},
    {"M", MARK},         {"Mark", MARK},
    {"Combining_Mark", MARK},
    {"Mn", BIT(MN)},     {"Nonspacing_Mark", BIT(MN)},
    {"Mc", BIT(MC)},     {"Spacing_Mark", BIT(MC)},
    {"Me", BIT(ME)},     {"Enclosing_Mark", BIT(ME)},
    {"N", NUMBER},       {"Number", NUMBER},
    {"Nd", BIT(ND)},     {"Decimal_Number", BIT(ND)},
    {"digit", BIT(ND)},
    {"Nl", BIT(NL)},     {"Letter_Number", BIT(NL)},
    {"No", BIT(NO)},     {"Other_Number", BIT(NO)},
    {"P", PUNCTUATION},  {"Punctuation", PUNCTUATION},
    {"punct", PUNCTUATION},
    {"Pc", BIT(PC)},     {"Connector_Punctuation", BIT(PC)},
    {"Pd", BIT(PD)},     {"Dash_Punctuation", BIT(PD)},
    {"Ps", BIT(PS)},     {"Open_Punctuation", BIT(PS)},
    {"Pe", BIT(PE)},     {"Close_Punctuation", BIT(PE)},
    {"Pi", BIT(PI)},     {"Initial_Punctuation", BIT(PI)},
    {"Pf", BIT(PF)},     {"Final_Punctuation", BIT(PF)},
    {"Po", BIT(PO)},     {"Other_Punctuation", BIT(PO)},
    {"S", SYMBOL},       {"Symbol", SYMBOL},
    {"Sm", BIT(SM)},     {"Math_Symbol", BIT(SM)},
    {"Sc", BIT(SC)},     {"Currency_Symbol", BIT(SC)},
    {"Sk", BIT(SK)},     {"Modifier_Symbol", BIT(SK)},
    {"So", BIT(SO)},     {"Other_Symbol", BIT(SO)},
    {"Z", SEPARATOR},    {"Separator", SEPARATOR},
    {"Zs", BIT(ZS)},     {"Space_Separator", BIT(ZS)},
    {"Zl", BIT(ZL)},     {"Line_Separator", BIT(ZL)},
    {"Zp", BIT(ZP)},     {"Paragraph_Separator", BIT(ZP)},
    {"C", OTHER},        {"Other", OTHER},
    {"Cc", BIT(CC)},     {"Control", BIT(CC)},
    {"cntrl", BIT(CC)},
    {"Cf", BIT(CF)},     {"Format", BIT(CF)},
    {"Cs", BIT(CS)},     {"Surrogate", BIT(CS)},
    {"Co", BIT(CO)},     {"Private_Use", BIT(CO)},
    {"Cn", BIT(CN)},     {"Unassigned", BIT(CN)},
};

/* Binary properties that need no data beyond categories: all of their categories, restricted to ranges if there are any. */
static const struct binary_name {
    const char *name;
    uint32_t categories;
    int n_ranges;
    mica_char_range ranges[3];
} binary_names[] = {
    {"Any", ALL, 0, {{0}}},
    {"Assigned", ALL & ~BIT(CN), 0, {{0}}},
    {"ASCII", ALL, 1, {{0, 0x7F}}},
    {"ASCII_Hex_Digit", ALL, 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
    {"AHex", ALL, 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};

static bool is_name(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* Lists Unicode as runs of one category, once for each pattern that needs it: some 3,300 of them, in a few milliseconds. */
static bool list_runs(mica_regex_parser *p)
{
    size_t capacity = 0;
    for (uint32_t code = 0; code <= MICA_MAX_CODE; code++) {
        uint8_t category = (uint8_t)utf8proc_category((utf8proc_int32_t)code);
        if (p->n_runs && p->runs[p->n_runs - 1].category == category) {
            p->runs[p->n_runs - 1].high = code;
            continue;
        }
        if (p->n_runs == capacity) {
            capacity = capacity ? capacity * 2 : 4096;
            mica_category_run *runs = realloc(p->runs, capacity * sizeof *runs);
            if (!runs)
                return false;
            p->runs = runs;
        }
        p->runs[p->n_runs++] = (mica_category_run){code, code, category};
    }
    return true;
}

static bool add_categories(mica_regex_parser *p, uint32_t categories, mica_ranges *out)
{
    if (!p->runs && !list_runs(p))
        return false;
    for (size_t i = 0; i < p->n_runs; i++)
        if (categories >> p->runs[i].category & 1 && !mica_ranges_add(out, p->runs[i].low, p->runs[i].high))
            return false;
    return mica_ranges_normalise(out);
}

/* The value after "gc=" or "General_Category=", or the whole of a name without "="; NULL: another property's value. */
static const char *category_value(const char *name, size_t *length)
{
    const char *sign = memchr(name, '=', *length);
    if (!sign)
        return name;
    size_t n = (size_t)(sign - name);
    if (!is_name(name, n, "gc") && !is_name(name, n, "General_Category"))
        return NULL;
    *length -= n + 1;
    return sign + 1;
}

void mica_regex_property(mica_regex_parser *p, size_t position, const char *name, size_t length, mica_ranges *out)
{
    size_t value_length = length;
    const char *value = category_value(name, &value_length);
    bool ok = true, found = false;
    for (size_t i = 0; value && i < sizeof category_names / sizeof *category_names && !found; i++)
        if ((found = is_name(value, value_length, category_names[i].name)))
            ok = add_categories(p, category_names[i].categories, out);
    for (size_t i = 0; i < sizeof binary_names / sizeof *binary_names && !found; i++)
        if ((found = is_name(name, length, binary_names[i].name)))
            ok = binary_names[i].n_ranges ? mica_ranges_add_all(out, binary_names[i].ranges, (size_t)binary_names[i].n_ranges)
                                          : add_categories(p, binary_names[i].categories, out);
    if (!found)
        mica_regex_fail(p, MICA_UNSUPPORTED, position,
                        "the property \"%.*s\" is not available: general categories, Any, Assigned, ASCII, ASCII_Hex_Digit are",
                        length <= 60 ? (int)length : 0, name);
    else if (!ok && !p->status)
        p->status = mica_regular_nomem(p->err);
}
