/* mica_tools.h - from a conversation to tokens, and tool calls: tools into the prompt, replies that can only be valid calls,
 * and calls out of the stream.
 *
 *     mica_tools_new(model, tools_json, n, &options, &tools, &err);              // OpenAI's "tools"
 *     chat.tools = tools;                                                        // of mica_chat_options; NULL: none
 *     mica_chat_tokenize(model, request_json, m, &chat, &tokens, &n_tokens, NULL, NULL, &err);
 *     mica_session_sync(session, tokens, n_tokens, &err);
 *     generate.constraint = mica_tools_constraint(tools);
 *     mica_tool_parser_new(tools, seed, on_event, user, &parser, &err);
 *     ... in on_text: mica_tool_parser_feed(parser, text, length, &err);  after the reply: mica_tool_parser_finish(parser,
 * &err);
 *
 * docs/tools.md has the formats, and what a model gets whose template knows no tools. The rules of mica.h hold.
 */
#ifndef MICA_MICA_TOOLS_H
#define MICA_MICA_TOOLS_H
#include "mica/mica.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_TOOLS_MAX 256         /* tools of one list */
#define MICA_TOOL_NAME_MAX 64      /* bytes; letters, digits, '_', '-' and '.' */
#define MICA_TOOL_CALLS_MAX 16     /* calls that a constraint allows in one reply */

typedef struct mica_tools mica_tools;

typedef enum mica_tool_choice {
    MICA_TOOL_AUTO = 0,     /* text, or calls */
    MICA_TOOL_NONE = 1,     /* text; the model does not hear of the tools, and nothing is parsed */
    MICA_TOOL_REQUIRED = 2, /* at least one call, nothing else */
    MICA_TOOL_NAMED = 3,    /* one call of the tool `name` */
} mica_tool_choice;

typedef struct mica_tools_options {
    size_t struct_size;
    mica_tool_choice choice;
    const char *name;          /* with MICA_TOOL_NAMED */
    bool parallel;             /* several calls in one reply, where the format has that. Default true */
    bool lenient;              /* a keyword of a tool's schema that cannot be enforced is a warning; default: an error */
    const char *chat_template; /* instead of the model's, to find the format; needed where `model` is NULL */
    void (*on_warning)(void *user, const char *message);
    void *user;
} mica_tools_options;

MICA_API mica_tools_options mica_tools_options_default(void);

/** Reads a list of tools ([{"type": "function", "function": {"name", "description", "parameters"}}, ...]), finds the model's
 * format and compiles the constraint. Takes a reference on the model. `model` may be NULL: then the constraint serves only for
 * mica_constraint_match(). MICA_BAD_TEXT: not JSON; MICA_INVALID_ARGUMENT: no list of tools, or an unknown name;
 * MICA_UNSUPPORTED: a schema that cannot be enforced. The message names the tool. */
MICA_API mica_status mica_tools_new(mica_model *model, const char *tools_json, size_t length, const mica_tools_options *options,
                                    mica_tools **out, mica_error *err);
/** No parser and no reply may use it any more. NULL is fine. */
MICA_API void mica_tools_free(mica_tools *tools);

/** "hermes", "llama3", "functionary", "mistral", or "generic" (the model's template knows no tools, or not in a way known
 * here). */
MICA_API const char *mica_tools_format(const mica_tools *tools);

/** For mica_generate_options.constraint: borrowed until the tools are freed. NULL with MICA_TOOL_NONE. */
MICA_API const mica_constraint *mica_tools_constraint(const mica_tools *tools);

/** A chat request (as for mica_model_chat_render) with the tools in it and its messages in the form that the template wants:
 * the "arguments" of earlier calls as objects, and for "generic" the tools, calls and results as ordinary text. A request that
 * has "tools" of its own loses them. *out is yours. */
MICA_API mica_status mica_tools_request(const mica_tools *tools, const char *request_json, size_t length, char **out,
                                        size_t *out_length, mica_error *err);

/* ---- A conversation to tokens ------------------------------------------------------------------------------------------ */

