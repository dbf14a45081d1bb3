/* no_templates.c - in place of chat.c and tmpl_*.c, in a build with MICA_TEMPLATES=OFF: no chat template compiles, and the error says so.
 * A model opens all the same, with a warning. The tests' full build has nothing of this file. */
#if defined(MICA_NO_TEMPLATES)
#include "text/chat.h"

static mica_status refuse(mica_error *err)
{
    return mica_fail(err, MICA_UNSUPPORTED, "this build has no chat templates: it was made with MICA_TEMPLATES=OFF");
}

mica_status mica_template_compile(const char *text, size_t length, mica_template **out, mica_error *err)
{
    (void)text, (void)length;
    *out = NULL;
    return refuse(err);
}

void mica_template_free(mica_template *t) { (void)t; }

mica_status mica_chat_request_read(const char *json, size_t length, json_t **root, mica_error *err)
{
    (void)json, (void)length;
    *root = NULL;
    return refuse(err);
}

mica_status mica_template_run_json(const mica_template *t, const mica_chat_request *request, json_t *root, char **text, size_t *length,
                                   mica_error *err)
{
    (void)t, (void)request, (void)root;
    *text = NULL;
    *length = 0;
    return refuse(err);
}

mica_status mica_template_render(const char *template_text, size_t template_length, const char *request_json, size_t length,
                                 const char *bos, const char *eos, int64_t now_unix, char **text, size_t *text_length, mica_error *err)
{
    (void)template_text, (void)template_length, (void)request_json, (void)length, (void)bos, (void)eos, (void)now_unix;
    if (text)
        *text = NULL;
    if (text_length)
        *text_length = 0;
    return refuse(err);
}
#endif
