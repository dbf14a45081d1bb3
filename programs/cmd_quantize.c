/* cmd_quantize.c - mica quantize: a model file in other formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "commands.h"
#include "convert/quantize.h"
#include "interrupt.h"
#include "load.h"
#include "making.h"

#define MB(bytes) ((double)(bytes) / 1e6)

/* "PATTERN=TYPE" */
static int read_override(const char *text, mica_quantize_override *out, char **pattern)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return mica_term_usage("--tensor: \"%s\" is not PATTERN=TYPE", text);
    out->quant = mica_quant_by_name(equals + 1);
    if (!out->quant)
        return mica_term_usage("--tensor: \"%s\" is no format; there are %s", equals + 1, mica_quant_names());
    *pattern = strndup(text, (size_t)(equals - text));
    out->pattern = *pattern;
    return *pattern ? CODE_OK : mica_term_error("not enough memory for the command line");
}

static int read_overrides(const mica_opts *o, mica_quantize_override *overrides, char **patterns)
{
    int code = overrides && patterns ? CODE_OK : mica_term_error("not enough memory for the command line");
    for (size_t i = 0; i < o->tensor_types.n && code == CODE_OK; i++)
        code = read_override(o->tensor_types.item[i], &overrides[i], &patterns[i]);
    return code;
}

static void warn(const mica_quantize_result *r, bool weighted)
{
    char text[200];
    if (r->was_quantized)
        mica_term_warning(NULL, "the input is quantised already, so its errors are added to the new ones: begin with an F16 or BF16 file if "
                                "there is one");
    if (r->n_short_rows) {
        snprintf(text, sizeof text, "%lld matrices have rows that the format's blocks do not divide; they got another of about as many bits",
                 (long long)r->n_short_rows);
        mica_term_warning(NULL, text);
    }
    if (weighted && r->n_unweighted) {
        snprintf(text, sizeof text, "the importance matrix does not know %lld matrices", (long long)r->n_unweighted);
        mica_term_warning(NULL, text);
    }
}

static int print_result(const mica_opts *o, const mica_quantize_result *r, int threads, double seconds)
{
    if (o->json)
        return mica_json_line(json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:i, s:f}", "file", o->args[1], "bytes_in",
                                        (json_int_t)r->bytes_in, "bytes_out", (json_int_t)r->bytes_out, "weights", (json_int_t)r->weights,
                                        "bits_per_weight", r->bits, "encoded", (json_int_t)r->n_encoded, "copied", (json_int_t)r->n_copied,
                                        "other_format", (json_int_t)r->n_short_rows, "threads", threads, "seconds", seconds))
                   ? CODE_OK
                   : CODE_FAILED;
    printf("%s: %.1f MB, %.3f bits a weight, from %.1f MB in %.1f s (%d thread%s, %.1f million weights/s)\n", o->args[1], MB(r->bytes_out),
           r->bits, MB(r->bytes_in), seconds, threads, threads == 1 ? "" : "s", (double)r->weights / seconds / 1e6);
    return CODE_OK;
}

static int quantize(const mica_opts *o, mica_quantize_options *options)
{
    mica_error err;
    mica_gguf *in;
    mica_quantize_result result;
    mica_bar bar = {.what = "quantising"};
    if (mica_gguf_open(o->args[0], &in, &err))
        return mica_load_failed(&err);
    options->on_progress = mica_making_progress;
    options->user = &bar;
    mica_interrupt_catch();
    int64_t start = mica_now_ns();
    mica_status status = mica_quantize(in, o->args[1], options, &result, &err);
    double seconds = (double)(mica_now_ns() - start) / 1e9;
    mica_bar_end(&bar);
    mica_gguf_close(in);
    if (status)
        return mica_load_failed(&err);
    warn(&result, options->imatrix != NULL);
    return print_result(o, &result, options->n_threads, seconds);
}

int mica_cmd_quantize(const mica_opts *o)
{
    mica_error err;
    mica_imatrix *imatrix = NULL;
    mica_quantize_override *overrides = calloc(o->tensor_types.n + 1, sizeof *overrides);
    char **patterns = calloc(o->tensor_types.n + 1, sizeof *patterns);
    mica_quantize_options options = {.recipe = mica_recipe_find(o->args[2]), .overrides = overrides, .n_overrides = o->tensor_types.n};
    int code = options.recipe ? CODE_OK : mica_term_usage("\"%s\" is no type; there are %s", o->args[2], mica_recipe_names());
    if (code == CODE_OK)
        code = read_overrides(o, overrides, patterns);
    if (code == CODE_OK)
        code = mica_making_threads(o, &options.n_threads);
    if (code == CODE_OK && o->imatrix && mica_imatrix_read(o->imatrix, &imatrix, &err))
        code = mica_load_failed(&err);
    options.imatrix = imatrix;
    if (code == CODE_OK)
        code = quantize(o, &options);
    mica_imatrix_free(imatrix);
    for (size_t i = 0; patterns && i < o->tensor_types.n; i++)
        free(patterns[i]);
    free(patterns);
    free(overrides);
    return code;
}
