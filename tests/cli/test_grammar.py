"""mica grammar, and replies under a constraint on the scripted model: cases gr-01 to gr-17, exit codes, options, closing, healing."""
import json
import os

from climica import CASES, SCRIPTED, TestCase, case, case_json, case_lines, main, mica, run, write_temporary


def cases():
    return sorted(n for n in os.listdir(CASES) if n.startswith("gr-") and os.path.exists(case(n, "accept.jsonl")))


class Match(TestCase):
    def match(self, *args, **more):
        return mica("grammar", "match", *args, **more)

    def test_cases(self):
        """Cases gr-01 to gr-11: the texts that each schema allows, and those that it does not."""
        self.assertGreaterEqual(len(cases()), 9)
        for name in cases():
            for file, code in (("accept.jsonl", 0), ("reject.jsonl", 1)):
                for text in case_lines(name, file):
                    done = self.match("--schema", case(name, "schema.json"), "--text-file", "-", "--schema-lenient", stdin=text)
                    self.assertEqual(done.code, code, (name, text[:200], done))

    def test_deep_text(self):
        """Case gr-05: nested 500 deep."""
        text = '{"v":1,"kids":[' * 500 + '{"v":1,"kids":[]}' + "]}" * 500
        schema = case("gr-05-recursive-tree", "schema.json")
        self.ok(self.match("--schema", schema, "--text-file", "-", stdin=text))
        self.assertEqual(self.match("--schema", schema, "--text-file", "-", stdin=text[:-1] + "]").code, 1)

    def test_no_trailing_blank(self):
        """Case gr-13."""
        schema = case("gr-13-no-trailing-blank", "schema.json")
        self.ok(self.match("--schema", schema, "--text", '{"a":"x"}'))
        for text in ('{"a":"x"} ', '{"a":"x"}\n', ' {"a":"x"}', '{"a": "x"}'):
            self.assertEqual(self.match("--schema", schema, "--text", text).code, 1, text)
        self.assertEqual(self.match("--grammar", case("gr-13-no-trailing-blank", "grammar.gbnf"), "--text", '"x" ').code, 1)

    def test_valid_prefix_is_shown(self):
        done = self.match("--choice", "red", "--choice", "red fox", "--text", "red flag")
        self.assertEqual((done.code, done.text), (1, 'no match: cannot go on after 5 of 8 bytes: "red f"\n'), done)
        done = self.match("--choice", "red fox", "--text", "red f")
        self.assertEqual((done.code, done.text), (1, 'no match: the text ends too early, after 5 of 5 bytes: "red f"\n'), done)
        done = self.match("--regex", "[a-z]+", "--text", "é" * 3 + "a" * 100)
        self.assertIn("after 0 of 106 bytes", done.text)
        done = self.match("--regex", "é*", "--text", "é" * 100 + "a")
        self.assertTrue(done.text.endswith('bytes: ..."' + "é" * 30 + '"\n'), done)
        self.assertEqual(self.ok(self.match("--choice", "red", "--text", "red")).text, "match\n")
        done = self.match("--choice", "red", "--text", "reds", "--json")
        self.assertEqual((done.code, json.loads(done.text)), (1, {"matches": False, "bytes": 4, "valid_prefix": 3}))

    def test_kinds(self):
        self.ok(self.match("--schema", '{"type":"integer"}', "--text", "12"))
        self.ok(self.match("--any-json", "--text", '{"a":[1,null,"x"]}'))
        self.assertEqual(self.match("--any-json", "--text", '{"a": 1}').code, 1)
        self.ok(self.match("--any-json", "--schema-whitespace", "--text", '{"a": 1}'))
        self.ok(self.match("--regex", r"\d{4}-\d\d", "--text", "2024-05"))
        self.ok(self.match("--choice", "a,b", "--choice", "c", "--text", "a,b"))
        grammar = write_temporary(self, 'root ::= "a" b*\nb ::= [bc]\n', ".gbnf")
        self.ok(self.match("--grammar", grammar, "--text", "abcbc"))
        self.assertEqual(self.match("--grammar", grammar, "--text", "abd").code, 1)
        self.ok(self.match("--grammar", "-", "--text", "x", stdin='root ::= "x"'))

    def test_usage(self):
        for args, wanted in (([], "no constraint"), (["--choice", "a"], "--text"), (["--any-json", "--regex", "a", "--text", "a"], "one constraint"),
                             (["--regex", "a", "--text", "a", "--text-file", "b"], "--text"), (["--schema-lenient", "--regex", "a", "--text", "a"], "--schema"),
                             (["--schema", "/nowhere/at.all", "--text", "a"], "/nowhere/at.all"), (["--regex", "(", "--text", "a"], "--regex"),
                             (["--grammar", write_temporary(self, "root ::= x"), "--text", "a"], "x"),
                             (["--schema", '{"type":"no-such"}', "--text", "a"], "no-such"),
                             (["--regex", "a", "--text-file", "/nowhere/at.all"], "/nowhere/at.all")):
            self.fails(self.match(*args), wanted, code=2)
        self.fails(mica("grammar", "dance", "--regex", "a"), "dance", code=2)
        self.fails(mica("grammar", "--regex", "a"), "match|compile", code=2)

    def test_compile(self):
        self.assertRegex(self.ok(mica("grammar", "compile", "--regex", "a*")).text, r"^compiles in [\d.]+ ms: \d+ states, \d+ edges\n$")
        done = self.ok(mica("grammar", "compile", "--choice", "red", "--choice", "rust", "-m", SCRIPTED))
        self.assertRegex(done.text, r"\n\d+ of \d+ tokens may begin the text; ")
        full = json.loads(self.ok(mica("grammar", "compile", "--regex", "x+", "-m", SCRIPTED, "--json")).text)
        self.assertEqual(full["allowed_tokens"], 2)  # the byte and the letter
        after = json.loads(self.ok(mica("grammar", "compile", "--regex", "ax", "-m", SCRIPTED, "--text", "ax", "--json")).text)
        self.assertEqual(after["allowed_tokens"], 0)
        self.fails(mica("grammar", "compile", "--regex", "ax", "-m", SCRIPTED, "--text", "b"), "0 bytes", code=2)


