/* hf_rope.c - how positions rotate, as config.json says it: rope_parameters (since transformers 5), or rope_theta and rope_scaling. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "convert/hf_config.h"
#include "convert/hf_json.h"

/* The object for layers of this type: transformers 5 has one for each type of layer where they differ. NULL: there is none. */
static const json_t *scaling_of(const mica_hf_config *c, const char *layers)
{
    const json_t *p = mica_hf_get(c->text, "rope_parameters");
    const json_t *own = mica_hf_get(p, layers);
    return own ? own : p ? p : mica_hf_get(c->text, "rope_scaling");
}

static const char *type_of(const json_t *scaling)
{
    const char *type = mica_hf_text(scaling, "rope_type");
    type = type ? type : mica_hf_text(scaling, "type");
    return type ? type : "default";
}

static mica_status read_base(const mica_hf_config *c, const json_t *scaling, double *base, mica_error *err)
{
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "rope_theta", false, base, err);
    if (!status)
        status = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "rope_theta", false, base, err);
    if (!status && !(*base > 0.0 && isfinite((float)*base)))
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": rope_theta is %g, which must be above 0", *base);
    return status;
}

static mica_status read_factor(const json_t *scaling, double *factor, mica_error *err)
{
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "factor", true, factor, err);
    if (!status && !(*factor > 0.0))
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": the factor of the RoPE scaling is %g, which must be above 0", *factor);
    return status;
}

/* Llama 3.x: divisors of 1 for short wavelengths, `factor` for long ones, a blend between. */
static mica_status read_llama3(mica_hf_config *c, const json_t *scaling, mica_error *err)
{
    double factor = 1.0, low = 1.0, high = 4.0, trained = 0.0;
    mica_status s;
    if ((s = read_factor(scaling, &factor, err)) || (s = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "low_freq_factor", true, &low, err)) ||
        (s = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "high_freq_factor", true, &high, err)) ||
        (s = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "original_max_position_embeddings", true, &trained, err)))
        return s;
    if (!(high > low && trained > 0.0))
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": the RoPE scaling \"llama3\" wants high_freq_factor above low_freq_factor");
    c->rope.freqs = mica_new_array((size_t)c->rope.dim / 2, sizeof *c->rope.freqs);
    if (!c->rope.freqs)
        return mica_fail_nomem(err, (size_t)c->rope.dim * 2, "RoPE factors");
    for (int64_t i = 0; i < c->rope.dim / 2; i++) {
        double wavelength = 2.0 * 3.14159265358979323846 * pow(c->rope.base, 2.0 * (double)i / (double)c->rope.dim);
        double blend = fmin(fmax((trained / wavelength - low) / (high - low), 0.0), 1.0);
        c->rope.freqs[i] = (float)(1.0 / ((1.0 - blend) / factor + blend));
    }
    return MICA_OK;
}

/* Phi-3: two sets of divisors, and a factor on sine and cosine that makes up for the longer context. */
static mica_status read_longrope(mica_hf_config *c, const json_t *scaling, mica_error *err)
{
    mica_hf_rope *r = &c->rope;
    size_t n = (size_t)r->dim / 2;
    double trained = 0.0;
    mica_status s = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "original_max_position_embeddings", false, &trained, err);
    if (s || (s = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "original_max_position_embeddings", trained == 0.0, &trained, err)) ||
        (s = mica_hf_get_floats(MICA_HF_CONFIG, scaling, "long_factor", n, &r->longs, err)) ||
        (s = mica_hf_get_floats(MICA_HF_CONFIG, scaling, "short_factor", n, &r->shorts, err)))
        return s;
    if (!(trained >= 2.0 && trained <= INT32_MAX))
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": original_max_position_embeddings is %g", trained);
    double growth = (double)c->n_ctx / trained;
    r->original_ctx = (int64_t)trained;
    r->magnitude = growth > 1.0 ? sqrt(1.0 + log(growth) / log(trained)) : 1.0;
    return mica_hf_get_f64(MICA_HF_CONFIG, scaling, "attention_factor", false, &r->magnitude, err);
}

