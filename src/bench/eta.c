#include "bench/eta.h"

#include <math.h>

#define LOAD_S     2.0  /* a small model's; it is seconds among minutes */
#define READ_S     0.2  /* a round of reading memory */
#define REPLY_S    0.05 /* a token, before any reply was made */
#define PROMPT     8.0  /* tokens of a prompt that take as long as one of a reply: about what runtimes show on CPUs */
#define KNOWN_FROM 0.1  /* of a phase, from which on its own pace says more than the estimate before */

static bool is_replies(const mica_phase *phase)
{
    return phase->kind == MICA_PHASE_WARMUP || phase->kind == MICA_PHASE_TTFT;
}

/* Of a phase of replies, in tokens of a reply. */
static double weight_of(const mica_phase *phase)
{
    return phase->repeat * (phase->prompt / PROMPT + phase->reply);
}

static double usual_s(const mica_eta *eta, const mica_phase *phase)
{
    double token_s = isfinite(eta->reply_s) ? eta->reply_s : REPLY_S;
    switch (phase->kind) {
    case MICA_PHASE_LOAD:
        return LOAD_S;
    case MICA_PHASE_COOLDOWN:
        return phase->cooldown.blind_s; /* what a machine without sensors waits; with them nobody knows */
    case MICA_PHASE_WARMUP:
    case MICA_PHASE_TTFT:
        return weight_of(phase) * token_s;
    case MICA_PHASE_DECODE:
        return phase->min_s * (1.0 + phase->prompt / PROMPT / phase->reply); /* and the prompts between the replies */
    case MICA_PHASE_BANDWIDTH:
        return phase->repeat * READ_S;
    }
    return 0.0;
}

void mica_eta_begin(mica_eta *eta, const mica_protocol *protocol, int64_t now_ns)
{
    *eta = (mica_eta){.protocol = protocol, .start_ns = now_ns, .phase_ns = now_ns, .reply_s = NAN};
}

static void enter(mica_eta *eta, int32_t at, int64_t now_ns)
{
    const mica_phase *before = &eta->protocol->phase[eta->at];
    double seconds = (double)(now_ns - eta->phase_ns) / 1e9;
    if (at == eta->at + 1 && is_replies(before) && weight_of(before) > 0.0)
        eta->reply_s = seconds / weight_of(before);
    eta->at = at;
    eta->phase_ns = now_ns;
}

double mica_eta_left(mica_eta *eta, int32_t at, double done, int64_t now_ns, double *part)
{
    const mica_protocol *p = eta->protocol;
    if (at != eta->at)
        enter(eta, at, now_ns);
    double spent = (double)(now_ns - eta->phase_ns) / 1e9, all = (double)(now_ns - eta->start_ns) / 1e9;
    double left = usual_s(eta, &p->phase[at]) * (1.0 - done);
    if (done >= KNOWN_FROM)
        left = spent / done * (1.0 - done);
    for (int32_t i = at + 1; i < p->n_phases; i++)
        left += usual_s(eta, &p->phase[i]);
    *part = all + left > 0.0 ? fmin(all / (all + left), 0.999) : 0.0;
    return left;
}
