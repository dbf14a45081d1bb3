/* speculate.c - what speculation gains and costs: the same replies with and without, in turn, on a text that it can guess and
 * on two that it cannot.
 *
 *     speculate MODEL [-t THREADS] [-n TOKENS] [-d DRAFT_MAX] [-r REPETITIONS] [-m DRAFT_MODEL] [-c]
 *
 * Prints for each task the medians of the repetitions: tokens per second without and with, their ratio, tokens drafted and
 * accepted. -c counts the process's CPU time, which other programs disturb less: only for one thread. Ends with 1 if a reply
 * differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mica/mica.h"

enum { MAX_TOKENS = 2048, MAX_REPETITIONS = 50 };

typedef struct job {
    const char *path, *draft_path;
    int threads, tokens, draft_max, repetitions;
    clockid_t clock;
} job;

typedef struct task {
    const char *name, *request;
    float temperature;
} task;

#define TEXT                                                                                                    \
    "The lighthouse keeper Anna walked down the stone steps at five in the morning. The storm had thrown "      \
    "seaweed and broken planks over the quay, and two of the boats lay on their sides like tired "              \
    "animals. She counted the crates of oil, wrote the number into the small blue book, and looked for "        \
    "the dog. The dog had slept under the bench in the signal room, next to the stove, and did not want "       \
    "to come out. Anna boiled water, cut the last bread into four slices, and read the barometer twice, "       \
    "because she did not believe it. The pressure was rising. By noon the ferry would be able to cross, "       \
    "and with the ferry the doctor, the mail, and the new lamp that the office had promised since March. "      \
    "She put the kettle back, took the long broom, and began to sweep the water out of the boat house, "        \
    "from the back wall to the door, as her mother had always done."

static const task tasks[] = {
    {"rewrite",
     "Repeat the following text word for word, but call the lighthouse keeper Maria. Give only the text.\n\n" TEXT, 0.0f},
    {"story", "Write a long and surprising story about a clockmaker, a fox and an island that nobody has seen before.", 1.2f},
    {"noise", "Write a long and surprising story about a clockmaker, a fox and an island that nobody has seen before.", 3.0f},
};

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(mica_status status, const mica_error *err)
{
    if (status) {
        fprintf(stderr, "speculate: %s\n", err->message);
        exit(1);
    }
}

/* The task as text: through the chat template where there is one. Yours. */
static char *text_of(const mica_model *model, const task *t, size_t *length)
{
    char request[4096], *text = NULL;
    mica_model_info info;
    mica_error err;
    mica_model_get_info(model, &info);
    if (!info.has_chat_template) {
        snprintf(request, sizeof request, "%s\n\n", t->request);
        *length = strlen(request);
        return strdup(request);
    }
    int n = snprintf(request, sizeof request, "{\"messages\": [{\"role\": \"user\", \"content\": \"");
    for (const char *c = t->request; *c; c++)
        n += snprintf(request + n, sizeof request - (size_t)n, *c == '\n' ? "\\n" : "%c", *c);
    snprintf(request + n, sizeof request - (size_t)n, "\"}]}");
    check(mica_model_chat_render(model, request, strlen(request), 0, &text, length, &err), &err);
    return text;
}

static int32_t *tokens_of(const mica_model *model, const task *t, size_t *n)
{
    size_t length;
    int32_t *tokens;
    mica_error err;
    char *text = text_of(model, t, &length);
    unsigned flags = MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL;
    check(mica_model_tokenize(model, text, length, flags, &tokens, n, &err), &err);
    mica_free(text);
    return tokens;
}

typedef struct reply {
    int32_t tokens[MAX_TOKENS];
    int n;
    double first_s, last_s;
    clockid_t clock;
} reply;

static int on_token(void *user, const mica_token_event *e)
{
    reply *r = user;
    r->last_s = now_s(r->clock);
    if (e->index == 0)
        r->first_s = r->last_s;
    r->tokens[r->n++] = e->token;
    return 0;
}

