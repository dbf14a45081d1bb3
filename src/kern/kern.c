#include "kern/kern.h"

#include <stddef.h>
#include <string.h>

#include "base/selection.h"
#include "kern/cpu.h"
#include "kern/fills.h"

static const mica_isa isas[] = {
#define ISA(name, supported, fill) MICA_ROW(KERNELS_##name, {#name, supported, fill}, )
#include "kern/isa_list.h"
#undef ISA
};

size_t mica_isa_count(void) { return sizeof isas / sizeof *isas; }

const mica_isa *mica_isa_at(size_t i) { return &isas[i]; }

static void fill_up_to(size_t last, mica_kernels *k)
{
    memset(k, 0, sizeof *k);
    for (size_t i = 0; i <= last; i++)
        if (isas[i].supported())
            isas[i].fill(k);
    k->name = isas[last].name;
}

#define ISA(name, supported, fill) MICA_ROW(KERNELS_##name, ", " #name)
static const char isa_names[] =
#include "kern/isa_list.h"
    ;
#undef ISA

/* The set by its name, or the last that this CPU runs. */
static mica_status find_set(const char *name, size_t *chosen, mica_error *err)
{
    size_t n = mica_isa_count();
    *chosen = 0;
    for (size_t i = 0; i < n && !name; i++)
        if (isas[i].supported())
            *chosen = i;
    if (!name)
        return MICA_OK;
    while (*chosen < n && strcmp(name, isas[*chosen].name) != 0)
        ++*chosen;
    if (*chosen == n)
        return mica_fail(err, MICA_BAD_KERNELS, "unknown kernel set \"%s\"; this build has: %s", name, isa_names + 2);
    if (!isas[*chosen].supported())
        return mica_fail(err, MICA_BAD_KERNELS, "this CPU cannot run the kernel set \"%s\"", name);
    return MICA_OK;
}

mica_status mica_kernels_choose(const char *name, mica_kernels *k, mica_error *err)
{
    size_t chosen;
    mica_status status = find_set(name, &chosen, err);
    if (status)
        return status;
    fill_up_to(chosen, k);
    return MICA_OK;
}

/* ---- what came from where ---- */

typedef void (*any_fn)(void);

static any_fn entry_at(const mica_kernels *k, size_t offset)
{
    any_fn f;
    memcpy(&f, (const char *)k + offset, sizeof f);
    return f;
}

const char *mica_kernels_origin(const mica_kernels *k, size_t offset)
{
    mica_kernels level;
    const char *origin = NULL;
    memset(&level, 0, sizeof level);
    for (size_t i = 0; i < mica_isa_count(); i++) {
        any_fn before = entry_at(&level, offset);
        isas[i].fill(&level);
        any_fn filled = entry_at(&level, offset);
        if (filled != before && filled == entry_at(k, offset))
            origin = isas[i].name;
    }
    return origin;
}

typedef struct entry {
    const char *group, *name;
    size_t offset;
} entry;

static const entry entries[] = {
#define ENTRY(group, field, run) {group, #field, offsetof(mica_kernels, field)},
#include "kern/entries.h"
#undef ENTRY
};

enum { N_ENTRIES = sizeof entries / sizeof *entries };

/* "widen[MICA_TYPE_Q8_0]" is written "widen Q8_0". */
static void print_name(const char *name, mica_buf *buf)
{
    const char *type = strstr(name, "[MICA_TYPE_");
    if (type)
        mica_buf_printf(buf, "%.*s %.*s", (int)(type - name), name, (int)strcspn(type + 11, "]"), type + 11);
    else
        mica_buf_puts(buf, name);
}

/* The entries from `first` to `end` that came from the set `origin`: "avx2 (rmsnorm, add)". */
static void print_origin(const mica_kernels *k, size_t first, size_t end, const char *origin, bool again, mica_buf *buf)
{
    const char *before = " (";
    mica_buf_printf(buf, "%s%s", again ? ", " : " ", origin);
    for (size_t i = first; i < end; i++) {
        const char *of = mica_kernels_origin(k, entries[i].offset);
        if (!of || strcmp(of, origin) != 0)
            continue;
        mica_buf_puts(buf, before);
        print_name(entries[i].name, buf);
        before = ", ";
    }
    mica_buf_puts(buf, ")");
}

void mica_kernels_describe(const mica_kernels *k, mica_buf *buf)
{
    for (size_t first = 0, end; first < N_ENTRIES; first = end) {
        for (end = first; end < N_ENTRIES && strcmp(entries[end].group, entries[first].group) == 0; end++)
            ;
        mica_buf_printf(buf, "%s:", entries[first].group);
        bool again = false;
        for (size_t set = mica_isa_count(); set-- > 0;) {
            bool any = false;
            for (size_t i = first; i < end && !any; i++) {
                const char *of = mica_kernels_origin(k, entries[i].offset);
                any = of && strcmp(of, isas[set].name) == 0;
            }
            if (any)
                print_origin(k, first, end, isas[set].name, again, buf);
            again = again || any;
        }
        mica_buf_puts(buf, "\n");
    }
}
