/* params.c - the fields that all requests for replies share: sampling, stop strings, logit bias, the reply's format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xxh64.h"
#include "base/json.h"
#include "serve/fields.h"
#include "serve/receipts.h"
#include "serve/request.h"

/* OpenAI's fields with its ranges, and the engine's further ones. What is absent is as in `mica run`. */
static bool read_sampling(mica_request *r, mica_fault *fault)
{
    const json_t *b = r->body;
    mica_sampling *s = &r->options.sampling;
    return mica_field_real(b, "temperature", 0, 2, &s->temperature, fault) &&
           mica_field_real(b, "top_p", 0, 1, &s->top_p, fault) &&
           mica_field_int32(b, "top_k", 0, INT32_MAX, &s->top_k, fault) &&
           mica_field_real(b, "min_p", 0, 1, &s->min_p, fault) &&
           mica_field_real(b, "typical_p", 1e-6, 1, &s->typical_p, fault) &&
           mica_field_real(b, "repeat_penalty", 1e-6, 100, &s->repeat_penalty, fault) &&
           mica_field_real(b, "frequency_penalty", -2, 2, &s->frequency_penalty, fault) &&
           mica_field_real(b, "presence_penalty", -2, 2, &s->presence_penalty, fault) &&
           mica_field_int32(b, "penalty_last_n", -1, INT32_MAX, &s->penalty_last_n, fault) &&
           mica_field_bool(b, "ignore_eos", &r->options.ignore_eos, fault) &&
           mica_field_bool(b, "close", &r->options.close, fault) &&
           mica_field_bool(b, "token_healing", &r->options.token_healing, fault);
}

/* llama-server's name. Without it the prompt begins with what is in the KV memory already. */
static bool read_cache(mica_request *r, mica_fault *fault)
{
    bool cache = true;
    if (!mica_field_bool(r->body, "cache_prompt", &cache, fault))
        return false;
    r->options.from_nothing = !cache;
    return true;
}

/* -1: a fresh one. Other negative numbers, which OpenAI allows, are seeds too: their low 63 bits. */
static bool read_seed(mica_request *r, mica_fault *fault)
{
    int64_t seed = -1;
    if (!mica_field_int(r->body, "seed", INT64_MIN, INT64_MAX, &seed, fault))
        return false;
    r->options.sampling.seed = seed == -1 ? -1 : seed & INT64_MAX;
    return true;
}

static bool read_stop_text(mica_request *r, const json_t *text, mica_fault *fault)
{
    size_t length = json_string_length(text);
    if (!json_is_string(text))
        return mica_fault_set(fault, 400, "invalid_type", "stop", "\"stop\" must be a string or a list of strings");
    if (length == 0 || length > MICA_SERVE_STOP_BYTES)
        return mica_fault_bad(fault, "stop", "a stop string has 1 to %d bytes, not %zu", MICA_SERVE_STOP_BYTES, length);
    if (r->options.n_stop == MICA_SERVE_STOP_MAX)
        return mica_fault_bad(fault, "stop", "there are more than %d stop strings", MICA_SERVE_STOP_MAX);
    r->stop[r->options.n_stop++] = json_string_value(text);
    return true;
}

static bool read_stop(mica_request *r, mica_fault *fault)
{
    const json_t *stop = mica_field(r->body, "stop");
    r->options.stop = r->stop;
    if (!stop)
        return true;
    if (!json_is_array(stop))
        return read_stop_text(r, stop, fault);
    for (size_t i = 0; i < json_array_size(stop); i++)
        if (!read_stop_text(r, json_array_get(stop, i), fault))
            return false;
    return true;
}

static bool read_bias_entry(mica_request *r, const char *key, const json_t *value, mica_fault *fault)
{
    char *end;
    long id = strtol(key, &end, 10);
    double bias = json_number_value(value);
    if (*end || !*key || strspn(key, "0123456789") != strlen(key) || id >= r->context->info.n_vocab)
        return mica_fault_bad(fault, "logit_bias", "\"%.40s\" in \"logit_bias\" is no token id from 0 to %d", key,
                              r->context->info.n_vocab - 1);
    if (!json_is_number(value) || !(bias >= -100 && bias <= 100))
        return mica_fault_bad(fault, "logit_bias", "the bias of token %ld must be a number from -100 to 100", id);
    r->bias[r->options.sampling.n_logit_bias++] = (mica_logit_bias){
        .token = (int32_t)id, .bias = bias <= -100 ? -INFINITY : (float)bias}; /* -100 is a ban, as OpenAI says */
    return true;
}

static bool read_bias(mica_request *r, mica_fault *fault)
{
    json_t *bias = mica_field(r->body, "logit_bias"), *value;
    const char *key;
    if (!bias)
        return true;
    if (!json_is_object(bias))
        return mica_fault_set(fault, 400, "invalid_type", "logit_bias",
                              "\"logit_bias\" must be an object of token ids and numbers");
    if (json_object_size(bias) > MICA_SERVE_BIAS_MAX)
        return mica_fault_bad(fault, "logit_bias", "\"logit_bias\" has more than %d entries", MICA_SERVE_BIAS_MAX);
    r->bias = calloc(json_object_size(bias) + 1, sizeof *r->bias);
    if (!r->bias)
        return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
    json_object_foreach(bias, key, value) if (!read_bias_entry(r, key, value, fault)) return false;
    r->options.sampling.logit_bias = r->bias;
    return true;
}

