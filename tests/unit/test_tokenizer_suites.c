/* Every vocabulary of the tokenizer suite: NAME.gguf with NAME.gguf.inp (texts, split by a marker line) and NAME.gguf.out (one
 * line of ids a text). The folder comes from MICA_SUITES_DIR; without it the program reports that it was skipped (77). */
#include "tokenizer_util.h"

#include <dirent.h>

#define MARKER "\n__ggml_vocab_test__\n"
#define EXPECTED_VOCABULARIES 14

static char folder[1000];

/* Reads the ids of one line, moves *line behind it. */
static size_t read_line_ids(const char **line, int32_t *ids, size_t room)
{
    size_t n = 0;
    const char *p = *line;
    while (*p && *p != '\n') {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p) {
            p++;
            continue;
        }
        assert_true(n < room);
        ids[n++] = (int32_t)id;
        p = end;
    }
    *line = *p ? p + 1 : p;
    return n;
}

/* Returns the number of texts. */
static int check_vocabulary(const char *name)
{
    char path[1400];
    size_t n_in, n_out;
    snprintf(path, sizeof(path), "%s/%s.inp", folder, name);
    char *in = read_bytes(path, &n_in);
    snprintf(path, sizeof(path), "%s/%s.out", folder, name);
    char *out = read_bytes(path, &n_out);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    opened o = open_vocab(path);
    const char *line = out, *text = in;
    int texts = 0;
    static int32_t want[4096];
    for (bool last = false; !last; texts++) {
        const char *end = memmem(text, n_in - (size_t)(text - in), MARKER, strlen(MARKER));
        last = !end;
        end = end ? end : in + n_in;
        size_t length = (size_t)(end - text);
        assert_true(*line || last);
        size_t n = read_line_ids(&line, want, sizeof(want) / sizeof(want[0]));
        check_ids(o.vocab, text, length, 0, want, n, name);
        check_ids(o.vocab, text, length, MICA_TOKENIZE_PARSE_SPECIAL, want, n, name); /* no text of the suite spells one */
        text = end + strlen(MARKER);
    }
    close_vocab(&o);
    free(in);
    free(out);
    return texts;
}

static void suite_vocabularies(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int vocabularies = 0, texts = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n > 5 && !strcmp(e->d_name + n - 5, ".gguf")) {
            texts += check_vocabulary(e->d_name);
            vocabularies++;
        }
    }
    closedir(dir);
    printf("%d vocabularies, %d texts\n", vocabularies, texts);
    assert_int_equal(vocabularies, EXPECTED_VOCABULARIES);
    assert_true(texts > 40 * vocabularies);
}

int main(void)
{
    const char *suites = getenv("MICA_SUITES_DIR");
    snprintf(folder, sizeof(folder), "%s/tokenizers", suites ? suites : "");
    DIR *dir = suites ? opendir(folder) : NULL;
    if (!dir) {
        printf("skipped: MICA_SUITES_DIR does not name a folder with tokenizers/\n");
        return 77;
    }
    closedir(dir);
    const struct CMUnitTest tests[] = {cmocka_unit_test(suite_vocabularies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
