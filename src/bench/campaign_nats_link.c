#include "bench/campaign_nats_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 5000, RECONNECT_MS = 1000, PAUSE_MS = 300, FLUSH_MS = 1000 };
#define SECOND_NS INT64_C(1000000000)

/* ---- Errors ---- */

mica_status mica_nats_fail(const mica_nats_link *link, natsStatus status, const char *what, mica_error *err)
{
    natsStatus last;
    const char *detail = nats_GetLastError(&last);
    const char *closed = link->connection && natsConnection_IsClosed(link->connection) ? "; the connection is closed" : "";
    if (status == NATS_NO_MEMORY)
        return mica_fail_nomem(err, 0, "the queue");
    return mica_fail(err, MICA_IO_ERROR, "%s: NATS says \"%s\"%s%.200s%s", what, natsStatus_GetText(status),
                     detail && last == status ? ", " : "", detail && last == status ? detail : "", closed);
}

bool mica_nats_transient(const mica_nats_link *link, natsStatus status)
{
    if (natsConnection_IsClosed(link->connection))
        return false;
    return status == NATS_TIMEOUT || status == NATS_NO_RESPONDERS || status == NATS_CONNECTION_DISCONNECTED ||
           status == NATS_STALE_CONNECTION || status == NATS_IO_ERROR || status == NATS_NO_SERVER ||
           status == NATS_NOT_YET_CONNECTED || status == NATS_INSUFFICIENT_BUFFER;
}

bool mica_nats_pause(const mica_nats_link *link)
{
    struct timespec t = {.tv_nsec = PAUSE_MS * 1000000};
    if (link->stop && link->stop(link->user))
        return false;
    nanosleep(&t, NULL);
    return true;
}

/* Called after a failure: true to try once more; else *err says what it was. */
static bool again(const mica_nats_link *link, natsStatus s, const char *what, mica_status *status, mica_error *err)
{
    if (s == NATS_OK) {
        *status = MICA_OK;
        return false;
    }
    if (!mica_nats_transient(link, s)) {
        *status = mica_nats_fail(link, s, what, err);
        return false;
    }
    if (mica_nats_pause(link))
        return true;
    *status = mica_fail(err, MICA_CANCELLED, "%s: stopped while the NATS server was away", what);
    return false;
}

/* ---- The connection ---- */

static void on_lost(natsConnection *connection, void *user)
{
    mica_nats_link *link = user;
    (void)connection;
    atomic_fetch_add(&link->losses, 1);
}

static natsStatus set_identity(natsOptions *opts, const mica_nats_options *o)
{
    natsStatus s = NATS_OK;
    if (o->credentials)
        s = natsOptions_SetUserCredentialsFromFiles(opts, o->credentials, NULL);
    if (s == NATS_OK && o->user)
        s = natsOptions_SetUserInfo(opts, o->user, o->password ? o->password : "");
    if (s == NATS_OK && o->token)
        s = natsOptions_SetToken(opts, o->token);
    return s;
}

static natsStatus set_tls(natsOptions *opts, const mica_nats_options *o)
{
    natsStatus s = NATS_OK;
    if (o->ca || o->certificate || strncmp(o->url, "tls:", 4) == 0)
        s = natsOptions_SetSecure(opts, true);
    if (s == NATS_OK && o->ca)
        s = natsOptions_LoadCATrustedCertificates(opts, o->ca);
    if (s == NATS_OK && o->certificate)
        s = natsOptions_LoadCertificatesChain(opts, o->certificate, o->key ? o->key : o->certificate);
    return s;
}

/* The address that a certificate must be for: the host of the URL. The library checks none by itself. "" for several servers:
 * what is right for one would be wrong for another. */
