#include "device/cpulist.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/** A number without sign, held at MICA_MAX_CPU_ID if it is larger; NULL if there is none. */
static const char *parse_id(const char *p, int *id)
{
    if (!isdigit((unsigned char)*p))
        return NULL;
    int value = 0;
    for (; isdigit((unsigned char)*p); p++)
        if (value < MICA_MAX_CPU_ID)
            value = value * 10 + (*p - '0');
    *id = value < MICA_MAX_CPU_ID ? value : MICA_MAX_CPU_ID;
    return p;
}

/** "N" or "N-M"; NULL if it is neither or M < N. */
static const char *parse_range(const char *p, mica_cpu_bits *bits)
{
    int first, last;
    p = parse_id(p, &first);
    if (!p)
        return NULL;
    last = first;
    if (*p == '-') {
        p = parse_id(p + 1, &last);
        if (!p || last < first)
            return NULL;
    }
    for (int id = first; id <= last && id < MICA_MAX_CPU_ID; id++)
        mica_cpu_bits_set(bits, id);
    return p;
}

bool mica_cpulist_parse(const char *text, mica_cpu_bits *bits)
{
    memset(bits, 0, sizeof *bits);
    const char *p = text + strspn(text, " \t");
    if (*p == '\0' || *p == '\n')
        return true;
    for (;;) {
        p = parse_range(p, bits);
        if (!p)
            break;
        if (*p == ',') {
            p++;
            continue;
        }
        p += strspn(p, " \t\r");
        if (*p == '\0' || *p == '\n')
            return true;
        break;
    }
    memset(bits, 0, sizeof *bits);
    return false;
}

void mica_cpu_bits_set(mica_cpu_bits *bits, int id) { bits->word[id / 64] |= UINT64_C(1) << (id % 64); }

bool mica_cpu_bits_has(const mica_cpu_bits *bits, int id)
{
    return id >= 0 && id < MICA_MAX_CPU_ID && (bits->word[id / 64] >> (id % 64) & 1);
}

int mica_cpu_bits_count(const mica_cpu_bits *bits)
{
    int n = 0;
    for (size_t i = 0; i < MICA_MAX_CPU_ID / 64; i++)
        n += __builtin_popcountll(bits->word[i]);
    return n;
}

int mica_cpu_bits_next(const mica_cpu_bits *bits, int from)
{
    for (int id = from; id < MICA_MAX_CPU_ID; id++) {
        if (id % 64 == 0 && bits->word[id / 64] == 0)
            id += 63;
        else if (mica_cpu_bits_has(bits, id))
            return id;
    }
    return -1;
}

int mica_cpu_bits_and(mica_cpu_bits *a, const mica_cpu_bits *b)
{
    for (size_t i = 0; i < MICA_MAX_CPU_ID / 64; i++)
        a->word[i] &= b->word[i];
    return mica_cpu_bits_count(a);
}
