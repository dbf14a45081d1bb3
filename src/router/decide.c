/* decide.c - a decision: class, terms, candidates, order, action. A pure function of policy, request and state. */
#include "router/decide.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS_MAX = 1000000000 };

/* ---- What is given ---- */

mica_route_request mica_route_request_default(void)
{
    return (mica_route_request){.struct_size = sizeof(mica_route_request),
                                .route_class = MICA_CLASS_AUTO,
                                .prompt_tokens = -1,
                                .prompt_bytes = -1,
                                .output_tokens = -1,
                                .deadline_ms = -1,
                                .max_usd = NAN,
                                .max_joules = NAN};
}

mica_route_state mica_route_state_default(void)
{
    return (mica_route_state){.struct_size = sizeof(mica_route_state),
                              .time_ms = -1,
                              .device = {.ram_bytes = -1,
                                         .available_bytes = -1,
                                         .thermal = MICA_THERMAL_UNKNOWN,
                                         .battery = NAN,
                                         .on_battery = MICA_UNKNOWN,
                                         .power_save = MICA_UNKNOWN},
                              .network = MICA_UNKNOWN,
                              .metered = MICA_UNKNOWN};
}

mica_route_rung_state mica_route_rung_state_default(const char *name)
{
    return (mica_route_rung_state){.name = name,
                                   .file = MICA_UNKNOWN,
                                   .resident = MICA_UNKNOWN,
                                   .healthy = MICA_UNKNOWN,
                                   .prefill_tps = NAN,
                                   .decode_tps = NAN,
                                   .watts = NAN,
                                   .wait_ms = NAN,
                                   .hot = MICA_UNKNOWN,
                                   .memory_bytes = -1,
                                   .free_bytes = -1};
}

void mica_route_device_of(const mica_device_state *reading, mica_route_device *out)
{
    int64_t total = reading->memory_total, limit = reading->memory_limit;
    *out = (mica_route_device){.ram_bytes = limit >= 0 && (total < 0 || limit < total) ? limit : total,
                               .available_bytes = reading->memory_available,
                               .thermal = reading->thermal,
                               .battery = reading->battery_level,
                               .on_battery = MICA_UNKNOWN,
                               .power_save = reading->power_save};
    if (reading->battery == MICA_BATTERY_NONE || reading->on_mains == MICA_YES)
        out->on_battery = MICA_NO;
    else if (reading->battery == MICA_BATTERY_DISCHARGING || (reading->on_mains == MICA_NO && !isnan(reading->battery_level)))
        out->on_battery = MICA_YES;
}

