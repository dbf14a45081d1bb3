#include "bench/words.h"

#include <stdint.h>

#include "base/rng.h"

static const char *const words[256] = {
    "time",    "year",    "people",   "way",     "day",      "man",     "thing",   "woman",  "life",     "child",  "world",
    "school",  "state",   "family",   "student", "group",    "country", "problem", "hand",   "part",     "place",  "case",
    "week",    "company", "system",   "program", "question", "work",    "night",   "point",  "home",     "water",  "room",
    "mother",  "area",    "money",    "story",   "fact",     "month",   "lot",     "right",  "study",    "book",   "eye",
    "job",     "word",    "business", "issue",   "side",     "kind",    "head",    "house",  "service",  "friend", "father",
    "power",   "hour",    "game",     "line",    "end",      "member",  "law",     "car",    "city",     "name",   "team",
    "minute",  "idea",    "body",     "back",    "parent",   "face",    "level",   "office", "door",     "health", "person",
    "art",     "war",     "history",  "party",   "result",   "change",  "morning", "reason", "research", "girl",   "guy",
    "moment",  "air",     "teacher",  "force",   "order",    "river",   "stone",   "bridge", "the",      "of",     "and",
    "to",      "in",      "that",     "for",     "was",      "with",    "on",      "as",     "are",      "his",    "they",
    "at",      "be",      "this",     "have",    "from",     "or",      "one",     "had",    "by",       "but",    "not",
    "what",    "all",     "were",     "we",      "when",     "your",    "can",     "said",   "there",    "use",    "an",
    "each",    "which",   "she",      "do",      "how",      "their",   "if",      "will",   "up",       "other",  "about",
    "out",     "many",    "then",     "them",    "these",    "so",      "some",    "her",    "would",    "make",   "like",
    "him",     "into",    "has",      "look",    "two",      "more",    "write",   "go",     "see",      "number", "no",
    "could",   "my",      "than",     "first",   "been",     "call",    "who",     "its",    "now",      "find",   "long",
    "down",    "did",     "get",      "come",    "made",     "may",     "read",    "keep",   "light",    "paper",  "old",
    "great",   "small",   "every",    "found",   "still",    "between", "should",  "never",  "last",     "let",    "thought",
    "tree",    "cross",   "farm",     "hard",    "start",    "might",   "saw",     "far",    "sea",      "draw",   "left",
    "late",    "run",     "while",    "press",   "close",    "real",    "few",     "north",  "open",     "seem",   "together",
    "next",    "white",   "children", "begin",   "got",      "walk",    "example", "ease",   "mark",     "often",  "letter",
    "until",   "mile",    "feet",     "care",    "second",   "enough",  "plain",   "usual",  "young",    "ready",  "above",
    "ever",    "red",     "list",     "though",  "feel",     "talk",    "bird",    "soon",   "dog",      "direct", "song",
    "measure", "product", "black",
};

mica_status mica_words_text(uint64_t seed, int32_t n, mica_buf *out, mica_error *err)
{
    mica_rng rng;
    int32_t left = 0; /* words until the next full stop */
    mica_rng_seed(&rng, seed);
    for (int32_t i = 0; i < n; i++) {
        uint64_t bits = mica_rng_next(&rng);
        bool begins = left == 0;
        if (begins)
            left = 6 + (int32_t)(bits >> 32 & 7);
        const char *word = words[bits & 255];
        if (i > 0)
            mica_buf_puts(out, " ");
        mica_buf_putc(out, begins ? (char)(word[0] - 'a' + 'A') : word[0]);
        mica_buf_puts(out, word + 1);
        if (--left == 0)
            mica_buf_putc(out, '.');
    }
    return out->failed ? mica_fail_nomem(err, out->length, "a prompt") : MICA_OK;
}
