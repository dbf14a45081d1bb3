/* governor.c - what the governor brings on simulated machines (tests/unit/plant.h), in ten minutes of decoding.
 *
 *     governor             every set at 15 to 35 degrees: all cores at full speed, the best fixed number of them, the best of
 *                          fixed levels, schedules and thermostats that know the machine, and the governor
 *     governor ablation    the governor without each of its inputs and outputs, at 25 degrees
 *     governor efficient   joules a token of the objectives, at 25 degrees
 *     governor twins       two machines, each with its own step and with the other's: alike until the step comes
 *     governor explore     half an hour where it lets a limit go once to see, and without that
 *     governor trace SET [AMBIENT [WITHOUT]]   one run, a line a change
 *
 * Everything printed is simulation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plant_run.h"

static mica_level all_cores(const plant_set *s)
{
    return (mica_level){s->n_fast, s->n_slow};
}

static mica_policy policy_of(mica_objective objective)
{
    mica_policy policy;
    mica_policy_init(&policy, objective);
    return policy;
}

/* The set whose name ends so. */
static plant_set find(const char *end)
{
    int i = 0;
    while (!strstr(plant_sets[i].name, end))
        i++;
    return plant_fit(&plant_sets[i]);
}

static void print_sets(void)
{
    static const double ambients[] = {15, 20, 25, 30, 35};
    mica_policy policy = policy_of(MICA_OBJECTIVE_SUSTAINED);
    printf("| machine | air C | all cores | best fixed | cores | oracle | governor | over all | over fixed | of oracle | "
           "changes |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < PLANT_SETS; i++) {
        plant_set s = plant_fit(&plant_sets[i]);
        for (int k = 0; k < 5; k++) {
            mica_level which = {0, 0};
            double all = plant_fixed(&s, ambients[k], all_cores(&s)).tokens, fixed = plant_best_fixed(&s, ambients[k], &which);
            double oracle = plant_oracle(&s, ambients[k]);
            plant_result r = plant_governed(&s, ambients[k], &policy, 0, NULL);
            printf("| %s | %.0f | %.0f | %.0f | %d+%d | %.0f | %.0f | %+.1f %% | %+.1f %% | %.1f %% | %d |\n", s.name,
                   ambients[k], all, fixed, which.n_fast, which.n_slow, oracle, r.tokens, 100 * (r.tokens / all - 1),
                   100 * (r.tokens / fixed - 1), 100 * r.tokens / oracle, (int)r.changes);
        }
    }
}

static void print_ablation(void)
{
    static const struct {
        const char *name;
        unsigned without;
        double skin_c; /* the policy's guess; the simulated cases have 43 */
    } rows[] = {
        {"all of it", 0, 43},
        {"limit not told, guessed 3 degrees too high", NO_HEADROOM, 46},
        {"limit not told, guessed 3 degrees too low", NO_HEADROOM, 40},
        {"no temperature", NO_SKIN, 43},
        {"no slope of it", NO_SLOPE, 43},
        {"no clocks", NO_CLOCK, 43},
        {"no temperature, no clocks", NO_SKIN | NO_CLOCK, 43},
        {"no token rate", NO_RATE, 43},
        {"threads fixed", NO_THREADS, 43},
        {"no efficient cores", NO_SLOW, 43},
        {"no pauses", NO_PAUSE, 43},
    };
    mica_policy policy = policy_of(MICA_OBJECTIVE_SUSTAINED);
    double whole[PLANT_SETS];
    printf("| without |");
    for (int i = 0; i < PLANT_SETS; i++)
        printf(" %s |", plant_sets[i].name);
    printf("\n|---|");
    for (int i = 0; i < PLANT_SETS; i++)
        printf("---|");
    printf("\n");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        printf("| %s |", rows[k].name);
        for (int i = 0; i < PLANT_SETS; i++) {
            plant_set s = plant_fit(&plant_sets[i]);
            policy.skin_c = rows[k].skin_c;
            double tokens = plant_governed(&s, 25, &policy, rows[k].without, NULL).tokens;
            whole[i] = k == 0 ? tokens : whole[i];
            if (k == 0)
                printf(" %.0f |", tokens);
            else
                printf(" %+.1f %% |", 100 * (tokens / whole[i] - 1));
        }
        printf("\n");
    }
}