typedef struct mica_chat_options {
    size_t struct_size;
    const mica_tools *tools; /* put into the request with mica_tools_request(); NULL: the request as it is */
    unsigned flags;          /* MICA_TOKENIZE_*. Default: MICA_TOKENIZE_ADD_BOS */
    int64_t now_unix;        /* as for mica_model_chat_render(). Default: -1 */
} mica_chat_options;

MICA_API mica_chat_options mica_chat_options_default(void);

/** The tokens of a conversation: what mica_model_chat_render() makes of the request, tokenised. **What the request says stays
 * text**: only the model's template (with its bos_token and eos_token) writes control tokens, also where a message, a name, a
 * tool, a result or a template variable spells one, in one string or in several that the template joins. The tokens are those
 * of the rendered text as a whole, with the control tokens of the template and no others. MICA_TOKENIZE_PARSE_SPECIAL in
 * `flags` gives that up: then they are those of mica_model_tokenize() with the same flags.
 *
 * The template sees the request with other characters in place of some: with the first one of each spelt control token, so that
 * a template that looks for such a token in a message does not find it. Where that is not enough, because the template makes a
 * control token out of several strings or by changing one, each '<', '[' or other character that tells the model's control
 * tokens is replaced. (Control tokens of letters, digits and '_' only, which hardly any vocabulary has, are kept out of single
 * strings, not out of what a template joins.) Nothing is random: the same request gives the same tokens.
 *
 * `options` NULL: the defaults. *tokens is yours, and *text, the rendered text as people read it, terminated; `text` and
 * `text_length` may be NULL. MICA_INVALID_ARGUMENT also: the request has 6,719 rare characters and more, so that none is left
 * to stand for others. */
MICA_API mica_status mica_chat_tokenize(const mica_model *model, const char *request_json, size_t length,
                                        const mica_chat_options *options, int32_t **tokens, size_t *n_tokens, char **text,
                                        size_t *text_length, mica_error *err);

/* ---- Calls out of a reply --------------------------------------------------------------------------------------------- */

typedef enum mica_tool_event_kind {
    MICA_TOOL_TEXT = 0,       /* text: a piece of what is said beside calls */
    MICA_TOOL_CALL_BEGIN = 1, /* a call: index, id, name */
    MICA_TOOL_ARGUMENTS = 2,  /* text: a piece of the call's arguments (JSON) */
    MICA_TOOL_CALL_END = 3,   /* text: the arguments, whole; a JSON object */
    MICA_TOOL_ERROR = 4,      /* text: everything of a malformed call as the model wrote it, message: what is wrong. Where its
                                 call had begun, index, id and name are that call's: forget it. Else index is -1 */
} mica_tool_event_kind;

/** Pointers are borrowed for the call; those that an event does not have are "" with length 0. */
typedef struct mica_tool_event {
    mica_tool_event_kind kind;
    int32_t index; /* 0 for the reply's first call; -1: of no call */
    const char *id, *name;
    const char *text; /* terminated */
    size_t length;
    const char *message;
} mica_tool_event;

typedef struct mica_tool_parser mica_tool_parser;

/** For one reply. Works for replies without the constraint too. Ids are random, from `seed`; -1: a fresh one. The tools are
 * borrowed. Non-zero from on_event stops: the call that made the event returns MICA_CANCELLED, as do all later ones. */
MICA_API mica_status mica_tool_parser_new(const mica_tools *tools, int64_t seed,
                                          int (*on_event)(void *user, const mica_tool_event *event), void *user,
                                          mica_tool_parser **out, mica_error *err);
MICA_API void mica_tool_parser_free(mica_tool_parser *parser);

/** The reply's next piece, cut anywhere: the events are the same for every way to cut, but for how texts and arguments are
 * divided. What may be the beginning of a call is held back until that is clear. Blanks beside calls belong to the format and
 * are not told. */
MICA_API mica_status mica_tool_parser_feed(mica_tool_parser *parser, const char *text, size_t length, mica_error *err);
/** The reply is over: what was held back is told; a call that is not complete is an error event. */
MICA_API mica_status mica_tool_parser_finish(mica_tool_parser *parser, mica_error *err);
/** Whole calls so far. */
MICA_API int32_t mica_tool_parser_calls(const mica_tool_parser *parser);

#ifdef __cplusplus
}
#endif
#endif
