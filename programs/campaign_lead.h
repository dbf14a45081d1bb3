/* campaign_lead.h - mica campaign run --nats: leads a campaign that workers compute. Called by cmd_campaign.c. */
#ifndef MICA_PROGRAMS_CAMPAIGN_LEAD_H
#define MICA_PROGRAMS_CAMPAIGN_LEAD_H
#include "campaign_text.h"
#include "opts.h"

typedef struct mica_campaign_lead {
    const mica_opts *o;
    const mica_campaign *campaign;
    mica_store *store;   /* whose lock the caller holds */
    const char *model;   /* NULL: its file is not here */
    const char *prompts;
    mica_campaign_view *view;
} mica_campaign_lead;

/** An exit code; of a failure one line is printed. */
int mica_campaign_lead_run(mica_campaign_lead *lead, mica_campaign_outcome *out);

#endif
