#include "router/remote.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "router/remote_reply.h"
#include "router/remote_sse.h"

#define EVENT_MAX ((size_t)1 << 20)  /* bytes of one event: a token with log-probabilities has some hundred */
#define ERROR_MAX ((size_t)16 << 10) /* of an error's body, of which a sentence is wanted */
#define LOOK_MS   20                 /* how often it is looked whether the attempt is still wanted */

typedef struct transfer {
    const mica_remote_call *call;
    mica_try *t;
    CURL *curl;
    CURLM *multi;
    struct curl_slist *headers;
    mica_sse sse;
    mica_buf whole;             /* an answer that is no stream, or an error */
    bool judged, streams, done; /* the head was looked at; its body is an event stream; [DONE] came */
    int64_t last_ns;            /* when bytes came last; 0: none yet */
    char reason[CURL_ERROR_SIZE];
} transfer;

/* ---- What comes ---- */

static int on_event(void *user, const char *data, size_t length)
{
    transfer *x = user;
    if (x->done)
        return 0;
    if (length == 6 && memcmp(data, "[DONE]", 6) == 0) {
        x->done = true;
        return 0;
    }
    return !mica_remote_chunk(x->t, x->call->link, data, length);
}

/* The head is whole when the first byte of the body comes. */
static bool judge_head(transfer *x)
{
    long status = 0;
    const char *type = NULL;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(x->curl, CURLINFO_CONTENT_TYPE, &type);
    x->judged = true;
    x->t->http_status = (int)status;
    mica_buf_init(&x->whole, status == 200 ? MICA_RUN_REPLY_MAX : ERROR_MAX);
    x->streams = status == 200 && type && strncasecmp(type, "text/event-stream", 17) == 0;
    if (status == 200 && !x->streams && !(type && strncasecmp(type, "application/json", 16) == 0))
        return mica_try_fail(x->t, MICA_FAILURE_GARBAGE, "the server answers with \"%.60s\", not with JSON or an event stream",
                             type ? type : "");
    return true;
}

/* libcurl ends the transfer when fewer bytes are taken than came. */
static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    transfer *x = user;
    mica_error err;
    size *= n;
    x->last_ns = mica_now_ns();
    if (!x->judged && !judge_head(x))
        return 0;
    if (!x->streams) {
        if (mica_buf_append(&x->whole, data, size) || x->t->http_status != 200)
            return size; /* an error's body is cut where it is long */
        mica_try_fail(x->t, MICA_FAILURE_TOO_LONG, "the server's reply is longer than %zu bytes", x->whole.maximum);
        return 0;
    }
    mica_status status = mica_sse_feed(&x->sse, data, size, on_event, x, &err);
    if (status == MICA_BAD_TEXT)
        mica_try_fail(x->t, MICA_FAILURE_TOO_LONG, "%s", err.message);
    return status ? 0 : size;
}

/* ---- How it ended ---- */

static bool is_tls(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR ||
           code == CURLE_USE_SSL_FAILED;
}

static void judge_code(transfer *x, CURLcode code)
{
    const char *why = *x->reason ? x->reason : curl_easy_strerror(code);
    if (is_tls(code))
        mica_try_fail(x->t, MICA_FAILURE_BAD_TLS, "no secure connection to %.80s: %s", x->call->endpoint->url, why);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "no connection to %.80s within %lld ms", x->call->endpoint->url,
                      (long long)x->call->endpoint->connect_ms);
    else if (!x->t->may_have_arrived)
        mica_try_fail(x->t, MICA_FAILURE_NO_CONNECTION, "no connection to %.80s: %s", x->call->endpoint->url, why);
    else
        mica_try_fail(x->t, MICA_FAILURE_CUT, "the connection broke before the reply's end: %s", why);
}

