/* route_decide.c - mica route decide, check, explain and replay: decisions without carrying them out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "base/json.h"
#include "route.h"
#include "route_state.h"
#include "share.h"

enum { MAX_PATH = 4096 };

/* ---- The policy ---- */

static int open_policy(const char *name, mica_route_policy **policy)
{
    char path[MAX_PATH], share[MAX_PATH];
    mica_error err;
    int code = mica_routing_policy(name, path);
    if (code == CODE_OK && mica_route_policy_open(path, mica_share_place(1, "", share) ? share : NULL, policy, &err))
        code = mica_load_failed(&err);
    return code;
}

static int need_policy(const mica_opts *o, mica_route_policy **policy)
{
    return o->policy ? open_policy(o->policy, policy) : mica_term_usage("mica route %s needs --policy FILE", o->args[0]);
}

int mica_route_check(const mica_opts *o)
{
    mica_route_policy *policy;
    mica_route_policy_info info;
    mica_error err;
    const char *name = o->n_args > 1 ? o->args[1] : o->policy;
    int code = name ? open_policy(name, &policy) : mica_term_usage("mica route check needs a policy: mica route check FILE");
    if (code != CODE_OK)
        return code;
    mica_route_policy_get_info(policy, &info);
    json_t *rungs = json_array();
    for (int32_t i = 0; i < info.n_rungs; i++) {
        mica_route_rung rung;
        if (mica_route_rung_get(policy, i, &rung, &err) == MICA_OK)
            json_array_append_new(rungs, json_pack("{s:s, s:b}", "name", rung.name, "remote", rung.remote));
    }
    if (o->json) {
        code = mica_json_line(json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:i, s:s, s:o}", "name", info.name, "version",
                                        info.version,
                                        "hash", info.hash, "ladder", info.ladder_name, "ladder_version", info.ladder_version,
                                        "allow_egress", info.allow_egress, "rules", info.n_rules, "classifier",
                                        info.classifier_hash, "rungs", rungs))
                   ? CODE_OK
                   : CODE_FAILED;
    } else {
        printf("policy %s %s (%s): ladder %s %s of %d rungs, %d rules, %s classifier, %s\n", info.name, info.version, info.hash,
               info.ladder_name, info.ladder_version, info.n_rungs, info.n_rules, *info.classifier_hash ? "a" : "no",
               info.allow_egress ? "requests that are not private may leave the device" : "nothing leaves the device");
        json_decref(rungs);
    }
    mica_route_policy_release(policy);
    return code;
}

/* ---- Decide ---- */

/* --request FILE, or --prompt and its company; then what the options say. */
static int read_request(const mica_opts *o, char **text, mica_route_request_file **file, mica_route_request *request)
{
    size_t length;
    mica_error err;
    *file = NULL;
    *request = mica_route_request_default();
    int code = o->request ? mica_load_file(o->request, text, &length) : mica_load_text(o, text, &length);
    if (code != CODE_OK)
        return code;
    if (o->request && mica_route_request_parse(*text, length, file, &err))
        return mica_load_failed(&err);
    if (o->request) {
        *request = *mica_route_request_of(*file);
    } else {
        request->text = *text;
        request->length = length;
    }
    request->task = o->task_name ? o->task_name : request->task;
    request->rung = o->rung ? o->rung : request->rung;
    request->is_private = request->is_private || o->private_request;
    request->deadline_ms = o->deadline_ms >= 0 ? o->deadline_ms : request->deadline_ms;
    request->output_tokens = o->n_predict >= 0 ? o->n_predict : request->output_tokens;
    return CODE_OK;
}

static int print_record(const mica_opts *o, const char *line, size_t length)
{
    char *words;
    size_t n;
    mica_error err;
    if (o->json)
        return mica_term_write(line, length) && mica_term_write("\n", 1) ? CODE_OK : CODE_FAILED;
    if (mica_route_explain(line, length, &words, &n, &err))
        return mica_load_failed(&err);
    int code = mica_term_write(words, n) ? CODE_OK : CODE_FAILED;
    mica_free(words);
    return code;
}

static int decide(const mica_opts *o, const mica_route_policy *policy, const mica_route_request *request,
                  const mica_route_state *state)
{
    mica_route_decision *decision = malloc(sizeof *decision);
    mica_route_request named = *request;
    char id[33], *line;
    size_t length;
    mica_error err;
    if (!decision)
        return mica_term_error("not enough memory for a decision");
    mica_status status = MICA_OK;
    if (!named.id || !*named.id) {
        status = mica_route_new_id(id, &err);
        named.id = id;
    }
    if (!status)
        status = mica_route_decide(policy, &named, state, decision, &err);
    if (!status)
        status = mica_route_record(policy, decision, &named, state, NULL, &line, &length, &err);
    mica_route_action action = status ? MICA_ROUTE_REFUSE : decision->action;
    free(decision);
    if (status)
        return mica_load_failed(&err);
    int code = print_record(o, line, length);
    if (code == CODE_OK && o->log && mica_route_log_append(o->log, line, length, &err))
        code = mica_load_failed(&err);
    mica_free(line);
    return code == CODE_OK && action == MICA_ROUTE_REFUSE ? CODE_FAILED : code;
}

