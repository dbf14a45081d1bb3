"""Requests that every published template is rendered with; see make.py."""


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, id="call00001"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text, id="call00001", name="get_weather"):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": text}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a city.\nIn Celsius, unless told otherwise.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name of the city, e.g. \"Zürich\""},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}},
        "required": ["city"]}}}

BOOK = {"type": "function", "function": {
    "name": "book_table", "description": "Books a table <fast> & 'safe'.", "strict": True,
    "parameters": {"type": "object", "additionalProperties": False, "$defs": {"slot": {"type": "string"}}, "properties": {
        "people": {"type": "integer", "minimum": 1, "maximum": 12, "description": "How many"},
        "when": {"type": ["string", "null"], "format": "date-time", "nullable": True},
        "prices": {"type": "array", "items": {"type": "number"}, "minItems": 1, "default": [1.5, 2, 1e22]},
        "place": {"type": "object", "description": "Where", "properties": {
            "name": {"type": "string"}, "geo": {"type": "array", "items": {"type": "number"}},
            "kind": {"enum": ["inside", "outside", 3, None, True]}}, "required": ["name"]},
        "guests": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string", "description": "first and last"}, "vip": {"type": "boolean", "default": False}},
            "required": ["name"]}},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "either"},
        "one": {"oneOf": [{"type": "boolean", "description": "yes"}, {"type": "null"}], "default": None},
        "ref": {"$ref": "#/$defs/slot"}, "const": {"const": 7}},
        "required": ["people", "when"]}, "return": {"type": "object", "description": "the booking"}}}

EMPTY = {"type": "function", "function": {"name": "ping", "description": "Does nothing", "parameters": {"type": "object", "properties": {}}}}

ARGUMENTS = {"city": "Zürich 🙂", "n": 3, "x": 1.0, "y": -2.5e-7, "ok": True, "no": False, "nil": None, "list": [1, "two", [3.5]],
             "obj": {"a": {"b": "c\n\"d\""}}, "empty": {}, "none": []}

ALTERNATING = [system("You are helpful."), user("Hi"), assistant("Hello! How can I help?"), user("What is 2+2?")]
TOOL_TALK = [system("Use tools."), user("Weather in Paris?"),
             assistant("", tool_calls=[call("get_weather", {"city": "Paris"})]), result("{\"temp\": 21}")]

