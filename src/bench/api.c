/* api.c - mica_bench_run() and mica_bench_verify() of mica_ops.h: JSON texts in and out, over measure.h, archive.h and
 * verify.h. */
#include <stdlib.h>
#include <string.h>

#include "bench/archive.h"
#include "base/json.h"
#include "bench/measure.h"
#include "bench/verify.h"
#include "mica/mica_ops.h"

mica_bench_options mica_bench_options_default(void)
{
    return (mica_bench_options){.struct_size = sizeof(mica_bench_options), .adapter = "mica", .backend = "default"};
}

/* Text that the caller frees with mica_free(), which is free(). */
static mica_status dump(const json_t *value, char **out, mica_error *err)
{
    *out = mica_json_dumps(value, JSON_COMPACT);
    return *out ? MICA_OK : mica_fail_nomem(err, 1024, "JSON");
}

static void on_progress(void *user, const mica_measure_progress *p)
{
    const mica_bench_options *o = user;
    const mica_bench_progress told = {p->name, p->phase, p->note, p->at, p->n, p->done, p->tps};
    o->on_progress(o->user, &told);
}

static mica_status check_options(const mica_bench_options *o, mica_error *err)
{
    if (!o || o->struct_size != sizeof *o)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the options were not made by mica_bench_options_default() of this version");
    if (!o->adapter || !o->model || !o->backend || !o->protocol)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the options need an adapter, a model, a backend and a protocol");
    return MICA_OK;
}

/* The run itself, once protocol, conditions and database are there. */
static mica_status run(const mica_bench_options *o, const mica_protocol *protocol, mica_store *store, const json_t *conditions,
                       char **archive, mica_error *err)
{
    mica_record record;
    json_t *whole = NULL;
    mica_measure_options m = {.adapter = o->adapter,
                              .model = o->model,
                              .backend = o->backend,
                              .allow_fallback = o->allow_fallback,
                              .threads = o->threads,
                              .protocol = protocol,
                              .adapter_options = mica_adapter_options_default(),
                              .store = store,
                              .sysroot = o->sysroot,
                              .conditions = conditions};
    m.adapter_options.stop = o->stop;
    m.adapter_options.user = o->user;
    m.adapter_options.sysroot = o->sysroot;
    if (o->on_progress) {
        m.on_progress = on_progress;
        m.progress_user = (void *)(uintptr_t)o;
    }
    mica_status status = mica_measure_run(&m, &record, err);
    mica_status written = record.head ? mica_archive_write(&record, &whole, status ? NULL : err) : MICA_OK;
    if (whole)
        written = dump(whole, archive, status ? NULL : err);
    json_decref(whole);
    mica_record_free(&record);
    return status ? status : written;
}

mica_status mica_bench_run(const mica_bench_options *options, char **archive, mica_error *err)
{
    mica_protocol protocol;
    mica_store *store = NULL;
    json_t *conditions = NULL;
    *archive = NULL;
    mica_status status = check_options(options, err);
    if (!status)
        status = mica_protocol_read(options->protocol, options->protocol_length, &protocol, err);
    if (status)
        return status;
    if (options->conditions) {
        conditions = mica_json_loads(options->conditions, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(conditions))
            status = mica_fail(err, MICA_BAD_TEXT, "the conditions are no JSON object");
    }
    if (!status && options->db)
        status = mica_store_open(options->db, &store, err);
    if (!status)
        status = run(options, &protocol, store, conditions, archive, err);
    json_decref(conditions);
    mica_store_close(store);
    mica_protocol_free(&protocol);
    return status;
}

mica_status mica_bench_verify(const char *archive, size_t length, char **complaints, mica_error *err)
{
    mica_record record;
    json_error_t reason;
    *complaints = NULL;
    json_t *root = mica_json_loadb(archive, length, JSON_REJECT_DUPLICATES, &reason);
    if (!root && mica_json_no_memory(&reason))
        return mica_fail_nomem(err, length, "the runs");
    if (!root)
        return mica_fail_at(err, MICA_BAD_TEXT, reason.position, "the run is not JSON: line %d: %.200s", reason.line,
                            reason.text);
    mica_status status = mica_archive_read(root, &record, err);
    json_decref(root);
    if (status)
        return status;
    json_t *list = json_array();
    status = list ? mica_verify_record(&record, list, err) : mica_fail_nomem(err, 64, "complaints");
    if (!status)
        status = dump(list, complaints, err);
    json_decref(list);
    mica_record_free(&record);
    return status;
}
