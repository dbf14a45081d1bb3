#include "pull/transfer.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "pull/head.h"

#define HOPS_MAX    10
#define WAIT_MAX_S  60 /* of Retry-After: who wants more is asked again later by the user */
#define CONNECT_S   20
#define URL_ROOM    4096
#define IGNORED_MAX ((size_t)64 << 10) /* of the page that comes with an error or a redirect */

typedef struct transfer {
    const mica_pull_options *o;
    mica_part *part;
    CURL *curl;
    struct curl_slist *headers;
    const char *url; /* the user's, before redirects: that of the next pull, too, while what it leads to may be signed afresh */
    int64_t last_ns; /* when something came last */
    bool stalled;
    size_t ignored; /* bytes of a body that is not the file */
    mica_head head;
    int64_t asked;      /* first byte asked for; 0: all */
    int64_t limit;      /* bytes that the part has when this answer is used up; -1: not known */
    int64_t total;      /* of the whole file, for the progress; -1: not known */
    bool judged, ended; /* ended: `end` and *err are decided */
    mica_transfer_end end;
    mica_error *err;
    char reason[CURL_ERROR_SIZE];
} transfer;

static bool finish(transfer *x, mica_transfer_end end)
{
    x->end = end;
    x->ended = true;
    return false;
}

static bool refuse(transfer *x, const char *why)
{
    mica_fail(x->err, MICA_IO_ERROR, "%s", why);
    return finish(x, MICA_END_REFUSED);
}

static mica_transfer_end refused(transfer *x, const char *why)
{
    refuse(x, why);
    return x->end;
}

/* ---- The head ---- */

/* Does the file that the server has fit to what the entry says, and to the disk? */
static bool judge_total(transfer *x, int64_t total)
{
    int64_t wanted = x->part->entry->bytes, here = x->limit >= 0 && x->asked > 0 ? x->part->size : 0;
    x->total = total >= 0 ? total : wanted;
    if (total >= 0 && wanted >= 0 && total != wanted) {
        mica_fail(x->err, MICA_BAD_FILE, "the server's file has %lld bytes, and the right one has %lld", (long long)total,
                  (long long)wanted);
        return finish(x, MICA_END_REFUSED);
    }
    if (x->total >= 0 && mica_part_check_space(x->part, x->total - here, x->err))
        return finish(x, MICA_END_STOP);
    return true;
}

/* 206: is it the range that was asked for, of the file that the part is from? */
static bool judge_range(transfer *x)
{
    const mica_head *h = &x->head;
    const char *known = x->part->validator;
    if (x->asked == 0)
        return refuse(x, "the server sends a part of the file where all of it was asked for");
    if (!h->has_range || h->first != x->asked)
        return finish(x, MICA_END_RESTART);
    bool same = strcmp(x->part->url, x->url) == 0; /* another server's tags may be others */
    if (same && *known == '"' && *h->etag && strcmp(known, h->etag) != 0)
        return finish(x, MICA_END_RESTART);
    x->limit = h->last + 1;
    return judge_total(x, h->total);
}

/* 200: the whole file, whatever was asked for. */
static bool judge_whole(transfer *x)
{
    curl_off_t length = -1;
    const char *type = NULL;
    mica_status status = MICA_OK;
    curl_easy_getinfo(x->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    curl_easy_getinfo(x->curl, CURLINFO_CONTENT_TYPE, &type);
    if (type && strncasecmp(type, "text/html", 9) == 0)
        return refuse(
            x,
            "the server answers with a web page, not with the file (it may want you to sign in, or a licence to be accepted)");
    x->limit = length >= 0 ? (int64_t)length : x->part->entry->bytes;
    x->asked = 0;
    if (!judge_total(x, (int64_t)length))
        return false;
    if (x->part->size > 0)
        status = mica_part_restart(x->part, x->err);
    if (!status)
        status = mica_part_origin(x->part, x->url, mica_head_validator(&x->head), x->err);
    return status ? finish(x, MICA_END_STOP) : true;
}

/* Once the head is there: at the first byte of the body, or at the end if there is none. */
static bool judge_head(transfer *x)
{
    long code = 0;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &code);
    x->judged = true;
    if (code != 200 && code != 206)
        return true; /* judge_code() tells; the body does not matter */
    if (x->head.encoded)
        return refuse(x, "the server sends the file compressed, so that it cannot be checked and continued");
    return code == 206 ? judge_range(x) : judge_whole(x);
}

