#include "bench/campaign_engine.h"

#include "base/clock.h"
#include "bench/host.h"
#include "bench/samples.h"

mica_status mica_engine_open(const mica_engine_options *options, mica_engine **out, json_t **head, mica_error *err)
{
    mica_engine *e = NULL;
    mica_status status =
        options->adapter ? mica_engine_adapter_open(options, &e, err) : mica_engine_batch_open(options, &e, err);
    if (status)
        return status;
    *head = json_copy(e->head);
    if (!*head || json_object_set_new(*head, "machine", mica_host_describe(options->adapter_options.sysroot)) != 0) {
        json_decref(*head);
        e->close(e);
        return mica_fail_nomem(err, 0, "what computes a campaign");
    }
    *out = e;
    return MICA_OK;
}

mica_status mica_engine_compute(mica_engine *e, const mica_shard *shard, mica_shard_result *result, mica_error *err)
{
    mica_sampler_thread *sampler;
    json_t *samples = NULL;
    mica_status status = mica_samples_start(e->options->adapter_options.sysroot, e->pid, 1.0, &sampler, err);
    if (status)
        return status;
    int64_t start_ns = mica_now_ns();
    status = e->run(e, shard, result, err);
    result->wall_ns = mica_now_ns() - start_ns;
    mica_samples_stop(sampler, &samples);
    json_decref(result->samples);
    result->samples = samples;
    return status;
}
