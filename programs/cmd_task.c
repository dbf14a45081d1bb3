/* cmd_task.c - mica task: one narrow task on one input, or on each line of it. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "interrupt.h"
#include "task_file.h"

/* The field of a result that is the answer itself, by kind; a text is printed as it is. */
static const json_t *answer_of(mica_task_kind kind, const json_t *result)
{
    static const char *const fields[] = {"label", "label", "data", "summary", "text", "completion"};
    return json_object_get(result, fields[kind]);
}

static int print_answer(const mica_opts *o, const mica_task_file *file, json_t *result, bool line)
{
    if (o->json)
        return mica_json_line(json_incref(result)) ? CODE_OK : CODE_FAILED;
    const json_t *answer = answer_of(file->info.kind, result);
    if (!json_is_string(answer))
        return mica_json_line(json_incref((json_t *)answer)) ? CODE_OK : CODE_FAILED;
    size_t n = json_string_length(answer);
    bool ended = n > 0 && json_string_value(answer)[n - 1] == '\n';
    /* a redacted text is the input with replacements, byte for byte: it gets no line end of its own */
    bool add = line || (file->info.kind != MICA_TASK_REDACT && !ended);
    return mica_term_write(json_string_value(answer), n) && (!add || mica_term_write("\n", 1)) ? CODE_OK : CODE_FAILED;
}

static int run_one(const mica_opts *o, mica_task_file *file, const char *text, size_t length, bool line)
{
    mica_task_input input = mica_task_input_default();
    json_t *result = NULL;
    input.text = text;
    input.length = length;
    input.suffix = o->suffix;
    input.suffix_length = o->suffix ? strlen(o->suffix) : 0;
    int code = mica_task_file_run(file, &input, &result);
    if (code == CODE_OK)
        code = print_answer(o, file, result, line);
    json_decref(result);
    return code;
}

static int run_lines(const mica_opts *o, mica_task_file *file, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int code = CODE_OK;
    while (at < end && code == CODE_OK && mica_interrupt_count() == 0) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        code = run_one(o, file, at, n > 0 && at[n - 1] == '\r' ? n - 1 : n, true);
        at += n + (stop != NULL);
    }
    return code == CODE_OK && at < end ? CODE_INTERRUPTED : code;
}

int mica_cmd_task(const mica_opts *o)
{
    mica_task_file file = {.task = NULL};
    char *text = NULL;
    size_t length = 0;
    if (o->n_args == 0)
        return mica_task_file_list(o);
    int code = mica_task_file_open(o, o->args[0], &file);
    if (code == CODE_OK && o->suffix && file.info.kind != MICA_TASK_COMPLETE)
        code = mica_term_usage("--suffix is for tasks of the kind complete");
    if (code == CODE_OK)
        code = mica_load_text(o, &text, &length);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        code = o->lines ? run_lines(o, &file, text, length) : run_one(o, &file, text, length, false);
    }
    free(text);
    mica_task_file_close(&file);
    return code;
}
