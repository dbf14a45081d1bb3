/* detect.h - personal data that a rule can find: e-mail addresses, phone numbers, IBANs, payment cards, IP addresses, dates.
 *
 * Each detector walks the text once, from left to right, and looks ahead a bounded number of bytes from each place: linear time
 * on any text, and no regular expressions. The text must be valid UTF-8. A find never begins or ends inside of a word or a
 * longer number. docs/tasks.md has the rules for users. Called by redact.c.
 */
#ifndef MICA_TASK_DETECT_H
#define MICA_TASK_DETECT_H
#include "base/error.h"

typedef struct mica_find {
    size_t start, end;  /* bytes */
    const char *type;   /* "EMAIL", ...; static, or owned by the task */
    const char *source; /* "rule" or "model"; static */
    int rank;           /* of overlapping finds the lower one stays */
} mica_find;

typedef struct mica_finds {
    mica_find *item;
    size_t n, capacity;
    bool failed; /* no memory: what came later is missing */
} mica_finds;

void mica_finds_free(mica_finds *finds);
void mica_finds_add(mica_finds *finds, mica_find find);
/** Sorts by place; of finds that overlap, the one with the lowest rank stays, then the longest, then the first. */
void mica_finds_settle(mica_finds *finds);

/** Detectors, as bits. */
enum {
    MICA_DETECT_EMAIL = 1 << 0,
    MICA_DETECT_PHONE = 1 << 1,
    MICA_DETECT_IBAN = 1 << 2,
    MICA_DETECT_CARD = 1 << 3,
    MICA_DETECT_IP = 1 << 4,
    MICA_DETECT_DATE = 1 << 5,
};

/** The bit of "email", "phone", "iban", "card", "ip" or "date"; 0 if unknown. */
int mica_detector_of(const char *name);

/** Runs the detectors of `which` and adds what they find, unsettled. */
void mica_detect(const char *text, size_t length, int which, mica_finds *finds);

/* One file each: detect_NAME.c. */
void mica_detect_email(const char *text, size_t length, mica_finds *finds);
void mica_detect_phone(const char *text, size_t length, mica_finds *finds);
void mica_detect_iban(const char *text, size_t length, mica_finds *finds);
void mica_detect_card(const char *text, size_t length, mica_finds *finds);
void mica_detect_ip(const char *text, size_t length, mica_finds *finds);
void mica_detect_date(const char *text, size_t length, mica_finds *finds);

#endif
