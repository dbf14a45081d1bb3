/* cmd_roofline.c - mica roofline: the machine measured, the model counted, and what follows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "load.h"
#include "mica/mica_ops.h"

typedef struct findings {
    mica_model_cost model;
    mica_machine machine;
    mica_roofline roof;
    double part; /* of the decode ceiling; NAN: no rate was given */
} findings;

static int find_threads(const mica_opts *o, int32_t *n)
{
    mica_thread_plan plan;
    mica_error err;
    *n = (int32_t)o->threads;
    if (o->threads > 0)
        return CODE_OK;
    if (mica_thread_plan_default(NULL, &plan, &err))
        return mica_load_failed(&err);
    *n = plan.n_threads;
    return CODE_OK;
}

static int find_out(const mica_opts *o, findings *f)
{
    char path[4096];
    int32_t threads;
    mica_error err;
    int code = mica_load_path(o, o->n_args > 0 ? o->args[0] : NULL, path);
    if (code == CODE_OK)
        code = find_threads(o, &threads);
    if (code != CODE_OK)
        return code;
    if (mica_model_cost_read(path, &f->model, &err) ||
        mica_machine_measure(threads, mica_load_kernels(o), 0, o->seconds, &f->machine, &err))
        return mica_load_failed(&err);
    f->roof = mica_roofline_of(&f->model, f->machine.read_bytes_per_s, f->machine.int8_ops_per_s,
                               f->machine.f32_ops_per_s, o->depth, o->prompt_tokens);
    f->part = o->tps > 0 ? mica_roofline_decode_part(&f->model, f->machine.read_bytes_per_s, o->depth, o->tps) : NAN;
    return CODE_OK;
}

static int print_json(const mica_opts *o, const findings *f)
{
    const mica_model_cost *m = &f->model;
    json_t *all =
        json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:I}", "threads", (int)f->machine.n_threads, "file_bytes",
                  (json_int_t)m->file_bytes, "streamed_bytes", (json_int_t)m->streamed_bytes, "lookup_bytes",
                  (json_int_t)m->lookup_bytes, "layer_weights", (json_int_t)m->layer_weights, "output_weights",
                  (json_int_t)m->output_weights, "layers", (int)m->n_layers, "windowed_layers", (int)m->n_windowed, "window",
                  (int)m->window, "depth", (json_int_t)o->depth, "prompt_tokens", (json_int_t)o->prompt_tokens);
    mica_prefill_ops ops = mica_model_prefill_ops(m, o->prompt_tokens);
    const struct { const char *name; double value; } numbers[] = {
        {"read_bytes_per_s", f->machine.read_bytes_per_s}, {"int8_ops_per_s", f->machine.int8_ops_per_s},
        {"f32_ops_per_s", f->machine.f32_ops_per_s}, {"decode_bytes", f->roof.decode_bytes},
        {"decode_ceiling_tps", f->roof.decode_ceiling_tps}, {"prefill_ops", f->roof.prefill_ops},
        {"prefill_linear_ops", ops.linear}, {"prefill_attention_ops", ops.attention},
        {"prefill_ceiling_tps", f->roof.prefill_ceiling_tps}, {"prefill_ceiling_ms", f->roof.prefill_ceiling_ms},
        {"crossover_tokens", f->roof.crossover_tokens}, {"decode_tps", o->tps > 0 ? o->tps : NAN}, {"decode_part", f->part},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(all, numbers[i].name, mica_json_real(numbers[i].value));
    return mica_json_line(all) ? CODE_OK : CODE_FAILED;
}

static void print_text(const mica_opts *o, const findings *f)
{
    const mica_model_cost *m = &f->model;
    mica_prefill_ops ops = mica_model_prefill_ops(m, o->prompt_tokens);
    printf("This machine, %d thread%s\n", f->machine.n_threads, f->machine.n_threads == 1 ? "" : "s");
    printf("  reads             %10.2f GB/s\n", f->machine.read_bytes_per_s * 1e-9);
    printf("  int8 products     %10.1f Gop/s   (Q8_0, 64 tokens)\n", f->machine.int8_ops_per_s * 1e-9);
    printf("  float products    %10.1f Gop/s   (F32, 64 tokens)\n", f->machine.f32_ops_per_s * 1e-9);
    printf("A token of the model\n");
    printf("  reads             %10.2f MB      of a file of %.2f MB; %.2f MB of it tables of which it reads a row\n",
           f->roof.decode_bytes * 1e-6, (double)m->file_bytes * 1e-6, (double)m->lookup_bytes * 1e-6);
    printf("  of that KV cache  %10.2f MB      after %" PRId64 " tokens\n", mica_model_kv_bytes(m, o->depth) * 1e-6, o->depth);
    printf("  multiplies        %10.2f million weights: %.2f operations a byte\n",
           (double)(m->layer_weights + m->output_weights) * 1e-6,
           2 * (double)(m->layer_weights + m->output_weights) / f->roof.decode_bytes);
    printf("Ceilings\n");
    printf("  decode            %10.1f tokens/s\n", f->roof.decode_ceiling_tps);
    printf("  prefill of %-6" PRId64 " %10.1f tokens/s, %.1f ms; %.1f %% of its operations are attention\n", o->prompt_tokens,
           f->roof.prefill_ceiling_tps, f->roof.prefill_ceiling_ms, 100 * ops.attention / ops.total);
    printf("  prompts of %.0f tokens and more are bound by arithmetic, shorter ones by memory\n",
           ceil(f->roof.crossover_tokens));
    if (isfinite(f->part))
        printf("%.2f tokens/s are %.1f %% of the decode ceiling (%.2f GB/s)\n", o->tps, 100 * f->part,
               mica_roofline_implied(f->roof.decode_bytes, o->tps) * 1e-9);
}

int mica_cmd_roofline(const mica_opts *o)
{
    findings f = {0};
    int code = find_out(o, &f);
    if (code == CODE_OK && o->json)
        code = print_json(o, &f);
    else if (code == CODE_OK)
        print_text(o, &f);
    return code;
}
