#include "session/pace.h"

/* Without at least this much expected gain a draft is not worth its risk. */
#define LEAST_GAIN 1.05
/* Trials after which old ones begin to be forgotten: a text changes its nature. */
#define MEMORY 32.0

/* Measured on AVX2 and AVX-512 machines, on the careful side; the first few steps replace them. */
static const double usual_relative[MICA_PACE_LEVELS] = {1.0, 1.5, 2.0, 2.5, 3.5, 6.0, 11.0};

/* The chance of the next token, worth PRIOR_TRIALS trials: the longer a match, the likelier it goes on. */
static const double usual_chance[MICA_PACE_SOURCES] = {0.3, 0.5, 0.7, 0.85, 0.75};
#define PRIOR_TRIALS 2.0

void mica_pace_init(mica_pace *p, double draft)
{
    *p = (mica_pace){.draft = draft};
    for (int i = 0; i < MICA_PACE_LEVELS; i++)
        p->relative[i] = usual_relative[i];
}

void mica_pace_start(mica_pace *p)
{
    for (int i = 0; i < MICA_PACE_SOURCES; i++) {
        p->hits[i] /= 2;
        p->trials[i] /= 2;
    }
}

int mica_pace_source(int32_t match) { return match >= 12 ? 3 : match >= 6 ? 2 : match >= 3 ? 1 : 0; }

/* Cost of a step of n tokens: between two levels in proportion. */
static double cost(const mica_pace *p, int32_t n)
{
    int level = 0;
    while (level + 1 < MICA_PACE_LEVELS && 1 << (level + 1) <= n)
        level++;
    if (level + 1 == MICA_PACE_LEVELS)
        return p->relative[level];
    double part = (double)(n - (1 << level)) / (double)(1 << level);
    return p->relative[level] + part * (p->relative[level + 1] - p->relative[level]);
}

static double gain(const mica_pace *p, int source, int32_t n)
{
    double chance = (p->hits[source] + usual_chance[source] * PRIOR_TRIALS) / (p->trials[source] + PRIOR_TRIALS);
    double tokens = 1.0, reached = 1.0, draft = source == MICA_PACE_MODEL ? p->draft * n : 0.0;
    for (int32_t i = 0; i < n; i++)
        tokens += reached *= chance;
    return tokens / (cost(p, n + 1) + draft);
}

int32_t mica_pace_choose(const mica_pace *p, int source, int32_t room)
{
    int32_t best = 0;
    double most = LEAST_GAIN;
    for (int level = 1; level < MICA_PACE_LEVELS && room > 0; level++) {
        int32_t n = (1 << level) - 1 < room ? (1 << level) - 1 : room;
        double g = gain(p, source, n);
        if (g > most) {
            most = g;
            best = n;
        }
        if (n == room)
            break;
    }
    return best;
}

/* A running average that one slow step, in which the machine did something else, cannot spoil. */
static double blend(double average, double sample)
{
    sample = sample > 2 * average ? 2 * average : sample < average / 2 ? average / 2 : sample;
    return average + (sample - average) / 8;
}

void mica_pace_step(mica_pace *p, int32_t n, int64_t ns)
{
    if (n == 1) {
        p->step_ns = p->step_ns > 0.0 ? blend(p->step_ns, (double)ns) : (double)ns;
        for (int i = 1; i < MICA_PACE_LEVELS; i++) /* slowly back to the usual: what looked too dear is tried again */
            p->relative[i] += (usual_relative[i] - p->relative[i]) / 512;
        return;
    }
    if (p->step_ns <= 0.0)
        return;
    for (int i = 1; i < MICA_PACE_LEVELS; i++)
        if (n == 1 << i)
            p->relative[i] = blend(p->relative[i], (double)ns / p->step_ns);
}

void mica_pace_drafted(mica_pace *p, int32_t n, int64_t ns)
{
    if (p->step_ns > 0.0 && n > 0)
        p->draft = blend(p->draft, (double)ns / n / p->step_ns);
}

void mica_pace_judge(mica_pace *p, int source, int32_t right, bool wrong)
{
    p->hits[source] += right;
    p->trials[source] += right + wrong;
    if (p->trials[source] > MEMORY) {
        p->hits[source] *= MEMORY / p->trials[source];
        p->trials[source] = MEMORY;
    }
}
