/* adapter.c - what is the same for every adapter: the order of verbs, and whether answers can be true. */
#include "bench/adapter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

mica_adapter_limits mica_adapter_limits_default(void)
{
    /* Loading and the first token: MLX on a reference BLAS takes 75 s for a prompt of 512 tokens, cold files of gigabytes
     * minutes. */
    return (mica_adapter_limits){.hello_s = 60,
                                 .load_s = 600,
                                 .partition_s = 60,
                                 .start_s = 10,
                                 .first_token_s = 600,
                                 .token_s = 60,
                                 .unload_s = 60,
                                 .quit_s = 5};
}

mica_adapter_options mica_adapter_options_default(void)
{
    return (mica_adapter_options){.limits = mica_adapter_limits_default()};
}

bool mica_adapter_stopped(const mica_adapter *a)
{
    return a->options.stop && a->options.stop(a->options.user);
}

mica_status mica_adapter_fail(mica_adapter *a, const char *fault, mica_error *err, mica_status code, const char *format, ...)
{
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!*a->fault)
        snprintf(a->fault, sizeof a->fault, "%s", fault);
    return mica_fail(err, code, "%s", message);
}

/* ---- Replies ---- */

void mica_adapter_reply_free(mica_adapter_reply *reply)
{
    free(reply->token_ns);
    free(reply->tokens);
    *reply = (mica_adapter_reply){.n_events = 0};
}

bool mica_adapter_reply_add(mica_adapter_reply *reply, int32_t token, int64_t t_ns)
{
    if (reply->n_events == reply->capacity) {
        size_t capacity = reply->capacity ? 2 * reply->capacity : 1024;
        int64_t *times = realloc(reply->token_ns, capacity * sizeof *times);
        if (times)
            reply->token_ns = times;
        int32_t *tokens = realloc(reply->tokens, capacity * sizeof *tokens);
        if (tokens)
            reply->tokens = tokens;
        if (!times || !tokens)
            return false;
        reply->capacity = capacity;
    }
    reply->token_ns[reply->n_events] = t_ns;
    reply->tokens[reply->n_events++] = token;
    return true;
}

static void reset_reply(mica_adapter_reply *reply)
{
    reply->n_events = 0;
    reply->sent_ns = reply->started_ns = reply->done_ns = reply->read_ns = 0;
    reply->reason[0] = '\0';
    reply->prompt_n = reply->gen_n = 0;
    reply->cached_n = -1;
}

/* ---- Can it be true? ---- */

static mica_status check_times(mica_adapter *a, const mica_adapter_reply *r, mica_error *err)
{
    const char *name = a->hello.adapter;
    int64_t before = r->started_ns;
    if (!a->hello.other_clock && r->started_ns < r->sent_ns)
        return mica_adapter_fail(
            a, MICA_FAULT_CLOCK, err, MICA_BAD_TEXT,
            "the adapter %s says that it began %.3f ms before it was asked; its clock is not CLOCK_MONOTONIC", name,
            (double)(r->sent_ns - r->started_ns) / 1e6);
    for (size_t i = 0; i <= r->n_events; i++) {
        int64_t t = i < r->n_events ? r->token_ns[i] : r->done_ns;
        if (t < before)
            return mica_adapter_fail(a, MICA_FAULT_CLOCK, err, MICA_BAD_TEXT,
                                     "the clock of the adapter %s went backwards by %.3f ms at token %zu", name,
                                     (double)(before - t) / 1e6, i);
        before = t;
    }
    if (!a->hello.other_clock && r->done_ns > r->read_ns)
        return mica_adapter_fail(a, MICA_FAULT_CLOCK, err, MICA_BAD_TEXT, "the adapter %s tells a time %.3f ms in the future",
                                 name, (double)(r->done_ns - r->read_ns) / 1e6);
    if (r->done_ns - r->started_ns > r->read_ns - r->sent_ns)
        return mica_adapter_fail(a, MICA_FAULT_CLOCK, err, MICA_BAD_TEXT, "the adapter %s tells %.3f ms for what took %.3f ms",
                                 name, (double)(r->done_ns - r->started_ns) / 1e6, (double)(r->read_ns - r->sent_ns) / 1e6);
    return MICA_OK;
}

static mica_status check_counts(mica_adapter *a, const mica_adapter_request *q, const mica_adapter_reply *r, mica_error *err)
{
    const char *name = a->hello.adapter;
    bool cut = strcmp(r->reason, "length") == 0;
    int64_t off = r->prompt_n > q->prompt_n ? r->prompt_n - q->prompt_n : q->prompt_n - r->prompt_n;
    int64_t allowed = q->tokens ? 0 : q->prompt_n / 100 > 1 ? q->prompt_n / 100 : 1;
    if (r->gen_n < 0 || r->prompt_n < 0 || r->cached_n < -1 || r->cached_n > r->prompt_n)
        return mica_adapter_fail(a, MICA_FAULT_COUNT, err, MICA_BAD_TEXT,
                                 "the adapter %s counts %lld tokens of %lld from its cache", name, (long long)r->cached_n,
                                 (long long)r->prompt_n);
    if (a->hello.exact && (size_t)r->gen_n != r->n_events)
        return mica_adapter_fail(a, MICA_FAULT_COUNT, err, MICA_BAD_TEXT,
                                 "the adapter %s sent %zu tokens but says that there were %lld", name, r->n_events,
                                 (long long)r->gen_n);
    if (r->gen_n > q->n || (cut && r->gen_n != q->n))
        return mica_adapter_fail(a, r->gen_n > q->n ? MICA_FAULT_ENDLESS : MICA_FAULT_COUNT, err, MICA_BAD_TEXT,
                                 "the adapter %s made %lld tokens where %d were asked for", name, (long long)r->gen_n, q->n);
    if (r->gen_n > 0 && r->n_events == 0)
        return mica_adapter_fail(a, MICA_FAULT_COUNT, err, MICA_BAD_TEXT, "the adapter %s says %lld tokens but sent none", name,
                                 (long long)r->gen_n);
    if (q->prompt_n > 0 && off > allowed)
        return mica_adapter_fail(a, MICA_FAULT_COUNT, err, MICA_BAD_TEXT,
                                 "the adapter %s computed a prompt of %lld tokens where %d were asked for", name,
                                 (long long)r->prompt_n, q->prompt_n);
    return MICA_OK;
}

