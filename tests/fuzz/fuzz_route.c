/* libFuzzer target: the bytes as a policy, a request, a state, a record and a classifier. Each must be taken, or refused with a
 * message that is UTF-8. A policy that is taken decides, and never gives a request away that is private or may not leave. */
#include "mica/mica_router.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(mica_status status, const mica_error *err, const void *out)
{
    if ((status == MICA_OK) != (out != NULL))
        abort();
    if (status && (err->code != status || !err->message[0] || mica_utf8_check(err->message,
                                                                              strlen(err->message)) != strlen(err->message)))
        abort();
}

static void check_record(const mica_route_policy *policy, const mica_route_decision *d, const mica_route_request *r,
                         const mica_route_state *s)
{
    char *line = NULL, *words = NULL;
    size_t length, n;
    mica_error err = {0};
    if (mica_route_record(policy, d, r, s, NULL, &line, &length, &err) || mica_route_explain(line, length, &words, &n, &err))
        abort(); /* what we write we can read */
    mica_free(line);
    mica_free(words);
}

static void decide(const mica_route_policy *policy, bool is_private)
{
    mica_route_request r = mica_route_request_default();
    mica_route_state s = mica_route_state_default();
    mica_route_policy_info info;
    mica_route_decision d;
    mica_error err = {0};
    mica_route_policy_get_info(policy, &info);
    r.text = "Explain this to me, please: a password of 1234 5678 1234 5678.";
    r.length = strlen(r.text);
    r.is_private = is_private;
    s.device.ram_bytes = 8000000000;
    s.network = MICA_YES;
    if (mica_route_decide(policy, &r, &s, &d, &err))
        abort();
    for (int32_t i = 0; i < d.n_order; i++) {
        const mica_route_candidate *c = &d.candidates[d.order[i]];
        if ((c->remote && (is_private || d.is_private || !info.allow_egress)) || !c->remote) /* no file is there */
            abort();
    }
    check_record(policy, &d, &r, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char example[] = "{\"text\":\"a\",\"class\":\"narrow\"}";
    const char *text = (const char *)data;
    mica_error err = {0};
    mica_route_policy *policy;
    mica_route_request_file *request;
    mica_route_state_file *state;
    mica_status status;
    char *words, *report;
    size_t n;
    status = mica_route_policy_parse(text, size, "fuzz", NULL, NULL, &policy, &err);
    check(status, &err, policy);
    if (policy) {
        decide(policy, false);
        decide(policy, true);
    }
    mica_route_policy_release(policy);
    status = mica_route_request_parse(text, size, &request, &err);
    check(status, &err, request);
    mica_route_request_free(request);
    status = mica_route_state_parse(text, size, &state, &err);
    check(status, &err, state);
    mica_route_state_free(state);
    status = mica_route_explain(text, size, &words, &n, &err);
    check(status, &err, words);
    mica_free(words);
    status = mica_route_evaluate(text, size, example, sizeof example - 1, &report, &n, &err);
    check(status, &err, report);
    mica_free(report);
    return 0;
}
