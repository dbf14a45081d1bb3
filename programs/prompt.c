#include "prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int mica_prompt_add(json_t *messages, const char *role, const char *content, size_t length)
{
    json_t *text = json_stringn(content, length);
    if (!text)
        return mica_term_error("the text of the %s message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    if (json_array_append_new(messages, message))
        return mica_term_error("not enough memory for the conversation");
    return CODE_OK;
}

static unsigned flags_of(const mica_opts *o)
{
    return (o->no_bos ? 0u : MICA_TOKENIZE_ADD_BOS) | (o->parse_special ? MICA_TOKENIZE_PARSE_SPECIAL : 0u);
}

int mica_prompt_raw(const mica_opts *o, const mica_model *model, const char *text, size_t length, int32_t **tokens, size_t *n)
{
    mica_error err;
    return mica_model_tokenize(model, text, length, flags_of(o), tokens, n, &err) ? mica_load_failed(&err) : CODE_OK;
}

int mica_prompt_chat(const mica_opts *o, const mica_model *model, const mica_tools *tools, json_t *messages, int32_t **tokens,
                     size_t *n)
{
    mica_error err;
    mica_chat_options options = mica_chat_options_default();
    json_t *request = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *json = request ? mica_json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    *tokens = NULL;
    *n = 0;
    if (!json)
        return mica_term_error("not enough memory for the conversation");
    options.tools = tools;
    options.flags = flags_of(o);
    mica_status status = mica_chat_tokenize(model, json, strlen(json), &options, tokens, n, NULL, NULL, &err);
    free(json);
    return status ? mica_load_failed(&err) : CODE_OK;
}
