/* libFuzzer target: the body of a request to each route that takes JSON, up to where the model would be asked: a request whose
 * prompts, limits and constraint are in their ranges, or a fault in OpenAI's form. */
#include "fuzz_util.h"
#include "serve/request.h"
#include "serve/text_routes.h"

/* The tiny model whose replies are scripted; opened once, for the life of the process. */
static const mica_serve_context *context_of_all(void)
{
    static mica_metrics metrics;
    static mica_serve_context context = {.name = "m", .n_ctx = 512, .metrics = &metrics};
    if (!context.model) {
        mica_error err;
        if (mica_model_open(MICA_FUZZ_VOCAB, NULL, &context.model, &err)) {
            fprintf(stderr, "%s\n", err.message);
            abort();
        }
        mica_model_get_info(context.model, &context.info);
        context.cache = mica_cache_new(4);
    }
    return &context;
}

static void check_fault(const mica_fault *fault)
{
    char *json = mica_fault_json(fault);
    json_t *whole = json ? json_loads(json, 0, NULL) : NULL, *error = json_object_get(whole, "error");
    if (!json || strlen(json) >= 4096 || fault->status < 400 || !json_string_value(json_object_get(error, "message")) ||
        (fault->status == 400 && strcmp(json_string_value(json_object_get(error, "type")), "invalid_request_error") != 0))
        abort();
    json_decref(whole);
    free(json);
}

static void check_request(const mica_serve_context *context, const mica_request *r)
{
    if (r->n < 1 || r->n > MICA_SERVE_CHOICES_MAX || r->n_prompts < 1 || r->n_choices != r->n * (int32_t)r->n_prompts ||
        r->options.n_stop > MICA_SERVE_STOP_MAX || r->n_top < 0 || r->n_top > MICA_SERVE_TOP_MAX)
        abort();
    for (size_t i = 0; i < r->n_prompts; i++) {
        if (r->prompts[i].n == 0 || r->prompts[i].n >= (size_t)context->n_ctx)
            abort();
        for (size_t k = 0; k < r->prompts[i].n; k++)
            if (r->prompts[i].tokens[k] < 0 || r->prompts[i].tokens[k] >= context->info.n_vocab)
                abort();
    }
    for (size_t i = 0; i < r->options.sampling.n_logit_bias; i++)
        if (r->bias[i].token < 0 || r->bias[i].token >= context->info.n_vocab)
            abort();
}

static void ask(const mica_serve_context *context, const mica_api *api, const char *body, size_t size)
{
    mica_fault fault = {.status = 0};
    mica_request *r = mica_request_new(context, api, NULL, body, size, &fault);
    if (r)
        check_request(context, r);
    else
        check_fault(&fault);
    mica_request_free(r);
}

static void ask_text(const mica_serve_context *context,
                     json_t *(*answer)(const mica_serve_context *, const json_t *, mica_fault *), const json_t *body)
{
    mica_fault fault = {.status = 0};
    json_t *json = answer(context, body, &fault);
    char *text = json ? json_dumps(json, MICA_JSON_FLAGS) : NULL;
    if (json && !text)
        abort(); /* it holds what is no UTF-8 */
    if (!json)
        check_fault(&fault);
    free(text);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mica_serve_context *context = context_of_all();
    const char *body = (const char *)data;
    mica_fault fault = {.status = 0};
    json_t *json = mica_fields_parse(body, size, &fault);
    if (!json) {
        check_fault(&fault);
        return 0;
    }
    ask_text(context, mica_text_tokenize, json);
    ask_text(context, mica_text_detokenize, json);
    ask_text(context, mica_text_template, json);
    json_decref(json);
    ask(context, &mica_api_chat, body, size);
    ask(context, &mica_api_completions, body, size);
    ask(context, &mica_api_responses, body, size);
    return 0;
}