static void print_efficient(void)
{
    mica_policy sustained = policy_of(MICA_OBJECTIVE_SUSTAINED), efficient = policy_of(MICA_OBJECTIVE_EFFICIENT);
    printf("| machine | all cores J/token | sustained | efficient | of sustained's rate | power unknown "
           "|\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < PLANT_SETS; i++) {
        plant_set s = plant_fit(&plant_sets[i]);
        plant_result a = plant_fixed(&s, 25, all_cores(&s)), b = plant_governed(&s, 25, &sustained, 0, NULL);
        plant_result c = plant_governed(&s, 25, &efficient, 0, NULL), d = plant_governed(&s, 25, &efficient, NO_POWER, NULL);
        printf("| %s | %.3f | %.3f | %.3f | %.0f %% | %.3f |\n", s.name, a.joules / a.tokens, b.joules / b.tokens,
               c.joules / c.tokens, 100 * c.tokens / b.tokens, d.joules / d.tokens);
    }
}

static void print_twin(const plant_set *s, double ambient, const char *step)
{
    mica_policy policy = policy_of(MICA_OBJECTIVE_SUSTAINED), stays = policy, lets = policy;
    stays.worth = stays.surely = 0;
    lets.worth = 1;
    double fixed = plant_best_fixed(s, ambient, NULL), seen = plant_best_seen(s, ambient);
    double a = plant_governed(s, ambient, &stays, 0, NULL).tokens, b = plant_governed(s, ambient, &lets, 0, NULL).tokens;
    double c = plant_governed(s, ambient, &policy, 0, NULL).tokens;
    printf("| %s | %.0f | %s | %.0f | %+.1f %% | %+.1f %% | %+.1f %% | %+.1f %% |\n", s->name, ambient, step, fixed,
           100 * (a / fixed - 1), 100 * (b / fixed - 1), 100 * (seen / fixed - 1), 100 * (c / fixed - 1));
}

static void print_twins(void)
{
    static const double ambients[] = {30, 25};
    plant_set own[] = {find("17pro-ane"), find("17pro-mlx")};
    printf("| machine | air C | step | best fixed | stays below | lets it come | sees it at once | governor "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < 2; i++) {
        plant_set twin = own[i];
        twin.cap = own[1 - i].cap;
        twin.release_c = own[1 - i].release_c;
        print_twin(&own[i], ambients[i], "its own");
        print_twin(&twin, ambients[i], "the other's");
    }
}

static void print_explore(void)
{
    static const struct {
        const char *name;
        double ambient;
    } cases[] = {{"17pro-ane", 30}, {"17pro-mlx", 25}, {"17pro-litert", 25}, {"16pro", 20}};
    mica_policy policy = policy_of(MICA_OBJECTIVE_SUSTAINED), never = policy;
    never.explore_s = 86400;
    printf("| machine | air C | stays below | sees once | |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plant_set s = find(cases[i].name);
        double a = plant_governed_for(1800, &s, cases[i].ambient, &never, 0, NULL).tokens;
        double b = plant_governed_for(1800, &s, cases[i].ambient, &policy, 0, NULL).tokens;
        printf("| %s | %.0f | %.0f | %.0f | %+.1f %% |\n", s.name, cases[i].ambient, a, b, 100 * (b / a - 1));
    }
}

static void tell(const plant *p, const mica_control *c)
{
    printf("%6.1f s  %2d+%d cores  duty %.2f  case %.1f C  chip %.1f C  clocks %.2f  margin %.1f C  %s\n", p->now_s,
           c->levels[c->level].n_fast, c->levels[c->level].n_slow, 1 - c->duty, p->case_c, p->chip_c, p->cap, c->margin,
           c->reason);
}

static int trace(const char *name, double ambient, unsigned without)
{
    mica_policy policy = policy_of(MICA_OBJECTIVE_SUSTAINED);
    for (int i = 0; i < PLANT_SETS; i++) {
        if (strcmp(plant_sets[i].name, name) != 0)
            continue;
        plant_set s = plant_fit(&plant_sets[i]);
        plant_result r = plant_governed(&s, ambient, &policy, without, tell);
        printf("%.0f tokens, %.0f s throttled, case %.1f C at most, %d changes\n", r.tokens, r.throttled_s, r.case_c,
               (int)r.changes);
        return 0;
    }
    fprintf(stderr, "governor: there is no set %s\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        print_sets();
    else if (strcmp(argv[1], "ablation") == 0)
        print_ablation();
    else if (strcmp(argv[1], "efficient") == 0)
        print_efficient();
    else if (strcmp(argv[1], "twins") == 0)
        print_twins();
    else if (strcmp(argv[1], "explore") == 0)
        print_explore();
    else if (strcmp(argv[1], "trace") == 0 && argc > 2)
        return trace(argv[2], argc > 3 ? atof(argv[3]) : 25, argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 0);
    else
        return fprintf(stderr, "usage: governor [ablation | efficient | twins | explore | trace SET [AMBIENT [WITHOUT]]]\n"), 2;
    return 0;
}
