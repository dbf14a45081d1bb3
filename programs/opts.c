#include "opts.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica/mica.h"
#include "term.h"

static const mica_opt table[] = {
/* The ranges are integers or FLT_MAX; the reader of a kind uses only its own pair. */
#define LOW_FLAG(x)       0
#define LOW_INT(x)        x
#define LOW_REAL(x)       0
#define LOW_REAL_ABOVE(x) 0
#define LOW_TEXT(x)       x
#define LOW_LIST(x)       x
#define LOW_CHOICE(x)     x
#define OPT(name, letter, kind, field, lowest, highest, commands, value, text)                                                 \
    {name, letter, OPT_##kind, offsetof(mica_opts, field), (double)(lowest), (double)(highest), LOW_##kind(lowest),            \
     LOW_##kind(highest), commands, value, text},
#include "opt_list.h"
#undef OPT
};

#define N_OPTIONS (sizeof table / sizeof *table)

size_t mica_opt_count(void) { return N_OPTIONS; }

const mica_opt *mica_opt_at(size_t i) { return &table[i]; }

static void *field_of(mica_opts *o, const mica_opt *opt) { return (char *)o + opt->offset; }

void mica_opts_init(mica_opts *o)
{
    mica_sampling s = mica_generate_options_default().sampling;
    *o = (mica_opts){
        .n_predict = -1, .network = "auto", .deadline_ms = -1, .governor = "off", .full = "stop", .speculate = "off", .draft_max = 15, .type_k = "f16", .type_v = "f16", .bos = "<s>",
        .eos = "</s>", .now = -1, .runtime = "mica", .protocol = "sustained", .backend = "default", .format = "table", .report_format = "html", .rounds = 10, .threshold = -1.0, .window = 512, .pooling = "mean",
        .host = "127.0.0.1", .port = 8080, .parallel = 4, .queue = 64, .connections = 512, .timeout = 600, .reasoning = "off",
        .watts = -1, .idle_watts = 0, .tok_s = -1, .usd_per_kwh = -1, .battery_wh = -1, .device_usd = 0, .years = 3, .duty = 1,
        .wh_per_million = -1, .usd_in = -1, .usd_out = -1, .usd_per_million = -1, .tokens = -1, .input_tokens = -1,
        .output_tokens = -1, .tps = -1, .prompt_tokens = 512, .ahead = 1024, .ack_wait = 30, .seconds = 3, .measure_seconds = 10,
        .temperature = (double)s.temperature, .top_k = s.top_k, .top_p = (double)s.top_p, .min_p = (double)s.min_p,
        .typical_p = (double)s.typical_p, .repeat_penalty = (double)s.repeat_penalty,
        .frequency_penalty = (double)s.frequency_penalty, .presence_penalty = (double)s.presence_penalty,
        .penalty_last_n = s.penalty_last_n, .dry_multiplier = (double)s.dry_multiplier, .dry_base = (double)s.dry_base,
        .dry_allowed_length = s.dry_allowed_length, .dry_last_n = s.dry_last_n, .seed = s.seed, .retries = 5, .stall = 30, .shell = "bash",
        .telemetry_size = 64 << 20,
    };
}

void mica_opts_free(mica_opts *o)
{
    free(o->stop.item);
    free(o->logit_bias.item);
    free(o->label.item);
    free(o->choice.item);
    free(o->condition.item);
    free(o->run_ids.item);
    free(o->require.item);
    free(o->telemetry.item);
    free(o->tensor_types.item);
}

void mica_opt_default_text(const mica_opt *opt, char out[32])
{
    mica_opts o;
    mica_opts_init(&o);
    const void *field = field_of(&o, opt);
    out[0] = '\0';
    if (opt->kind == OPT_INT && opt->low <= *(const int64_t *)field)
        snprintf(out, 32, "%lld", (long long)*(const int64_t *)field);
    else if ((opt->kind == OPT_REAL || opt->kind == OPT_REAL_ABOVE) && opt->lowest <= *(const double *)field)
        snprintf(out, 32, "%.4g", *(const double *)field);
    else if ((opt->kind == OPT_TEXT || opt->kind == OPT_CHOICE) && *(const char *const *)field)
        snprintf(out, 32, "%s", *(const char *const *)field);
}

/* ---- Numbers ---- */

bool mica_opt_read_int(const char *text, int64_t low, int64_t high, int64_t *out)
{
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno || value < low || value > high)
        return false;
    *out = value;
    return true;
}

