/* What a server answers: an event stream and a whole reply out of the same bytes, cut in two ways, which must give the same
 * text; and that text through the marks of personal data. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "router/remote_reply.h"
#include "router/remote_sse.h"
#include "router/run_redact.h"

typedef struct reading {
    mica_try t;
    mica_try_link link;
} reading;

static int on_event(void *user, const char *data, size_t length)
{
    reading *r = user;
    return !mica_remote_chunk(&r->t, &r->link, data, length);
}

static void read_stream(const uint8_t *data, size_t size, size_t piece, reading *r)
{
    mica_sse sse;
    mica_status status = MICA_OK;
    *r = (reading){.link = {.deadline_ns = INT64_MAX}};
    mica_try_init(&r->t);
    mica_sse_init(&sse, 4096);
    for (size_t at = 0; at < size && !status; at += piece)
        status = mica_sse_feed(&sse, (const char *)data + at, piece < size - at ? piece : size - at, on_event, r, NULL);
    mica_sse_free(&sse);
}

static void check_restore(const mica_buf *text)
{
    mica_restore restore;
    mica_buf out;
    json_t *marks = json_pack("{s:s}", "[A_1]", "[A_1]"); /* a mark that stands for itself: the text stays what it is */
    mica_buf_init(&out, 1 << 20);
    mica_restore_start(&restore, marks);
    bool good = mica_restore_feed(&restore, text->data ? text->data : "", text->length, true, &out);
    if (!good || out.length != text->length || (out.length > 0 && memcmp(out.data, text->data, out.length) != 0))
        abort();
    mica_restore_free(&restore);
    mica_buf_free(&out);
    json_decref(marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reading one, all, whole = {.link = {.deadline_ns = INT64_MAX}};
    char said[64];
    read_stream(data, size, 1, &one);
    read_stream(data, size, size + 1, &all);
    if (one.t.failure != all.t.failure || one.t.text.length != all.t.text.length || strcmp(one.t.finish, all.t.finish) != 0)
        abort(); /* where the bytes are cut makes a difference */
    check_restore(&one.t.text);
    mica_try_free(&one.t);
    mica_try_free(&all.t);
    mica_try_init(&whole.t);
    if (mica_remote_whole(&whole.t, &whole.link, (const char *)data, size) != (whole.t.failure == MICA_FAILURE_NONE))
        abort();
    mica_try_free(&whole.t);
    mica_remote_error_text((const char *)data, size, said, sizeof said);
    return 0;
}
