/* telemetry_otlp.c - the sink that is an OTLP/HTTP receiver: spans to /v1/traces, metrics to /v1/metrics, as JSON through
 * libcurl.
 *
 * A receiver that cannot be reached, or says that it is busy, is asked again a few times; then the events are lost, and
 * counted. The metrics go on counting them. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "router/telemetry_otlp.h"

#define URL_BYTES 1024
#define ANSWER_BYTES ((size_t)64 << 10) /* a partial success, or an error page */
#define CONNECT_MS 2000L
#define TOTAL_MS 10000L
#define TRIES 4
#define FIRST_WAIT_MS 250 /* doubled with each try */
#define LONGEST_WAIT_S 5  /* of what the receiver's Retry-After asks for */
#define STEP_MS 50        /* between two looks at the deadline */

typedef struct receiver {
    CURL *curl;
    struct curl_slist *headers;
    char traces[URL_BYTES], metrics[URL_BYTES], service[128], instance[33];
    mica_otlp_metrics *counts;
    uint64_t lost;
    const _Atomic int64_t *deadline; /* of the call that is under way */
    mica_buf answer;
} receiver;

static void close_receiver(void *sink)
{
    receiver *r = sink;
    mica_otlp_metrics_free(r->counts);
    curl_slist_free_all(r->headers);
    if (r->curl)
        curl_easy_cleanup(r->curl);
    mica_buf_free(&r->answer);
    free(r);
    curl_global_cleanup();
}

/* ---- Opening ---- */

/* BASE/v1/traces; a base may end in a slash. */
static bool make_url(const char *base, const char *path, char out[URL_BYTES])
{
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/')
        n--;
    int length = snprintf(out, URL_BYTES, "%.*s%s", (int)(n < URL_BYTES ? n : URL_BYTES), base, path);
    return length > 0 && length < URL_BYTES;
}

static bool add_header(receiver *r, const char *line)
{
    struct curl_slist *longer = curl_slist_append(r->headers, line);
    if (longer)
        r->headers = longer;
    return longer != NULL;
}

/* "NAME=VALUE,NAME=VALUE" as OpenTelemetry's environment variable has it. */
static bool add_headers(receiver *r, const char *text)
{
    while (text && *text) {
        char line[1024];
        size_t n = strcspn(text, ","), name = strcspn(text, "=");
        if (name == 0 || name >= n || n + 2 > sizeof line || memchr(text, '\n', n) || memchr(text, '\r', n))
            return false;
        snprintf(line, sizeof line, "%.*s: %.*s", (int)name, text, (int)(n - name - 1), text + name + 1);
        if (!add_header(r, line))
            return false;
        text += n + (text[n] == ',');
    }
    return true;
}

static size_t take_answer(char *data, size_t size, size_t n, void *user)
{
    receiver *r = user;
    return mica_buf_append(&r->answer, data, size * n) ? size * n : 0;
}

/* Non-zero ends the transfer. */
static int on_progress(void *user, curl_off_t to_come, curl_off_t came, curl_off_t to_go, curl_off_t went)
{
    const receiver *r = user;
    (void)to_come, (void)came, (void)to_go, (void)went;
    return mica_deadline_is_over(r->deadline);
}

/* No proxy and no redirect, whatever environment and receiver say: events go only where the user sends them. */
static bool set_up(receiver *r)
{
    CURL *c = r->curl;
    return curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->headers) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK && curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TOTAL_MS) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, r) == CURLE_OK && curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFODATA, r) == CURLE_OK;
}

static mica_status fill(receiver *r, const mica_sink_setup *setup, mica_error *err)
{
    uint8_t id[16];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return mica_fail(err, MICA_IO_ERROR, "the system gives no random numbers");
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(r->instance + 2 * i, 3, "%02x", id[i]);
    snprintf(r->service, sizeof r->service, "%s", setup->service);
    if (!make_url(setup->target, "/v1/traces", r->traces) || !make_url(setup->target, "/v1/metrics", r->metrics))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the address of a telemetry receiver is longer than %d bytes", URL_BYTES);
    r->curl = curl_easy_init();
    r->counts = mica_otlp_metrics_new(setup->started_unix_ns);
    if (!r->curl || !r->counts || !add_header(r, "Content-Type: application/json") || !add_header(r, "Expect:"))
        return mica_fail_nomem(err, sizeof *r, "a telemetry sink");
    if (!add_headers(r, setup->headers))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the headers for telemetry receivers are not NAME=VALUE,NAME=VALUE");
    return set_up(r) ? MICA_OK : mica_fail(err, MICA_UNSUPPORTED, "libcurl cannot do what telemetry needs");
}