static void expected_host(const char *url, char out[256])
{
    const char *begin = strstr(url, "://"), *at;
    out[0] = '\0';
    if (strchr(url, ','))
        return;
    begin = begin ? begin + 3 : url;
    at = strchr(begin, '@');
    begin = at ? at + 1 : begin;
    bool bracket = *begin == '[';
    begin += bracket;
    snprintf(out, 256, "%.*s", (int)strcspn(begin, bracket ? "]" : ":/"), begin);
}

static natsStatus set_all(natsOptions *opts, const mica_nats_options *o, mica_nats_link *link)
{
    char host[256];
    natsStatus s = natsOptions_SetURL(opts, o->url);
    expected_host(o->url, host);
    if (s == NATS_OK)
        s = set_identity(opts, o);
    if (s == NATS_OK)
        s = set_tls(opts, o);
    if (s == NATS_OK && *host)
        s = natsOptions_SetExpectedHostname(opts, host);
    if (s == NATS_OK && o->name)
        s = natsOptions_SetName(opts, o->name);
    if (s == NATS_OK)
        s = natsOptions_SetMaxReconnect(opts, -1);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectWait(opts, RECONNECT_MS);
    if (s == NATS_OK) /* thousands of workers must not come back in the same moment */
        s = natsOptions_SetReconnectJitter(opts, RECONNECT_MS, RECONNECT_MS);
    if (s == NATS_OK)
        s = natsOptions_SetFailRequestsOnDisconnect(opts, true);
    if (s == NATS_OK)
        s = natsOptions_SetDisconnectedCB(opts, on_lost, link);
    return s;
}

mica_status mica_nats_open(const mica_nats_options *options, mica_nats_link *link, mica_error *err)
{
    natsOptions *opts = NULL;
    jsOptions js;
    natsStatus s = nats_Open(-1);
    if (s == NATS_OK)
        s = natsOptions_Create(&opts);
    if (s == NATS_OK)
        s = set_all(opts, options, link);
    if (s != NATS_OK) {
        natsOptions_Destroy(opts);
        return mica_nats_fail(link, s, "the options of the connection are not usable", err);
    }
    s = natsConnection_Connect(&link->connection, opts);
    natsOptions_Destroy(opts);
    if (s != NATS_OK)
        return mica_nats_fail(link, s, "no connection to the NATS server", err);
    jsOptions_Init(&js);
    js.Wait = WAIT_MS;
    s = natsConnection_JetStream(&link->js, link->connection, &js);
    return s == NATS_OK ? MICA_OK : mica_nats_fail(link, s, "JetStream cannot be used", err);
}

void mica_nats_close(mica_nats_link *link)
{
    if (link->connection) {
        natsConnection_FlushTimeout(link->connection, FLUSH_MS); /* acknowledgements are on their way */
        natsConnection_Close(link->connection);
    }
    jsCtx_Destroy(link->js);
    natsConnection_Destroy(link->connection);
    link->js = NULL;
    link->connection = NULL;
    nats_CloseAndWait(WAIT_MS);
}

/* ---- Streams ---- */

static natsStatus make_stream(mica_nats_link *link, const char *name, const char **subjects, int n, jsRetentionPolicy retention)
{
    jsStreamConfig config;
    jsErrCode code = 0;
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = subjects;
    config.SubjectsLen = n;
    config.Retention = retention;
    config.Storage = js_FileStorage;
    config.Duplicates = 120 * SECOND_NS;
    if (retention == js_LimitsPolicy)
        config.MaxMsgsPerSubject = 1;
    natsStatus s = js_AddStream(NULL, link->js, &config, NULL, &code);
    /* The server's own words for a stream of that name with another configuration: that is one to be used as it is. */
    return s != NATS_OK && code == JSStreamNameExistErr ? NATS_OK : s;
}

