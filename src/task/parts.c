/* parts.c - a text in parts that fit a prompt. */
#include "task/task.h"

#include <stdlib.h>

/* Tokens of the prompt with an input. */
static mica_status count_tokens(const mica_task *t, const mica_task_prompt *p, const char *text, size_t length, size_t *n,
                                mica_error *err)
{
    mica_task_filled filled;
    mica_task_tokens tokens = {.id = NULL};
    mica_status status = mica_task_fill(t, p, text, length, &filled, err);
    if (!status)
        status = mica_task_filled_tokens(t, &filled, "", &tokens, err);
    *n = tokens.n;
    free(tokens.id);
    mica_task_filled_free(&filled);
    return status;
}

mica_status mica_task_part_end(const mica_task_job *job, const mica_task_prompt *p, int32_t reserve, const char *text,
                               size_t length, size_t *end, mica_error *err)
{
    size_t bare, n, context = (size_t)mica_task_context(job), kept = (size_t)reserve + 1;
    mica_status status = count_tokens(job->task, p, "", 0, &bare, err);
    if (status)
        return status;
    if (bare + kept >= context)
        return mica_fail(err, MICA_CONTEXT_FULL,
                         "the task's prompt of %zu tokens and a reply of %d leave no room in a context of %zu", bare, reserve,
                         context);
    size_t room = context - kept - bare, limit = 6 * room; /* bytes; few texts have more in a token */
    for (;;) {
        *end = mica_text_split(text, length, limit);
        status = count_tokens(job->task, p, text, *end, &n, err);
        if (status || n + kept <= context)
            return status;
        size_t used = n > bare ? n - bare : 1;
        size_t smaller = (size_t)((double)*end * 0.97 * (double)room / (double)used);
        limit = smaller < *end ? smaller : *end - 1;
        if (limit == 0)
            return mica_fail(err, MICA_CONTEXT_FULL,
                             "the context of %zu tokens leaves %zu for the input: not one character fits", context, room);
    }
}
