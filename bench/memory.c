/* memory.c - how well the peak of resident memory is predicted: the table of docs/memory.md.
 *
 *     memory [-c] [-n LONGEST] [-t THREADS] -f TEXT MODEL...
 *
 * For each model, contexts of 512, 2048, 8192 and 32768 tokens and caches in F16, Q8_0 and Q4_0: what mica_session_plan() says
 * before the session is made, and VmHWM of a process of its own that filled the context with TEXT (repeated) and wrote a reply.
 * With -c all of the text is computed; without, what comes before its last 512 tokens is only written to the cache, with zeros,
 * which takes the same pages in a second instead of an hour. Exit code 1 if any prediction is off by more than 3 %. -n leaves
 * longer contexts out.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session.h"

enum { REPLY = 16, COMPUTED = 512 };

#define LIMIT 0.03

static const char *const type_names[] = {"f16", "q8_0", "q4_0"};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "memory: %s\n", what);
    exit(2);
}

/* ---- One measurement, in a process of its own ---- */

/* n tokens of the text, again and again. */
static int32_t *read_tokens(const mica_model *model, const char *path, size_t n)
{
    static char text[1 << 20];
    int32_t *some, *all = malloc(n * sizeof *all);
    size_t count;
    mica_error err;
    FILE *f = fopen(path, "rb");
    if (!f || !all)
        die("cannot open the text");
    size_t length = fread(text, 1, sizeof text, f);
    fclose(f);
    while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80) /* not cut in the middle of a character */
        length--;
    if (mica_model_tokenize(model, text, length ? length - 1 : 0, 0, &some, &count, &err))
        die(err.message);
    if (count == 0)
        die("the text is empty");
    for (size_t i = 0; i < n; i++)
        all[i] = some[i % count];
    mica_free(some);
    return all;
}

/* Positions [0, n) of the cache are written, as if they were computed. */
static void fill(mica_session *s, const int32_t *tokens, int32_t n)
{
    const mica_hparams *h = &s->model->weights.h;
    for (int32_t pos = 0; pos < n; pos += MICA_KV_BLOCK) {
        int32_t count = n - pos < MICA_KV_BLOCK ? n - pos : MICA_KV_BLOCK;
        mica_kv_extend(&s->kv, pos, count);
        for (int32_t layer = 0; layer < h->n_layers; layer++)
            for (int32_t head = 0; head < h->n_kv_heads; head++)
                for (int32_t at = pos; at < pos + count;) {
                    mica_kv_range range = mica_kv_head(&s->kv, layer, head, at, pos + count - at);
                    memset(range.k, 0, range.k_bytes);
                    memset(range.v, 0, range.v_bytes);
                    at += range.n;
                }
    }
    memcpy(s->tokens, tokens, (size_t)n * sizeof *tokens);
    s->n_tokens = s->n_computed = n;
}

static void measure(const char *path, int32_t n_ctx, mica_kv_type type, int threads, const char *text, bool compute)
{
    mica_model *model;
    mica_session *session;
    mica_memory_plan plan;
    mica_result result;
    mica_error err;
    mica_session_options o = mica_session_options_default();
    mica_generate_options g = mica_generate_options_default();
    o.n_ctx = n_ctx;
    o.n_threads = threads;
    o.kv_k = o.kv_v = type;
    o.memory_limit = INT64_C(1) << 40;
    o.memory_budget = o.memory_limit;
    g.max_tokens = REPLY;
    g.ignore_eos = true;
    g.sampling.seed = 1;
    if (mica_model_open(path, NULL, &model, &err) || mica_session_plan(model, &o, &plan, &err) ||
        mica_session_new(model, &o, &session, &err))
        die(err.message);
    int32_t n = n_ctx - REPLY - 1;
    int32_t *tokens = read_tokens(model, text, (size_t)n);
    if (!compute && n > COMPUTED)
        fill(session, tokens, n - COMPUTED);
    if (mica_session_sync(session, tokens, (size_t)n, &err) || mica_session_generate(session, &g, &result, &err))
        die(err.message);
    printf("%" PRId64 " %" PRId64 "\n", plan.peak_bytes, result.peak_rss_bytes);
    free(tokens);
    mica_session_free(session);
    mica_model_close(model);
}

/* ---- The table ---- */

static bool run_one(const char *path, int32_t n_ctx, int type, int threads, const char *text, bool compute)
{
    char ctx[16], number[16], team[16], self[4096], line[128];
    int64_t predicted, measured;
    int out[2], status;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    snprintf(ctx, sizeof ctx, "%d", n_ctx);
    snprintf(number, sizeof number, "%d", type);
    snprintf(team, sizeof team, "%d", threads);
    if (length < 0 || pipe(out))
        die("the system refuses a process");
    self[length] = '\0';
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl(self, self, "-1", compute ? "computed" : "filled", "-t", team, "-f", text, path, ctx, number, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *in = fdopen(out[0], "r");
    bool good = in && fgets(line, sizeof line, in) && sscanf(line, "%" SCNd64 " %" SCNd64, &predicted, &measured) == 2;
    if (in)
        fclose(in);
    if (waitpid(pid, &status, 0) != pid || status != 0 || !good)
        die("a measurement failed");
    double off = (double)(predicted - measured) / (double)measured;
    const char *slash = strrchr(path, '/');
    printf("| %s | %d | %s | %.1f | %.1f | %+.1f %% |\n", slash ? slash + 1 : path, n_ctx, type_names[type],
           (double)predicted / 1048576, (double)measured / 1048576, 100 * off);
    fflush(stdout);
    return fabs(off) <= LIMIT;
}

static int run_all(char **paths, int n, int longest, int threads, const char *text, bool compute)
{
    static const int32_t contexts[] = {512, 2048, 8192, 32768};
    int bad = 0;
    puts("| model | context | cache | predicted MiB | measured MiB | off |\n|---|---|---|---|---|---|");
    for (int i = 0; i < n; i++)
        for (size_t c = 0; c < sizeof contexts / sizeof *contexts && contexts[c] <= longest; c++)
            for (int type = 0; type < 3; type++)
                bad += !run_one(paths[i], contexts[c], type, threads, text, compute);
    return bad > 0;
}

int main(int argc, char **argv)
{
    int threads = 0, longest = 32768;
    bool compute = false;
    const char *text = NULL, *one = NULL;
    for (int c; (c = getopt(argc, argv, "ct:n:f:1:")) != -1;) {
        switch (c) {
        case 'c':
            compute = true;
            break;
        case 'n':
            longest = atoi(optarg);
            break;
        case 't':
            threads = atoi(optarg);
            break;
        case 'f':
            text = optarg;
            break;
        case '1':
            one = optarg;
            break; /* by this program itself */
        default:
            return 2;
        }
    }
    if (!text || optind >= argc || (one && argc - optind != 3)) {
        fprintf(stderr, "usage: memory [-c] [-n LONGEST] [-t THREADS] -f TEXT MODEL...\n");
        return 2;
    }
    if (!one)
        return run_all(argv + optind, argc - optind, longest, threads, text, compute);
    measure(argv[optind], atoi(argv[optind + 1]), (mica_kv_type)atoi(argv[optind + 2]), threads, text,
            strcmp(one, "computed") == 0);
    return 0;
}
