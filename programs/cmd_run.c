/* cmd_run.c - mica run: one prompt, one reply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account.h"
#include "commands.h"
#include "guard.h"
#include "interrupt.h"
#include "prompt.h"
#include "reply.h"

typedef struct run {
    const mica_opts *o;
    mica_model *model;
    mica_session *session;
    mica_reply reply;
    mica_account account;
    mica_governing governing;
    int32_t *tokens;
    size_t n_tokens;
    bool chat;
} run;

static int check_options(const mica_opts *o)
{
    if (o->token_ids && (o->prompt || o->file))
        return mica_term_usage("--token-ids is the whole prompt: it goes with neither --prompt nor --file");
    if (o->system && (o->no_chat || o->token_ids))
        return mica_term_usage("--system needs the chat template, which --no-chat and --token-ids leave out");
    if (o->logprobs && !o->json)
        return mica_term_usage("--logprobs needs --json: there is no place for them in plain text");
    return CODE_OK;
}

/* The end of the last line of a file, or of what echo wrote, is not meant. */
static void drop_line_end(char *text, size_t *length)
{
    if (*length > 0 && text[*length - 1] == '\n')
        text[--*length] = '\0';
    if (*length > 0 && text[*length - 1] == '\r')
        text[--*length] = '\0';
}

static int chat_tokens(run *r, const char *text, size_t length)
{
    json_t *messages = json_array();
    int code = CODE_OK;
    if (r->o->system)
        code = mica_prompt_add(messages, "system", r->o->system, strlen(r->o->system));
    if (code == CODE_OK)
        code = mica_prompt_add(messages, "user", text, length);
    if (code == CODE_OK)
        code = mica_prompt_chat(r->o, r->model, mica_calls_tools(&r->reply.calls), messages, &r->tokens, &r->n_tokens);
    json_decref(messages);
    return code;
}

/* A model whose template does not compile is an error here, never silently a model without one. */
static int make_tokens(run *r)
{
    mica_model_info info;
    char *text = NULL;
    size_t length = 0;
    if (r->o->token_ids)
        return mica_load_ids(r->o->token_ids, "--token-ids", &r->tokens, &r->n_tokens);
    mica_model_get_info(r->model, &info);
    r->chat = !r->o->no_chat && *info.chat_template;
    if (r->o->tools && !r->chat)
        return mica_term_error("--tools needs a chat template, and the model has none; give one with --chat-template");
    if (r->o->system && !r->chat)
        return mica_term_error("--system needs a chat template, and the model has none; give one with --chat-template");
    int code = mica_load_text(r->o, &text, &length);
    if (code == CODE_OK && !r->o->prompt)
        drop_line_end(text, &length);
    if (code == CODE_OK)
        code = r->chat ? chat_tokens(r, text, length)
                       : mica_prompt_raw(r->o, r->model, text, length, &r->tokens, &r->n_tokens);
    free(text);
    return code;
}

static int explain(const run *r)
{
    char *text;
    mica_error err;
    if (mica_model_explain_kernels(r->model, &text, &err))
        return mica_load_failed(&err);
    fputs(text, stderr);
    mica_free(text);
    mica_governing_explain(&r->governing);
    return CODE_OK;
}

static int prepare(run *r)
{
    char path[4096];
    mica_error err;
    int code = mica_load_path(r->o, NULL, path);
    if (code == CODE_OK)
        code = mica_guard_begin(r->o, path);
    if (code == CODE_OK)
        code = mica_load_model(r->o, path, &r->model);
    if (code == CODE_OK)
        code = mica_governing_begin(r->o, path, r->model, &r->governing);
    if (code == CODE_OK && r->o->explain_kernels)
        code = explain(r);
    if (code == CODE_OK)
        code = mica_reply_constrain(&r->reply, r->model);
    if (code == CODE_OK)
        code = make_tokens(r);
    if (code == CODE_OK)
        code = mica_load_session(r->o, r->model, &r->governing, &r->session);
    r->account.operation = r->chat ? "chat" : "text_completion";
    if (code == CODE_OK)
        code = mica_account_attach(&r->account, r->model, r->session);
    if (code == CODE_OK && r->o->load_session && mica_session_restore(r->session, r->o->load_session, &err))
        code = mica_load_failed(&err);
    return code;
}

static bool is_locked(const mica_model *model)
{
    mica_model_info info;
    mica_model_get_info(model, &info);
    return info.locked;
}

static void print_final(const run *r, int code)
{
    const mica_reply *p = &r->reply;
    json_t *end = mica_reply_result_json(&p->result);
    json_object_set_new(end, "done", json_true());
    json_object_set_new(end, "ok", json_boolean(code == CODE_OK));
    json_object_set_new(end, "chat", json_boolean(r->chat));
    json_object_set_new(end, "text", mica_json_text(p->text.data, p->text.length));
    mica_governing_json(&r->governing, end);
    if (r->o->mlock)
        json_object_set_new(end, "mlock", json_boolean(is_locked(r->model)));
    if (r->o->receipt && strcmp(r->o->receipt, "-") == 0)
        json_object_set_new(end, "receipt", mica_account_receipt(&r->account));
    if (p->calls.tools) {
        json_object_set_new(end, "content", mica_json_text(p->calls.content.data, p->calls.content.length));
        json_object_set(end, "tool_calls", p->calls.made);
    }
    mica_json_line(end);
}

static int reply(run *r)
{
    bool began;
    mica_interrupt_catch();
    int code = mica_reply_run(&r->reply, r->session, r->tokens, r->n_tokens, &began);
    if (!r->o->json && r->reply.text.length > 0 && (!r->reply.calls.tools || r->reply.calls.in_line) && isatty(STDOUT_FILENO))
        mica_term_write("\n", 1);
    if (began && r->o->json && !r->reply.output_failed)
        print_final(r, code);
    if (began && code != CODE_FAILED) {
        mica_reply_print_metrics(&r->reply.result);
        mica_governing_print(&r->governing);
    } else if (code == CODE_INTERRUPTED)
        mica_term_note("interrupted while reading the prompt");
    int kept = mica_account_reply(&r->account, &r->reply, r->tokens, r->n_tokens, began);
    code = code == CODE_OK ? kept : code;
    mica_error err;
    if (code == CODE_OK && r->o->save_session && mica_session_save(r->session, r->o->save_session, &err))
        code = mica_load_failed(&err);
    return code;
}

int mica_cmd_run(const mica_opts *o)
{
    run r = {.o = o};
    int code = check_options(o);
    if (code != CODE_OK)
        return code;
    code = mica_reply_init(&r.reply, o);
    if (code == CODE_OK)
        code = mica_account_init(&r.account, o);
    if (code == CODE_OK)
        code = prepare(&r);
    if (code == CODE_OK)
        code = reply(&r);
    mica_account_free(&r.account);
    mica_guard_end(false);
    mica_reply_free(&r.reply);
    mica_free(r.tokens);
    mica_session_free(r.session);
    mica_governing_end(&r.governing);
    mica_model_close(r.model);
    return code;
}
