/* campaign_text.h - campaigns for people: how far they are, and a line or a bar while they run. Called by cmd_campaign.c. */
#ifndef MICA_PROGRAMS_CAMPAIGN_TEXT_H
#define MICA_PROGRAMS_CAMPAIGN_TEXT_H
#include "bench/campaign_run.h"
#include "bench/campaign_status.h"
#include "live.h"

/** To standard output. `format`: "table" (with a bar if that is a terminal), "md" or "json". An exit code. */
int mica_campaign_print(const char *format, const mica_campaign_row *row, const mica_campaign_state *state, bool locked);

/** One line on a terminal, rewritten; else a line a shard. mica_live_end(&view->live) takes it away. */
typedef struct mica_campaign_view {
    mica_live live;
    bool told;                     /* what a first Ctrl-C does */
    int64_t start_ns, start_done;  /* when this began, and what was done then */
    int64_t rate_ns, rate_done;    /* at the last point of the sparkline */
} mica_campaign_view;

void mica_campaign_view_show(mica_campaign_view *view, const mica_campaign_progress *progress);

#endif