static void judge_status(transfer *x)
{
    char said[160] = "";
    curl_off_t wait = 0;
    int status = x->t->http_status;
    if (x->whole.length > 0)
        mica_remote_error_text(x->whole.data, x->whole.length, said, sizeof said);
    if (curl_easy_getinfo(x->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
        x->t->retry_after_ms = (int64_t)(wait < 1000000 ? wait : 1000000) * 1000;
    mica_try_fail(x->t, MICA_FAILURE_HTTP, "the server answers %d%s%s%s", status, *said ? ": " : "", said,
                  status >= 300 && status < 400 ? " (redirects are not followed)" : "");
}

static void judge(transfer *x, CURLcode code)
{
    curl_off_t sent_us = 0;
    long status = 0;
    curl_easy_getinfo(x->curl, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    x->t->may_have_arrived = sent_us > 0;
    x->t->http_status = (int)status;
    if (code == CURLE_OK && status == 200 && !x->judged)
        (void)judge_head(x); /* an answer without a body */
    if (x->t->failure)
        return; /* we ended it, or it is no answer */
    if (code != CURLE_OK && !(x->streams && *x->t->finish))
        judge_code(x, code);
    else if (status != 200)
        judge_status(x);
    else if (x->streams && !*x->t->finish)
        mica_try_fail(x->t, MICA_FAILURE_CUT, "the stream ended before the reply's end");
    else if (!x->streams)
        (void)mica_remote_whole(x->t, x->call->link, x->whole.data ? x->whole.data : "", x->whole.length);
}

/* ---- The transfer ---- */

/* True: go on. */
static bool check_time(transfer *x)
{
    const mica_remote_call *call = x->call;
    int64_t now = mica_now_ns(), ms = 1000000;
    if (call->link->stop && call->link->stop(call->link->user))
        return mica_try_fail(x->t, MICA_FAILURE_CANCELLED, "nobody waits for the reply any more");
    if (now >= call->link->deadline_ns)
        return mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "the request's time is over");
    if (now - x->t->start_ns > call->endpoint->total_ms * ms)
        return mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "no whole reply within %lld ms", (long long)call->endpoint->total_ms);
    if (!x->last_ns && now - x->t->start_ns > call->endpoint->first_ms * ms)
        return mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "not a byte within %lld ms", (long long)call->endpoint->first_ms);
    if (x->last_ns && now - x->last_ns > call->endpoint->idle_ms * ms)
        return mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "the reply stalled for %lld ms", (long long)call->endpoint->idle_ms);
    return true;
}

static CURLcode drive(transfer *x)
{
    int running = 1, left = 0;
    while (curl_multi_perform(x->multi, &running) == CURLM_OK && running > 0) {
        if (!check_time(x))
            return CURLE_ABORTED_BY_CALLBACK;
        (void)curl_multi_poll(x->multi, NULL, 0, LOOK_MS, NULL);
    }
    const CURLMsg *message = curl_multi_info_read(x->multi, &left);
    return message && message->msg == CURLMSG_DONE ? message->data.result : CURLE_FAILED_INIT;
}

static bool add_header(transfer *x, const char *name, const char *value)
{
    char line[4200];
    int n = snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *more = n > 0 && n < (int)sizeof line ? curl_slist_append(x->headers, line) : NULL;
    if (more)
        x->headers = more;
    return more != NULL;
}

static bool set_headers(transfer *x)
{
    char bearer[4100];
    const mica_remote_call *call = x->call;
    bool good = add_header(x, "Content-Type", "application/json") &&
                add_header(x, "Accept", "text/event-stream, application/json") &&
                add_header(x, "Expect", ""); /* no pause of a second for "100 Continue" */
    if (good && call->idempotency_key)
        good = add_header(x, "Idempotency-Key", call->idempotency_key);
    if (good && call->key)
        good = snprintf(bearer, sizeof bearer, "Bearer %s", call->key) < (int)sizeof bearer &&
               add_header(x, "Authorization", bearer);
    return good && curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_options(transfer *x)
{
    const mica_remote_call *call = x->call;
    CURL *c = x->curl;
    char url[2200];
    size_t n = strlen(call->endpoint->url);
    while (n > 0 && call->endpoint->url[n - 1] == '/')
        n--;
    if (snprintf(url, sizeof url, "%.*s/chat/completions", (int)n, call->endpoint->url) >= (int)sizeof url)
        return false;
    bool good = !curl_easy_setopt(c, CURLOPT_URL, url) && !curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") &&
                !curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) && !curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) &&
                !curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) && !curl_easy_setopt(c, CURLOPT_PROXY, "") &&
                !curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) && !curl_easy_setopt(c, CURLOPT_NOPROGRESS, 1L) &&
                !curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
                !curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)call->endpoint->connect_ms) &&
                !curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->length) &&
                !curl_easy_setopt(c, CURLOPT_POSTFIELDS, call->body) && !curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->reason) &&
                !curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) && !curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    if (good && *call->endpoint->ca_file)
        good = !curl_easy_setopt(c, CURLOPT_CAINFO, call->endpoint->ca_file) && !curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    return good;
}

void mica_remote_run(const mica_remote_call *call, mica_try *t)
{
    transfer x = {.call = call, .t = t, .curl = curl_easy_init(), .multi = curl_multi_init()};
    mica_sse_init(&x.sse, EVENT_MAX);
    if (x.curl && x.multi && set_options(&x) && set_headers(&x) && curl_multi_add_handle(x.multi, x.curl) == CURLM_OK) {
        judge(&x, drive(&x));
        curl_multi_remove_handle(x.multi, x.curl);
    } else {
        mica_try_fail(t, MICA_FAILURE_NO_CONNECTION, "the request to %.80s cannot be made", call->endpoint->url);
    }
    if (x.multi)
        curl_multi_cleanup(x.multi);
    if (x.curl)
        curl_easy_cleanup(x.curl);
    curl_slist_free_all(x.headers);
    mica_sse_free(&x.sse);
    mica_buf_free(&x.whole);
    t->end_ns = mica_now_ns();
}