static mica_status check_request(const mica_route_request *r, mica_error *err)
{
    if (r->struct_size != sizeof *r)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request is not from mica_route_request_default()");
    if (r->route_class < MICA_CLASS_AUTO || r->route_class > MICA_CLASS_COMPLEX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request's class %d is none", (int)r->route_class);
    if (r->prompt_tokens < -1 || r->prompt_tokens > TOKENS_MAX || r->output_tokens < -1 || r->output_tokens > TOKENS_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request's tokens must be from 0 to %d, or -1", TOKENS_MAX);
    if (r->deadline_ms < -1 || r->max_usd < 0 || r->max_joules < 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a limit of the request is below 0");
    if (r->id && strlen(r->id) >= sizeof ((mica_route_decision *)0)->id)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request's id is longer than 63 bytes");
    if (!r->text && r->length > 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request's text is NULL, its length is not 0");
    return MICA_OK;
}

static mica_status check_state(const mica_route_state *s, mica_error *err)
{
    if (s->struct_size != sizeof *s)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the state is not from mica_route_state_default()");
    for (size_t i = 0; i < s->n_rungs; i++) {
        const mica_route_rung_state *r = &s->rungs[i];
        if (r->prefill_tps <= 0 || r->decode_tps <= 0 || r->watts < 0 || r->wait_ms < 0)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "a figure of the rung %.48s is not above 0", r->name ? r->name : "?");
    }
    return MICA_OK;
}

/* ---- Class ---- */

static void name_class(mica_route_decision *out, mica_route_class value, const char *by)
{
    out->route_class = value;
    snprintf(out->class_by, sizeof out->class_by, "%s", by);
}

static void use_probability(const mica_route_policy *policy, double p_narrow, mica_route_decision *out)
{
    double sure = p_narrow > 0.5 ? p_narrow : 1 - p_narrow;
    out->p_narrow = p_narrow;
    snprintf(out->classifier_hash, sizeof out->classifier_hash, "%s", policy->classifier->hash);
    name_class(out,
               sure < policy->min_confidence ? MICA_CLASS_UNKNOWN
               : p_narrow > 0.5              ? MICA_CLASS_NARROW
                                             : MICA_CLASS_COMPLEX,
               "classifier");
}

static void ask_classifier(const mica_terms *t, mica_route_decision *out)
{
    mica_features features;
    const mica_classifier *classifier = t->policy->classifier;
    if (!classifier || !t->request->text || t->request->length == 0)
        return;
    mica_features_of(t->request->text, t->request->length, (int32_t)classifier->buckets, &features);
    use_probability(t->policy, mica_classifier_narrow(classifier, &features), out);
}

/* The text is gone: what was found out when it was there. */
static void take_known(mica_terms *t, mica_route_decision *out)
{
    const mica_known_class *known = t->known;
    const mica_classifier *classifier = t->policy->classifier;
    bool same_policy = strcmp(known->policy_hash, t->policy->hash) == 0;
    if (!same_policy && classifier && !isnan(known->p_narrow) && strcmp(known->classifier, classifier->hash) == 0) {
        use_probability(t->policy, known->p_narrow, out);
        return;
    }
    name_class(out, known->route_class, "log");
    t->kept = true;
}

static mica_status classify(mica_terms *t, mica_route_decision *out, mica_error *err)
{
    mica_rules_result rules;
    bool textless = t->known && t->known->had_text && !t->request->text;
    mica_status status = mica_rules_apply(&t->policy->rules, t->request, t->prompt_tokens, t->request->output_tokens, &rules,
                                          err);
    if (status)
        return status;
    out->is_private = t->request->is_private || rules.is_private || (textless && t->known->is_private);
    out->p_narrow = NAN;
    name_class(out, MICA_CLASS_UNKNOWN, "none");
    if (t->request->route_class != MICA_CLASS_AUTO) {
        name_class(out, t->request->route_class, "request");
    } else if (textless && (!rules.by || strcmp(t->known->policy_hash, t->policy->hash) == 0)) {
        take_known(t, out);
    } else if (rules.by) {
        name_class(out, (mica_route_class)rules.by->route_class, "rule");
        snprintf(out->rule, sizeof out->rule, "%s", rules.by->name);
    } else {
        ask_classifier(t, out);
    }
    return MICA_OK;
}

/* ---- Terms ---- */

static bool is_as(int wanted, int is) { return wanted == MICA_UNKNOWN || wanted == is; }

static bool holds(const mica_policy_when *w, const mica_terms *t)
{
    const mica_route_device *d = &t->state->device;
    return (w->thermal_least < 0 || (int32_t)d->thermal >= w->thermal_least) &&
           (isnan(w->battery_below) || d->battery < w->battery_below) && is_as(w->on_battery, d->on_battery) &&
           is_as(w->power_save, d->power_save) && is_as(w->metered, t->state->metered) &&
           is_as(w->network, t->state->network) &&
           (w->route_class == MICA_CLASS_AUTO || w->route_class == (int32_t)t->route_class) &&
           t->prompt_tokens >= w->prompt_least && t->output_tokens >= w->output_least;
}

static void apply_when(const mica_policy_when *w, mica_terms *t, int64_t *output_most, mica_route_decision *out)
{
    size_t used = strlen(out->states);
    snprintf(out->states + used, sizeof out->states - used, "%s%s", used > 0 ? " " : "", w->name);
    if (w->forbid != MICA_FORBID_NOTHING)
        t->forbid_by = w->name;
    t->forbid_local = t->forbid_local || w->forbid == MICA_FORBID_LOCAL;
    t->forbid_remote = t->forbid_remote || w->forbid == MICA_FORBID_REMOTE;
    t->prefer = w->prefer >= 0 ? w->prefer : t->prefer;
    t->order = w->order >= 0 ? w->order : t->order;
    if (w->output_most >= 0 && w->output_most < *output_most)
        *output_most = w->output_most;
    if (w->weights_most >= 0 && (t->weights_most < 0 || w->weights_most < t->weights_most)) {
        t->weights_most = w->weights_most;
        t->weights_by = w->name;
    }
    if (w->yield_tokens >= 0 && (out->yield_tokens == 0 || w->yield_tokens < out->yield_tokens))
        out->yield_tokens = w->yield_tokens;
}

/* Conditions see the reply as it is wanted; caps come after all of them, so that their order makes no difference. */
static void make_terms(mica_terms *t, mica_route_decision *out)
{
    const mica_policy_class *c = &t->policy->classes[out->route_class];
    int64_t output_most = INT64_MAX;
    t->of_class = c;
    t->route_class = out->route_class;
    t->is_private = out->is_private;
    t->order = c->order;
    t->prefer = c->prefer;
    t->min_quality = c->min_quality;
    t->deadline_ms = t->request->deadline_ms >= 0 ? t->request->deadline_ms : c->deadline_ms;
    t->output_tokens = t->request->output_tokens >= 0 ? t->request->output_tokens : c->output_tokens;
    if (t->wanted >= 0 || (t->state->network == MICA_NO && c->offline == MICA_OFFLINE_DEGRADE))
        t->min_quality = 0; /* the caller's choice; the policy's for want of a better one */
    for (int32_t i = 0; i < t->policy->n_when; i++)
        if (holds(&t->policy->when[i], t))
            apply_when(&t->policy->when[i], t, &output_most, out);
    if (t->output_tokens > output_most)
        t->output_tokens = output_most;
    out->prompt_tokens = t->prompt_tokens;
    out->output_tokens = t->output_tokens;
}

/* ---- Heat ---- */

/* The smallest local rung that the device is too hot for; NULL: none. */
static const mica_rung *hot_rung(const mica_terms *t)
{
    const mica_ladder *ladder = t->policy->ladder;
    const mica_rung *found = NULL;
    for (int32_t i = 0; i < ladder->n; i++) {
        const mica_rung *r = &ladder->rungs[i];
        bool hot = r->kind == MICA_RUNG_LOCAL && mica_candidate_state(t->state, r->name).hot == MICA_YES;
        if (hot && (!found || r->weights_bytes < found->weights_bytes))
            found = r;
    }
    return found;
}

/* Where the device is too hot for a rung it is so for those that are no smaller. They are passed over if a lower rung or a
 * server fits; if nothing else does, slow is better than nothing. */
static void pass_over_hot(const mica_terms *t, mica_route_decision *out)
{
    const mica_rung *hot = hot_rung(t), *rungs = t->policy->ladder->rungs;
    bool other = false;
    for (int32_t i = 0; hot && i < out->n_candidates; i++)
        other = other || (out->candidates[i].reason == MICA_ROUTE_FITS &&
                          (out->candidates[i].remote || rungs[i].weights_bytes < hot->weights_bytes));
    for (int32_t i = 0; other && i < out->n_candidates; i++) {
        mica_route_candidate *c = &out->candidates[i];
        if (c->reason != MICA_ROUTE_FITS || c->remote || rungs[i].weights_bytes < hot->weights_bytes)
            continue;
        c->reason = MICA_ROUTE_HOT;
        if (&rungs[i] == hot)
            snprintf(c->why, sizeof c->why, "the device is too hot for it now");
        else
            snprintf(c->why, sizeof c->why, "the device is too hot for %s, and this is no smaller", hot->name);
    }
}

/* ---- Order ---- */

/* Lower comes first; equals stay in the ladder's order. */
static double key_of(const mica_terms *t, const mica_route_candidate *c, int32_t index)
{
    const mica_rung *rung = &t->policy->ladder->rungs[index];
    if (t->order == MICA_ORDER_SMALLEST)
        return c->remote ? INFINITY : (double)rung->weights_bytes;
    if (t->order == MICA_ORDER_SCORE)
        return isnan(c->score) ? INFINITY : c->score;
    return 0;
}

/* The preferred side first. */
static int side_of(const mica_terms *t, const mica_route_candidate *c)
{
    return t->prefer == MICA_PREFER_NONE ? 0 : c->remote != (t->prefer == MICA_PREFER_REMOTE);
}

static bool comes_before(const mica_terms *t, const mica_route_decision *d, int32_t a, int32_t b)
{
    const mica_route_candidate *x = &d->candidates[a], *y = &d->candidates[b];
    if (side_of(t, x) != side_of(t, y))
        return side_of(t, x) < side_of(t, y);
    return key_of(t, x, a) < key_of(t, y, b);
}

static void put_in_order(const mica_terms *t, mica_route_decision *out)
{
    for (int32_t i = 0; i < out->n_candidates; i++) {
        int32_t at = out->n_order;
        if (out->candidates[i].reason != MICA_ROUTE_FITS)
            continue;
        for (; at > 0 && comes_before(t, out, i, out->order[at - 1]); at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = i;
        out->n_order++;
    }
    for (; out->n_order > t->policy->hops; out->n_order--) {
        mica_route_candidate *c = &out->candidates[out->order[out->n_order - 1]];
        c->reason = MICA_ROUTE_HOPS;
        snprintf(c->why, sizeof c->why, "fits, but the policy tries %lld rungs at most", (long long)t->policy->hops);
    }
}

/* ---- Action ---- */

static bool is_missed(const mica_route_decision *d)
{
    for (int32_t i = 0; i < d->n_candidates; i++)
        if (d->candidates[i].reason == MICA_ROUTE_NO_NETWORK)
            return true;
    return false;
}

/* `network_missed`: a remote rung would be a candidate if there were a network. */
static void choose_action(const mica_terms *t, bool network_missed, mica_route_decision *out)
{
    bool wants_remote = network_missed && t->prefer == MICA_PREFER_REMOTE;
    out->degraded_prompt = "";
    if (wants_remote && t->of_class->offline == MICA_OFFLINE_QUEUE)
        out->action = MICA_ROUTE_QUEUE;
    else if (out->n_order > 0)
        out->action = MICA_ROUTE_RUN;
    else
        out->action = network_missed && t->policy->queue_when_nothing_fits ? MICA_ROUTE_QUEUE : MICA_ROUTE_REFUSE;
    if (out->action == MICA_ROUTE_RUN && wants_remote && t->of_class->offline == MICA_OFFLINE_DEGRADE) {
        out->degraded = true;
        out->degraded_prompt = t->policy->degraded_prompt;
    }
    if (out->action != MICA_ROUTE_RUN)
        out->n_order = 0;
}

static void say_class(const mica_route_decision *d, char *out, size_t size)
{
    const char *name = mica_route_class_name(d->route_class);
    if (strcmp(d->class_by, "rule") == 0)
        snprintf(out, size, "%s by the rule \"%s\"", name, d->rule);
    else if (strcmp(d->class_by, "classifier") == 0)
        snprintf(out, size, "%s by the classifier (%.0f %% narrow)", name, 100 * d->p_narrow);
    else
        snprintf(out, size, strcmp(d->class_by, "request") == 0 ? "%s as the request says" : "%s", name);
}

static void say_reasons(mica_route_decision *d)
{
    for (int32_t i = 0; i < d->n_candidates; i++) {
        size_t used = strlen(d->message);
        snprintf(d->message + used, sizeof d->message - used, "%s%s %s", i > 0 ? "; " : "", d->candidates[i].rung,
                 d->candidates[i].why);
    }
}

static void say_message(const mica_terms *t, mica_route_decision *d)
{
    char what[120];
    const mica_ladder *ladder = t->policy->ladder;
    say_class(d, what, sizeof what);
    if (d->action == MICA_ROUTE_RUN)
        snprintf(d->message, sizeof d->message, "%s, so %s%s%s%s", what, ladder->rungs[d->order[0]].name,
                 d->n_order > 1 ? ", then " : "", d->n_order > 1 ? ladder->rungs[d->order[1]].name : "",
                 d->degraded ? ", with the degraded prompt because there is no network" : "");
    else if (d->action == MICA_ROUTE_QUEUE)
        snprintf(d->message, sizeof d->message, "%s and no network, so it waits in the queue until there is one", what);
    else
        snprintf(d->message, sizeof d->message, "no rung can take it: ");
    if (d->action == MICA_ROUTE_REFUSE)
        say_reasons(d);
}

/* ---- The whole ---- */

static void begin(const mica_route_policy *policy, const mica_route_request *request, mica_terms *t, mica_route_decision *out)
{
    int64_t length = request->prompt_bytes >= 0 ? request->prompt_bytes : (int64_t)request->length;
    double tokens = ceil((double)length / policy->bytes_per_token);
    memset(out, 0, sizeof *out);
    snprintf(out->id, sizeof out->id, "%s", request->id ? request->id : "");
    snprintf(out->policy_name, sizeof out->policy_name, "%s", policy->name);
    snprintf(out->policy_version, sizeof out->policy_version, "%s", policy->version);
    snprintf(out->policy_hash, sizeof out->policy_hash, "%s", policy->hash);
    t->weights_most = -1;
    t->wanted = -1;
    t->prompt_tokens = request->prompt_tokens >= 0 ? request->prompt_tokens
                       : tokens < (double)TOKENS_MAX ? (int64_t)tokens
                                                     : TOKENS_MAX;
}

mica_status mica_route_decide(const mica_route_policy *policy, const mica_route_request *request, const mica_route_state *state,
                              mica_route_decision *out, mica_error *err)
{
    return mica_decide_known(policy, request, state, NULL, out, NULL, err);
}

mica_status mica_decide_known(const mica_route_policy *policy, const mica_route_request *request, const mica_route_state *state,
                              const mica_known_class *known, mica_route_decision *out, bool *kept, mica_error *err)
{
    mica_terms t = {.policy = policy, .request = request, .state = state, .known = known};
    mica_status status = check_request(request, err);
    if (!status)
        status = check_state(state, err);
    if (status)
        return status;
    begin(policy, request, &t, out);
    if (request->rung && strcmp(request->rung, "auto") != 0) {
        t.wanted = mica_route_rung_find(policy, request->rung);
        if (t.wanted < 0)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the ladder %s has no rung \"%.60s\"", policy->ladder->name,
                             request->rung);
    }
    status = classify(&t, out, err);
    if (status)
        return status;
    make_terms(&t, out);
    out->n_candidates = policy->ladder->n;
    for (int32_t i = 0; i < out->n_candidates; i++)
        mica_candidate_judge(&t, &policy->ladder->rungs[i], i, &out->candidates[i]);
    pass_over_hot(&t, out);
    put_in_order(&t, out);
    choose_action(&t, is_missed(out), out);
    say_message(&t, out);
    if (kept)
        *kept = t.kept;
    return MICA_OK;
}
