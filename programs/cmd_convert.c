/* cmd_convert.c - mica convert: a model file from a Hugging Face folder. */
#include <stdio.h>

#include "base/clock.h"
#include "commands.h"
#include "convert/convert.h"
#include "interrupt.h"
#include "load.h"
#include "making.h"

#define MB(bytes) ((double)(bytes) / 1e6)

static void warn(const mica_convert_result *r)
{
    char text[200];
    if (!r->n_short_rows)
        return;
    snprintf(text, sizeof text, "%lld matrices have rows that the format's blocks do not divide; they got another of about as many bits",
             (long long)r->n_short_rows);
    mica_term_warning(NULL, text);
}

static int print_result(const mica_opts *o, const mica_convert_result *r, double seconds)
{
    if (o->json)
        return mica_json_line(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:I, s:f}", "file", o->args[1], "architecture", r->arch, "type",
                                        r->type, "tensors", (json_int_t)r->n_tensors, "bytes_in", (json_int_t)r->bytes_in, "bytes_out",
                                        (json_int_t)r->bytes_out, "weights", (json_int_t)r->weights, "bits_per_weight", r->bits, "other_format",
                                        (json_int_t)r->n_short_rows, "seconds", seconds))
                   ? CODE_OK
                   : CODE_FAILED;
    printf("%s: %s, %s, %zu tensors, %.1f MB from %.1f MB in %.1f s\n", o->args[1], r->arch, r->type, r->n_tensors, MB(r->bytes_out),
           MB(r->bytes_in), seconds);
    return CODE_OK;
}

static int convert(const mica_opts *o, mica_convert_options *options)
{
    mica_error err;
    mica_convert_result result;
    mica_bar bar = {.what = "converting"};
    options->on_progress = mica_making_progress;
    options->user = &bar;
    mica_interrupt_catch();
    int64_t start = mica_now_ns();
    mica_status status = mica_convert(o->args[0], o->args[1], options, &result, &err);
    double seconds = (double)(mica_now_ns() - start) / 1e9;
    mica_bar_end(&bar);
    if (status)
        return mica_load_failed(&err);
    warn(&result);
    return print_result(o, &result, seconds);
}

int mica_cmd_convert(const mica_opts *o)
{
    mica_convert_options options = {.recipe = o->type ? mica_recipe_find(o->type) : NULL};
    if (o->type && !options.recipe)
        return mica_term_usage("--type: \"%s\" is no type; there are %s", o->type, mica_recipe_names());
    int code = mica_making_threads(o, &options.n_threads);
    return code == CODE_OK ? convert(o, &options) : code;
}
