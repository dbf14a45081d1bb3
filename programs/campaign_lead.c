#include "campaign_lead.h"

#include "bench/campaign_nats.h"
#include "interrupt.h"
#include "load.h"
#include "nats_login.h"

static bool on_finish(void *user)
{
    (void)user;
    return mica_interrupt_count() > 0;
}

static void on_progress(void *user, const mica_campaign_progress *progress)
{
    const mica_campaign_lead *lead = user;
    mica_campaign_view_show(lead->view, progress);
}

static void on_note(void *user, const char *text)
{
    const mica_campaign_lead *lead = user;
    mica_live_end(&lead->view->live);
    mica_term_note("%s", text);
}

/* What was not as it should be, and did no harm. */
static void tell_stats(const mica_campaign_nats_stats *s)
{
    if (s->again + s->duplicates + s->refused + s->failures > 0)
        mica_term_note("%lld shards were lost and queued again, %lld results came twice, %lld were refused, %lld shards failed",
                       (long long)s->again, (long long)s->duplicates, (long long)s->refused, (long long)s->failures);
}

int mica_campaign_lead_run(mica_campaign_lead *lead, mica_campaign_outcome *out)
{
    const mica_opts *o = lead->o;
    mica_nats_login login;
    mica_campaign_nats_stats stats = {.queued = 0};
    mica_error err;
    *out = (mica_campaign_outcome){.end = MICA_CAMPAIGN_STOPPED};
    int code = mica_nats_login_read(o, "mica campaign", &login);
    if (code == CODE_OK) {
        mica_campaign_nats_options n = {.campaign = lead->campaign,
                                        .store = lead->store,
                                        .model = lead->model,
                                        .prompts = lead->prompts,
                                        .nats = login.options,
                                        .postgres = o->postgres,
                                        .ahead = o->ahead,
                                        .ack_wait_s = o->ack_wait,
                                        .limit_s = o->limit_seconds,
                                        .finish = on_finish,
                                        .on_progress = on_progress,
                                        .on_note = on_note,
                                        .user = lead};
        mica_status status = mica_campaign_nats_run(&n, out, &stats, &err);
        mica_live_end(&lead->view->live);
        tell_stats(&stats);
        code = status ? mica_load_failed(&err) : CODE_OK;
    }
    mica_nats_login_free(&login);
    return code;
}
