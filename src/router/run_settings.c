#include "router/run_settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MS_MAX 86400000 /* a day */

static const mica_field_row run_fields[] = {
    MICA_FLAG_FIELD(mica_run_settings, fallback, "fallback"),
    MICA_FLAG_FIELD(mica_run_settings, buffer, "buffer"),
    MICA_INT_FIELD(mica_run_settings, retries, "retries", 0, 10, false),
    MICA_INT_FIELD(mica_run_settings, retry_budget, "retry_budget", 0, 100, false),
    MICA_INT_FIELD(mica_run_settings, backoff_ms, "backoff_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, backoff_max_ms, "backoff_max_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, retry_after_max_ms, "retry_after_max_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, breaker_failures, "breaker_failures", 1, 1000, false),
    MICA_INT_FIELD(mica_run_settings, breaker_open_ms, "breaker_open_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, hedge_ms, "hedge_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, first_ms, "first_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, total_ms, "total_ms", 0, MS_MAX, false),
    MICA_INT_FIELD(mica_run_settings, queue_max, "queue_max", 0, 1000000, false),
    MICA_INT_FIELD(mica_run_settings, hot_ms, "hot_ms", 0, MS_MAX, false),
};

static const char *const redact_words[] = {"off", "mask", "restore", NULL};

static const mica_field_row endpoint_fields[] = {
    MICA_TEXT_FIELD(mica_endpoint, url, "url", 1, true),
    MICA_TEXT_FIELD(mica_endpoint, model, "model", 0, false),
    MICA_TEXT_FIELD(mica_endpoint, key_env, "key_env", 0, false),
    MICA_TEXT_FIELD(mica_endpoint, key_file, "key_file", 0, false),
    MICA_TEXT_FIELD(mica_endpoint, ca_file, "ca_file", 0, false),
    MICA_FLAG_FIELD(mica_endpoint, stream, "stream"),
    MICA_CHOICE_FIELD(mica_endpoint, redact, "redact", MICA_REDACT_OFF, redact_words, false),
    MICA_INT_FIELD(mica_endpoint, connect_ms, "connect_ms", 1, MS_MAX, false),
    MICA_INT_FIELD(mica_endpoint, first_ms, "first_ms", 1, MS_MAX, false),
    MICA_INT_FIELD(mica_endpoint, idle_ms, "idle_ms", 1, MS_MAX, false),
    MICA_INT_FIELD(mica_endpoint, total_ms, "total_ms", 1, MS_MAX, false),
    MICA_INT_FIELD(mica_endpoint, loading_ms, "loading_ms", 0, MS_MAX, false),
};

static const mica_field_table run_table = MICA_FIELD_TABLE("run", run_fields, false);
static const mica_field_table endpoint_table = MICA_FIELD_TABLE("endpoint", endpoint_fields, false);

const mica_field_table *mica_run_settings_table(void)
{
    return &run_table;
}
const mica_field_table *mica_endpoint_table(void)
{
    return &endpoint_table;
}

mica_status mica_run_settings_read(const json_t *object, mica_run_settings *out, mica_error *err)
{
    *out = (mica_run_settings){.fallback = true,
                               .retries = 1,
                               .retry_budget = 3,
                               .backoff_ms = 250,
                               .backoff_max_ms = 4000,
                               .retry_after_max_ms = 5000,
                               .breaker_failures = 3,
                               .breaker_open_ms = 30000,
                               .queue_max = 1000,
                               .hot_ms = 60000};
    return object ? mica_fields_read(object, "run", &run_table, out, err) : MICA_OK;
}

int64_t mica_run_backoff_ms(const mica_run_settings *s, int64_t n, double chance)
{
    int64_t ms = s->backoff_ms;
    while (n-- > 0 && ms < s->backoff_max_ms)
        ms *= 2;
    ms = ms < s->backoff_max_ms ? ms : s->backoff_max_ms;
    return (int64_t)((double)ms * (1 - chance / 2));
}

/* ---- Endpoints ---- */

static bool is_here(const char *host, size_t length)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && strncasecmp(names[i], host, length) == 0)
            return true;
    return false;
}

mica_status mica_endpoint_check(const char *url, bool has_key, mica_error *err)
{
    bool secure = strncmp(url, "https://", 8) == 0;
    const char *host = secure ? url + 8 : strncmp(url, "http://", 7) == 0 ? url + 7 : NULL;
    if (!host || strpbrk(url, "@?# \t\r\n\\"))
        return mica_fail(err, MICA_BAD_TEXT,
                         "the url \"%.200s\" must be http:// or https:// with a host, and no user, query or blank", url);
    size_t length = strcspn(host, "/"), name = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    if (name == 0 || name > length)
        return mica_fail(err, MICA_BAD_TEXT, "the url \"%.200s\" has no host", url);
    if (has_key && !secure && !is_here(host, name))
        return mica_fail(err, MICA_BAD_TEXT, "a key is not sent to %.200s: without https:// everybody on the way reads it",
                         url);
    return MICA_OK;
}

mica_status mica_endpoint_read(const json_t *object, const char *rung, mica_endpoint *out, mica_error *err)
{
    char where[96];
    mica_error why;
    *out = (mica_endpoint){
        .stream = true, .connect_ms = 5000, .first_ms = 30000, .idle_ms = 20000, .total_ms = 300000, .redact = MICA_REDACT_OFF};
    snprintf(where, sizeof where, "the rung %.47s: endpoint", rung);
    mica_status status = mica_fields_read(object, where, &endpoint_table, out, err);
    if (status)
        return status;
    if (*out->key_env && *out->key_file)
        return mica_fail(err, MICA_BAD_TEXT, "%s has both \"key_env\" and \"key_file\"; give one", where);
    status = mica_endpoint_check(out->url, *out->key_env || *out->key_file, &why);
    return status ? mica_fail(err, status, "%s: %s", where, why.message) : MICA_OK;
}