/* ---- libcurl calls ---- */

static size_t on_header(char *line, size_t size, size_t n, void *user)
{
    transfer *x = user;
    x->last_ns = mica_now_ns();
    mica_head_line(&x->head, line, size * n);
    return size * n;
}

/* libcurl ends the transfer when fewer bytes are taken than came. */
static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    transfer *x = user;
    long code = 0;
    size *= n;
    x->last_ns = mica_now_ns();
    if (!x->judged && !judge_head(x))
        return 0;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200 && code != 206)
        return (x->ignored += size) <= IGNORED_MAX ? size : 0;
    size_t wanted = x->limit >= 0 && x->limit - x->part->size < (int64_t)size ? (size_t)(x->limit - x->part->size) : size;
    mica_status status = mica_part_append(x->part, data, wanted, x->err);
    if (status)
        finish(x, status == MICA_BAD_FILE ? MICA_END_AGAIN : MICA_END_STOP);
    else if (wanted < size)
        finish(x, MICA_END_WHOLE); /* more than it said: its file is over where it said so */
    return x->ended ? 0 : size;
}

static int on_progress(void *user, curl_off_t total, curl_off_t done, curl_off_t up_total, curl_off_t up)
{
    transfer *x = user;
    (void)total, (void)done, (void)up_total, (void)up;
    x->stalled = mica_now_ns() - x->last_ns > x->o->stall_s * INT64_C(1000000000);
    return x->stalled || mica_pull_cancelled(x->o, "fetching", x->part->size, x->total);
}

/* ---- How it ended ---- */

/* Troubles that another attempt may not have. */
static bool is_passing(CURLcode code)
{
    static const CURLcode passing[] = {CURLE_COULDNT_RESOLVE_PROXY,
                                       CURLE_COULDNT_RESOLVE_HOST,
                                       CURLE_COULDNT_CONNECT,
                                       CURLE_PARTIAL_FILE,
                                       CURLE_OPERATION_TIMEDOUT,
                                       CURLE_GOT_NOTHING,
                                       CURLE_SEND_ERROR,
                                       CURLE_RECV_ERROR,
                                       CURLE_HTTP2,
                                       CURLE_HTTP2_STREAM,
                                       CURLE_WEIRD_SERVER_REPLY,
                                       CURLE_SSL_CONNECT_ERROR};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (passing[i] == code)
            return true;
    return false;
}

static mica_transfer_end judge_failure(transfer *x, CURLcode code)
{
    const char *why = *x->reason ? x->reason : curl_easy_strerror(code);
    if (code == CURLE_ABORTED_BY_CALLBACK && x->stalled) {
        mica_fail(x->err, MICA_IO_ERROR, "nothing came for %d s", (int)x->o->stall_s);
        return MICA_END_AGAIN;
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) {
        mica_fail(x->err, MICA_CANCELLED, "cancelled at byte %lld; the same command goes on there", (long long)x->part->size);
        return MICA_END_STOP;
    }
    mica_fail(x->err, MICA_IO_ERROR, "%.200s", why);
    return is_passing(code) ? MICA_END_AGAIN : MICA_END_REFUSED;
}

/* 416: there is nothing from the byte asked for on. If that byte is the file's end, the part is complete. */
static mica_transfer_end judge_nothing_left(transfer *x)
{
    int64_t total = x->head.has_range && x->head.first < 0 ? x->head.total : x->part->entry->bytes;
    if (x->asked > 0)
        return x->part->size == total ? MICA_END_WHOLE : MICA_END_RESTART;
    return refused(x, "the server says that the file has no first byte (416)");
}

