"""Constraints and tools."""
import json

import pytest

import mica

SCHEMA = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}, "n": {"type": "integer"}}, "required": ["colour", "n"],
          "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a city",
                                           "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}},
                                                          "required": ["city"], "additionalProperties": False}}}]


def test_match():
    with mica.Constraint.json_schema(None, SCHEMA) as c:
        assert c.match('{"colour":"red","n":12}') == (True, 23)
        assert c.match('{"colour":"green"') == (False, 11)
    with mica.Constraint.regex(None, "[a-c]+") as c:
        assert c.match("abd") == (False, 2)
    with mica.Constraint.choices(None, ["yes", "no \U0001f642"]) as c:
        assert c.match("no \U0001f642") == (True, 7)
    with mica.Constraint.gbnf(None, 'root ::= "a" root | "b"') as c:
        assert c.match("aab")[0]
    with mica.Constraint.json(None) as c:
        assert c.match("[1,2]")[0] and not c.match("[1,")[0]


def test_refusals():
    with pytest.raises(mica.BadText):
        mica.Constraint.json_schema(None, '{"type": ')
    with pytest.raises(mica.Unsupported):
        mica.Constraint(None, "json_schema", json.dumps({"not": {"type": "string", "pattern": "(?=a)"}}))
    with pytest.raises(mica.InvalidArgument, match="no constraint 'yaml'"):
        mica.Constraint(None, "yaml")


@pytest.mark.parametrize("seed", range(3))
def test_json_schema(smollm2, seed):
    with smollm2.session(n_ctx=256) as session:
        reply = json.loads(session.generate("A colour and a number as JSON: ", json_schema=SCHEMA, max_tokens=30, close_json=True,
                                            temperature=1.5, seed=seed).text())
    assert reply["colour"] in ("red", "blue") and isinstance(reply["n"], int)


def test_shared_constraint(smollm2):
    """One that is closed while a stream uses it is freed after it."""
    constraint = mica.Constraint.choices(smollm2, ["yes please", "no thanks"])
    with smollm2.session(n_ctx=256) as session:
        stream = session.generate("Tea? ", constraint=constraint)
        first = next(stream)
        constraint.close()
        assert first + stream.text() in ("yes please", "no thanks")
        with pytest.raises(mica.Closed, match="the constraint is closed"):
            session.generate("Tea? ", constraint=constraint).text()


def test_one_constraint(smollm2):
    with smollm2.session(n_ctx=256) as session, mica.Constraint.json(smollm2) as any_json:
        with pytest.raises(mica.InvalidArgument, match="json_schema and constraint"):
            session.generate("x", json_schema={}, constraint=any_json).text()


def test_tools(smollm2):
    with mica.Tools(smollm2, TOOLS, choice="required", parallel=False) as tools, smollm2.session(n_ctx=1024) as session:
        events = list(session.generate([{"role": "user", "content": "What is the weather in Rome?"}], tools=tools, temperature=0,
                                       max_tokens=120).events())
        assert tools.format
        calls = [e for e in events if isinstance(e, mica.ToolCall)]
        assert len(calls) == 1 and calls[0].name == "get_weather" and calls[0].id
        assert calls[0].arguments["city"] in ("Paris", "Rome")
        assert isinstance(events[-1], mica.Done)
        with pytest.raises(mica.InvalidArgument, match="go with messages"):
            session.generate("text", tools=tools)
    with pytest.raises(mica.InvalidArgument, match="no_such_tool"):
        mica.Tools(smollm2, TOOLS, choice="no_such_tool")
