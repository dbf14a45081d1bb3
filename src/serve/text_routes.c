#include "serve/text_routes.h"

#include <stdlib.h>

#include "base/json.h"
#include "serve/chat_prompt.h"
#include "session/engine.h"

/* With "with_pieces" each token is {"id", "piece"}; a piece that is no text is a list of its bytes. */
static json_t *piece_of(const mica_model *model, int32_t id)
{
    char bytes[512];
    size_t n = mica_vocab_bytes(model->vocab, id, true, bytes, sizeof bytes);
    n = n <= sizeof bytes ? n : 0;
    json_t *piece = json_stringn(bytes, n);
    if (!piece) {
        piece = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(piece, json_integer((unsigned char)bytes[i]));
    }
    return json_pack("{s:i, s:o}", "id", id, "piece", piece);
}

json_t *mica_text_tokenize(const mica_serve_context *context, const json_t *body, mica_fault *fault)
{
    const json_t *content = mica_field(body, "content");
    bool add_special = false, parse_special = true, pieces = false;
    mica_error err;
    int32_t *ids;
    size_t n;
    if (!json_is_string(content)) {
        mica_fault_set(fault, 400, content ? "invalid_type" : "missing_required_parameter", "content",
                       "\"content\" must be a string");
        return NULL;
    }
    if (!mica_field_bool(body, "add_special", &add_special, fault) ||
        !mica_field_bool(body, "parse_special", &parse_special, fault) || !mica_field_bool(body, "with_pieces", &pieces, fault))
        return NULL;
    unsigned flags = (add_special ? MICA_TOKENIZE_ADD_BOS : 0u) | (parse_special ? MICA_TOKENIZE_PARSE_SPECIAL : 0u);
    if (mica_model_tokenize(context->model, json_string_value(content), json_string_length(content), flags, &ids, &n, &err)) {
        mica_fault_engine(fault, &err, "content");
        return NULL;
    }
    json_t *tokens = json_array();
    for (size_t i = 0; i < n; i++)
        mica_json_add(&tokens, pieces ? piece_of(context->model, ids[i]) : json_integer(ids[i]));
    mica_free(ids);
    return json_pack("{s:o}", "tokens", tokens);
}

json_t *mica_text_detokenize(const mica_serve_context *context, const json_t *body, mica_fault *fault)
{
    const json_t *tokens = mica_field(body, "tokens");
    size_t n = json_array_size(tokens), length;
    mica_error err;
    char *text;
    if (!json_is_array(tokens)) {
        mica_fault_set(fault, 400, tokens ? "invalid_type" : "missing_required_parameter", "tokens",
                       "\"tokens\" must be a list of token ids");
        return NULL;
    }
    int32_t *ids = calloc(n + 1, sizeof *ids);
    bool good = ids || mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the tokens");
    for (size_t i = 0; good && i < n; i++) {
        json_int_t id = json_integer_value(json_array_get(tokens, i));
        if (!json_is_integer(json_array_get(tokens, i)))
            good = mica_fault_set(fault, 400, "invalid_type", "tokens", "\"tokens\" must be a list of token ids");
        else if (id < 0 || id >= context->info.n_vocab)
            good = mica_fault_bad(fault, "tokens", "token id %lld is not in the vocabulary, which ends at %d", (long long)id,
                                  context->info.n_vocab - 1);
        else
            ids[i] = (int32_t)id;
    }
    if (good && mica_model_detokenize(context->model, ids, n, false, &text, &length, &err))
        good = mica_fault_engine(fault, &err, "tokens");
    free(ids);
    if (!good)
        return NULL;
    json_t *answer = json_pack("{s:o}", "content", mica_json_lossy(text, length));
    mica_free(text);
    return answer;
}

json_t *mica_text_template(const mica_serve_context *context, const json_t *body, mica_fault *fault)
{
    json_t *messages = mica_chat_messages(body, fault), *answer = NULL;
    char *text;
    size_t length;
    if (messages && mica_chat_prompt(context, body, messages, &text, &length, fault)) {
        answer = json_pack("{s:s%}", "prompt", text, length);
        mica_free(text);
    }
    json_decref(messages);
    return answer;
}