static mica_status read_scaling(mica_hf_config *c, const json_t *scaling, mica_error *err)
{
    const char *type = type_of(scaling);
    bool phi3 = strcmp(c->arch->name, "phi3") == 0;
    if (strcmp(type, "default") == 0)
        return MICA_OK;
    if (strcmp(type, "linear") == 0)
        return read_factor(scaling, &c->rope.linear, err);
    if (strcmp(type, "llama3") == 0)
        return read_llama3(c, scaling, err);
    if (phi3 && (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0))
        return read_longrope(c, scaling, err);
    return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": RoPE scaling \"%.40s\" cannot be computed for %s (default, linear, llama3%s can)", type,
                     c->arch->name, phi3 ? ", longrope" : "");
}

/* Gemma 3: windowed layers have a base of their own, and no scaling. */
static mica_status read_window_base(mica_hf_config *c, mica_error *err)
{
    const json_t *p = mica_hf_get(mica_hf_get(c->text, "rope_parameters"), "sliding_attention");
    c->rope.window_base = 10000.0;
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "rope_local_base_freq", false, &c->rope.window_base, err);
    if (!status)
        status = mica_hf_get_f64(MICA_HF_CONFIG, p, "rope_theta", false, &c->rope.window_base, err);
    if (!status && strcmp(type_of(p), "default") != 0)
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": RoPE scaling \"%.40s\" of windowed layers cannot be computed", type_of(p));
    return status;
}

static mica_status read_dim(mica_hf_config *c, const json_t *scaling, mica_error *err)
{
    double part = 1.0;
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "partial_rotary_factor", false, &part, err);
    if (!status)
        status = mica_hf_get_f64(MICA_HF_CONFIG, scaling, "partial_rotary_factor", false, &part, err);
    if (status)
        return status;
    c->rope.dim = part > 0.0 && part <= 1.0 ? (int64_t)((double)c->head_dim * part) : 0;
    if (c->rope.dim < 2 || c->rope.dim % 2 != 0)
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": a part of %g of each head rotates, which is no even number of values", part);
    if (c->rope.dim != c->head_dim && c->halves)
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": only a part of each head rotates, which cannot be computed for %s", c->arch->name);
    return MICA_OK;
}

mica_status mica_hf_rope_read(mica_hf_config *c, mica_error *err)
{
    bool gemma3 = strcmp(c->arch->name, "gemma3") == 0;
    const json_t *scaling = scaling_of(c, "full_attention");
    c->rope.base = gemma3 ? 1000000.0 : 10000.0;
    c->rope.linear = c->rope.magnitude = 1.0;
    mica_status s = read_base(c, scaling, &c->rope.base, err);
    if (s || (s = read_dim(c, scaling, err)) || (s = read_scaling(c, scaling, err)))
        return s;
    return gemma3 ? read_window_base(c, err) : MICA_OK;
}

void mica_hf_rope_write(const mica_hf_config *c, mica_gguf_writer *w)
{
    const mica_hf_rope *r = &c->rope;
    mica_hf_put_f32(c, w, "rope.freq_base", r->base);
    mica_hf_put_u32(c, w, "rope.dimension_count", r->dim);
    if (r->window_base != 0.0)
        mica_hf_put_f32(c, w, "rope.freq_base_swa", r->window_base);
    if (r->linear != 1.0) {
        mica_hf_put_text(c, w, "rope.scaling.type", "linear");
        mica_hf_put_f32(c, w, "rope.scaling.factor", r->linear);
    }
    if (r->original_ctx) {
        mica_hf_put_text(c, w, "rope.scaling.type", "longrope");
        mica_hf_put_f32(c, w, "rope.scaling.attn_factor", r->magnitude);
        mica_hf_put_u32(c, w, "rope.scaling.original_context_length", r->original_ctx);
    }
}