static mica_transfer_end judge_code(transfer *x, int64_t *wait_ms)
{
    long code = 0;
    curl_off_t wait = 0;
    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code == 416)
        return judge_nothing_left(x);
    if (code == 200 || code == 206) {
        int64_t end = x->total >= 0 ? x->total : x->limit; /* a range of a file of unknown length may not be its last */
        if (x->part->size >= x->limit && x->part->size >= end && (code == 200 || x->total >= 0))
            return MICA_END_WHOLE;
        mica_fail(x->err, MICA_IO_ERROR, "the connection ended at byte %lld", (long long)x->part->size);
        return MICA_END_AGAIN;
    }
    const char *hint = code == 401 || code == 403   ? ": it wants a token, another one, or a licence to be accepted there"
                       : code == 404 || code == 410 ? ": there is no such file"
                                                    : "";
    mica_fail(x->err, MICA_IO_ERROR, "the server answers %ld%s", code, hint);
    if (curl_easy_getinfo(x->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
        *wait_ms = (int64_t)(wait < WAIT_MAX_S ? wait : WAIT_MAX_S) * 1000;
    return code == 408 || code == 425 || code == 429 || (code >= 500 && code != 501) ? MICA_END_AGAIN : MICA_END_REFUSED;
}

/* ---- Addresses ---- */

typedef struct origin {
    char scheme[8], host[256], port[8];
} origin;

static bool copy_part(CURLU *u, CURLUPart what, unsigned flags, char *out, size_t room)
{
    char *text = NULL;
    bool good = curl_url_get(u, what, &text, flags) == CURLUE_OK && strlen(text) < room;
    if (good)
        memcpy(out, text, strlen(text) + 1);
    curl_free(text);
    return good;
}

static bool origin_of(const char *url, origin *out)
{
    CURLU *u = curl_url();
    bool good = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                copy_part(u, CURLUPART_SCHEME, 0, out->scheme, sizeof out->scheme) &&
                copy_part(u, CURLUPART_HOST, 0, out->host, sizeof out->host) &&
                copy_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, out->port, sizeof out->port);
    curl_url_cleanup(u);
    return good;
}

static bool is_loopback(const origin *a)
{
    return strcasecmp(a->host, "localhost") == 0 || strcmp(a->host, "[::1]") == 0 || strncmp(a->host, "127.", 4) == 0;
}

/* ---- The request ---- */

static bool add_header(transfer *x, const char *name, const char *value)
{
    char line[4400];
    int n = snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *more = n > 0 && n < (int)sizeof line ? curl_slist_append(x->headers, line) : NULL;
    if (more)
        x->headers = more;
    return more != NULL;
}

/* What is missing is asked for only if it can be known that it belongs to what is there: by If-Range, or by the checksum. */
static bool set_headers(transfer *x, bool with_token)
{
    char text[4200];
    mica_part *part = x->part;
    bool same = strcmp(part->url, x->url) == 0 && *part->validator;
    bool good = true;
    x->asked = part->size > 0 && (same || *part->entry->sha256) ? part->size : 0;
    if (x->asked > 0) {
        snprintf(text, sizeof text, "bytes=%lld-", (long long)x->asked);
        good = add_header(x, "Range", text) && (!same || add_header(x, "If-Range", part->validator));
    }
    if (good && with_token)
        good = snprintf(text, sizeof text, "Bearer %s", x->o->token) < (int)sizeof text && add_header(x, "Authorization", text);
    return good && curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers) == CURLE_OK;
}

