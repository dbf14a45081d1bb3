/* policy.c - a policy and the files that it names: read, hashed, counted. */
#include "router/policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/xxh64.h"

enum { MAX_PATH = 4096 };

/* What is being read: the texts go into one hash, each with its length before it, so that no two sets of files are alike. */
typedef struct loading {
    const char *name; /* of the policy, for messages */
    const char *folder, *share;
    mica_xxh64 hash;
    mica_policy_parts parts;
    mica_error *err;
} loading;

static void add_to_hash(loading *l, const void *data, size_t length)
{
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)((uint64_t)length >> (8 * i));
    mica_xxh64_add(&l->hash, size, sizeof size);
    mica_xxh64_add(&l->hash, data, length);
}

/* ---- Files ---- */

/* From the policy's folder, else from the folder of data. */
static mica_status find_file(loading *l, const char *key, const char *file, char path[MAX_PATH])
{
    const char *folders[] = {l->folder, l->share};
    if (!l->folder)
        return mica_fail(l->err, MICA_BAD_TEXT, "%s: /%s names a file; a policy that is no file itself must hold it", l->name,
                         key);
    if (*file == '/' && snprintf(path, MAX_PATH, "%s", file) < MAX_PATH && access(path, R_OK) == 0)
        return MICA_OK;
    for (int i = 0; i < 2 && *file != '/'; i++)
        if (folders[i] && snprintf(path, MAX_PATH, "%s/%s", folders[i], file) < MAX_PATH && access(path, R_OK) == 0)
            return MICA_OK;
    return mica_fail(l->err, MICA_IO_ERROR, "%s: /%s: there is no readable file %.150s in %.100s%s%.100s", l->name, key, file,
                     mica_path_tail(l->folder), l->share ? " or " : "", l->share ? mica_path_tail(l->share) : "");
}

typedef mica_status use_text(loading *l, const char *text, size_t length, const char *name);

static mica_status use_file(loading *l, const char *key, const char *file, use_text *use)
{
    char path[MAX_PATH];
    mica_map map;
    mica_status status = find_file(l, key, file, path);
    if (!status)
        status = mica_map_open(path, &map, l->err);
    if (status)
        return status;
    add_to_hash(l, map.data, map.length);
    status = use(l, (const char *)map.data, map.length, mica_path_tail(path));
    mica_map_close(&map);
    return status;
}

static mica_status use_ladder(loading *l, const char *text, size_t length, const char *name)
{
    snprintf(l->parts.ladder_name, sizeof l->parts.ladder_name, "%.130s: ", name);
    return mica_fields_load(text, length, name, &l->parts.ladder, l->err);
}

static mica_status use_prices(loading *l, const char *text, size_t length, const char *name)
{
    (void)name; /* its messages begin with "price table" */
    return mica_prices_read(text, length, &l->parts.prices, l->err);
}

static mica_status use_classifier(loading *l, const char *text, size_t length, const char *name)
{
    return mica_classifier_read(text, length, name, &l->parts.classifier, l->err);
}

/* ---- Parts ---- */

static mica_status load_ladder(loading *l, const json_t *root)
{
    json_t *ladder = json_object_get(root, "ladder");
    if (json_is_string(ladder))
        return use_file(l, "ladder", json_string_value(ladder), use_ladder);
    if (!json_is_object(ladder))
        return mica_fail(l->err, MICA_BAD_TEXT, "%s: /ladder must be a file's name or a ladder", l->name);
    snprintf(l->parts.ladder_name, sizeof l->parts.ladder_name, "%.120s: /ladder", l->name);
    l->parts.ladder = json_incref(ladder);
    return MICA_OK;
}

