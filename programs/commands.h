/* commands.h - the commands, and the table of them in command_list.h that help, man page and completion read. */
#ifndef MICA_PROGRAMS_COMMANDS_H
#define MICA_PROGRAMS_COMMANDS_H
#include "opts.h"

/* Each gets parsed options and returns an exit code. */
int mica_cmd_run(const mica_opts *o);
int mica_cmd_chat(const mica_opts *o);
int mica_cmd_inspect(const mica_opts *o);
int mica_cmd_tokenize(const mica_opts *o);
int mica_cmd_detokenize(const mica_opts *o);
int mica_cmd_template(const mica_opts *o);
int mica_cmd_perplexity(const mica_opts *o);
int mica_cmd_probe(const mica_opts *o);
int mica_cmd_threads(const mica_opts *o);
int mica_cmd_kv(const mica_opts *o);
int mica_cmd_tune(const mica_opts *o);
int mica_cmd_task(const mica_opts *o);
int mica_cmd_eval(const mica_opts *o);
int mica_cmd_grammar(const mica_opts *o);
int mica_cmd_embed(const mica_opts *o);
int mica_cmd_route(const mica_opts *o);
int mica_cmd_serve(const mica_opts *o);
int mica_cmd_bench(const mica_opts *o);
int mica_cmd_compare(const mica_opts *o);
int mica_cmd_verify(const mica_opts *o);
int mica_cmd_worker(const mica_opts *o);
int mica_cmd_sign(const mica_opts *o);
int mica_cmd_pull(const mica_opts *o);
int mica_cmd_models(const mica_opts *o);
int mica_cmd_report(const mica_opts *o);
int mica_cmd_campaign(const mica_opts *o);
int mica_cmd_cost(const mica_opts *o);
int mica_cmd_roofline(const mica_opts *o);
int mica_cmd_analyze(const mica_opts *o);
int mica_cmd_quantize(const mica_opts *o);
int mica_cmd_convert(const mica_opts *o);
int mica_cmd_imatrix(const mica_opts *o);
int mica_cmd_compare_quants(const mica_opts *o);

typedef struct mica_command {
    const char *name;
    uint64_t bit;                    /* ON_... */
    int (*run)(const mica_opts *o);  /* NULL: help, which main() does itself, and commands of the other program */
    bool handed_over;                /* mica-ops does it */
    int min_args, max_args;          /* words that are no options */
    const char *usage, *summary, *text;
} mica_command;

size_t mica_command_count(void);
const mica_command *mica_command_at(size_t i);
/** NULL if unknown. */
const mica_command *mica_command_find(const char *name);

/* doc.c and completion.c: all from the tables; to standard output. */
void mica_doc_overview(void);
void mica_doc_command(const mica_command *command);
void mica_doc_man(void);
void mica_doc_completion(const char *shell); /* "bash", "zsh" or "fish" */

#endif
