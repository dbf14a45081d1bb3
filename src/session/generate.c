/* generate.c - the token loop. Allocates nothing. */
#include "session/session.h"
#include "session/speculate.h"

/* One forward step (or the rest of the prompt), one token. */
static mica_status one_token(mica_reply *r, mica_error *err)
{
    mica_status status = mica_session_compute(r->s, err);
    return status ? status : mica_reply_take(r, r->s->exec.logits, err);
}

mica_status mica_session_generate(mica_session *s, const mica_generate_options *options, mica_result *result, mica_error *err)
{
    mica_reply *r = &s->reply;
    if (s->batch) {
        if (result)
            *result = (mica_result){.stop_reason = "error", .kernels = s->model->kernels.name};
        return mica_session_in_batch(err);
    }
    mica_status status = mica_reply_start(r, s, options, err);
    while (!status && !r->stop_reason)
        status = r->o.speculate ? mica_speculate_step(r, err) : one_token(r, err);
    return mica_reply_finish(r, status, result, err);
}