class Replies(TestCase):
    def reply(self, want, stop, *args):
        done = self.ok(run(*args))
        self.assertEqual(done.text, want, done)
        self.assertTrue(done.message.rstrip().endswith("stop=" + stop), done)
        return done

    def test_ignore_eos(self):
        """Case gr-17."""
        red = write_temporary(self, 'root ::= "red" | "red fox"', ".gbnf")
        zzz = write_temporary(self, 'root ::= "zzz"', ".gbnf")
        done = self.ok(run("-p", "R", "--grammar", red, "--ignore-eos", "-n", "64"))
        self.assertIn(done.text, ("red", "red fox"))
        self.assertTrue(done.message.rstrip().endswith("stop=stop"), done)
        self.reply("zzz", "stop", "-p", "E", "--grammar", zzz, "--ignore-eos", "-n", "64")

    def test_fail_closed(self):
        """Case gr-15: what does not compile is refused before anything is said."""
        for schema in case_json("gr-15-fail-closed", "schemas.json"):
            text = json.dumps(schema)
            file = write_temporary(self, text, ".json")
            for args in (["run", "-m", SCRIPTED, "-p", "E"], ["grammar", "match", "--text", "1"], ["chat", "-m", SCRIPTED]):
                done = mica(*args, "--schema", file)
                if schema is False and args[0] == "grammar":
                    self.assertEqual(done.code, 2, done)
                self.fails(done, "--schema", "#" if isinstance(schema, dict) else "", code=2)
                self.assertEqual(done.out, b"")

    def test_lenient(self):
        schema = '{"type":"array","items":{"type":"integer"},"uniqueItems":true}'
        self.fails(run("-p", "E", "--schema", schema), "uniqueItems", code=2)
        done = self.ok(run("-p", "E", "--schema", schema, "--schema-lenient", "--close", "-n", "9"))
        self.assertIn("mica: warning: ", done.message)
        json.loads(done.text)

    def test_close(self):
        self.reply("xxxxx", "length", "-p", "X", "--regex", "x{3,}", "--close", "-n", "5")
        done = self.ok(run("-p", "X", "--any-json", "--close", "-n", "12", "--temp", "2", "--seed", "1"))
        json.loads(done.text)
        self.fails(run("-p", "X", "--regex", "x{9}", "--close", "-n", "5"), "takes", "5")
        self.fails(run("-p", "X", "--close"), "--close", code=2)

    def test_healing(self):
        self.reply("lpha beta gamma delta", "eos", "-p", "Sa", "--token-healing", "--no-chat")

    def test_choice_and_json_result(self):
        done = self.ok(run("-p", "E", "--choice", "Hello", "--choice", "Hi", "--json"))
        result = json.loads(done.text.splitlines()[-1])
        self.assertEqual((result["text"], result["stop_reason"]), ("Hi", "stop"))
        self.assertEqual(result["forced_n"], 0)  # "H" is common to both, but the token "Hi" reaches beyond it
        done = self.ok(run("-p", "E", "--choice", "zab", "--choice", "zcd", "--json"))
        self.assertGreater(json.loads(done.text.splitlines()[-1])["forced_n"], 0)

    def test_chat(self):
        done = self.ok(mica("chat", "-m", SCRIPTED, "--temp", "0", "--choice", "Hi", "--choice", "no", stdin="E\nE\n"))
        self.assertEqual(done.text, "Hi\nHi\n")


class Speculation(TestCase):
    def test_same_reply(self):
        want = self.ok(run("-p", "X", "-n", "60"))
        for args in (["--speculate", "lookup"], ["--speculate", "model", "--draft-model", SCRIPTED],
                     ["--speculate", "both", "--draft-model", SCRIPTED, "--draft-max", "7"]):
            done = self.ok(run("-p", "X", "-n", "60", *args))
            self.assertEqual(done.out, want.out)
            result = json.loads(self.ok(run("-p", "X", "-n", "60", "--json", *args)).text.splitlines()[-1])
            self.assertLessEqual(result["accepted_n"], result["drafted_n"])  # whether to guess at all is a matter of speed
            done = self.ok(run("-p", "X", "-n", "60", "--regex", "[xy]{1,40}", *args))
            self.assertEqual(done.text, "x" * 40)

    def test_usage(self):
        self.fails(run("-p", "X", "--draft-model", SCRIPTED), "--speculate", code=2)
        self.fails(run("-p", "X", "--speculate", "model"), "--draft-model", code=2)
        self.fails(run("-p", "X", "--speculate", "wild"), "--speculate", code=2)
        self.fails(run("-p", "X", "--draft-max", "64"), "--draft-max", code=2)
        self.fails(run("-p", "X", "--speculate", "both", "--draft-model", "/nowhere/at.all"), "/nowhere/at.all")


if __name__ == "__main__":
    main()
