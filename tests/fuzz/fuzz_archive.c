/* libFuzzer target: a run of mica bench that somebody hands in. What is read can be verified and written again, and then is the
 * same; the packed samples inside are tried on their own too. */
#include "bench/archive.h"
#include "bench/verify.h"
#include "fuzz_util.h"

static void check_same(const mica_record *a, const mica_record *b)
{
    if (a->n_series != b->n_series)
        abort();
    for (size_t i = 0; i < a->n_series; i++)
        if (a->series[i].n != b->series[i].n ||
            (a->series[i].n > 0 && memcmp(a->series[i].times, b->series[i].times, a->series[i].n * sizeof(int64_t)) != 0))
            abort();
}

static void check_record(const mica_record *record)
{
    json_t *complaints = json_array(), *again = NULL, *text;
    mica_record copy;
    mica_error err = {0};
    size_t i;
    fuzz_check(mica_verify_record(record, complaints, &err), &err, true);
    json_array_foreach(complaints, i, text) fuzz_check_text(json_string_value(text));
    if (mica_archive_write(record, &again, &err) || mica_archive_read(again, &copy, &err))
        abort();
    check_same(record, &copy);
    mica_record_free(&copy);
    json_decref(again);
    json_decref(complaints);
}

static void check_packed(const uint8_t *data, size_t size)
{
    int64_t *values = NULL;
    char *text = NULL;
    size_t n;
    mica_error err = {0};
    mica_status status = mica_unpack_ints(data, size, &values, &n, &err);
    fuzz_check(status, &err, !status);
    free(status ? NULL : values);
    status = mica_unpack_text(data, size, &text, &n, &err);
    fuzz_check(status, &err, !status);
    if (!status && text[n] != '\0')
        abort();
    free(status ? NULL : text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_record record;
    mica_error err = {0};
    json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!json) {
        check_packed(data, size);
        return 0;
    }
    mica_status status = mica_archive_read(json, &record, &err);
    fuzz_check(status, &err, !status);
    if (!status) {
        check_record(&record);
        mica_record_free(&record);
    }
    json_decref(json);
    return 0;
}