static natsStatus make_all(mica_nats_link *link)
{
    const char *work[] = {"mica.work.*.*"}, *result[] = {"mica.result.*.*"}, *data[] = {"mica.campaign.*", "mica.data.*.*.*"};
    natsStatus s = make_stream(link, MICA_STREAM_WORK, work, 1, js_WorkQueuePolicy);
    if (s == NATS_OK)
        s = make_stream(link, MICA_STREAM_RESULT, result, 1, js_WorkQueuePolicy);
    return s == NATS_OK ? make_stream(link, MICA_STREAM_DATA, data, 2, js_LimitsPolicy) : s;
}

mica_status mica_nats_streams_make(mica_nats_link *link, mica_error *err)
{
    static const char what[] = "the streams cannot be made (is JetStream on? nats-server -js)";
    mica_status status;
    natsStatus s;
    do {
        s = make_all(link);
        if (s == NATS_NO_RESPONDERS && atomic_load(&link->losses) == 0) /* connected, never lost: there is no JetStream */
            return mica_nats_fail(link, s, what, err);
    } while (again(link, s, what, &status, err));
    return status;
}

void mica_nats_tag(const char *campaign_id, char out[MICA_NATS_TAG])
{
    snprintf(out, MICA_NATS_TAG, "%s", campaign_id);
}

/* ---- Messages ---- */

mica_status mica_nats_publish(mica_nats_link *link, const char *subject, const char *id, const void *data, size_t length,
                              bool *duplicate, mica_error *err)
{
    mica_status status;
    natsStatus s;
    jsPubOptions options;
    jsPubOptions_Init(&options);
    options.MsgId = id;
    do {
        jsPubAck *ack = NULL;
        s = js_Publish(&ack, link->js, subject, data, (int)length, &options, NULL);
        if (s == NATS_OK && duplicate)
            *duplicate = ack->Duplicate;
        jsPubAck_Destroy(ack);
        if (s == NATS_NO_RESPONDERS) /* a server that came back without its disk: nobody listens until there is a stream */
            make_all(link);
    } while (again(link, s, "a message could not be published", &status, err));
    return status;
}

mica_status mica_nats_last(mica_nats_link *link, const char *stream, const char *subject, natsMsg **out, mica_error *err)
{
    mica_status status;
    natsStatus s;
    do {
        jsErrCode code = 0;
        *out = NULL;
        s = js_GetLastMsg(out, link->js, stream, subject, NULL, &code);
        s = s == NATS_NOT_FOUND || code == JSStreamNotFoundErr ? NATS_OK : s;
    } while (again(link, s, "a message could not be read", &status, err));
    return status;
}

mica_status mica_nats_purge(mica_nats_link *link, const char *stream, const char *subject, mica_error *err)
{
    mica_status status;
    natsStatus s;
    jsOptions options;
    jsOptions_Init(&options);
    options.Stream.Purge.Subject = subject;
    do {
        jsErrCode code = 0;
        s = js_PurgeStream(link->js, stream, &options, &code);
        s = s == NATS_NOT_FOUND || code == JSStreamNotFoundErr ? NATS_OK : s;
    } while (again(link, s, "the queue could not be tidied up", &status, err));
    return status;
}

mica_status mica_nats_subjects(mica_nats_link *link, const char *stream, const char *filter,
                               void (*each)(void *user, const char *word), void *user, mica_error *err)
{
    mica_status status;
    natsStatus s;
    jsStreamInfo *info;
    jsOptions options;
    jsOptions_Init(&options);
    options.Stream.Info.SubjectsFilter = filter;
    do {
        jsErrCode code = 0;
        info = NULL;
        s = js_GetStreamInfo(&info, link->js, stream, &options, &code);
        s = s == NATS_NOT_FOUND || code == JSStreamNotFoundErr ? NATS_OK : s;
    } while (again(link, s, "the queue could not be looked through", &status, err));
    for (int i = 0; info && info->State.Subjects && i < info->State.Subjects->Count; i++) {
        const char *dot = strrchr(info->State.Subjects->List[i].Subject, '.');
        if (dot)
            each(user, dot + 1);
    }
    jsStreamInfo_Destroy(info);
    return status;
}
