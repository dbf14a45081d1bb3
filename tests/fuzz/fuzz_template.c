/* libFuzzer target: compiles and renders an arbitrary template with a fixed request. The engine bounds its own steps, depth and
 * memory, so every input must end, either with valid UTF-8 or with an error that has a message. */
#include "mica/mica.h"

#include <stdlib.h>
#include <string.h>

#include "text/tmpl_ustr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char request[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be brief\"},"
    "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"caf\\u00e9 \\ud83d\\ude42\"}]},"
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\","
    "\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": [2.5, true, null], \"c\": {}}}}]}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}}],"
    "\"n\": 3, \"f\": 1.5, \"s\": \"Hello <b>World</b>\\n two\", \"l\": [3, 1, 2], \"d\": {\"b\": 1, \"a\": [1, {\"x\": 2}]}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    size_t length;
    mica_error err = {0};
    mica_status status = mica_template_render((const char *)data, size, request, sizeof request - 1, "<s>", "</s>", 1741529106,
                                              &text, &length, &err);
    if (status == MICA_OK && (text[length] != '\0' || mica_ustr_validate(text, length) != length))
        abort();
    if (status != MICA_OK && (text || !err.message[0] || err.code != status ||
                              mica_ustr_validate(err.message, strlen(err.message)) != strlen(err.message)))
        abort();
    free(text);
    return 0;
}
