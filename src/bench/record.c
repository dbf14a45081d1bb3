#include "bench/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

mica_status mica_record_init(mica_record *record, mica_error *err)
{
    *record = (mica_record){.head = json_object(), .samples = json_array()};
    if (record->head && record->samples)
        return MICA_OK;
    mica_record_free(record);
    return mica_fail_nomem(err, 1024, "a record");
}

void mica_series_free(mica_series *series)
{
    free(series->times);
    free(series->tokens);
    series->times = series->tokens = NULL;
    series->n = 0;
}

void mica_record_free(mica_record *record)
{
    for (size_t i = 0; i < record->n_series; i++)
        mica_series_free(&record->series[i]);
    free(record->series);
    json_decref(record->head);
    json_decref(record->samples);
    json_decref(record->summary);
    *record = (mica_record){.head = NULL};
}

static int64_t *copy_ints(const int64_t *values, size_t n)
{
    int64_t *copy = mica_new_array(n, sizeof *copy);
    if (copy && n > 0)
        memcpy(copy, values, n * sizeof *copy);
    return copy;
}

mica_status mica_record_add(mica_record *record, const mica_series *series, mica_error *err)
{
    if (record->n_series == record->capacity) {
        size_t capacity = record->capacity ? 2 * record->capacity : 64;
        mica_series *grown = realloc(record->series, capacity * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(err, capacity * sizeof *grown, "a record");
        record->series = grown;
        record->capacity = capacity;
    }
    mica_series *copy = &record->series[record->n_series];
    *copy = *series;
    copy->times = copy_ints(series->times, series->n);
    copy->tokens = copy_ints(series->tokens, series->n);
    if (!copy->times || !copy->tokens) {
        mica_series_free(copy);
        return mica_fail_nomem(err, 2 * series->n * sizeof(int64_t), "a record");
    }
    record->n_series++;
    return MICA_OK;
}

bool mica_record_new_id(char out[40])
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}
