/* mica.c - the program: finds the command, reads its options, runs it, reports how it went by the exit code. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "handover.h"
#include "kern/kern.h"
#include "lost.h"
#include "mica/mica.h"
#include "term.h"

#ifdef MICA_OPS_PROGRAM
#define EVERYDAY(...)
#define OPS(name, bit, run, ...) {name, bit, run, false, __VA_ARGS__},
#else
#define EVERYDAY(name, bit, run, ...) {name, bit, run, false, __VA_ARGS__},
#ifdef MICA_HAVE_OPS
#define OPS(name, bit, run, ...) {name, bit, NULL, true, __VA_ARGS__},
#else
#define OPS(...)
#endif
#endif

static const mica_command commands[] = {
#include "command_list.h"
    {"help", ON_HELP, NULL, false, 0, 1, "[COMMAND] [--man | --completion [--shell NAME]]", "Show the commands, or one command's options.", ""},
};

size_t mica_command_count(void) { return sizeof commands / sizeof *commands; }

const mica_command *mica_command_at(size_t i) { return &commands[i]; }

const mica_command *mica_command_find(const char *name)
{
    for (size_t i = 0; i < mica_command_count(); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int show_version(void)
{
    printf("mica %s\nnumerics %d\nkernels", mica_version(), mica_numerics_version());
    for (size_t i = 0; i < mica_isa_count(); i++)
        printf(" %s%s", mica_isa_at(i)->name, mica_isa_at(i)->supported() ? "" : " (not on this CPU)");
    putchar('\n');
    return CODE_OK;
}

static int show_help(const mica_opts *o)
{
    const mica_command *topic = o->n_args > 0 ? mica_command_find(o->args[0]) : NULL;
    if (o->n_args > 0 && !topic)
        return mica_term_usage("there is no command %s (see mica help)", o->args[0]);
    if (o->man)
        mica_doc_man();
    else if (o->completion)
        mica_doc_completion(o->shell);
    else if (topic)
        mica_doc_command(topic);
    else
        mica_doc_overview();
    return CODE_OK;
}

static int run_parsed(const mica_command *command, const mica_opts *o)
{
    if (o->help) {
        mica_doc_command(command);
        return CODE_OK;
    }
    if (o->n_args > command->max_args)
        return mica_term_usage("mica %s: \"%s\" is one word too many (see mica help %s)", command->name,
                               o->args[command->max_args], command->name);
    if (o->n_args < command->min_args)
        return mica_term_usage("mica %s: a word is missing: mica %s %s", command->name, command->name, command->usage);
    return command->run ? command->run(o) : show_help(o);
}

static int run_command(int argc, char **argv)
{
    const mica_command *command = mica_command_find(argv[0]);
    mica_opts o;
    if (!command)
        return mica_term_usage("there is no command %s (see mica help)", argv[0]);
    if (command->handed_over)
        return mica_handover(argv);
    mica_opts_init(&o);
    int code = mica_opts_parse(&o, command->bit, argc, argv) ? run_parsed(command, &o) : CODE_USAGE;
    mica_opts_free(&o);
    return code;
}

int main(int argc, char **argv)
{
    int code;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a message and an exit code */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow */
    mica_lost_catch();
    mica_json_watch();
    setlocale(LC_CTYPE, "");  /* for line editing; numbers stay in the C locale */
    if (argc < 2) {
        code = mica_term_usage("a command is missing (see mica help)");
    } else if (strcmp(argv[1], "--version") == 0) {
        code = show_version();
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        mica_doc_overview();
        code = CODE_OK;
    } else {
        code = run_command(argc - 1, argv + 1);
    }
    return mica_term_finish(code);
}
