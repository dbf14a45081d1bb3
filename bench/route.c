/* route - how long the router thinks: decisions of a policy that comes with the program, one by one, with and without its
 * classifier, and what a record of one takes.
 *
 *     build/release/bench/route SHARE EXAMPLES.jsonl [N]       SHARE: share/mica; N: decisions a row, 20000
 *
 * Requests are the texts of EXAMPLES in turn; "4 KB" and "64 KB" are one of them repeated to that length. Prints a table of
 * percentiles in microseconds: of the thread's own CPU time, which other work on the machine does not lengthen, and the 99th of
 * wall time, which it does. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "mica/mica_router.h"

enum { TEXTS_MAX = 1000 };

static char *texts[TEXTS_MAX];
static size_t n_texts;

static void die(const char *message)
{
    fprintf(stderr, "route: %s\n", message);
    exit(1);
}

static void read_texts(const char *path)
{
    char line[8192];
    FILE *file = fopen(path, "r");
    if (!file)
        die("the examples cannot be opened");
    while (n_texts < TEXTS_MAX && fgets(line, sizeof line, file)) {
        json_t *root = json_loads(line, 0, NULL);
        const char *text = json_string_value(json_object_get(root, "text"));
        if (text)
            texts[n_texts++] = strdup(text);
        json_decref(root);
    }
    fclose(file);
    if (n_texts == 0)
        die("there are no examples");
}

/* The first text again and again. */
static char *repeat_to(size_t length)
{
    char *out = malloc(length + 1);
    size_t n = strlen(texts[0]);
    if (!out)
        die("no memory");
    for (size_t i = 0; i < length; i++)
        out[i] = texts[0][i % n];
    out[length] = '\0';
    return out;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct kind_of_decision {
    const char *name;
    const char *task; /* a rule knows it: the classifier is not asked */
    const char *text; /* NULL: the examples in turn */
    bool record;
} kind_of_decision;

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void measure(const mica_route_policy *policy, const mica_route_state *state, const kind_of_decision *row, int64_t *ns,
                    int64_t *wall_ns, size_t n)
{
    mica_route_request r = mica_route_request_default();
    mica_error err;
    size_t asked = 0;
    r.task = row->task;
    r.id = "0123456789abcdef0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        static mica_route_decision d;
        char *line = NULL;
        size_t length;
        r.text = row->text ? row->text : texts[i % n_texts];
        r.length = strlen(r.text);
        int64_t start = mica_now_ns(), cpu_start = cpu_ns();
        mica_status status = mica_route_decide(policy, &r, state, &d, &err);
        if (!status && row->record)
            status = mica_route_record(policy, &d, &r, state, NULL, &line, &length, &err);
        ns[i] = cpu_ns() - cpu_start;
        wall_ns[i] = mica_now_ns() - start;
        if (status)
            die(err.message);
        asked += strcmp(d.class_by, "classifier") == 0;
        mica_free(line);
    }
    qsort(ns, n, sizeof *ns, by_value);
    qsort(wall_ns, n, sizeof *wall_ns, by_value);
    printf("| %s | %zu %% | %.1f | %.1f | %.1f | %.1f | %.1f |\n", row->name, 100 * asked / n, (double)ns[n / 2] / 1e3,
           (double)ns[n * 95 / 100] / 1e3, (double)ns[n * 99 / 100] / 1e3, (double)ns[n - 1] / 1e3,
           (double)wall_ns[n * 99 / 100] / 1e3);
}

int main(int argc, char **argv)
{
    char path[4096];
    mica_route_policy *policy;
    mica_error err;
    size_t n = argc > 3 ? (size_t)atoi(argv[3]) : 20000;
    if (argc < 3 || n < 100)
        die("usage: route SHARE EXAMPLES.jsonl [N]");
    read_texts(argv[2]);
    snprintf(path, sizeof path, "%s/router/policies/remote.json", argv[1]);
    if (mica_route_policy_open(path, argv[1], &policy, &err))
        die(err.message);
    mica_route_rung_state rungs[3] = {mica_route_rung_state_default("3b"), mica_route_rung_state_default("1.5b"),
                                      mica_route_rung_state_default("1b")};
    mica_route_state state = mica_route_state_default();
    state.device.ram_bytes = 8000000000;
    state.network = MICA_YES;
    state.rungs = rungs;
    state.n_rungs = 3;
    for (int i = 0; i < 3; i++)
        rungs[i].file = MICA_YES;
    int64_t *ns = malloc(n * sizeof *ns), *wall_ns = malloc(n * sizeof *wall_ns);
    char *long_text = repeat_to(4096), *longest = repeat_to(65536);
    const kind_of_decision rows[] = {
        {"task named by the request", "classify", NULL, false},  {"the same and a record", "classify", NULL, true},
        {"by the classifier", NULL, NULL, false},                {"the same and a record", NULL, NULL, true},
        {"by the classifier, 4 KB", NULL, long_text, false},     {"64 KB: the length decides", NULL, longest, false},
    };
    if (!ns || !wall_ns)
        die("no memory");
    puts("| decision | classifier | p50, µs | p95, µs | p99, µs | longest, µs | p99 of wall time, µs |\n|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(policy, &state, &rows[i], ns, wall_ns, n);
    mica_route_policy_release(policy);
    free(ns);
    free(wall_ns);
    free(long_text);
    free(longest);
    return 0;
}
