/* The arithmetic that must come out right: often quoted products, from first principles, each once. Where a figure in
 * circulation is wrong, docs/claims.md says so; here is the right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "mica/mica_ops.h"
#include "router/cost.h"

static void expect(double got, double wanted, double part)
{
    if (!(fabs(got - wanted) <= part * fabs(wanted)))
        fail_msg("%.10g is not %.10g", got, wanted);
}

/* 68 GB/s x 0.60 / 1.9 GB = 21.5 tokens/s. */
static void decode_ceiling(void **state)
{
    const mica_model_cost m = {.streamed_bytes = 1900000000, .kv_element_bytes = 2};
    (void)state;
    expect(mica_roofline_of(&m, 68e9 * 0.60, NAN, NAN, 0, 1).decode_ceiling_tps, 21.5, 0.002);
}

/* 3e9 parameters x 0.55 B = 1.65 GB, whose ceiling is 24.7; a real file of 1.9 GB has embeddings and 6-bit tensors in it. */
static void real_bytes_count(void **state)
{
    const mica_model_cost rule = {.streamed_bytes = (int64_t)(3e9 * 0.55)}, file = {.streamed_bytes = 1900000000};
    (void)state;
    expect((double)rule.streamed_bytes, 1.65e9, 1e-9);
    double wrong = mica_roofline_of(&rule, 68e9 * 0.60, NAN, NAN, 0, 1).decode_ceiling_tps;
    expect(wrong, 24.7, 0.002);
    expect(wrong / mica_roofline_of(&file, 68e9 * 0.60, NAN, NAN, 0, 1).decode_ceiling_tps, 1.9 / 1.65, 1e-9);
}

/* 32 layers x 8 KV heads x 128 x 2 (K, V) x 2 B x 4096 = 512 MiB, not 400 MB; of a file of 1.9 GB that is 28 %, not 21 %. */
static void kv_of_32_layers(void **state)
{
    const mica_model_cost m = {.n_layers = 32, .n_kv_heads = 8, .head_dim = 128, .kv_element_bytes = 2};
    (void)state;
    assert_true(mica_model_kv_bytes(&m, 4096) == 536870912.0);
    assert_true(mica_model_kv_bytes(&m, 4096) == 512.0 * 1024 * 1024);
    expect(mica_model_kv_bytes(&m, 4096) / 1.9e9, 0.2826, 0.001);
}

/* Llama 3.2 3B at 2048: 224 MiB in F16, not 180 MB; with int8 and scales (34 bytes for 32) 119 MiB, which is 124.8 MB. */
static void kv_of_28_layers(void **state)
{
    mica_model_cost m = {.n_layers = 28, .n_kv_heads = 8, .head_dim = 128, .kv_element_bytes = 2};
    (void)state;
    assert_true(mica_model_kv_bytes(&m, 2048) == 234881024.0);
    assert_true(mica_model_kv_bytes(&m, 2048) == 224.0 * 1024 * 1024);
    m.kv_element_bytes = 34.0 / 32;
    expect(mica_model_kv_bytes(&m, 2048), 119.0 * 1024 * 1024, 1e-9);
    assert_true(mica_model_kv_bytes(&m, 2048) >= 119e6 && mica_model_kv_bytes(&m, 2048) <= 125e6);
}

/* 4 W / 30 tokens/s = 0.1333 J = 37.04 Wh a million = $0.0074 at $0.20 per kWh. */
static void energy(void **state)
{
    (void)state;
    mica_joules_per_token j = mica_energy_per_token((mica_watts){4}, (mica_tokens_per_s){30});
    mica_wh_per_million wh = mica_wh_of_token(j);
    expect(j.v, 0.1333, 0.0005);
    expect(wh.v, 37.04, 0.0002);
    expect(mica_usd_of_energy(wh, (mica_usd_per_kwh){0.20}).v, 0.0074, 0.002);
    /* At 12 tokens/s, the rate that the hardware's price was spread over, it is 92.6 Wh and $0.0185. */
    wh = mica_wh_of_token(mica_energy_per_token((mica_watts){4}, (mica_tokens_per_s){12}));
    expect(wh.v, 92.59, 0.0001);
    expect(mica_usd_of_energy(wh, (mica_usd_per_kwh){0.20}).v, 0.0185, 0.002);
}

