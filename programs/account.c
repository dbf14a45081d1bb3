#include "account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/append.h"
#include "base/json.h"
#include "load.h"
#include "share.h"
#ifdef MICA_HAVE_ROUTER
#include "mica/mica_telemetry.h"
#endif

const char *mica_account_hash_cache(char path[4096]) { return mica_share_cache("hashes", path) ? path : NULL; }

/* ---- Telemetry ---- */

#ifdef MICA_HAVE_ROUTER
int mica_account_open_telemetry(const mica_opts *o, mica_telemetry **out)
{
    mica_error err;
    mica_telemetry_options t = mica_telemetry_options_default();
    *out = NULL;
    if (o->telemetry_text && o->telemetry.n == 0)
        return mica_term_usage("--telemetry-text needs --telemetry");
    if (o->telemetry.n == 0)
        return CODE_OK;
    t.sinks = o->telemetry.item;
    t.n_sinks = o->telemetry.n;
    t.headers = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    t.service = getenv("OTEL_SERVICE_NAME");
    t.text = o->telemetry_text;
    t.max_bytes = o->telemetry_size;
    return mica_telemetry_new(&t, out, &err) ? mica_load_failed(&err) : CODE_OK;
}

void mica_account_close_telemetry(mica_telemetry *t)
{
    if (!t)
        return;
    mica_telemetry_close(t);
    for (size_t i = 0; i < mica_telemetry_sink_count(t); i++) {
        mica_telemetry_sink_info s;
        mica_telemetry_sink(t, i, &s);
        if (s.lost + s.dropped > 0)
            mica_term_note("telemetry (%s): %llu of %llu events are lost: %s", s.kind, (unsigned long long)(s.lost + s.dropped),
                           (unsigned long long)(s.taken + s.dropped),
                           *s.error ? s.error : "they came faster than they were taken");
    }
    mica_telemetry_free(t);
}

static void send_event(const mica_account *a, const mica_reply *r, const int32_t *tokens, size_t n, const char *receipt)
{
    mica_telemetry_event e = mica_telemetry_event_default();
    mica_receipt_figures f;
    mica_model_info info;
    const mica_result *m = &r->result;
    char *prompt = NULL;
    mica_model_get_info(a->model, &info);
    e.operation = a->operation;
    e.model = info.name;
    e.stop_reason = m->stop_reason;
    e.error = r->status ? mica_status_name(r->status) : NULL;
    e.prompt_n = m->prompt_n;
    e.cached_n = m->cached_n;
    e.gen_n = m->gen_n;
    e.max_tokens = (int32_t)a->o->n_predict;
    e.ttft_ms = m->gen_n > 0 ? m->ttft_ms : e.ttft_ms;
    if (m->gen_n > 1) {
        e.tpot_ms = m->tpot_ms;
        e.tpot_p50_ms = m->tpot_p50_ms;
        e.tpot_p95_ms = m->tpot_p95_ms;
    }
    e.peak_rss_bytes = m->peak_rss_bytes;
    if (mica_receipt_get_figures(a->receipt, &f)) {
        e.duration_ms = f.total_ms;
        e.started_unix_ns = f.started_unix_ms * 1000000;
        e.throttled = f.throttled;
        e.joules = f.joules;
        e.energy_source = f.energy_source;
    }
    e.receipt = receipt;
    if (a->o->telemetry_text && mica_model_detokenize(a->model, tokens, n, true, &prompt, &e.prompt_length, NULL) == MICA_OK) {
        e.prompt = prompt;
        e.reply = r->text.data;
        e.reply_length = r->text.length;
    }
    (void)mica_telemetry_add(a->telemetry, &e); /* counted, and told at the end */
    mica_free(prompt);
}
#endif

/* ---- Receipts ---- */

int mica_account_init(mica_account *a, const mica_opts *o)
{
    *a = (mica_account){.o = o, .operation = "chat"};
#ifdef MICA_HAVE_ROUTER
    return mica_account_open_telemetry(o, &a->telemetry);
#else
    return CODE_OK;
#endif
}

int mica_account_attach(mica_account *a, mica_model *model, mica_session *session)
{
    char cache[4096];
    mica_error err;
    mica_receipt_options o = mica_receipt_options_default();
    a->model = model;
    a->session = session;
    if (!a->o->receipt && a->o->require.n == 0 && !a->telemetry)
        return CODE_OK;
    o.require = a->o->require.item;
    o.n_require = a->o->require.n;
    o.sysroot = a->o->sysroot;
    o.hashes = a->o->receipt != NULL;
    o.hash_cache = mica_account_hash_cache(cache);
    if (mica_receipt_new(model, &o, &a->receipt, &err) || mica_session_set_receipt(session, a->receipt, &err))
        return mica_load_failed(&err);
    return CODE_OK;
}

json_t *mica_account_receipt(const mica_account *a)
{
    char *text;
    if (!a->receipt || mica_receipt_json(a->receipt, &text, NULL))
        return NULL;
    json_t *object = mica_json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    mica_free(text);
    return object;
}

static int append_line(const char *path, const char *text)
{
    mica_error err;
    return mica_append_line(path, "the file of receipts", text, strlen(text), &err) ? mica_load_failed(&err) : CODE_OK;
}

static int write_receipt(const mica_account *a, const mica_reply *r, const char *text)
{
    const char *path = a->o->receipt;
    if (!path || r->output_failed || (strcmp(path, "-") == 0 && r->json)) /* there it is a member of the last line */
        return CODE_OK;
    if (strcmp(path, "-") != 0)
        return append_line(path, text);
    if (r->text.length > 0 && !isatty(STDOUT_FILENO))
        mica_term_write("\n", 1); /* the reply has no line end of its own there */
    return mica_term_write(text, strlen(text)) && mica_term_write("\n", 1) ? CODE_OK : CODE_FAILED;
}

int mica_account_reply(mica_account *a, const mica_reply *r, const int32_t *tokens, size_t n, bool began)
{
    char *text = NULL;
    mica_error err;
    if (!a->receipt || !began)
        return CODE_OK;
    if (a->o->receipt && mica_receipt_json(a->receipt, &text, &err))
        return mica_load_failed(&err);
    int code = text ? write_receipt(a, r, text) : CODE_OK;
#ifdef MICA_HAVE_ROUTER
    if (a->telemetry)
        send_event(a, r, tokens, n, text);
#else
    (void)tokens, (void)n;
#endif
    mica_free(text);
    return code;
}

void mica_account_free(mica_account *a)
{
    if (a->session)
        (void)mica_session_set_receipt(a->session, NULL, NULL);
    mica_receipt_free(a->receipt);
#ifdef MICA_HAVE_ROUTER
    mica_account_close_telemetry(a->telemetry);
#endif
    *a = (mica_account){0};
}
