/* selective_ids.c - what a build says of a model: the ids of a greedy reply, or why there is none; and whether it has the parts that a
 * build may be without. tests/selective.py runs it with one libmica.so and with another.
 *
 *     selective_ids MODEL
 */
#include <stdio.h>
#include <string.h>

#include "mica/mica.h"

static int print_token(void *user, const mica_token_event *token)
{
    (void)user;
    printf(" %d", token->token);
    return 0;
}

static mica_status reply(mica_session *session, mica_error *err)
{
    static const int32_t prompt[] = {72, 101, 108, 108, 111, 44, 32, 109, 105, 99, 97};
    mica_generate_options options = mica_generate_options_default();
    mica_status status = mica_session_sync(session, prompt, sizeof prompt / sizeof *prompt, err);
    options.max_tokens = 48;
    options.ignore_eos = true;
    options.sampling.temperature = 0.0f;
    options.on_token = print_token;
    printf("ids");
    if (!status)
        status = mica_session_generate(session, &options, NULL, err);
    putchar('\n');
    return status;
}

static void say_parts(mica_model *model)
{
    mica_error err = {.message = "there"};
    mica_constraint_options options = mica_constraint_options_default();
    mica_constraint *constraint = NULL;
    static const char chat[] = "{\"messages\": []}", template_text[] = "x";
    char *text = NULL;
    size_t length;
    options.kind = MICA_CONSTRAINT_JSON;
    mica_constraint_new(model, &options, &constraint, &err);
    printf("constraints: %s\n", err.message);
    mica_constraint_free(constraint);
    err = (mica_error){.message = "there"};
    mica_template_render(template_text, strlen(template_text), chat, strlen(chat), NULL, NULL, 0, &text, &length, &err);
    printf("templates: %s\n", err.message);
    mica_free(text);
}

int main(int argc, char **argv)
{
    mica_error err = {.message = "usage: selective_ids MODEL"};
    mica_model *model = NULL;
    mica_session *session = NULL;
    mica_session_options options = mica_session_options_default();
    options.n_ctx = 128;
    options.n_threads = 1;
    bool failed = argc != 2 || mica_model_open(argv[1], NULL, &model, &err) || mica_session_new(model, &options, &session, &err) ||
                  reply(session, &err);
    if (!failed)
        say_parts(model);
    else
        fprintf(stderr, "%s\n", err.message);
    mica_session_free(session);
    mica_model_close(model);
    return failed;
}
