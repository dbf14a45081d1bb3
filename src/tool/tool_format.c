#include "tool/tool_format.h"

/* <tool_call> of Qwen is a vocabulary token of type USER_DEFINED in the files that llama.cpp's converter writes, so it has
 * bytes. A file that has it as a control token gets this row. */
static const mica_tool_format hermes_unmarked = {
    .name = "hermes", .marker = "", .first = "", .before = "{\"name\": \"", .middle = "\", \"arguments\": ", .after = "}",
    .between = "\n", .last = "", .bare = {"{", "\"name\""}, .close = "", .parallel = true};

static const mica_tool_format mistral_unmarked = {
    .name = "mistral", .marker = "", .first = "[", .before = "{\"name\": \"", .middle = "\", \"arguments\": ", .after = "}",
    .between = ", ", .last = "]", .bare = {"[", "{", "\"name\""}, .object_part = 1, .list = true, .close = "", .parallel = true,
    .id_digits = 9};

static const mica_tool_format formats[] = {
    {.name = "hermes", .marker = "<tool_call>", .first = "", .before = "\n{\"name\": \"", .middle = "\", \"arguments\": ",
     .after = "}\n</tool_call>", .between = "\n<tool_call>", .last = "", .marker_written = true, .bare = {"{", "\"name\""},
     .close = "</tool_call>", .parallel = true, .unmarked = &hermes_unmarked},
    {.name = "mistral", .marker = "[TOOL_CALLS]", .first = "[", .before = "{\"name\": \"", .middle = "\", \"arguments\": ",
     .after = "}", .between = ", ", .last = "]", .marker_written = true, .list = true, .close = "", .parallel = true,
     .id_digits = 9, .unmarked = &mistral_unmarked},
    {.name = "functionary", .marker = "<function=", .first = "", .before = "", .middle = ">", .after = "</function>",
     .between = "<function=", .last = "", .shape = MICA_CALL_TAG, .marker_written = true, .close = "</function>",
         .parallel = true},
    {.name = "llama3", .marker = "<|python_tag|>", .first = "", .before = "{\"name\": \"", .middle = "\", \"parameters\": ",
     .after = "}", .between = "", .last = "", .bare = {"{", "\"name\""}, .close = ""},
};

static const mica_tool_format generic = {
    .name = "generic", .marker = "", .first = "", .before = "{\"tool_call\": {\"name\": \"", .middle = "\", \"arguments\": ",
    .after = "}}", .between = "", .last = "", .bare = {"{", "\"tool_call\"", ":"}, .object_part = -1, .close = "}"};

const mica_tool_format *mica_tool_format_at(size_t i) { return i < sizeof formats / sizeof *formats ? &formats[i] : NULL; }

const mica_tool_format *mica_tool_format_generic(void) { return &generic; }
