#include "task/detect.h"

#include <stdlib.h>
#include <string.h>

typedef struct detector {
    const char *name, *type;
    int bit;
    void (*run)(const char *text, size_t length, mica_finds *finds);
} detector;

/* In the order of their rank: a checksum says more than a shape, and a shape with letters more than one of digits. */
static const detector detectors[] = {
    {"iban", "IBAN", MICA_DETECT_IBAN, mica_detect_iban},     {"card", "CARD", MICA_DETECT_CARD, mica_detect_card},
    {"email", "EMAIL", MICA_DETECT_EMAIL, mica_detect_email}, {"ip", "IP", MICA_DETECT_IP, mica_detect_ip},
    {"date", "DATE", MICA_DETECT_DATE, mica_detect_date},     {"phone", "PHONE", MICA_DETECT_PHONE, mica_detect_phone},
};

enum { N_DETECTORS = sizeof detectors / sizeof *detectors };

void mica_finds_free(mica_finds *finds)
{
    free(finds->item);
    *finds = (mica_finds){.item = NULL};
}

void mica_finds_add(mica_finds *finds, mica_find find)
{
    if (finds->failed)
        return;
    if (finds->n == finds->capacity) {
        size_t capacity = finds->capacity ? 2 * finds->capacity : 16;
        mica_find *grown = realloc(finds->item, capacity * sizeof *grown);
        if (!grown) {
            finds->failed = true;
            return;
        }
        finds->item = grown;
        finds->capacity = capacity;
    }
    finds->item[finds->n++] = find;
}

static int by_place(const void *a, const void *b)
{
    const mica_find *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static bool beats(const mica_find *a, const mica_find *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->end - a->start > b->end - b->start;
}

void mica_finds_settle(mica_finds *finds)
{
    size_t kept = 0;
    if (finds->n > 1)
        qsort(finds->item, finds->n, sizeof *finds->item, by_place);
    for (size_t i = 0; i < finds->n; i++) {
        mica_find find = finds->item[i];
        /* What was kept does not overlap, so only the last of it can reach into this one. */
        bool overlaps = kept > 0 && finds->item[kept - 1].end > find.start;
        if (overlaps && beats(&find, &finds->item[kept - 1]))
            finds->item[kept - 1] = find;
        else if (!overlaps)
            finds->item[kept++] = find;
    }
    finds->n = kept;
}

int mica_detector_of(const char *name)
{
    for (size_t i = 0; i < N_DETECTORS; i++)
        if (strcmp(detectors[i].name, name) == 0)
            return detectors[i].bit;
    return 0;
}

void mica_detect(const char *text, size_t length, int which, mica_finds *finds)
{
    for (size_t i = 0; i < N_DETECTORS; i++) {
        size_t before = finds->n;
        if (!(which & detectors[i].bit))
            continue;
        detectors[i].run(text, length, finds);
        for (size_t k = before; k < finds->n; k++) {
            finds->item[k].type = detectors[i].type;
            finds->item[k].source = "rule";
            finds->item[k].rank = (int)i;
        }
    }
}
