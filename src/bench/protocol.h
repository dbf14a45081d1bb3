/* protocol.h - what a measurement consists of, as data: share/mica/protocols/NAME.json, or a file of the user's. docs/bench.md
 * explains the members; share/mica/schemas/protocol.schema.json is the same as a JSON Schema. The reader takes nothing that it
 * does not know. Called by measure.c, summary.c and programs/cmd_bench.c. */
#ifndef MICA_BENCH_PROTOCOL_H
#define MICA_BENCH_PROTOCOL_H
#include <jansson.h>

#include "bench/cooldown.h"

enum { MICA_PHASES = 32 };

typedef enum mica_phase_kind {
    MICA_PHASE_LOAD = 0, /* the model is loaded (and unloaded before, if it was), cold or warm */
    MICA_PHASE_COOLDOWN = 1,
    MICA_PHASE_WARMUP = 2,    /* replies that count for nothing */
    MICA_PHASE_TTFT = 3,      /* `repeat` replies, each to a new prompt of `prompt` tokens */
    MICA_PHASE_DECODE = 4,    /* replies one after the other until min_s seconds were spent decoding */
    MICA_PHASE_BANDWIDTH = 5, /* the model is unloaded and memory read at the best speed, `repeat` times */
} mica_phase_kind;

typedef struct mica_phase {
    mica_phase_kind kind;
    bool cold;                     /* LOAD: the file's pages are dropped before */
    int32_t prompt, reply, repeat; /* tokens, tokens, times */
    double min_s, max_s;           /* DECODE: seconds of decoding; of the whole phase */
    mica_cooldown_rules cooldown;
    char name[24]; /* "warmup", "ttft_512", "decode", ... */
} mica_phase;

typedef struct mica_protocol {
    char name[48], description[400];
    int32_t n_ctx;
    uint64_t seed;           /* of the prompts */
    double cold_s, steady_s; /* windows of the cold and the steady rate */
    double ttft_ratio;       /* the longest prompt's TTFT must be this many times the shortest's; 0: not looked at */
    double sample_s;         /* between samples of the machine */
    int32_t n_phases;
    mica_phase phase[MICA_PHASES];
    json_t *source; /* as it was read */
} mica_protocol;

/** Reads JSON text. MICA_BAD_TEXT says what is wrong in it. */
mica_status mica_protocol_read(const char *json, size_t length, mica_protocol *out, mica_error *err);
mica_status mica_protocol_open(const char *path, mica_protocol *out, mica_error *err);
void mica_protocol_free(mica_protocol *p);

/** Whether figures under it may be called sustained: cooled down, a warm-up, at least 5 TTFTs at 512 and at 32 tokens, 480 s of
 * decode of which the last 180 s count. If not, *why (may be NULL) is a few words on the first thing that is missing. */
bool mica_protocol_sustained(const mica_protocol *p, const char **why);

/** The decode phase; NULL if there is none. */
const mica_phase *mica_protocol_decode(const mica_protocol *p);

#endif
