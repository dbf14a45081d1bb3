/* cmd_route.c - mica route: a word says what is wanted; the words are in route_*.c. */
#include <string.h>

#include "commands.h"
#include "route.h"
#include "term.h"

typedef struct word {
    const char *name;
    int (*run)(const mica_opts *o);
} word;

static const word words[] = {
    {"decide", mica_route_decide_command}, {"explain", mica_route_explain_command}, {"replay", mica_route_replay_command},
    {"check", mica_route_check},           {"train", mica_route_train_command},     {"test", mica_route_test_command},
    {"ask", mica_route_ask},               {"queue", mica_route_queue},
};

int mica_cmd_route(const mica_opts *o)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, o->args[0]) == 0)
            return words[i].run(o);
    return mica_term_usage("mica route: \"%s\" is none of decide, explain, replay, check, train, test, ask, queue", o->args[0]);
}
