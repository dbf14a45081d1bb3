#include "constraint/json_format.h"

#include <stdio.h>
#include <string.h>

/* RFC 3339. Months of 31, 30 and 28 days, and 29 February of the years that are multiples of 4, but of 100 only if of 400. */
#define FULL_DATE                                                                                                              \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|"  \
    "2[0-8]))"                                                                                                                 \
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define FRACTION "(?:\\.[0-9]{1,9})?" /* nanoseconds; the RFC has no end */
/* A leap second is the last one of a day of UTC. Only UTC itself is written so: the offsets that make it of another local time
 * would need a state for each minute of the day. */
#define FULL_TIME                                                                                                              \
    "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" FRACTION "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"                    \
    "|23:59:60" FRACTION "(?:[Zz]|[+-]00:00))"

/* RFC 4122, RFC 9562. */
#define UUID "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

/* RFC 5321, 4.1.2 and 4.5.3.1: a dot-string of at most 64 characters (see below) and a domain. Not here: quoted local parts,
 * address literals. At most 8 labels of at most 30 characters keep the domain below its limit of 253. */
#define ATEXT        "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
#define LABEL        "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?"
#define EMAIL_LOCAL  ATEXT "+(?:\\." ATEXT "+)*"
#define EMAIL_DOMAIN LABEL "(?:\\." LABEL "){0,7}"

/* RFC 3986. */
#define DEC_OCTET "(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
#define IPV4      DEC_OCTET "(?:\\." DEC_OCTET "){3}"
#define H16       "[0-9A-Fa-f]{1,4}"
#define LS32      "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                                                   \
    "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32 "|(?:(?:" H16 ":){0,1}" H16      \
    ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16 ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32 "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16   \
    ":" LS32 "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16 "|(?:(?:" H16 ":){0,6}" H16        \
    ")?::)"
#define PCT        "%[0-9A-Fa-f]{2}"
#define USERINFO   "(?:[A-Za-z0-9._~!$&'()*+,;=:-]|" PCT ")*"
#define REG_NAME   "(?:[A-Za-z0-9._~!$&'()*+,;=-]|" PCT ")*" /* an IPv4 address is one too */
#define IP_LITERAL "\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]"
#define PCHAR      "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|" PCT ")"
#define AUTHORITY  "(?:" USERINFO "@)?(?:" IP_LITERAL "|" REG_NAME ")(?::[0-9]*)?"
#define HIER_PART  "(?://" AUTHORITY "(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" PCHAR "+(?:/" PCHAR "*)*)?"
#define QUERY      "(?:" PCHAR "|[/?])*"
#define URI        "[A-Za-z][A-Za-z0-9+.-]*:" HIER_PART "(?:\\?" QUERY ")?(?:#" QUERY ")?"

/* RFC 3339, appendix A; numbers of at most nine digits. */
#define DURATION_TIME "T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S)"
#define DURATION                                                                                                               \
    "P(?:(?:[0-9]{1,9}D|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?)(?:" DURATION_TIME             \
    ")?|" DURATION_TIME "|[0-9]{1,9}W)"

#define EMAIL_LOCAL_MAX 64

/* A format is `pattern`, or a first part of at most 64 characters, '@' and `pattern`. */
static const struct {
    const char *name, *local, *pattern;
} formats[] = {
    {"date", NULL, FULL_DATE},    {"time", NULL, FULL_TIME}, {"date-time", NULL, FULL_DATE "[Tt]" FULL_TIME},
    {"duration", NULL, DURATION}, {"uuid", NULL, UUID},      {"email", EMAIL_LOCAL, EMAIL_DOMAIN},
    {"ipv4", NULL, IPV4},         {"ipv6", NULL, IPV6},      {"uri", NULL, URI},
};

int mica_json_format_count(void)
{
    return (int)(sizeof formats / sizeof *formats);
}

int mica_json_format_find(const char *name, size_t length)
{
    for (int i = 0; i < mica_json_format_count(); i++)
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, name, length) == 0)
            return i;
    return -1;
}

/* "Begins with at most 64 characters before the '@'", as a condition beside the shape of the whole. */
static mica_status email_language(const char *local, const char *domain, mica_regular **out, mica_error *err)
{
    char pattern[1024], limit[64];
    mica_regular *shape = NULL, *bounded = NULL;
    int n = snprintf(pattern, sizeof pattern, "(?:%s)@(?:%s)", local, domain);
    int m = snprintf(limit, sizeof limit, "[^@]{1,%d}@[^@]*", EMAIL_LOCAL_MAX);
    mica_status status = mica_regular_parse(pattern, (size_t)n, MICA_PATTERN_WHOLE, &shape, err);
    if (!status)
        status = mica_regular_parse(limit, (size_t)m, MICA_PATTERN_WHOLE, &bounded, err);
    if (!status)
        status = mica_regular_both(shape, bounded, out, err);
    mica_regular_free(shape);
    mica_regular_free(bounded);
    return status;
}

mica_status mica_json_format_language(int index, mica_regular **out, mica_error *err)
{
    *out = NULL;
    if (formats[index].local)
        return email_language(formats[index].local, formats[index].pattern, out, err);
    return mica_regular_parse(formats[index].pattern, strlen(formats[index].pattern), MICA_PATTERN_WHOLE, out, err);
}
