/* rules.h - what a request is, by rules that are data: its task's name, its length, whether it has a schema or tools, and
 * patterns over its text (PCRE2). Compiled once, used from any thread. Called by policy_read.c and decide.c.
 *
 * The first rule that holds and names a class gives the class; every rule that holds and says "private" makes it private. A
 * pattern that takes longer than its limit of steps is taken to hold by a rule that says "private", and not to by one that
 * does not: the limit must never let a text out. */
#ifndef MICA_ROUTER_RULES_H
#define MICA_ROUTER_RULES_H
#include "mica/mica_router.h"
#include "router/fields.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MICA_RULES_MAX = 64, MICA_RULE_TASKS_MAX = 32 };

typedef struct mica_rule {
    char name[MICA_ROUTE_NAME_MAX], note[400];
    char pattern[512]; /* "" none */
    pcre2_code *code;
    pcre2_code *ascii; /* the same pattern for texts that are ASCII, without the rules of Unicode: faster; NULL: `code` */
    char task[MICA_RULE_TASKS_MAX][MICA_ROUTE_NAME_MAX]; /* one of them */
    int32_t n_tasks;
    int64_t prompt_least, prompt_most, output_least, output_most; /* tokens; -1: no condition */
    int schema, tools;                                             /* MICA_UNKNOWN: no condition */
    int32_t route_class;                                           /* MICA_CLASS_AUTO: none */
    bool make_private;
} mica_rule;

typedef struct mica_rules {
    int32_t n;
    bool any_pattern;
    pcre2_match_context *limits;
    mica_rule rule[MICA_RULES_MAX];
} mica_rules;

/** Reads the list "rules" of a policy; NULL: none. On an error *out still is to be freed. */
mica_status mica_rules_read(const json_t *list, const char *name, mica_rules *out, mica_error *err);
void mica_rules_free(mica_rules *rules);

typedef struct mica_rules_result {
    const mica_rule *by; /* the rule that named the class; NULL: none */
    bool is_private;
} mica_rules_result;

/** The request's own prompt_tokens and output_tokens are not looked at: these are. */
mica_status mica_rules_apply(const mica_rules *rules, const mica_route_request *request, int64_t prompt_tokens,
                             int64_t output_tokens, mica_rules_result *out, mica_error *err);

const mica_field_table *mica_rules_table(size_t i);

/** The words of "class" in the files: index + 0 is a mica_route_class. */
extern const char *const mica_route_class_words[];

#endif