int mica_route_decide_command(const mica_opts *o)
{
    mica_route_policy *policy;
    mica_route_request_file *file = NULL;
    mica_route_request request;
    mica_routing_state state;
    char *text = NULL;
    int code = need_policy(o, &policy);
    if (code != CODE_OK)
        return code;
    code = read_request(o, &text, &file, &request);
    if (code == CODE_OK) {
        code = mica_routing_state_read(o, policy, &state);
        if (code == CODE_OK)
            code = decide(o, policy, &request, &state.state);
        mica_routing_state_free(&state);
    }
    mica_route_request_free(file);
    free(text);
    mica_route_policy_release(policy);
    return code;
}

/* ---- Explain ---- */

static bool is_wanted(const char *line, size_t length, const char *id)
{
    json_t *root = mica_json_loadb(line, length, 0, NULL);
    const char *record = json_string_value(json_object_get(root, "record"));
    const char *own = json_string_value(json_object_get(root, "id"));
    bool wanted = record && strcmp(record, "route") == 0 && (!id || (own && strncmp(own, id, strlen(id)) == 0));
    json_decref(root);
    return wanted;
}

int mica_route_explain_command(const mica_opts *o)
{
    char *log;
    size_t length, n_found = 0;
    const char *id = o->n_args > 2 ? o->args[2] : NULL;
    int code = mica_load_file(o->n_args > 1 ? o->args[1] : "-", &log, &length);
    for (size_t at = 0; code == CODE_OK && at < length;) {
        const char *end = memchr(log + at, '\n', length - at);
        size_t n = end ? (size_t)(end - log) - at : length - at;
        if (n > 0 && is_wanted(log + at, n, id)) {
            code = print_record(o, log + at, n);
            n_found++;
        }
        at += n + 1;
    }
    if (code == CODE_OK || length)
        free(log);
    if (code == CODE_OK && n_found == 0)
        return mica_term_error("there is no record of a decision%s%s in it", id ? " whose id begins with " : "", id ? id : "");
    return code;
}

/* ---- Replay ---- */

static void print_dimension(const json_t *d)
{
    static const char *const keys[] = {"log_mean", "new_mean", "best_mean", "log_regret", "new_regret"};
    printf("  %-10s", json_string_value(json_object_get(d, "name")));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(d, keys[i]);
        if (json_is_number(value))
            printf(" %11.4g", json_number_value(value));
        else
            printf(" %11s", "-");
    }
    printf("  %lld, %lld, %lld\n", (long long)json_integer_value(json_object_get(d, "records")),
           (long long)json_integer_value(json_object_get(d, "log_measured")),
           (long long)json_integer_value(json_object_get(d, "new_measured")));
}

static int64_t count_of(const json_t *report, const char *key) { return json_integer_value(json_object_get(report, key)); }

static void print_replay(const json_t *r)
{
    const json_t *policy = json_object_get(r, "policy"), *list;
    size_t i;
    json_t *item;
    printf("%lld records, %lld with an outcome, under the policy %s %s: %lld chosen as before\n",
           (long long)count_of(r, "records"), (long long)count_of(r, "with_outcome"),
           json_string_value(json_object_get(policy, "name")),
           json_string_value(json_object_get(policy, "version")), (long long)count_of(r, "same_choice"));
    if (count_of(r, "class_from_log") > 0)
        printf("%lld without their text: their class is the log's\n", (long long)count_of(r, "class_from_log"));
    if (count_of(r, "damaged_lines") + count_of(r, "unreadable_records") > 0)
        printf("left out: %lld damaged lines, %lld records that cannot be read (the first: %s)\n",
               (long long)count_of(r, "damaged_lines"), (long long)count_of(r, "unreadable_records"),
               json_string_value(json_object_get(r, "first_unreadable")));
    printf("\n  %-10s %11s %11s %11s %11s %11s  %s\n", "mean", "log", "new", "best", "log regret", "new regret",
           "records, measured in log, measured in new");
    list = json_object_get(r, "dimensions");
    json_array_foreach(list, i, item) print_dimension(item);
    printf("\n  %-20s %-20s %s\n", "first rung, log", "new", "records");
    list = json_object_get(r, "moves");
    json_array_foreach(list, i, item)
        printf("  %-20s %-20s %lld\n", json_string_value(json_object_get(item, "log")),
               json_string_value(json_object_get(item, "new")), (long long)count_of(item, "records"));
}

int mica_route_replay_command(const mica_opts *o)
{
    mica_route_policy *policy;
    char *log, *report;
    size_t length, n;
    mica_error err;
    if (o->n_args < 2)
        return mica_term_usage("mica route replay needs a log: mica route replay LOG --policy FILE");
    int code = need_policy(o, &policy);
    if (code != CODE_OK)
        return code;
    code = mica_load_file(o->args[1], &log, &length);
    if (code == CODE_OK) {
        if (mica_route_replay(log, length, policy, &report, &n, &err))
            code = mica_load_failed(&err);
        free(log);
    }
    mica_route_policy_release(policy);
    return code == CODE_OK ? mica_route_print_report(o, report, print_replay) : code;
}