/* ---- Verbs ---- */

static mica_status check_usable(mica_adapter *a, bool wants_model, mica_error *err)
{
    if (*a->fault)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the adapter %s has failed before (%s)", a->hello.adapter, a->fault);
    if (wants_model && !a->is_loaded)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the adapter %s has no model loaded", a->hello.adapter);
    return MICA_OK;
}

mica_status mica_adapter_load(mica_adapter *a, const mica_adapter_load_request *request, mica_error *err)
{
    mica_status status = check_usable(a, false, err);
    if (status || a->is_loaded)
        return status ? status
                      : mica_fail(err, MICA_INVALID_ARGUMENT, "the adapter %s has a model loaded already", a->hello.adapter);
    a->loaded = (mica_adapter_loaded){.pid = -1, .file_bytes = -1, .weight_bytes = -1, .bits_per_weight = NAN};
    a->loaded.asked_ns = mica_now_ns();
    status = a->ops->load(a, request, err);
    a->loaded.usable_ns = mica_now_ns();
    a->is_loaded = status == MICA_OK;
    if (status == MICA_OK && (a->loaded.end_ns < a->loaded.start_ns || a->loaded.context_limit < 1))
        return mica_adapter_fail(a, MICA_FAULT_COUNT, err, MICA_BAD_TEXT, "the adapter %s tells a loading that cannot be",
                                 a->hello.adapter);
    return status;
}

mica_status mica_adapter_ask_partition(mica_adapter *a, mica_error *err)
{
    mica_status status = check_usable(a, true, err);
    json_decref(a->partition.parts);
    a->partition = (mica_adapter_partition){.known = false};
    return status ? status : a->ops->partition(a, err);
}

mica_status mica_adapter_generate(mica_adapter *a, const mica_adapter_request *request, mica_adapter_reply *reply,
                                  mica_error *err)
{
    mica_status status = check_usable(a, true, err);
    reset_reply(reply);
    if (!status && request->n < 1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a reply of %d tokens cannot be measured; ask for at least 1", request->n);
    if (!status && !(request->tokens ? a->hello.takes_tokens : a->hello.takes_text))
        return mica_fail(err, MICA_UNSUPPORTED, "the adapter %s takes no prompt as %s", a->hello.adapter,
                         request->tokens ? "token ids" : "text");
    if (!status && !request->greedy && !a->hello.can_seed)
        return mica_fail(err, MICA_UNSUPPORTED, "the adapter %s cannot sample with a seed", a->hello.adapter);
    if (!status)
        status = a->ops->generate(a, request, reply, err);
    if (!status)
        status = check_counts(a, request, reply, err);
    return status ? status : check_times(a, reply, err);
}

mica_status mica_adapter_unload(mica_adapter *a, mica_error *err)
{
    mica_status status = check_usable(a, true, err);
    if (!status)
        status = a->ops->unload(a, err);
    a->is_loaded = false;
    return status;
}

void mica_adapter_close(mica_adapter *a)
{
    if (!a)
        return;
    json_decref(a->partition.parts);
    a->ops->close(a);
}

mica_status mica_adapter_confirm(mica_adapter *a, const char *wanted, bool allow_fallback, char label[80], mica_error *err)
{
    const char *got = a->loaded.backend;
    bool any = strcmp(wanted, "default") == 0, unknown = strcmp(got, "unknown") == 0;
    long long fell_back = a->partition.known ? (long long)a->partition.fallback : 0;
    if (!unknown && (any || strcmp(wanted, got) == 0) && fell_back == 0) {
        snprintf(label, 80, "%s", got);
        return MICA_OK;
    }
    if (fell_back > 0)
        snprintf(label, 80, "%.15s (%lld of %lld %.20s fell back)", wanted, fell_back, (long long)a->partition.total,
                 a->partition.unit);
    else
        snprintf(label, 80, "%.15s (fell back to %s)", wanted, got);
    if (allow_fallback)
        return MICA_OK;
    return mica_adapter_fail(a, MICA_FAULT_BACKEND, err, MICA_UNSUPPORTED,
                             "%s does not run as asked: %s%s; --allow-fallback measures it all the same, under that name",
                             a->hello.runtime, label, unknown ? ", the runtime does not tell what computes" : "");
}