static bool read_stream(mica_request *r, mica_fault *fault)
{
    const json_t *options = mica_field(r->body, "stream_options");
    if (!mica_field_bool(r->body, "stream", &r->stream, fault))
        return false;
    if (options && !json_is_object(options))
        return mica_fault_set(fault, 400, "invalid_type", "stream_options", "\"stream_options\" must be an object");
    return !options || mica_field_bool(options, "include_usage", &r->include_usage, fault);
}

static bool read_think(mica_request *r, mica_fault *fault)
{
    const char *format = NULL;
    if (!mica_field_text(r->body, "reasoning_format", &format, fault))
        return false;
    if (format && strcmp(format, "none") != 0 && strcmp(format, "deepseek") != 0 && strcmp(format, "auto") != 0)
        return mica_fault_bad(fault, "reasoning_format", "\"reasoning_format\" must be \"none\", \"deepseek\" or \"auto\"");
    if (format)
        r->think = strcmp(format, "none") != 0;
    return true;
}

/* Whom the request counts for among those that wait: a key, or else whom it names, or else an address. */
static bool read_client(mica_request *r, mica_fault *fault)
{
    const char *user = NULL;
    if (!mica_field_text(r->body, "user", &user, fault) ||
        !mica_field_int32(r->body, "priority", -MICA_SERVE_PRIORITY_MAX, MICA_SERVE_PRIORITY_MAX, &r->priority, fault))
        return false;
    r->client = r->job ? r->job->client : 0;
    if (user && *user && !(r->job && r->job->has_key))
        r->client = mica_xxh64_of(user, strlen(user));
    return true;
}

bool mica_params_read(mica_request *r, mica_fault *fault)
{
    const char *model = NULL;
    return mica_field_text(r->body, "model", &model, fault) && read_client(r, fault) &&
           mica_field_int32(r->body, "n", 1, MICA_SERVE_CHOICES_MAX, &r->n, fault) && read_sampling(r, fault) &&
           read_cache(r, fault) && read_seed(r, fault) && read_stop(r, fault) && read_bias(r, fault) && read_stream(r, fault) &&
           read_think(r, fault) && mica_receipts_read(r, fault);
}

/* ---- response_format ---- */

static void free_constraint(void *constraint)
{
    mica_constraint_free(constraint);
}

static bool compile_new(mica_request *r, const char *key, const char *schema, bool lenient, const char *param,
                        mica_fault *fault)
{
    mica_constraint_options o = mica_constraint_options_default();
    mica_constraint *made;
    mica_error err;
    o.kind = MICA_CONSTRAINT_JSON_SCHEMA;
    o.text = schema;
    o.length = strlen(schema);
    o.lenient = lenient;
    if (mica_constraint_new(r->context->model, &o, &made, &err))
        return mica_fault_engine(fault, &err, param);
    r->constraint_entry = mica_cache_add(r->context->cache, key, strlen(key), made, free_constraint);
    return r->constraint_entry || mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the schema");
}

/* `key` is the schema behind a letter that says how it is to be read. */
static bool compile(mica_request *r, const char *key, const char *param, mica_fault *fault)
{
    r->constraint_entry = mica_cache_get(r->context->cache, key, strlen(key));
    if (!r->constraint_entry && !compile_new(r, key, key + 1, *key == 'L', param, fault))
        return false;
    r->constraint = mica_cache_object(r->constraint_entry);
    r->options.constraint = r->constraint;
    return true;
}

static bool read_schema(mica_request *r, const json_t *format, const char *param, mica_fault *fault)
{
    const json_t *inner = mica_field(format, "json_schema"),
                 *holder = inner ? inner : format; /* responses have it one level up */
    const json_t *schema = json_is_object(holder) ? mica_field(holder, "schema") : NULL;
    bool strict = false;
    if (!json_is_object(schema))
        return mica_fault_bad(fault, param, "a format of the type \"json_schema\" needs a \"schema\", an object");
    if (!mica_field_bool(holder, "strict", &strict, fault))
        return false;
    char *text = mica_json_dumps(schema, JSON_COMPACT);
    mica_buf key;
    mica_buf_init(&key, 4 * MICA_SERVE_BODY_MAX);
    mica_buf_putc(&key, strict ? 'S' : 'L');
    bool good = text && mica_buf_puts(&key, text)
                    ? compile(r, key.data, param, fault)
                    : mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the schema");
    mica_buf_free(&key);
    free(text);
    return good;
}

bool mica_params_format(mica_request *r, const json_t *format, const char *param, mica_fault *fault)
{
    const char *type = NULL;
    if (!format)
        return true;
    if (!json_is_object(format))
        return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be an object", param);
    if (!mica_field_text(format, "type", &type, fault))
        return false;
    if (type && strcmp(type, "text") == 0)
        return true;
    if (type && strcmp(type, "json_object") == 0)
        return compile(r, "S{\"type\":\"object\"}", param, fault);
    if (type && strcmp(type, "json_schema") == 0)
        return read_schema(r, format, param, fault);
    return mica_fault_bad(fault, param, "the type of \"%s\" must be \"text\", \"json_object\" or \"json_schema\"", param);
}