static mica_status load_prices(loading *l, const json_t *root)
{
    const json_t *prices = json_object_get(root, "prices");
    if (!prices)
        return MICA_OK;
    if (json_is_string(prices))
        return use_file(l, "prices", json_string_value(prices), use_prices);
    char *text = mica_json_dumps(prices, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return mica_fail_nomem(l->err, 0, "the price table");
    mica_status status = mica_prices_read(text, strlen(text), &l->parts.prices, l->err);
    free(text);
    return status;
}

static mica_status load_classifier(loading *l, const json_t *root)
{
    const json_t *classifier = json_object_get(root, "classifier");
    const char *file = json_string_value(json_object_get(classifier, "file"));
    if (!classifier)
        return MICA_OK;
    if (!file || !*file)
        return mica_fail(l->err, MICA_BAD_TEXT, "%s: /classifier/file must be a file's name", l->name);
    return use_file(l, "classifier", file, use_classifier);
}

static void free_parts(mica_policy_parts *parts)
{
    mica_free(parts->prices);
    mica_classifier_free(parts->classifier);
    json_decref(parts->ladder);
}

static mica_status load(loading *l, const json_t *root, mica_route_policy *policy)
{
    mica_status status = MICA_OK;
    if (!json_is_object(root))
        status = mica_fail(l->err, MICA_BAD_TEXT, "%s: the policy must be an object", l->name);
    if (!status)
        status = load_ladder(l, root);
    if (!status)
        status = load_prices(l, root);
    if (!status)
        status = load_classifier(l, root);
    if (!status)
        status = mica_policy_read(root, l->name, &l->parts, policy, l->err);
    if (!status)
        mica_router_hash(mica_xxh64_value(&l->hash), policy->hash);
    free_parts(&l->parts);
    return status;
}

/* ---- Public ---- */

mica_status mica_route_policy_parse(const char *json, size_t length, const char *name, const char *folder, const char *share,
                                    mica_route_policy **out, mica_error *err)
{
    loading l = {.name = name && *name ? mica_path_tail(name) : "policy", .folder = folder, .share = share, .err = err};
    json_t *root;
    *out = NULL;
    mica_status status = mica_fields_load(json, length, l.name, &root, err);
    if (status)
        return status;
    mica_route_policy *policy = calloc(1, sizeof *policy);
    if (!policy) {
        json_decref(root);
        return mica_fail_nomem(err, sizeof *policy, "the policy");
    }
    atomic_init(&policy->references, 1);
    mica_xxh64_start(&l.hash, 0);
    add_to_hash(&l, json, length);
    status = load(&l, root, policy);
    json_decref(root);
    if (status)
        mica_route_policy_release(policy);
    else
        *out = policy;
    return status;
}

mica_status mica_route_policy_open(const char *path, const char *share, mica_route_policy **out, mica_error *err)
{
    char folder[MAX_PATH];
    mica_map map;
    const char *slash = strrchr(path, '/');
    *out = NULL;
    if (snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >= MAX_PATH)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the policy is longer than %d bytes", MAX_PATH - 1);
    mica_status status = mica_map_open(path, &map, err);
    if (status)
        return status;
    status = mica_route_policy_parse((const char *)map.data, map.length, path, folder, share, out, err);
    mica_map_close(&map);
    return status;
}

void mica_route_policy_retain(mica_route_policy *policy)
{
    atomic_fetch_add_explicit(&policy->references, 1, memory_order_relaxed);
}

void mica_route_policy_release(mica_route_policy *policy)
{
    if (!policy || atomic_fetch_sub_explicit(&policy->references, 1, memory_order_acq_rel) != 1)
        return;
    mica_rules_free(&policy->rules);
    mica_classifier_free(policy->classifier);
    mica_ladder_free(policy->ladder);
    free(policy);
}

void mica_route_policy_get_info(const mica_route_policy *policy, mica_route_policy_info *info)
{
    *info = (mica_route_policy_info){.name = policy->name,
                                     .version = policy->version,
                                     .ladder_name = policy->ladder->name,
                                     .ladder_version = policy->ladder->version,
                                     .hash = policy->hash,
                                     .allow_egress = policy->allow_egress,
                                     .log_text = policy->log_text,
                                     .n_rungs = policy->ladder->n,
                                     .n_rules = policy->rules.n,
                                     .classifier_hash = policy->classifier ? policy->classifier->hash : ""};
}

mica_status mica_route_rung_get(const mica_route_policy *policy, int32_t rung, mica_route_rung *out, mica_error *err)
{
    if (rung < 0 || rung >= policy->ladder->n)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no rung %d: the ladder has %d", rung, policy->ladder->n);
    const mica_rung *r = &policy->ladder->rungs[rung];
    *out = (mica_route_rung){.name = r->name,
                             .remote = r->kind == MICA_RUNG_REMOTE,
                             .file = r->file,
                             .chat_template = r->chat_template,
                             .context = r->context,
                             .weights_bytes = r->weights_bytes,
                             .min_ram_bytes = r->min_ram_bytes,
                             .kv_bytes_per_token = r->kv_bytes_per_token,
                             .fixed_bytes = r->fixed_bytes};
    return MICA_OK;
}

int32_t mica_route_rung_find(const mica_route_policy *policy, const char *name)
{
    for (int32_t i = 0; i < policy->ladder->n; i++)
        if (strcmp(policy->ladder->rungs[i].name, name) == 0)
            return i;
    return -1;
}
