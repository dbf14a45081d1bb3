#include "conditions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/newfile.h"
#include "share.h"
#include "term.h"

static const struct {
    const char *name, *question;
} questions[] = {
    {"ambient_c", "temperature of the room in degrees C"},
    {"surface_c", "temperature of the device's surface in degrees C"},
    {"case", "case of the device (on, off)"},
    {"airplane_mode", "airplane mode (on, off)"},
    {"brightness", "brightness of the screen (0 to 100 %, off)"},
};

enum { N_QUESTIONS = sizeof questions / sizeof *questions };

/* --condition NAME=TEXT */
static int read_options(const mica_opts *o, json_t **conditions)
{
    *conditions = json_object();
    for (size_t i = 0; i < o->condition.n; i++) {
        const char *text = o->condition.item[i], *equals = strchr(text, '=');
        char name[64];
        if (!equals || equals == text || (size_t)(equals - text) >= sizeof name)
            return mica_term_usage("--condition: \"%s\" is not NAME=TEXT", text);
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        if (json_object_set_new(*conditions, name, json_string(equals + 1)) != 0)
            return mica_term_usage("--condition: \"%s\" is not valid UTF-8", text);
    }
    return CODE_OK;
}

/* One question. "" is what was said last time, "-" that it is not known. False at the end of input. */
static bool ask_one(const char *question, const char *before, json_t **answer)
{
    char line[256];
    if (*before)
        fprintf(stderr, "%s [%s]: ", question, before);
    else
        fprintf(stderr, "%s: ", question);
    fflush(stderr);
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    const char *said = *line ? line : before;
    *answer = *said && strcmp(said, "-") != 0 ? json_string(said) : NULL;
    return true;
}

/* A file that cannot be read or written costs an offer, no measurement. */
static json_t *answers_before(const char *path)
{
    json_t *before = *path ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (json_is_object(before))
        return before;
    json_decref(before);
    return json_object();
}

static void keep_answers(const char *path, const json_t *answers)
{
    char *text = mica_json_dumps(answers, JSON_INDENT(2) | JSON_SORT_KEYS);
    if (text && *path)
        (void)mica_newfile_put(path, MICA_NEWFILE_PRIVATE, text, strlen(text), NULL);
    free(text);
}

static void ask_all(json_t *conditions)
{
    char path[4096];
    if (!mica_share_own("conditions.json", path))
        path[0] = '\0';
    json_t *before = answers_before(path);
    fputs("What no sensor tells is kept with the figures. Enter: as in brackets, or unknown; -: unknown. (--condition gives it "
          "on the "
          "command line.)\n",
          stderr);
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        const char *last = json_string_value(json_object_get(before, questions[i].name));
        json_t *answer = NULL;
        if (!ask_one(questions[i].question, last ? last : "", &answer))
            break;
        if (answer)
            json_object_set_new(conditions, questions[i].name, answer);
    }
    keep_answers(path, conditions);
    json_decref(before);
}

int mica_conditions_read(const mica_opts *o, bool ask, json_t **conditions)
{
    int code = read_options(o, conditions);
    if (code == CODE_OK && ask && o->condition.n == 0 && !o->no_questions && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        ask_all(*conditions);
    if (json_object_size(*conditions) == 0) {
        json_decref(*conditions);
        *conditions = NULL;
    }
    return code;
}
