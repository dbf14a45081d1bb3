/* mica_telemetry.h - an event for every reply, to files and collectors; nothing is sent anywhere unless a sink is named.
 *
 *     const char *sinks[] = {"replies.jsonl", "http://127.0.0.1:4318"};
 *     mica_telemetry_options o = mica_telemetry_options_default();
 *     o.sinks = sinks;  o.n_sinks = 2;
 *     mica_telemetry_new(&o, &telemetry, &err);
 *     mica_telemetry_event e = mica_telemetry_event_default();   // then what is known
 *     mica_telemetry_add(telemetry, &e);                         // from any thread; never waits
 *     mica_telemetry_free(telemetry);                            // gives the sinks a moment to take the rest
 *
 * A library of its own (mica_router), not a part of libmica. Each sink has a bounded queue and a thread: one that is slow, full
 * or gone costs its own events, which are counted, and nothing else. No text of prompts or replies is kept unless `text` says
 * so. docs/telemetry.md has the forms.
 */
#ifndef MICA_MICA_TELEMETRY_H
#define MICA_MICA_TELEMETRY_H
#include "mica/mica_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_telemetry mica_telemetry;

#define MICA_TELEMETRY_SINKS 8

typedef struct mica_telemetry_options {
    size_t struct_size;
    /** "http://..." or "https://...": an OTLP/HTTP receiver, without /v1/traces; NAME.db, NAME.sqlite: a database; any other
     * name: a file of JSON lines. At most MICA_TELEMETRY_SINKS. */
    const char *const *sinks;
    size_t n_sinks;
    /** Further HTTP headers for OTLP receivers, "NAME=VALUE,..."; NULL: none. */
    const char *headers;
    const char *service; /* service.name of OTLP; NULL: "mica" */
    int32_t queue;       /* events that may wait for each sink, 1..65536; default 1024 */
    int32_t close_ms;    /* how long mica_telemetry_free() waits for the sinks; default 2000 */
    bool text;           /* the texts of events are kept; default: dropped at once */
    /** Bytes of a file or database, beyond which what it has goes to NAME.1, in place of an older one, and it begins anew: 65536
     * or more; 0: no limit; default 64 MiB. Pipes and receivers have none. */
    int64_t max_bytes;
} mica_telemetry_options;

mica_telemetry_options mica_telemetry_options_default(void);

/** Opens the files, starts the threads. A receiver need not be there yet. All options are copied. */
mica_status mica_telemetry_new(const mica_telemetry_options *options, mica_telemetry **out, mica_error *err);
/** NULL is fine. */
void mica_telemetry_free(mica_telemetry *telemetry);

/** A reply. Texts may be NULL: not known. All are copied. */
typedef struct mica_telemetry_event {
    size_t struct_size;
    const char *operation;   /* "chat", "text_completion" */
    const char *model;       /* the model's name */
    const char *id;          /* of the reply, for its client */
    const char *rung;        /* of the router's ladder, and why it was chosen */
    const char *reason;
    const char *stop_reason; /* as in mica_result */
    const char *error;       /* the status that it failed with, "MICA_REFUSED" */
    int64_t started_unix_ns; /* 0: now minus duration_ms */
    double duration_ms;
    int32_t prompt_n, cached_n, gen_n;
    int32_t max_tokens; /* as asked for; -1: no limit */
    double ttft_ms, tpot_ms, tpot_p50_ms, tpot_p95_ms; /* NAN: not known, or there is none */
    int64_t peak_rss_bytes;  /* -1: not known */
    int throttled;           /* MICA_YES, MICA_NO, MICA_UNKNOWN */
    double joules;           /* NAN: nothing counts them */
    const char *energy_source;
    const char *receipt; /* JSON of mica_receipt_json() */
    const char *prompt, *reply; /* taken only with options.text; the first 64 KiB of each */
    size_t prompt_length, reply_length;
} mica_telemetry_event;

/** Nothing is known. */
mica_telemetry_event mica_telemetry_event_default(void);

/** Hands a copy to every sink. False: some sink's queue was full, or there was no memory; it is counted. From any thread. */
bool mica_telemetry_add(mica_telemetry *telemetry, const mica_telemetry_event *event);

/** What became of the events of one sink. taken = written + lost + what waits. */
typedef struct mica_telemetry_sink_info {
    const char *kind;  /* "jsonl", "sqlite", "otlp"; static */
    uint64_t taken;    /* into its queue */
    uint64_t written;  /* and out of it, to where they belong */
    uint64_t lost;     /* the sink failed, or was not ready when everything ended */
    uint64_t dropped;  /* never taken: the queue was full */
    char error[200];   /* the last failure; "": none */
} mica_telemetry_sink_info;

size_t mica_telemetry_sink_count(const mica_telemetry *telemetry);
/** From any thread. */
void mica_telemetry_sink(mica_telemetry *telemetry, size_t i, mica_telemetry_sink_info *info);

/** Ends the threads as mica_telemetry_free() does, but what became of the events can still be asked. */
void mica_telemetry_close(mica_telemetry *telemetry);

#ifdef __cplusplus
}
#endif
#endif
