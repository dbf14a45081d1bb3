/* receipt_c.c - prints the receipt of one greedy reply, through mica.h alone: for test_receipt.py, which compares it with those
 * of the program and the server.
 *
 *     receipt_c MODEL PROMPT MAX_TOKENS CTX THREADS HASH_CACHE [CONDITION]... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica/mica_receipt.h"

static int fail(const mica_error *err)
{
    fprintf(stderr, "%s: %s\n", mica_status_name(err->code), err->message);
    return 1;
}

int main(int argc, char **argv)
{
    mica_model *model;
    mica_session *session;
    mica_receipt *receipt;
    mica_error err;
    char *text;
    if (argc < 7)
        return 2;
    mica_session_options o = mica_session_options_default();
    mica_receipt_options r = mica_receipt_options_default();
    mica_generate_options g = mica_generate_options_default();
    o.n_ctx = atoi(argv[4]);
    o.n_threads = atoi(argv[5]);
    o.full_policy = MICA_FULL_STOP;
    r.hash_cache = argv[6];
    r.require = (const char *const *)(argv + 7);
    r.n_require = (size_t)(argc - 7);
    g.max_tokens = atoi(argv[3]);
    g.sampling.temperature = 0.0f;
    g.sampling.seed = 7;
    if (mica_model_open(argv[1], NULL, &model, &err) || mica_session_new(model, &o, &session, &err) ||
        mica_receipt_new(model, &r, &receipt, &err) || mica_session_set_receipt(session, receipt, &err) ||
        mica_session_prompt(session, argv[2], strlen(argv[2]), MICA_TOKENIZE_ADD_BOS, &err) ||
        mica_session_generate(session, &g, NULL, &err) || mica_receipt_json(receipt, &text, &err))
        return fail(&err);
    puts(text);
    mica_free(text);
    mica_session_free(session);
    mica_receipt_free(receipt);
    mica_model_close(model);
    return 0;
}