CONVERSATIONS = [
    {"name": "user", "request": {"messages": [user("Hello")]}},
    {"name": "user-no-prompt", "request": {"messages": [user("Hello")], "add_generation_prompt": False}},
    {"name": "system", "request": {"messages": [system("Be brief."), user("Hello")]}},
    {"name": "turns", "request": {"messages": ALTERNATING}},
    {"name": "turns-no-prompt", "request": {"messages": ALTERNATING + [assistant("4")], "add_generation_prompt": False}},
    {"name": "ends-with-assistant", "request": {"messages": [user("Say"), assistant("It ends he")], "add_generation_prompt": True}},
    {"name": "long", "request": {"messages": [m for i in range(6) for m in (user(f"Question {i}?"), assistant(f"Answer {i}."))]
                                 + [user("Last one")]}},
    {"name": "empty", "request": {"messages": []}},
    {"name": "two-users", "request": {"messages": [user("a"), user("b")]}},
    {"name": "assistant-first", "request": {"messages": [assistant("a"), user("b")]}},
    {"name": "system-late", "request": {"messages": [user("a"), system("later"), user("b")]}},
    {"name": "developer", "request": {"messages": [{"role": "developer", "content": "Be terse."}, user("Hello")]}},
    {"name": "unknown-role", "request": {"messages": [{"role": "robot", "content": "beep"}, user("Hello")]}},
    {"name": "space", "request": {"messages": [system("  s \n"), user("\n  two\n\nlines \t"), assistant(" x "), user(" \n ")]}},
    {"name": "unicode", "request": {"messages": [system("Antworte auf Deutsch – „bitte“."), user("Grüße aus 東京 🗼, naïve ﬁ ß İ"),
                                                assistant("こんにちは\u00a0\u2028!"), user("ΑΣ́Σ <b>&amp;</b> {{ x }} {% y %}")]}},
    {"name": "parts", "request": {"messages": [system("s"), {"role": "user", "content": [
        {"type": "text", "text": "one "}, {"type": "text", "text": "two"}]}]}},
    {"name": "parts-everywhere", "request": {"messages": [{"role": "system", "content": [{"type": "text", "text": "sys"}]}, {
        "role": "user", "content": [{"type": "text", "text": "u"}]}, {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "v"}]}]}},
    {"name": "image", "request": {"messages": [{"role": "user", "content": [
        {"type": "image", "image": "x.png"}, {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]}},
    {"name": "tools", "request": {"messages": [user("Weather in Paris?")], "tools": [WEATHER]}},
    {"name": "tools-system", "request": {"messages": [system("Use tools."), user("Go")], "tools": [WEATHER, BOOK, EMPTY]}},
    {"name": "tools-plain", "request": {"messages": [user("Go")], "tools": [WEATHER["function"]]}},
    {"name": "tools-empty-list", "request": {"messages": [user("Go")], "tools": []}},
    {"name": "call-and-result", "request": {"messages": TOOL_TALK, "tools": [WEATHER]}},
    {"name": "call-answered", "request": {"messages": TOOL_TALK + [assistant("It is 21 degrees."), user("And in Rome?")],
                                          "tools": [WEATHER]}},
    {"name": "call-no-tools", "request": {"messages": TOOL_TALK[1:] + [assistant("Warm."), user("ok")]}},
    {"name": "call-null-content", "request": {"messages": [user("W?"), assistant(None, tool_calls=[call("get_weather", ARGUMENTS)]),
                                                           result("fine")], "tools": [WEATHER]}},
    {"name": "call-no-content", "request": {"messages": [user("W?"), {"role": "assistant", "tool_calls": [call("get_weather", {})]},
                                                         result("fine")], "tools": [WEATHER]}},
    {"name": "call-with-text", "request": {"messages": [user("W?"), assistant("Let me look.", tool_calls=[
        call("get_weather", {"city": "Rome", "days": 2})]), result("fine"), assistant("Fine."), user("thanks")], "tools": [WEATHER]}},
    {"name": "call-string-arguments", "request": {"messages": [user("W?"), assistant("", tool_calls=[
        call("get_weather", "{\"city\": \"Paris\"}")]), result("fine")], "tools": [WEATHER]}},
    {"name": "calls-parallel", "request": {"messages": [user("Both?"), assistant("", tool_calls=[
        call("get_weather", {"city": "Paris"}, "aaaaaaaa1"), call("book_table", {"people": 2, "when": None}, "aaaaaaaa2")]),
        result("sunny", "aaaaaaaa1"), result("{\"booked\": true}", "aaaaaaaa2", "book_table"), assistant("Done."), user("Good")],
        "tools": [WEATHER, BOOK]}},
    {"name": "result-parts", "request": {"messages": [user("W?"), assistant("", tool_calls=[call("get_weather", {"city": "X"})]),
        {"role": "tool", "tool_call_id": "call00001", "content": [{"type": "text", "text": "r1"}, {"type": "text", "text": "r2"}]}],
        "tools": [WEATHER]}},
    {"name": "thinking-off", "request": {"messages": ALTERNATING, "chat_template_kwargs": {"enable_thinking": False,
                                         "thinking": False, "reasoning_effort": "low"}}},
    {"name": "thinking-on", "request": {"messages": ALTERNATING, "chat_template_kwargs": {"enable_thinking": True,
                                        "thinking": True, "reasoning_effort": "high"}}},
    {"name": "thinking-off-tools", "request": {"messages": TOOL_TALK, "tools": [WEATHER], "enable_thinking": False}},
    {"name": "reasoning", "request": {"messages": [user("q"), assistant("a", reasoning_content="because"), user("r"),
                                                   assistant("b", reasoning_content="thus\n"), user("s")]}},
    {"name": "reasoning-last", "request": {"messages": [user("q"), assistant("a", reasoning_content="because", thinking="hm",
                                           reasoning="so")], "add_generation_prompt": False}},
    {"name": "reasoning-tool", "request": {"messages": [user("q"), assistant("", reasoning_content="look it up", thinking="t",
        tool_calls=[call("get_weather", {"city": "Oslo"})]), result("cold")], "tools": [WEATHER]}},
    {"name": "think-in-text", "request": {"messages": [user("q"), assistant("<think>\nlong\n</think>\n\nanswer"), user("r"),
                                          assistant("<think>more</think>end")], "add_generation_prompt": False}},
    {"name": "variables", "request": {"messages": ALTERNATING, "chat_template_kwargs": {
        "date_string": "01 Jan 2030", "custom_tools": [WEATHER], "builtin_tools": ["brave_search", "code_interpreter"],
        "tools_in_user_message": False, "model_identity": "You are M.", "thinking_budget": 512, "keep_all_reasoning": True,
        "clear_thinking": False, "preserve_thinking": True, "add_vision_id": True, "xml_tools": ["def f(x): pass"]}}},
    {"name": "documents", "request": {"messages": ALTERNATING, "documents": [
        {"doc_id": 1, "title": "First", "text": "Some text.", "contents": "c"}, {"doc_id": 2, "title": "Zweiter", "text": "Mehr Text."}],
        "chat_template_kwargs": {"citation_mode": "accurate", "controls": {"citations": True, "length": "short"}}}},
]