/* 37.04 Wh of a battery of 13.9 Wh: 2.66 charges a million tokens, 266 (not 26) for 100 million. */
static void battery(void **state)
{
    (void)state;
    expect(mica_charges_of((mica_wh_per_million){37.04}, (mica_tokens){1e6}, (mica_watt_hours){13.9}).v, 2.66, 0.002);
    expect(mica_charges_of((mica_wh_per_million){37.04}, (mica_tokens){100e6}, (mica_watt_hours){13.9}).v, 266, 0.002);
}

/* $400, 3 years, a duty of 20 %, 12 tokens/s: 227.06 million tokens, $1.76 a million (not $0.0018). */
static void hardware(void **state)
{
    (void)state;
    mica_tokens life = mica_lifetime_tokens((mica_tokens_per_s){12}, (mica_years){3}, (mica_part){0.20});
    expect(life.v, 227.06e6, 0.0001);
    expect(mica_lifetime_tokens((mica_tokens_per_s){12}, (mica_years){1}, (mica_part){0.20}).v, 75.7e6, 0.0005);
    expect(mica_usd_of_device((mica_usd){400}, life).v, 1.76, 0.002);
}

/* 100 million tokens at 12 tokens/s on one device: 96.5 days. */
static void time_of_a_workload(void **state)
{
    (void)state;
    expect(mica_days_of(mica_time_of_tokens((mica_tokens){100e6}, (mica_tokens_per_s){12}, (mica_part){1})), 96.5, 0.001);
}

/* 4000 against 512 tokens: 7.8 times in the linear part, 61 times in attention; the total depends on the model: here the shape
 * of Llama 3.2 3B. */
static void prefill(void **state)
{
    const mica_model_cost m = {.layer_weights = 28LL * 100663296,
                               .output_weights = 128256LL * 3072,
                               .n_layers = 28,
                               .n_heads = 24,
                               .n_kv_heads = 8,
                               .head_dim = 128,
                               .kv_element_bytes = 2};
    (void)state;
    mica_prefill_ops small = mica_model_prefill_ops(&m, 512), large = mica_model_prefill_ops(&m, 4000);
    expect((large.linear - 2.0 * (double)m.output_weights) / (small.linear - 2.0 * (double)m.output_weights), 4000.0 / 512,
           1e-9);
    expect(large.linear / small.linear, 7.8, 0.005);
    expect(large.attention / small.attention, 61, 0.01);
    assert_true(large.total == large.linear + large.attention);
    expect(small.attention, 28 * 4.0 * 24 * 128 * (512.0 * 513 / 2), 1e-12);
    double total = large.total / small.total;
    assert_true(total > 8 && total < 9.5); /* attention is 1.5 % of the small prompt's operations, 11 % of the large one's */
    expect(small.attention / small.total, 0.0155, 0.05);
    expect(large.attention / large.total, 0.109, 0.05);
}

/* 2 operations for 0.55 B of a weight are 3.6 a byte, not 2. */
static void intensity(void **state)
{
    const mica_model_cost m = {.streamed_bytes = 1650000000, .layer_weights = 3000000000LL};
    (void)state;
    expect(2.0 * (double)m.layer_weights / mica_model_decode_bytes(&m, 0), 3.64, 0.001);
}

/* At 3:1: $0.2625, $0.175, $1.60, $0.20; 100 million tokens of those: $26, $18, $160, $20, not thousands. */
static void blends(void **state)
{
    static const double rows[][4] = {
        {0.15, 0.60, 0.2625, 26.25}, {0.10, 0.40, 0.175, 17.5}, {0.80, 4.00, 1.60, 160}, {0.20, 0.20, 0.20, 20}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mica_usd_per_million p = mica_usd_blend((mica_usd_per_million){rows[i][0]}, (mica_usd_per_million){rows[i][1]},
                                                (mica_tokens){3}, (mica_tokens){1});
        expect(p.v, rows[i][2], 1e-9);
        expect(mica_usd_of_tokens(p, (mica_tokens){100e6}).v, rows[i][3], 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_ceiling), cmocka_unit_test(real_bytes_count), cmocka_unit_test(kv_of_32_layers),
        cmocka_unit_test(kv_of_28_layers), cmocka_unit_test(energy), cmocka_unit_test(battery), cmocka_unit_test(hardware),
        cmocka_unit_test(time_of_a_workload), cmocka_unit_test(prefill), cmocka_unit_test(intensity), cmocka_unit_test(blends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
