/* completion.c - what a shell completes after "mica", from the tables of commands and options: for bash words, for zsh and fish also what
 * they mean and what an option's value may be. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

/* ---- what all shells are told ---- */

/* What a shell may offer as a value. */
typedef enum value_kind { VALUE_NONE, VALUE_TEXT, VALUE_CHOICE, VALUE_FILE, VALUE_FOLDER } value_kind;

static value_kind kind_of(const mica_opt *opt)
{
    if (opt->kind == OPT_FLAG)
        return VALUE_NONE;
    if (opt->kind == OPT_CHOICE)
        return VALUE_CHOICE;
    return strstr(opt->value, "DIR") ? VALUE_FOLDER : strstr(opt->value, "FILE") ? VALUE_FILE : VALUE_TEXT;
}

/* The first sentence, without the point at its end. */
static size_t sentence(const char *text)
{
    const char *end = strstr(text, ". ");
    size_t n = end ? (size_t)(end - text) : strlen(text);
    return n > 0 && text[n - 1] == '.' ? n - 1 : n;
}

/* n bytes inside single quotes; characters of `special` get a backslash before them. */
static void print_quoted(const char *text, size_t n, const char *special, const char *quote)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'') {
            fputs(quote, stdout);
            continue;
        }
        if (strchr(special, text[i]))
            putchar('\\');
        putchar(text[i]);
    }
}

/* "a|b|c" as "a b c". */
static void print_choices(const char *words)
{
    for (; *words; words++)
        putchar(*words == '|' ? ' ' : *words);
}

/* ---- bash ---- */

static void print_words(uint64_t bit)
{
    for (size_t i = 0; i < mica_opt_count(); i++)
        if (mica_opt_at(i)->commands & bit)
            printf(" --%s", mica_opt_at(i)->name);
}

static void print_bash(void)
{
    puts("# bash completion for mica\n_mica()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} words=");
    puts("    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        words=\"--version --help", stdout);
    for (size_t i = 0; i < mica_command_count(); i++)
        printf(" %s", mica_command_at(i)->name);
    puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < mica_command_count(); i++) {
        printf("        %s) words=\"", mica_command_at(i)->name);
        print_words(mica_command_at(i)->bit);
        puts("\" ;;");
    }
    puts("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _mica mica");
}

/* ---- zsh ---- */

#define ZSH_QUOTE "'\\''"

static void print_zsh_text(const char *text) { print_quoted(text, sentence(text), "[]:\\", ZSH_QUOTE); }

/* An argument of _arguments: '(-m --model)'{-m,--model=}'[text]:FILE:_files'. */
static void print_zsh_option(const mica_opt *opt)
{
    static const char *const actions[] = {[VALUE_TEXT] = " ", [VALUE_FILE] = "_files", [VALUE_FOLDER] = "_files -/"};
    value_kind kind = kind_of(opt);
    const char *equals = kind == VALUE_NONE ? "" : "=", *many = opt->kind == OPT_LIST ? "*" : "";
    if (opt->letter && !*many)
        printf("        '(-%c --%s)'{-%c,--%s%s}'[", opt->letter, opt->name, opt->letter, opt->name, equals);
    else if (opt->letter)
        printf("        '*'{-%c,--%s%s}'[", opt->letter, opt->name, equals);
    else
        printf("        '%s--%s%s[", many, opt->name, equals);
    print_zsh_text(opt->text);
    putchar(']');
    if (kind != VALUE_NONE) {
        putchar(':');
        print_quoted(kind == VALUE_CHOICE ? opt->name : opt->value, strlen(kind == VALUE_CHOICE ? opt->name : opt->value), ":\\", ZSH_QUOTE);
        putchar(':');
    }
    if (kind == VALUE_CHOICE) {
        putchar('(');
        print_choices(opt->value);
        putchar(')');
    } else if (kind != VALUE_NONE) {
        fputs(actions[kind], stdout);
    }
    puts("' \\");
}

static void print_zsh_command(const mica_command *command)
{
    printf("    %s) _arguments -s \\\n", command->name);
    for (size_t i = 0; i < mica_opt_count(); i++)
        if (mica_opt_at(i)->commands & command->bit)
            print_zsh_option(mica_opt_at(i));
    puts("        '*:file:_files' ;;");
}

static void print_zsh(void)
{
    puts("#compdef mica\n# zsh completion for mica\n_mica()\n{\n    local -a commands=(");
    for (size_t i = 0; i < mica_command_count(); i++) {
        printf("        '%s:", mica_command_at(i)->name);
        print_zsh_text(mica_command_at(i)->summary);
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe -t commands 'mica command' commands\n"
         "        compadd -- --version --help\n        return\n    fi\n    shift words\n    (( CURRENT-- ))\n    case $words[1] in");
    for (size_t i = 0; i < mica_command_count(); i++)
        print_zsh_command(mica_command_at(i));
    puts("    esac\n}\n_mica \"$@\"");
}

/* ---- fish ---- */

static void print_fish_text(const char *text)
{
    fputs(" -d '", stdout);
    print_quoted(text, sentence(text), "\\", "\\'");
    puts("'");
}

/* "-n '__fish_seen_subcommand_from run chat'", with the commands that have the option. */
static void print_fish_condition(const mica_opt *opt)
{
    fputs("complete -c mica -n '__fish_seen_subcommand_from", stdout);
    for (size_t i = 0; i < mica_command_count(); i++)
        if (mica_command_at(i)->bit & opt->commands)
            printf(" %s", mica_command_at(i)->name);
    putchar('\'');
}

static bool anyone_has(const mica_opt *opt)
{
    for (size_t i = 0; i < mica_command_count(); i++)
        if (mica_command_at(i)->bit & opt->commands)
            return true;
    return false;
}

static void print_fish_option(const mica_opt *opt)
{
    print_fish_condition(opt);
    if (opt->letter)
        printf(" -s %c", opt->letter);
    printf(" -l %s", opt->name);
    switch (kind_of(opt)) {
    case VALUE_NONE: break;
    case VALUE_TEXT: fputs(" -x", stdout); break;
    case VALUE_FILE: fputs(" -r -F", stdout); break;
    case VALUE_FOLDER: fputs(" -x -a '(__fish_complete_directories)'", stdout); break;
    case VALUE_CHOICE:
        fputs(" -x -a '", stdout);
        print_choices(opt->value);
        putchar('\'');
        break;
    }
    print_fish_text(opt->text);
}

static void print_fish(void)
{
    puts("# fish completion for mica\n"
         "complete -c mica -n __fish_use_subcommand -l version -d 'Show the version'\n"
         "complete -c mica -n __fish_use_subcommand -s h -l help -d 'Show the commands'");
    for (size_t i = 0; i < mica_command_count(); i++) {
        printf("complete -c mica -n __fish_use_subcommand -f -a %s", mica_command_at(i)->name);
        print_fish_text(mica_command_at(i)->summary);
    }
    for (size_t i = 0; i < mica_opt_count(); i++)
        if (anyone_has(mica_opt_at(i)))
            print_fish_option(mica_opt_at(i));
}

void mica_doc_completion(const char *shell)
{
    if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else if (strcmp(shell, "fish") == 0)
        print_fish();
    else
        print_bash();
}