/* Tokens per second after the first. */
static double run(mica_session *s, const job *j, const task *t, const int32_t *tokens, size_t n, mica_speculation kind,
                  reply *r, mica_result *result)
{
    mica_error err;
    mica_generate_options o = mica_generate_options_default();
    *r = (reply){.clock = j->clock};
    o.max_tokens = j->tokens;
    o.ignore_eos = true;
    o.sampling.temperature = t->temperature;
    o.sampling.seed = 7;
    o.on_token = on_token;
    o.user = r;
    o.speculate = kind;
    check(mica_session_sync(s, tokens, n, &err), &err);
    check(mica_session_generate(s, &o, result, &err), &err);
    return r->n > 1 ? (r->n - 1) / (r->last_s - r->first_s) : 0.0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void measure(const job *j, const task *t, const mica_model *model, mica_session *s, mica_speculation kind)
{
    static reply plain, quick;
    double without[MAX_REPETITIONS], with[MAX_REPETITIONS], ratio[MAX_REPETITIONS];
    mica_result result;
    size_t n;
    int32_t *tokens = tokens_of(model, t, &n);
    for (int i = 0; i < j->repetitions; i++) {
        for (int turn = 0; turn < 2; turn++) { /* each goes first every other time */
            if (turn == i % 2)
                without[i] = run(s, j, t, tokens, n, MICA_SPECULATE_OFF, &plain, &result);
            else
                with[i] = run(s, j, t, tokens, n, kind, &quick, &result);
            if (turn != i % 2 && i + 1 == j->repetitions)
                printf("%-8s prompt %4zu, reply %4d, drafted %4d, accepted %4d: ", t->name, n, result.gen_n, result.drafted_n,
                       result.accepted_n);
        }
        ratio[i] = with[i] / without[i];
        if (plain.n != quick.n || memcmp(plain.tokens, quick.tokens, (size_t)plain.n * sizeof *plain.tokens) != 0) {
            fprintf(stderr, "speculate: the replies differ\n");
            exit(1);
        }
    }
    printf("%.1f -> %.1f tok/s, median ratio %.3f\n", median(without, j->repetitions), median(with, j->repetitions),
           median(ratio, j->repetitions));
    fflush(stdout);
    mica_free(tokens);
}

static mica_session *open_session(const job *j, mica_model *model, mica_model *draft)
{
    mica_session *s;
    mica_error err;
    mica_session_options o = mica_session_options_default();
    o.n_ctx = 512 + j->tokens;
    o.n_threads = j->threads;
    o.draft_max = j->draft_max;
    o.draft_model = draft;
    check(mica_session_new(model, &o, &s, &err), &err);
    return s;
}

int main(int argc, char **argv)
{
    job j = {.threads = 1, .tokens = 200, .draft_max = 31, .repetitions = 3, .clock = CLOCK_MONOTONIC};
    for (int c; (c = getopt(argc, argv, "t:n:d:r:m:c")) != -1;) {
        switch (c) {
        case 't': j.threads = atoi(optarg); break;
        case 'n': j.tokens = atoi(optarg); break;
        case 'd': j.draft_max = atoi(optarg); break;
        case 'r': j.repetitions = atoi(optarg); break;
        case 'm': j.draft_path = optarg; break;
        case 'c': j.clock = CLOCK_PROCESS_CPUTIME_ID; break;
        default: return 2;
        }
    }
    if (optind + 1 != argc || j.tokens < 2 || j.tokens > MAX_TOKENS || j.repetitions < 1 || j.repetitions > MAX_REPETITIONS) {
        fprintf(stderr, "usage: speculate MODEL [-t THREADS] [-n TOKENS] [-d DRAFT_MAX] [-r REPETITIONS] [-m DRAFT_MODEL] "
                        "[-c]\n");
        return 2;
    }
    mica_model *model, *draft = NULL;
    mica_error err;
    check(mica_model_open(argv[optind], NULL, &model, &err), &err);
    if (j.draft_path)
        check(mica_model_open(j.draft_path, NULL, &draft, &err), &err);
    mica_session *s = open_session(&j, model, draft);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        measure(&j, &tasks[i], model, s, draft ? MICA_SPECULATE_BOTH : MICA_SPECULATE_LOOKUP);
    mica_session_free(s);
    mica_model_close(draft);
    mica_model_close(model);
    return 0;
}
