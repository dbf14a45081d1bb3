/* cmd_chat.c - mica chat: a conversation. Owns the list of messages; each turn renders all of it and hands the whole prompt to
 * the session, which computes only what is new. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account.h"
#include "base/json.h"
#include "base/newfile.h"
#include "commands.h"
#include "guard.h"
#include "interrupt.h"
#include "line.h"
#include "prompt.h"
#include "reply.h"

typedef struct chat {
    const mica_opts *o;
    mica_model *model;
    mica_session *session;
    mica_reply reply;
    mica_account account;
    mica_governing governing;
    json_t *messages;
    json_t *pending; /* calls of the last reply whose results are not there yet; owned */
    bool replied; /* reply.result is of some turn */
    bool leave;
    int code;     /* what the program will exit with */
} chat;

static const char help_text[] = "/save FILE    keep the conversation as JSON\n"
                                "/load FILE    go on with a kept one\n"
                                "/reset        forget the conversation, but not the system message\n"
                                "/system TEXT  set the system message; without TEXT remove it\n"
                                "/stats        speed and size of the last reply\n"
                                "/help         this list\n"
                                "/quit         leave\n"
                                "//...         a message that begins with /\n";

/* ---- The messages ---- */

static bool has_role(const json_t *message, const char *role)
{
    const char *text = json_string_value(json_object_get(message, "role"));
    return text && strcmp(text, role) == 0;
}

static int set_system(chat *c, const char *text)
{
    if (has_role(json_array_get(c->messages, 0), "system"))
        json_array_remove(c->messages, 0);
    if (!*text)
        return CODE_OK;
    json_t *rest = c->messages;
    c->messages = json_array();
    int code = mica_prompt_add(c->messages, "system", text, strlen(text));
    json_array_extend(c->messages, rest);
    json_decref(rest);
    return code;
}

static int reset(chat *c)
{
    size_t kept = has_role(json_array_get(c->messages, 0), "system") ? 1 : 0;
    while (json_array_size(c->messages) > kept)
        json_array_remove(c->messages, json_array_size(c->messages) - 1);
    json_array_clear(c->pending);
    return CODE_OK;
}

static int save(const chat *c, const char *path)
{
    if (!*path)
        return mica_term_error("/save wants a file name");
    mica_error err;
    json_t *all = json_pack("{s:O}", "messages", c->messages);
    char *text = all ? mica_json_dumps(all, JSON_INDENT(1)) : NULL;
    size_t length = text ? strlen(text) : 0;
    json_decref(all);
    if (!text)
        return mica_term_error("not enough memory to save the conversation");
    text[length] = '\n'; /* instead of its end */
    mica_status status = mica_newfile_put(path, MICA_NEWFILE_SHARED, text, length + 1, &err);
    free(text);
    return status ? mica_load_failed(&err) : CODE_OK;
}

static bool is_conversation(const json_t *messages)
{
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message)
        if (!json_is_string(json_object_get(message, "role")) || !json_is_string(json_object_get(message, "content")))
            return false;
    return json_is_array(messages);
}

static int load(chat *c, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    json_error_t err;
    if (!*path)
        return mica_term_error("/load wants a file name");
    int code = mica_load_file(path, &text, &length);
    if (code != CODE_OK)
        return code;
    json_t *all = mica_json_loadb(text, length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &err);
    json_t *messages = json_object_get(all, "messages");
    if (!all)
        code = mica_term_error("%s is not JSON: %s at line %d, column %d", path, err.text, err.line, err.column);
    else if (!is_conversation(messages))
        code = mica_term_error("%s has no list \"messages\" of objects with the texts \"role\" and \"content\"", path);
    if (code == CODE_OK) {
        json_array_clear(c->messages);
        json_array_extend(c->messages, messages);
        json_array_clear(c->pending);
    }
    json_decref(all);
    free(text);
    return code;
}

/* ---- A turn ---- */

static void keep_calls(chat *c)
{
    json_t *made = c->reply.calls.made, *message = json_array_get(c->messages, json_array_size(c->messages) - 1);
    if (json_array_size(made) == 0)
        return;
    json_object_set(message, "tool_calls", made);
    json_array_extend(c->pending, made);
}

/* A failed turn leaves no trace in the conversation, but for the results of calls; an interrupted reply stays as far as it
 * came. */
static void keep_reply(chat *c, int code, bool began)
{
    const mica_buf *text = c->reply.calls.tools ? &c->reply.calls.content : &c->reply.text;
    size_t last = json_array_size(c->messages) - 1;
    if (code != CODE_FAILED && began) {
        mica_prompt_add(c->messages, "assistant", text->length ? text->data : "", text->length);
        keep_calls(c);
    } else if (has_role(json_array_get(c->messages, last), "user")) {
        json_array_remove(c->messages, last);
    }
    c->replied = c->replied || began;
}

/* The reply to the messages that there are. */
static int take_reply(chat *c)
{
    int32_t *tokens = NULL;
    size_t n = 0;
    bool began = false;
    mica_interrupt_reset();
    int code = mica_prompt_chat(c->o, c->model, mica_calls_tools(&c->reply.calls), c->messages, &tokens, &n);
    if (code == CODE_OK)
        code = mica_reply_run(&c->reply, c->session, tokens, n, &began);
    keep_reply(c, code, began);
    if (began && !c->reply.output_failed && (!c->reply.calls.tools || c->reply.calls.in_line))
        mica_term_write("\n", 1);
    int kept = mica_account_reply(&c->account, &c->reply, tokens, n, began);
    code = code == CODE_OK ? kept : code;
    mica_free(tokens);
    if (code == CODE_INTERRUPTED)
        mica_term_note("the reply was stopped");
    mica_interrupt_reset();
    if (c->reply.output_failed)
        c->leave = true;
    return code == CODE_INTERRUPTED ? CODE_OK : code;
}

