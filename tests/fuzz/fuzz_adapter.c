/* libFuzzer target: everything that an adapter says on its standard output, from hello to the end, as if it had said it at
 * once. The verbs end with a result whose numbers are in their ranges, or with one of the words of adapter.h and a message. */
#include "bench/adapter_proc.c" /* its `proc` is private, and starting a process for each input is slow */

#include <fcntl.h>

#include "fuzz_util.h"

#define N_TOKENS 8

static const mica_adapter_ops verbs = {proc_load, proc_partition, proc_generate, proc_unload, proc_close};

/* An adapter without a process: what it reads is in the pipe already, and what is written to it is lost. */
static proc *start(const uint8_t *data, size_t size)
{
    int pair[2];
    proc *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->base.ops = &verbs;
    p->base.options = mica_adapter_options_default();
    p->manifest.limits = p->base.options.limits;
    snprintf(p->manifest.name, sizeof p->manifest.name, "fuzz");
    p->child = (mica_child){.in = open("/dev/null", O_WRONLY | O_CLOEXEC), .err = -1, .buffer = malloc(MICA_LINE_MAX + 1)};
    if (p->child.in < 0 || !p->child.buffer || pipe2(pair, O_CLOEXEC | O_NONBLOCK) ||
        write(pair[1], data, size) != (ssize_t)size)
        abort();
    close(pair[1]);
    p->child.out = pair[0];
    return p;
}

static mica_status generate(proc *p, mica_adapter_reply *reply, mica_error *err)
{
    static const int32_t prompt[4] = {1, 2, 3, 4};
    mica_adapter_request q = {.tokens = prompt, .prompt_n = 4, .n = N_TOKENS, .greedy = true};
    mica_status status = mica_adapter_generate(&p->base, &q, reply, err);
    if (reply->n_events > N_TOKENS)
        abort();
    for (size_t i = 1; !status && i < reply->n_events; i++)
        if (reply->token_ns[i] < reply->token_ns[i - 1])
            abort(); /* times that go backwards are a fault */
    return status;
}

static mica_status talk(proc *p, mica_error *err)
{
    mica_adapter_load_request load = {.model = "m.gguf", .backend = "cpu", .n_ctx = 64};
    mica_adapter_reply reply = {.token_ns = NULL};
    char label[80];
    mica_status status = say_hello(p, err);
    if (!status && !(status = mica_adapter_load(&p->base, &load, err))) {
        mica_adapter_confirm(&p->base, "cpu", true, label, NULL);
        status = mica_adapter_ask_partition(&p->base, err);
    }
    for (int i = 0; i < 3 && !status; i++)
        status = generate(p, &reply, err);
    mica_adapter_reply_free(&reply);
    return status ? status : mica_adapter_unload(&p->base, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_error err = {0};
    if (size > 60000) /* a pipe holds 64 KiB */
        return 0;
    proc *p = start(data, size);
    mica_status status = talk(p, &err);
    fuzz_check(status, &err, !status);
    if (!status && p->base.fault[0])
        abort();
    mica_adapter_close(&p->base);
    return 0;
}