static bool set_options(transfer *x, const char *url, bool secure)
{
    CURL *c = x->curl;
    const char *proxy = secure ? x->o->proxy_https : x->o->proxy_http;
    bool good = !curl_easy_setopt(c, CURLOPT_URL, url) && !curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") &&
                !curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) && !curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) &&
                !curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) && !curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) &&
                !curl_easy_setopt(c, CURLOPT_PROXY, proxy ? proxy : "") &&
                !curl_easy_setopt(c, CURLOPT_NOPROXY, x->o->no_proxy ? x->o->no_proxy : "") &&
                !curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) && !curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) &&
                !curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) && !curl_easy_setopt(c, CURLOPT_XFERINFODATA, x) &&
                !curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header) && !curl_easy_setopt(c, CURLOPT_HEADERDATA, x) &&
                !curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body) && !curl_easy_setopt(c, CURLOPT_WRITEDATA, x) &&
                !curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->reason) && !curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 262144L) &&
                !curl_easy_setopt(c, CURLOPT_USERAGENT, "mica/0");
    if (good && x->o->ca_file)
        good = !curl_easy_setopt(c, CURLOPT_CAINFO, x->o->ca_file) && !curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    return good;
}

/* One answer; *next is where it redirects to, or "". */
static mica_transfer_end ask(transfer *x, const char *url, bool secure, bool with_token, char next[URL_ROOM], int64_t *wait_ms)
{
    char *redirect = NULL;
    next[0] = '\0';
    curl_easy_reset(x->curl);
    curl_slist_free_all(x->headers);
    x->headers = NULL;
    x->head = (mica_head){.first = -1};
    x->judged = x->ended = x->stalled = false;
    x->last_ns = mica_now_ns();
    x->limit = x->total = -1;
    x->ignored = 0;
    x->reason[0] = '\0';
    if (!set_options(x, url, secure) || !set_headers(x, with_token))
        return refused(x, "the request cannot be made");
    CURLcode code = curl_easy_perform(x->curl);
    if (code == CURLE_OK && !x->judged)
        (void)judge_head(x); /* an answer without a body */
    if (x->ended)
        return x->end;
    if (code != CURLE_OK && x->ignored <= IGNORED_MAX)
        return judge_failure(x, code);
    curl_easy_getinfo(x->curl, CURLINFO_REDIRECT_URL, &redirect);
    if (!redirect)
        return judge_code(x, wait_ms);
    if (snprintf(next, URL_ROOM, "%s", redirect) >= URL_ROOM)
        return refused(x, "the server redirects to an address that is too long");
    return MICA_END_REFUSED; /* of this address: the next one is asked */
}

/* The token is for the address that the user gave, and for nobody that it redirects to (dl-06). */
static mica_transfer_end follow(transfer *x, const char *url, int64_t *wait_ms)
{
    char here[URL_ROOM], next[URL_ROOM];
    origin first, now;
    bool was_secure = false;
    snprintf(here, sizeof here, "%s", url);
    for (int hop = 0; hop <= HOPS_MAX; hop++) {
        if (!origin_of(here, &now))
            return refused(x, "this is no address of a file");
        if (hop == 0)
            first = now;
        bool secure = strcmp(now.scheme, "https") == 0;
        bool own =
            strcmp(now.scheme, first.scheme) == 0 && strcasecmp(now.host, first.host) == 0 && strcmp(now.port, first.port) == 0;
        if (was_secure && !secure)
            return refused(x, "the server redirects from https to http, where anybody could change the file");
        if (x->o->token && own && !secure && !is_loopback(&now))
            return refused(x, "a token is not sent over http, where anybody could read it: use https");
        mica_transfer_end end = ask(x, here, secure, x->o->token && own, next, wait_ms);
        if (!*next || x->ended)
            return end;
        was_secure = was_secure || secure;
        memcpy(here, next, sizeof here);
    }
    return refused(x, "the server redirects more than 10 times");
}

mica_transfer_end mica_transfer_run(const mica_pull_options *o, const char *url, mica_part *part, int64_t *wait_ms,
                                    mica_error *err)
{
    transfer x = {.o = o, .part = part, .curl = curl_easy_init(), .url = url, .err = err};
    mica_transfer_end end = MICA_END_STOP;
    *wait_ms = 0;
    if (x.curl)
        end = follow(&x, url, wait_ms);
    else
        mica_fail_nomem(err, 0, "a connection");
    curl_easy_cleanup(x.curl);
    curl_slist_free_all(x.headers);
    return end;
}