static mica_status open_receiver(const mica_sink_setup *setup, void **out, mica_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return mica_fail(err, MICA_UNSUPPORTED, "libcurl does not start");
    receiver *r = mica_new_array(1, sizeof *r);
    if (!r) {
        curl_global_cleanup();
        return mica_fail_nomem(err, sizeof *r, "a telemetry sink");
    }
    mica_buf_init(&r->answer, ANSWER_BYTES);
    mica_status status = fill(r, setup, err);
    if (status) {
        close_receiver(r);
        return status;
    }
    *out = r;
    return MICA_OK;
}

/* ---- Sending ---- */

/* False: there is no time for it. */
static bool wait_ms(const receiver *r, int64_t ms)
{
    int64_t until = mica_now_ns() + ms * 1000000;
    while (mica_now_ns() < until) {
        struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
        if (mica_deadline_is_over(r->deadline))
            return false;
        nanosleep(&step, NULL);
    }
    return true;
}

/* The statuses that OTLP names; all others are final. */
static bool may_be_tried_again(CURLcode code, long status)
{
    return code == CURLE_OK ? status == 429 || status == 502 || status == 503 || status == 504
                            : code != CURLE_ABORTED_BY_CALLBACK;
}

static CURLcode post_once(receiver *r, const char *url, const char *body, size_t length, long *status)
{
    r->answer.length = 0;
    r->answer.failed = false;
    *status = 0;
    curl_easy_setopt(r->curl, CURLOPT_URL, url);
    curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    CURLcode code = curl_easy_perform(r->curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, status);
    return code;
}

static int64_t pause_before(const receiver *r, int try)
{
    curl_off_t asked = 0;
    if (curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &asked) == CURLE_OK && asked > 0)
        return 1000 * (asked < LONGEST_WAIT_S ? (int64_t)asked : LONGEST_WAIT_S);
    return (int64_t)FIRST_WAIT_MS << try;
}

static mica_status post(receiver *r, const char *url, const char *body, size_t length, mica_error *err)
{
    for (int try = 0;; try++) {
        long status;
        CURLcode code = post_once(r, url, body, length, &status);
        if (code == CURLE_OK && status >= 200 && status < 300)
            return MICA_OK;
        if (try + 1 < TRIES && may_be_tried_again(code, status) && wait_ms(r, pause_before(r, try)))
            continue;
        if (code != CURLE_OK)
            return mica_fail(err, MICA_IO_ERROR, "the telemetry receiver cannot be reached: %s", curl_easy_strerror(code));
        return mica_fail(err, MICA_IO_ERROR, "the telemetry receiver answered %ld to %.100s", status, strrchr(url, '/') + 1);
    }
}

static mica_status post_json(receiver *r, const char *url, json_t *object, mica_error *err)
{
    char *body = object ? mica_json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(object);
    if (!body)
        return mica_fail_nomem(err, 1 << 16, "the body for a telemetry receiver");
    mica_status status = post(r, url, body, strlen(body), err);
    free(body);
    return status;
}

/* How many spans the receiver did not want, of those that it got. */
static size_t count_rejected(const receiver *r, size_t n)
{
    json_t *answer = r->answer.length > 0 ? mica_json_loadb(r->answer.data, r->answer.length, 0, NULL) : NULL;
    const json_t *rejected = json_object_get(json_object_get(answer, "partialSuccess"), "rejectedSpans");
    int64_t count = json_is_string(rejected) ? strtoll(json_string_value(rejected), NULL, 10) : json_integer_value(rejected);
    json_decref(answer);
    return count < 0 ? 0 : (uint64_t)count < n ? (size_t)count : n;
}

static mica_status write_events(void *sink, mica_event *const *events, size_t n, const _Atomic int64_t *deadline,
                                size_t *written, mica_error *err)
{
    receiver *r = sink;
    r->deadline = deadline;
    *written = 0;
    for (size_t i = 0; i < n; i++)
        mica_otlp_metrics_add(r->counts, &events[i]->e);
    mica_status status = post_json(r, r->traces, mica_otlp_traces(r->service, r->instance, events, n), err);
    if (!status) {
        size_t rejected = count_rejected(r, n);
        *written = n - rejected;
        if (rejected > 0)
            status = mica_fail(err, MICA_IO_ERROR, "the telemetry receiver rejected %zu of %zu spans", rejected, n);
    }
    r->lost += n - *written;
    mica_error unused; /* of the metrics: they are cumulated, the next ones say it all */
    mica_status also = *written > 0
                           ? post_json(r, r->metrics, mica_otlp_metrics_json(r->counts, r->service, r->instance, r->lost),
                                       status ? &unused : err)
                           : MICA_OK;
    return status ? status : also;
}

const mica_sink_kind mica_sink_otlp = {"otlp", 1000, open_receiver, write_events, close_receiver};
