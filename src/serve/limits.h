/* limits.h - every limit of the server, with its reason. What a request may ask for is checked here before anything is
 * computed. */
#ifndef MICA_SERVE_LIMITS_H
#define MICA_SERVE_LIMITS_H

/* ---- HTTP ---- */
#define MICA_SERVE_HEAD_MAX    (16 * 1024)       /* request line and headers; browsers send 1 to 8 KiB */
#define MICA_SERVE_HEADERS_MAX 64                /* lines */
#define MICA_SERVE_BODY_MAX    ((size_t)8 << 20) /* a million tokens of text, far beyond any context */
#define MICA_SERVE_HEAD_S      10                /* from the first byte to the end of the headers */
#define MICA_SERVE_BODY_S      60                /* for the body, from the end of the headers */
#define MICA_SERVE_IDLE_S      75                /* between two requests of one connection */
#define MICA_SERVE_WRITE_S     30                /* a client that takes nothing for so long is gone */
#define MICA_SERVE_LINGER_S    2                 /* after a refusal: the client may still be sending, and must see the answer */
#define MICA_SERVE_BACKLOG_MAX ((size_t)1 << 20) /* bytes of a stream that wait for its reader; 1 MiB is about 5,000 tokens */
#define MICA_SERVE_REPLY_MAX   ((size_t)64 << 20) /* a whole reply: text, log-probabilities */
#define MICA_SERVE_PING_S      15                 /* silence of a stream before a comment keeps it alive */
#define MICA_SERVE_CONNECTIONS 512

/* ---- JSON ---- */
#define MICA_SERVE_DEPTH_MAX 64 /* nesting; real requests have 5, schemas up to 20 */

#define MICA_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(9)) /* of answers: 9 digits tell any two floats apart */

/* ---- Requests ---- */
#define MICA_SERVE_CHOICES_MAX  16        /* "n" */
#define MICA_SERVE_PROMPTS_MAX  64        /* prompts of one /v1/completions */
#define MICA_SERVE_INPUTS_MAX   2048      /* texts of one /v1/embeddings, as OpenAI */
#define MICA_SERVE_REPLIES_MAX  64        /* n times prompts */
#define MICA_SERVE_TOP_MAX      20        /* "logprobs", "top_logprobs": as the engine */
#define MICA_SERVE_SCORES_MAX   (1 << 18) /* log-probabilities of prompts in one answer: as JSON values up to 100 MB */
#define MICA_SERVE_SCORES_SENT  (1 << 14) /* the same in a stream, to which they are sent at once: half of what may wait */
#define MICA_SERVE_MESSAGES_MAX 10000
#define MICA_SERVE_STOP_MAX     32   /* as the engine */
#define MICA_SERVE_REQUIRE_MAX  32   /* conditions; as the engine */
#define MICA_SERVE_STOP_BYTES   1024 /* as the engine */
#define MICA_SERVE_BIAS_MAX     1024
#define MICA_SERVE_QUEUE        64  /* requests that wait; above that: 429 */
#define MICA_SERVE_PRIORITY_MAX 100 /* and -100 the lowest */
#define MICA_SERVE_AGE_S        30  /* of waiting are worth a level of priority: -10 gets by 0 in half of the time limit */
#define MICA_SERVE_COMPILED     16  /* constraints and tool lists that are kept compiled */
#define MICA_SERVE_TIME_S       600 /* for a whole request, waiting included */

/* ---- Keys ---- */
#define MICA_SERVE_KEYS_MAX  64
#define MICA_SERVE_KEY_BYTES 256

#endif
