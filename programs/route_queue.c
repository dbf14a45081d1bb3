/* route_queue.c - mica route queue: what waits for the network. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "account.h"
#include "base/json.h"
#include "load.h"
#include "route.h"

static json_t *row_json(const mica_held_row *r)
{
    json_t *o =
        json_pack("{s:I, s:s, s:s, s:I, s:I, s:b, s:o}", "id", (json_int_t)r->id, "state", mica_held_state_name(r->state),
                  "key", r->key, "created_ms", (json_int_t)r->created_ms, "attempts", (json_int_t)r->attempts, "maybe_sent",
                  r->maybe_sent, "note", mica_json_text(r->note, strlen(r->note)));
    json_t *reply = r->reply ? mica_json_loads(r->reply, 0, NULL) : NULL;
    if (o && reply)
        json_object_set_new(o, "reply", reply);
    return o;
}

static void print_row(const mica_held_row *r)
{
    char when[32] = "";
    time_t seconds = (time_t)(r->created_ms / 1000);
    struct tm t;
    json_t *reply = r->reply ? mica_json_loads(r->reply, 0, NULL) : NULL;
    const char *rung = json_string_value(json_object_get(reply, "rung")),
               *text = json_string_value(json_object_get(reply, "text"));
    if (gmtime_r(&seconds, &t))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t);
    printf("%5lld  %-8s %s  %lld attempts%s%s%s%s%s\n", (long long)r->id, mica_held_state_name(r->state), when,
           (long long)r->attempts, r->maybe_sent ? ", may have arrived" : "", rung ? ", answered by " : "", rung ? rung : "",
           *r->note ? ": " : "", r->note);
    if (text)
        printf("       %s\n", text);
    json_decref(reply);
}

static int on_row(void *user, const mica_held_row *row)
{
    const mica_opts *o = user;
    if (o->json)
        return !mica_json_line(row_json(row));
    print_row(row);
    return 0;
}

static int with_queue(const mica_opts *o, int64_t id, bool drop)
{
    char path[4096];
    mica_held *held;
    mica_opts options = *o; /* on_row's; not changed */
    mica_error err;
    int code = mica_routing_queue(o, path);
    if (code != CODE_OK)
        return code;
    mica_status status = mica_held_open(path, &held, &err);
    if (status)
        return mica_load_failed(&err);
    status = drop ? mica_held_drop(held, id, &err) : mica_held_list(held, id, on_row, &options, &err);
    mica_held_close(held);
    return status ? mica_load_failed(&err) : CODE_OK;
}

static int drain(const mica_opts *o)
{
    mica_routing routing = {.telemetry = NULL};
    mica_error err;
    int64_t n_done = 0, n_left = 0;
    int code = mica_account_open_telemetry(o, &routing.telemetry);
    if (code == CODE_OK)
        code = mica_routing_open(o, NULL, &routing);
    if (code == CODE_OK && mica_runner_drain(routing.runner, mica_routing_network(o), &n_done, &n_left, &err))
        code = mica_load_failed(&err);
    else if (code == CODE_OK)
        mica_term_note("%lld answered, %lld waiting", (long long)n_done, (long long)n_left);
    if (code == CODE_OK && routing.log_failed)
        code = CODE_FAILED;
    mica_routing_close(&routing);
    mica_account_close_telemetry(routing.telemetry);
    return code;
}

int mica_route_queue(const mica_opts *o)
{
    const char *verb = o->n_args > 1 ? o->args[1] : "list";
    int64_t id = 0;
    if (o->n_args > 2 && !mica_opt_read_int(o->args[2], 1, INT64_MAX, &id))
        return mica_term_usage("%s is no number of a request", o->args[2]);
    if (strcmp(verb, "list") == 0)
        return with_queue(o, id, false);
    if (strcmp(verb, "drop") == 0)
        return id ? with_queue(o, id, true) : mica_term_usage("mica route queue drop N needs the request's number");
    if (strcmp(verb, "drain") == 0)
        return drain(o);
    return mica_term_usage("mica route queue %s: there are list [N], drain, and drop N", verb);
}
