/* cmd_eval.c - mica eval: a task over a labelled set, and what came of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "base/json.h"
#include "eval_score.h"
#include "interrupt.h"
#include "task_file.h"

typedef struct eval {
    const mica_opts *o;
    const char *path; /* of the set */
    mica_task_file file;
    mica_eval_score score;
} eval;

/* ---- The set ---- */

static int run_item(eval *e, const json_t *item, size_t line)
{
    const json_t *text = json_object_get(item, "input"), *suffix = json_object_get(item, "suffix");
    mica_task_input input = mica_task_input_default();
    json_t *result = NULL;
    const char *missing;
    if (!json_is_string(text) || (suffix && !json_is_string(suffix)))
        return mica_term_error("%s: line %zu has no \"input\" that is a string", e->path, line);
    input.text = json_string_value(text);
    input.length = json_string_length(text);
    input.suffix = json_string_value(suffix);
    input.suffix_length = json_string_length(suffix);
    int code = mica_task_file_run(&e->file, &input, &result);
    if (code != CODE_OK)
        return code;
    double ms = json_number_value(json_object_get(json_object_get(result, "usage"), "ms"));
    if (!mica_eval_add(&e->score, e->file.info.kind, item, result, ms, &missing))
        code = mica_term_error("%s: line %zu has no \"%s\" as a task of the kind %s wants it", e->path, line, missing,
                               mica_task_kind_name(e->file.info.kind));
    json_decref(result);
    return e->score.failed ? mica_term_error("not enough memory for the scores") : code;
}

static int run_set(eval *e, const char *text, size_t length)
{
    const char *end = text + length;
    mica_bar bar = {.what = "evaluating"};
    json_error_t reason;
    int code = CODE_OK;
    size_t line = 0;
    while (text < end && code == CODE_OK && (e->o->items == 0 || e->score.n < e->o->items)) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        line++;
        mica_bar_show(&bar, (double)(length - (size_t)(end - text)) / (double)length);
        if (mica_interrupt_count() > 0)
            code = CODE_INTERRUPTED;
        else if (n > 0) {
            json_t *item = mica_json_loadb(text, n, 0, &reason);
            code = item ? run_item(e, item, line)
                        : mica_term_error("%s: line %zu is not JSON: column %d: %s", e->path, line, reason.column, reason.text);
            json_decref(item);
        }
        text += n + (stop != NULL);
    }
    mica_bar_end(&bar);
    if (code == CODE_OK && e->score.n == 0)
        return mica_term_error("%s has no items", e->path);
    return code;
}

/* ---- What came of it ---- */

static json_t *class_json(const mica_eval_class *c)
{
    return json_pack("{s:s?, s:I, s:I, s:I, s:f, s:f, s:f}", "name", c->name, "hits", (json_int_t)c->hits, "wrong",
                     (json_int_t)c->wrong, "missed", (json_int_t)c->missed, "precision", mica_eval_precision(c), "recall",
                     mica_eval_recall(c), "f1", mica_eval_f1(c));
}

/* The mean over the classes: of labels the sums would say nothing but the accuracy again. */
static void macro(const mica_eval_score *s, double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (size_t i = 0; i < s->n_classes; i++) {
        out[0] += mica_eval_precision(&s->classes[i]) / (double)s->n_classes;
        out[1] += mica_eval_recall(&s->classes[i]) / (double)s->n_classes;
        out[2] += mica_eval_f1(&s->classes[i]) / (double)s->n_classes;
    }
}

static int print_json(eval *e)
{
    mica_eval_score *s = &e->score;
    mica_eval_class total = mica_eval_total(s);
    json_t *classes = json_array();
    for (size_t i = 0; i < s->n_classes; i++)
        json_array_append_new(classes, class_json(&s->classes[i]));
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:o}", "task", e->file.info.name, "kind",
                  mica_task_kind_name(e->file.info.kind), "n", (json_int_t)s->n, "accuracy", s->right / (double)s->n, "ms_p50",
                  mica_eval_quantile(s, 0.5), "ms_p95", mica_eval_quantile(s, 0.95), "classes", classes);
    if (s->n_classes > 0) {
        double m[3];
        macro(s, m);
        json_object_set_new(object, "total", class_json(&total));
        json_object_set_new(object, "macro", json_pack("{s:f, s:f, s:f}", "precision", m[0], "recall", m[1], "f1", m[2]));
    }
    if (e->file.info.kind == MICA_TASK_SUMMARISE) {
        json_object_set_new(object, "within_bound", json_real((double)s->bounded / (double)s->n));
        json_object_set_new(object, "length_ratio", json_real(s->words / s->input_words));
    }
    return mica_json_line(object) ? CODE_OK : CODE_FAILED;
}

static void print_class(const char *name, const mica_eval_class *c)
{
    printf("%-16s %9.3f %9.3f %9.3f %6lld\n", name, mica_eval_precision(c), mica_eval_recall(c), mica_eval_f1(c),
           (long long)(c->hits + c->missed));
}

static int print_text(eval *e)
{
    mica_eval_score *s = &e->score;
    bool facts = e->file.info.kind == MICA_TASK_SUMMARISE;
    printf("%s: %.3f of %lld items; p50 %.1f ms, p95 %.1f ms\n", facts ? "facts kept" : "accuracy", s->right / (double)s->n,
           (long long)s->n, mica_eval_quantile(s, 0.5), mica_eval_quantile(s, 0.95));
    if (facts)
        printf("within the bound: %.3f; length: %.3f of the input's words\n", (double)s->bounded / (double)s->n,
               s->words / s->input_words);
    if (s->n_classes == 0)
        return CODE_OK;
    printf("%-16s %9s %9s %9s %6s\n", "", "precision", "recall", "F1", "n");
    for (size_t i = 0; i < s->n_classes; i++)
        print_class(s->classes[i].name, &s->classes[i]);
    mica_eval_class total = mica_eval_total(s);
    if (e->file.info.kind != MICA_TASK_CLASSIFY && e->file.info.kind != MICA_TASK_ROUTE)
        print_class("all", &total);
    double m[3];
    macro(s, m);
    printf("%-16s %9.3f %9.3f %9.3f\n", "mean", m[0], m[1], m[2]);
    return CODE_OK;
}

int mica_cmd_eval(const mica_opts *o)
{
    eval e = {.o = o, .path = o->data};
    char *text = NULL, path[4096];
    size_t length = 0;
    int code = o->data ? CODE_OK : mica_task_file_data(o, o->args[0], path);
    e.path = o->data ? o->data : path;
    if (code == CODE_OK)
        code = mica_load_file(e.path, &text, &length);
    if (code == CODE_OK)
        code = mica_task_file_open(o, o->args[0], &e.file);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        code = run_set(&e, text, length);
    }
    if (code == CODE_OK)
        code = o->json ? print_json(&e) : print_text(&e);
    mica_eval_free(&e.score);
    mica_task_file_close(&e.file);
    free(text);
    return code;
}
