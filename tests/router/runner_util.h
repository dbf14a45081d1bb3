/* runner_util.h - what tests of runners share: a runner over a policy that is a text, asking it, its records. */
#ifndef MICA_TESTS_RUNNER_UTIL_H
#define MICA_TESTS_RUNNER_UTIL_H
#include <unistd.h>

#include "route_util.h"
#include "router/run_impl.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

/* A local rung of so many bytes of weights, by its own word. */
#define LOCAL_RUNG(name, weights)                                                                                              \
    "{\"name\":\"" name "\",\"kind\":\"local\",\"file\":\"" SCRIPTED "\",\"weights_bytes\":" weights                           \
    ",\"min_ram_bytes\":1000,\"context\":128,\"prefill_tps\":1000000,\"decode_tps\":1000000,\"load_ms\":0}"
#define RUNNER_POLICY(rungs, run)                                                                                              \
    "{\"schema\":1,\"name\":\"test\",\"version\":\"1\",\"ladder\":{\"schema\":1,\"name\":\"test\",\"version\":\"1\","          \
    "\"rungs\":[" rungs "]},\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":1},\"run\":{" run "},\"classes\":{"             \
    "\"unknown\":{\"order\":\"ladder\",\"output_tokens\":16},\"narrow\":{\"order\":\"ladder\",\"output_tokens\":16},"          \
    "\"complex\":{\"order\":\"ladder\",\"output_tokens\":16}}}"

typedef struct running {
    char path[64];
    mica_router *router;
    mica_runner *runner;
} running;

static inline running runner_start(const char *policy)
{
    running r;
    mica_error err = {0};
    mica_runner_options o = mica_runner_options_default();
    snprintf(r.path, sizeof r.path, "/tmp/mica-policy-%d.json", (int)getpid());
    FILE *f = fopen(r.path, "w");
    assert_non_null(f);
    fputs(policy, f);
    fclose(f);
    if (mica_router_new(r.path, NULL, &r.router, &err))
        fail_msg("%s", err.message);
    o.router = r.router;
    o.n_threads = 1;
    o.seed = 1;
    if (mica_runner_new(&o, &r.runner, &err))
        fail_msg("%s", err.message);
    return r;
}

static inline void runner_end(running *r)
{
    mica_runner_free(r->runner);
    mica_router_free(r->router);
    unlink(r->path);
}

/* A conversation of one word, with what the request wants besides. */
static inline mica_status runner_ask(const running *r, const char *route, int (*on_text)(void *, const char *, size_t),
                                     void *user, mica_run_reply *reply, mica_error *err)
{
    char body[300];
    mica_run_request request = mica_run_request_default();
    snprintf(body, sizeof body,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"S\"}],\"temperature\":0,\"route\":{%s}}", route);
    request.body = body;
    request.length = strlen(body);
    request.network = MICA_NO;
    request.on_text = on_text;
    request.user = user;
    return mica_runner_ask(r->runner, &request, reply, err);
}

/* "big hot, small ok". */
static inline const char *attempts_of(const mica_run_reply *reply)
{
    static char text[400];
    text[0] = '\0';
    for (int32_t i = 0; i < reply->outcome.n_attempts; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s", i > 0 ? ", " : "", reply->outcome.attempts[i].rung,
                 reply->outcome.attempts[i].result);
    return text;
}

/* A number of a rung's state in the record; NAN: it is not there. */
static inline double state_number(const mica_run_reply *reply, size_t rung, const char *key)
{
    json_t *root = json_loads(reply->record, 0, NULL);
    const json_t *value = json_object_get(json_array_get(json_object_get(json_object_get(root, "state"), "rungs"), rung), key);
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    json_decref(root);
    return number;
}

#endif
