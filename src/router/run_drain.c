/* run_drain.c - a runner's queue through its policy. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "router/run_impl.h"

#define ATTEMPTS_MAX 100 /* of one request: then it is not the network */

typedef struct drain {
    mica_runner *runner;
    int network;
} drain;

static json_t *reply_json(const mica_run_reply *r)
{
    json_t *o = json_pack("{s:s%, s:s, s:s, s:s}", "text", r->text ? r->text : "", r->length, "finish", r->finish, "rung",
                          r->outcome.rung, "model", r->model);
    if (o && r->tool_calls)
        json_object_set_new(o, "tool_calls", mica_json_loads(r->tool_calls, 0, NULL));
    return o;
}

static mica_held_verdict judge(mica_status status, const mica_run_reply *reply, const mica_held_row *row)
{
    if (!status)
        return MICA_HELD_ANSWERED;
    if (status == MICA_CANCELLED || reply->unreached)
        return MICA_HELD_STOP;
    bool hopeless = status == MICA_INVALID_ARGUMENT || status == MICA_BAD_TEXT || row->attempts + 1 >= ATTEMPTS_MAX;
    return hopeless ? MICA_HELD_NEVER : MICA_HELD_AGAIN;
}

static mica_held_verdict send_row(void *user, const mica_held_row *row, char **reply, bool *maybe_sent, char note[160])
{
    const drain *d = user;
    mica_run_request request = mica_run_request_default();
    mica_run_reply said;
    mica_error err = {.message = ""};
    request.body = row->body;
    request.length = row->length;
    request.idempotency_key = row->key;
    request.network = d->network;
    request.no_queue = true;
    mica_status status = mica_runner_ask(d->runner, &request, &said, &err);
    mica_held_verdict verdict = judge(status, &said, row);
    *maybe_sent = said.may_have_arrived;
    if (!status) {
        json_t *o = reply_json(&said);
        *reply = o ? mica_json_dumps(o, JSON_COMPACT) : NULL;
        json_decref(o);
    }
    mica_try_copy(note, 160, status ? err.message : "");
    mica_run_reply_free(&said);
    return verdict;
}

mica_status mica_runner_drain(mica_runner *runner, int network, int64_t *n_done, int64_t *n_left, mica_error *err)
{
    drain d = {runner, network};
    mica_held_drain work = {.send = send_row, .user = &d};
    *n_done = *n_left = 0;
    if (!runner->held)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no queue");
    mica_status status = mica_held_drain_all(runner->held, &work, err);
    *n_done = work.n_done;
    *n_left = work.n_left;
    return status;
}
