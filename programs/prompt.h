/* prompt.h - from a conversation to the tokens of its prompt, with the errors that the program prints. What people typed stays
 * text (mica_chat_tokenize() of mica_tools.h), unless --parse-special asks for the contrary. */
#ifndef MICA_PROGRAMS_PROMPT_H
#define MICA_PROGRAMS_PROMPT_H
#include "load.h"
#include "mica/mica_tools.h"

/** Appends {"role", "content"}; the content must be UTF-8. */
int mica_prompt_add(json_t *messages, const char *role, const char *content, size_t length);

/** The tokens of the conversation with the opening of a reply; `tools` may be NULL. *tokens is yours: mica_free(). */
int mica_prompt_chat(const mica_opts *o, const mica_model *model, const mica_tools *tools, json_t *messages, int32_t **tokens,
                     size_t *n);

/** The tokens of a text as it is. *tokens is yours: mica_free(). */
int mica_prompt_raw(const mica_opts *o, const mica_model *model, const char *text, size_t length, int32_t **tokens, size_t *n);

#endif