static int take_turn(chat *c, const char *text)
{
    int code = mica_prompt_add(c->messages, "user", text, strlen(text));
    c->reply.calls.after_results = false;
    return code == CODE_OK ? take_reply(c) : code;
}

static const char *pending_name(const chat *c)
{
    return json_string_value(json_object_get(json_object_get(json_array_get(c->pending, 0), "function"), "name"));
}

/* A line is the result of the first call that waits; after the last of them the model goes on. */
static int take_result(chat *c, const char *text)
{
    int code = mica_prompt_add(c->messages, "tool", text, strlen(text));
    if (code != CODE_OK)
        return code;
    json_t *message = json_array_get(c->messages, json_array_size(c->messages) - 1);
    json_object_set(message, "tool_call_id", json_object_get(json_array_get(c->pending, 0), "id"));
    json_object_set_new(message, "name", json_string(pending_name(c)));
    json_array_remove(c->pending, 0);
    c->reply.calls.after_results = true;
    return json_array_size(c->pending) == 0 ? take_reply(c) : CODE_OK;
}

static int show_stats(const chat *c)
{
    if (!c->replied) {
        mica_term_note("there was no reply yet");
        return CODE_OK;
    }
    mica_reply_print_metrics(&c->reply.result);
    mica_governing_print(&c->governing);
    fprintf(stderr, "cached_n=%d;dropped_n=%d;messages=%zu\n", c->reply.result.cached_n, c->reply.result.dropped_n,
            json_array_size(c->messages));
    return CODE_OK;
}

static int leave(chat *c)
{
    c->leave = true;
    return CODE_OK;
}

static int show_help(void)
{
    fputs(help_text, stderr);
    return CODE_OK;
}

/* Is `line` the command `name`? *rest is what follows it. */
static bool is_command(const char *line, const char *name, const char **rest)
{
    size_t n = strlen(name);
    if (strncmp(line, name, n) != 0 || (line[n] && line[n] != ' '))
        return false;
    *rest = line + n + strspn(line + n, " ");
    return true;
}

static int obey(chat *c, const char *line)
{
    const char *rest;
    if (is_command(line, "/save", &rest))
        return save(c, rest);
    if (is_command(line, "/load", &rest))
        return load(c, rest);
    if (is_command(line, "/system", &rest))
        return set_system(c, rest);
    if (is_command(line, "/stats", &rest))
        return show_stats(c);
    if (is_command(line, "/reset", &rest))
        return reset(c);
    if (is_command(line, "/quit", &rest))
        return leave(c);
    if (is_command(line, "/help", &rest))
        return show_help();
    return mica_term_error("there is no command %s (see /help)", line);
}

/* ---- The loop ---- */

static int take_line(chat *c, const char *text)
{
    if (text[0] == '/' && text[1] != '/')
        return obey(c, text);
    text += text[0] == '/';
    return json_array_size(c->pending) > 0 ? take_result(c, text) : take_turn(c, text);
}

static void talk(chat *c)
{
    mica_line line;
    mica_line_open(&line, "> ");
    while (!c->leave) {
        const char *text = mica_line_read(&line);
        if (!text)
            break;
        if (!*text)
            continue;
        int code = take_line(c, text);
        if (json_array_size(c->pending) > 0 && line.interactive)
            mica_term_note("type the result of %s, on one line", pending_name(c));
        if (code != CODE_OK && (!line.interactive || c->reply.output_failed))
            c->code = CODE_FAILED; /* a person saw the message; a script must learn of it */
    }
    if (line.interrupted)
        c->code = CODE_INTERRUPTED;
    mica_line_close(&line);
}

static int prepare(chat *c)
{
    char path[4096];
    mica_model_info info;
    int code = mica_load_path(c->o, NULL, path);
    if (code == CODE_OK)
        code = mica_guard_begin(c->o, path);
    if (code == CODE_OK)
        code = mica_load_model(c->o, path, &c->model);
    if (code != CODE_OK)
        return code;
    mica_model_get_info(c->model, &info);
    if (!*info.chat_template)
        return mica_term_error("%s has no chat template; give one with --chat-template FILE", path);
    code = mica_reply_constrain(&c->reply, c->model);
    if (code == CODE_OK && c->o->system)
        code = set_system(c, c->o->system);
    if (code == CODE_OK)
        code = mica_governing_begin(c->o, path, c->model, &c->governing);
    if (code == CODE_OK)
        code = mica_load_session(c->o, c->model, &c->governing, &c->session);
    return code == CODE_OK ? mica_account_attach(&c->account, c->model, c->session) : code;
}

int mica_cmd_chat(const mica_opts *o)
{
    chat c = {.o = o, .messages = json_array(), .pending = json_array()};
    c.code = mica_reply_init(&c.reply, o);
    c.reply.calls.block = true;
    if (c.code == CODE_OK)
        c.code = mica_account_init(&c.account, o);
    if (c.code == CODE_OK)
        c.code = prepare(&c);
    if (c.code == CODE_OK) {
        mica_interrupt_catch();
        talk(&c);
    }
    mica_guard_end(false);
    mica_account_free(&c.account);
    json_decref(c.messages);
    json_decref(c.pending);
    mica_reply_free(&c.reply);
    mica_session_free(c.session);
    mica_governing_end(&c.governing);
    mica_model_close(c.model);
    return c.code;
}
