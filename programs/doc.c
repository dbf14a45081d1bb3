/* doc.c - help and man page, from the tables of commands and options; completion.c has the completions. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "mica/mica.h"

enum { COLUMNS = 100, INDENT = 30 };

/* Prints words from column `at`, wrapped, lines indented. */
static void print_wrapped(const char *text, int at, int indent)
{
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (at > indent && at + 1 + n > COLUMNS) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", n, text);
        at += n;
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

/* The help of an option with its default. */
static void describe(const mica_opt *opt, char *out, size_t size)
{
    char value[32];
    mica_opt_default_text(opt, value);
    snprintf(out, size, "%s%s%s%s", opt->text, *value ? " Default: " : "", value, *value ? "." : "");
}

static void print_option(const mica_opt *opt)
{
    char head[80], letter[8] = "    ", text[400];
    if (opt->letter)
        snprintf(letter, sizeof letter, "-%c, ", opt->letter);
    int n = snprintf(head, sizeof head, "  %s--%s%s%s", letter, opt->name, opt->value ? " " : "", opt->value ? opt->value : "");
    describe(opt, text, sizeof text);
    if (n >= INDENT)
        printf("%s\n%*s", head, INDENT, "");
    else
        printf("%-*s", INDENT, head);
    print_wrapped(text, INDENT, INDENT);
}

void mica_doc_command(const mica_command *command)
{
    printf("Usage: mica %s %s\n\n", command->name, command->usage);
    print_wrapped(command->summary, 0, 0);
    if (*command->text) {
        putchar('\n');
        print_wrapped(command->text, 0, 0);
    }
    puts("\nOptions:");
    for (size_t i = 0; i < mica_opt_count(); i++)
        if (mica_opt_at(i)->commands & command->bit)
            print_option(mica_opt_at(i));
}

void mica_doc_overview(void)
{
    puts("Usage: mica COMMAND [OPTION]...\n\nRuns small language models on the CPU.\n\nCommands:");
    for (size_t i = 0; i < mica_command_count(); i++)
        printf("  %-16s%s\n", mica_command_at(i)->name, mica_command_at(i)->summary);
    puts("\nmica help COMMAND shows a command's options; mica --version the version, the version of the arithmetic and the\n"
         "kernels.");
}

/* ---- The man page ---- */

/* Text for roff: backslashes and minus signs escaped, no line that begins with a request. */
static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_roff_line(const char *before, const char *text, const char *after)
{
    fputs(before, stdout);
    print_roff(text);
    puts(after);
}

static void print_roff_option(const mica_opt *opt)
{
    char text[400];
    fputs(".TP\n", stdout);
    if (opt->letter)
        printf("\\fB\\-%c\\fR, ", opt->letter);
    fputs("\\fB\\-\\-", stdout);
    print_roff(opt->name);
    print_roff_line("\\fR \\fI", opt->value ? opt->value : "", "\\fR");
    describe(opt, text, sizeof text);
    print_roff_line("", text, "");
}

static void print_roff_command(const mica_command *command)
{
    print_roff_line(".SS mica ", command->name, "");
    print_roff_line("\\fBmica ", command->name, "\\fR");
    print_roff_line("", command->usage, "\n.PP");
    print_roff_line("", command->summary, "");
    if (*command->text)
        print_roff_line("", command->text, "");
    for (size_t i = 0; i < mica_opt_count(); i++)
        if (mica_opt_at(i)->commands & command->bit)
            print_roff_option(mica_opt_at(i));
}

void mica_doc_man(void)
{
    printf(".TH MICA 1 \"\" \"mica %s\" \"User Commands\"\n", mica_version());
    puts(".SH NAME\nmica \\- run small language models on the CPU\n"
         ".SH SYNOPSIS\n\\fBmica\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...");
    puts(".SH COMMANDS");
    for (size_t i = 0; i < mica_command_count(); i++)
        print_roff_command(mica_command_at(i));
    puts(".SH EXIT STATUS\n0 if all went well; 1 after a failure, which is one line on standard error; 2 if the command line "
         "is wrong; 130 if Ctrl\\-C ended a reply.");
    puts(".SH ENVIRONMENT\n.TP\nMICA_MODELS_DIR\nThe folder of the default model. Without it:\n"
         "$XDG_CACHE_HOME/mica/models, or ~/.cache/mica/models.\n.TP\nXDG_DATA_HOME\n"
         "The folder of a user's tasks is mica/tasks in it, and mica/device.json what was measured here; without it, in ~/.local/share.\n"
         ".TP\nOTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME\nWith \\-\\-telemetry and a receiver's address: further headers, NAME=VALUE,..., and the service's name.");
}
