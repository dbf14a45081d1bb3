/* hf_pretok.c - how a tokenizer normalises and splits text, by the structure of tokenizer.json: each step becomes a line, and the
 * lines are looked up. A name in a GGUF file stands for one such list; a list that has none is refused. */
#include <string.h>

#include "base/buf.h"
#include "convert/hf_json.h"
#include "convert/hf_tokenizer.h"

#define MAX_TEXT 65536 /* of the lines */
#define MAX_STEPS 16

/* Regular expressions as tokenizer.json files have them. */
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K(digits) CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(tail, digits) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail "|" digits \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES

static const struct {
    const char *steps, *pre;
    bool bytes, space_prefix;
} known[] = {
    {"bytes, GPT-2's words\n", "gpt-2", true, false},
    {"each digit\nbytes, GPT-2's words\n", "smollm", true, false},
    {"NFC\nbytes, GPT-2's words\n", "mpt", true, false},
    {"NFC\neach digit\nbytes, GPT-2's words\n", "command-r", true, false},
    {"split " CL100K("\\p{N}{1,3}") "\nbytes\nwhole words first\n", "llama-bpe", true, false},
    {"split " CL100K("\\p{N}{1,3}") "\nbytes\n", "dbrx", true, false},
    {"NFC\nsplit " CL100K("\\p{N}") "\nbytes\n", "qwen2", true, false},
    {"split " CL100K("\\p{N}") "\nbytes\n", "deepseek-r1-qwen", true, false},
    {"split " O200K(CONTRACTION "?", "\\p{N}{1,3}") "\nbytes\n", "gpt-4o", true, false},
    {"split " O200K("", "\\p{N}") "\nbytes\nwhole words first\n", "tekken", true, false},
    /* SentencePiece's; spaces are gone when the split at spaces comes */
    {"spaces\n", "default", false, false},
    {"spaces\nsplit at spaces\n", "default", false, false},
    {"prefix\nspaces\n", "default", false, true},
    {"spaces, prefix\n", "default", false, true},
};

static bool is(const json_t *object, const char *key, const char *value)
{
    const char *text = mica_hf_text(object, key);
    return text && strcmp(text, value) == 0;
}

static bool is_pattern(const json_t *step, const char *text) { return is(mica_hf_get(step, "pattern"), "String", text); }

static void add_split(mica_buf *out, const json_t *step)
{
    const char *regex = mica_hf_text(mica_hf_get(step, "pattern"), "Regex"), *behavior = mica_hf_text(step, "behavior");
    bool inverted = json_is_true(json_object_get(step, "invert"));
    bool cuts = is(step, "behavior", inverted ? "Removed" : "Isolated"); /* what matches is a piece, what does not too, or is empty */
    if (is_pattern(step, " ") && is(step, "behavior", "MergedWithPrevious") && !inverted)
        mica_buf_puts(out, "split at spaces\n");
    else if (regex && cuts)
        mica_buf_printf(out, "split %s\n", regex);
    else
        mica_buf_printf(out, "Split, %s%s\n", behavior ? behavior : "", inverted ? ", inverted" : "");
}

static void add_metaspace(mica_buf *out, const json_t *step)
{
    const json_t *old = mica_hf_get(step, "add_prefix_space");
    bool never = is(step, "prepend_scheme", "never") || (!mica_hf_get(step, "prepend_scheme") && json_is_false(old));
    bool whole = json_is_false(json_object_get(step, "split")); /* else words are cut, which SentencePiece does not do */
    if (is(step, "replacement", "\xE2\x96\x81") && whole)
        mica_buf_puts(out, never ? "spaces\n" : "spaces, prefix\n");
    else
        mica_buf_puts(out, "Metaspace with words cut\n");
}

static void add_bytes(mica_buf *out, const json_t *step)
{
    if (json_is_true(json_object_get(step, "add_prefix_space")))
        mica_buf_puts(out, "a space before\n");
    mica_buf_puts(out, json_is_false(json_object_get(step, "use_regex")) ? "bytes\n" : "bytes, GPT-2's words\n");
}

static void add_step(mica_buf *out, const json_t *step)
{
    const char *type = mica_hf_text(step, "type");
    if (is(step, "type", "Split"))
        add_split(out, step);
    else if (is(step, "type", "Metaspace"))
        add_metaspace(out, step);
    else if (is(step, "type", "ByteLevel"))
        add_bytes(out, step);
    else if (is(step, "type", "Digits") && json_is_true(json_object_get(step, "individual_digits")))
        mica_buf_puts(out, "each digit\n");
    else if (is(step, "type", "Prepend") && is(step, "prepend", "\xE2\x96\x81"))
        mica_buf_puts(out, "prefix\n");
    else if (is(step, "type", "Replace") && is_pattern(step, " ") && is(step, "content", "\xE2\x96\x81"))
        mica_buf_puts(out, "spaces\n");
    else
        mica_buf_printf(out, "%s\n", type ? type : "?");
}

/* A step, or a Sequence of some. */
static void add_steps(mica_buf *out, const json_t *steps, const char *list)
{
    if (!steps)
        return;
    if (!is(steps, "type", "Sequence")) {
        add_step(out, steps);
        return;
    }
    const json_t *items = json_object_get(steps, list);
    for (size_t i = 0; i < json_array_size(items) && i < MAX_STEPS; i++)
        add_step(out, json_array_get(items, i));
}

static mica_status look_up(mica_hf_tokenizer *t, const char *steps, mica_error *err)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].steps, steps) != 0)
            continue;
        t->pre = known[i].pre;
        t->bytes = known[i].bytes;
        t->space_prefix = known[i].space_prefix;
        if (t->bytes || json_is_true(json_object_get(t->model, "byte_fallback")))
            return MICA_OK;
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": pieces of characters without byte_fallback cannot be converted");
    }
    char shown[200];
    size_t n = 0;
    for (; steps[n] && n < sizeof shown - 1; n++)
        shown[n] = steps[n] == '\n' ? ';' : steps[n];
    shown[n] = '\0';
    return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": a GGUF file has no name for the way this tokenizer splits text: %s", shown);
}

mica_status mica_hf_pretok_find(mica_hf_tokenizer *t, mica_error *err)
{
    mica_buf steps;
    mica_buf_init(&steps, MAX_TEXT);
    add_steps(&steps, mica_hf_get(t->file, "normalizer"), "normalizers");
    add_steps(&steps, mica_hf_get(t->file, "pre_tokenizer"), "pretokenizers");
    if (json_is_true(json_object_get(t->model, "ignore_merges")))
        mica_buf_puts(&steps, "whole words first\n");
    char *text = mica_buf_putc(&steps, '\0') ? steps.data : NULL;
    mica_status status = text ? look_up(t, text, err)
                              : mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": its patterns take more than %d bytes", MAX_TEXT);
    mica_buf_free(&steps);
    return status;
}