bool mica_opt_read_real(const char *text, double *out)
{
    char *end;
    /* no blanks, "0x", "inf" or "nan": a digit or a point comes first */
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789.eE+-") != strlen(digits) || !strchr("0123456789.", *digits))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool refuse_int(const mica_opt *opt, const char *text)
{
    mica_term_error("--%s: \"%s\" is not a whole number from %lld to %lld", opt->name, text, (long long)opt->low,
                    (long long)opt->high);
    return false;
}

static bool set_real(double *field, const mica_opt *opt, const char *text)
{
    double value;
    bool above = opt->kind == OPT_REAL_ABOVE;
    if (mica_opt_read_real(text, &value) && (above ? value > opt->lowest : value >= opt->lowest) && value <= opt->highest) {
        *field = value;
        return true;
    }
    if (opt->highest >= (double)FLT_MAX)
        mica_term_error("--%s: \"%s\" is not a number %s %g", opt->name, text, above ? "above" : "of at least", opt->lowest);
    else
        mica_term_error("--%s: \"%s\" is not a number %s %g %s %g", opt->name, text, above ? "above" : "from", opt->lowest,
                        above ? "up to" : "to", opt->highest);
    return false;
}

/* ---- Texts ---- */

static bool add_to_list(mica_opt_list *list, const char *text)
{
    const char **item = realloc(list->item, (list->n + 1) * sizeof *item);
    if (!item) {
        mica_term_error("not enough memory for the command line");
        return false;
    }
    list->item = item;
    list->item[list->n++] = text;
    return true;
}

/* Is `text` one of the words of "a|b|c"? */
static bool is_choice(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = words; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (n > 0 && strcspn(p, "|") == n && memcmp(p, text, n) == 0)
            return true;
    return false;
}

static bool set_option(mica_opts *o, const mica_opt *opt, const char *text)
{
    void *field = field_of(o, opt);
    if (opt->kind != OPT_FLAG && opt->low == 1 && (opt->kind == OPT_TEXT || opt->kind == OPT_LIST) && !*text) {
        mica_term_error("--%s: the text must not be empty", opt->name);
        return false;
    }
    switch (opt->kind) {
    case OPT_FLAG:
        *(bool *)field = true;
        return true;
    case OPT_INT:
        return mica_opt_read_int(text, opt->low, opt->high, field) || refuse_int(opt, text);
    case OPT_REAL:
    case OPT_REAL_ABOVE:
        return set_real(field, opt, text);
    case OPT_LIST:
        return add_to_list(field, text);
    case OPT_CHOICE:
        if (!is_choice(opt->value, text)) {
            mica_term_error("--%s: \"%s\" is not one of %s", opt->name, text, opt->value);
            return false;
        }
        break;
    case OPT_TEXT:
        break;
    }
    *(const char **)field = text;
    return true;
}

/* ---- getopt ---- */

#define FIRST_VALUE 1000 /* beyond every letter */

typedef struct parser {
    struct option longs[N_OPTIONS + 1];
    char letters[2 * N_OPTIONS + 2];
} parser;

static void build(parser *p, uint64_t command)
{
    size_t n = 0, at = 0;
    p->letters[at++] = ':'; /* a missing value is told apart from an unknown option */
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const mica_opt *opt = &table[i];
        if (!(opt->commands & command))
            continue;
        int value = opt->kind == OPT_FLAG ? no_argument : required_argument;
        p->longs[n++] = (struct option){opt->name, value, NULL, FIRST_VALUE + (int)i};
        if (opt->letter)
            p->letters[at++] = opt->letter;
        if (opt->letter && value == required_argument)
            p->letters[at++] = ':';
    }
    p->longs[n] = (struct option){NULL, 0, NULL, 0};
    p->letters[at] = '\0';
}

static const mica_opt *option_of(int code, uint64_t command)
{
    if (code >= FIRST_VALUE)
        return &table[code - FIRST_VALUE];
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (code && table[i].letter == code && (table[i].commands & command))
            return &table[i];
    return NULL;
}

/* The argument that getopt refused: a whole word for a long option, else a letter. */
static void refuse_option(const char *command, uint64_t bit, const char *word)
{
    const mica_opt *known = option_of(optopt, bit);
    if (known)
        mica_term_error("--%s takes no value", known->name);
    else if (optopt)
        mica_term_error("-%c is not an option of mica %s (see mica help %s)", optopt, command, command);
    else
        mica_term_error("%.*s is not an option of mica %s (see mica help %s)", (int)strcspn(word, "="), word, command, command);
}

bool mica_opts_parse(mica_opts *o, uint64_t command, int argc, char **argv)
{
    parser p;
    build(&p, command);
    optind = 0; /* GNU: start afresh */
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, p.letters, p.longs, NULL)) != -1;) {
        const mica_opt *opt = option_of(code, command);
        if (code == '?') {
            refuse_option(argv[0], command, argv[optind - 1]);
            return false;
        }
        if (code == ':') {
            opt = option_of(optopt, command);
            mica_term_error("--%s wants a value: %s", opt ? opt->name : "?", opt ? opt->value : "");
            return false;
        }
        if (!set_option(o, opt, optarg))
            return false;
    }
    o->args = argv + optind;
    o->n_args = argc - optind;
    return true;
}
