"""Writes the expected data of the text tests from Python's own Unicode machinery, which is independent of the engine's:
    pretok.jsonl        words of every pre-tokenizer, by the `regex` module with the patterns of the models' tokenizer.json
    nfc.jsonl           unicodedata.normalize("NFC", ...)
    utf8_replace.jsonl  bytes.decode("utf-8", errors="replace")
Usage: python3 make.py   (needs the regex module; the tests themselves do not need this script)
"""
import json
import os
import random
import unicodedata

import regex

HERE = os.path.dirname(os.path.abspath(__file__))
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTR = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LO, LEAD = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"


def cl100k(digits):
    return CONTR + "|" + LEAD + r"\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL


def cased(tail):
    return LEAD + UP + "*" + LO + "+" + tail + "|" + LEAD + UP + "+" + LO + "*" + tail


CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# The letters of deepseek-llm are the cased letters that Unicode had when the model was made; random text below keeps to Latin,
# Greek and Cyrillic, where the categories say the same.
PRETOK = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "gpt-2": [GPT2],
    "mpt": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "command-r": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "llama-bpe": [cl100k(r"\p{N}{1,3}")],
    "dbrx": [cl100k(r"\p{N}{1,3}")],
    "glm4": [cl100k(r"\p{N}{1,3}")],
    "qwen2": [cl100k(r"\p{N}")],
    "stablelm2": [cl100k(r"\p{N}")],
    "qwen35": [CONTR + "|" + LEAD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL],
    "seed-coder": [CONTR + "|" + LEAD + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + TAIL],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "gpt-4o": [cased(CONTR + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL],
    "tekken": [cased("") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL],
    "deepseek-llm": [r"[\r\n]", r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
                     "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", CJK, r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    r"| ?[\p{P}\p{S}]+[\r\n]*" + TAIL],
}
SNIPPETS = ["a", "Hello", " world", "'s", "'S", "'ll", "'LL", "don't", "We'Ve", "x", "camelCaseWord", "ABC", "3", "33", "2024",
            "12345", "3.14", " ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", " \n", "\u00a0", "\u3000", "\u2028", "\u0085",
            "\u180e", "\u200b", "-", "--", "=>", "!!", "...", "//", "/* */", "(", ")", "{", "}\n", ";\n", "$", "`", "~",
            "\u00bd",
            "\u2167", "\u0663\u0664", "caf\u00e9", "\u00c9", "na\u00efve", "\u0437\u0434\u0440\u0430\u0432", "\u0391\u03b8",
            "\u01c5", "\u02b0", "e\u0301", "\u0915\u094d\u0937", "\u4e2d\u6587", "\u65e5\u672c\u8a9e\u306e",
            "\u30c6\u30b9\u30c8", "\ud55c\uad6d", "\U0001f999", "\U0001f469\u200d\U0001f467", "\u201cq\u201d", "\uff01",
            "\x00", "\x1b", "_", "@user", "#tag", "http://x.y/z?a=1", "\u017f", "'\u017f"]


def words(text, patterns):
    pieces = [text]
    for p in patterns:
        out = []
        for piece in pieces:
            at = 0
            for m in regex.finditer(p, piece):
                out += [piece[at:m.start()]] if m.start() > at else []
                out += [m.group()] if m.group() else []
                at = m.end()
            out += [piece[at:]] if at < len(piece) else []
        pieces = out
    return pieces


def pretok(r):
    for name, patterns in PRETOK.items():
        for _ in range(24):
            text = "".join(r.choice(SNIPPETS) for _ in range(r.randint(1, 14)))
            if name == "deepseek-llm":
                text = "".join(c for c in text if ord(c) < 0x530 or ord(c) > 0x2000)
            yield {"pre": name, "text": text, "words": words(text, patterns)}


def nfc(r):
    marks = [c for c in range(0x300, 0x370)] + [0x591, 0x5b0, 0x64b, 0x655, 0x93c, 0xe38, 0x302a, 0x3099, 0x1d165]
    bases = [ord(c) for c in "aeiouAEIOUyncsz <"] + [0xc5, 0xe9, 0x1ea5, 0x3b1, 0x3c9, 0x43a, 0x1f71, 0x1fbe, 0x2126, 0x212b,
                                                     0x304b, 0x306f, 0x1100, 0x1112, 0x1161, 0x1175, 0x11a8, 0xac00, 0xd55c,
                                                     0x958, 0xfb2a, 0xf900, 0x2f800, 0x1d15e, 0x344, 0x1f82, 0x4e2d, 0x1f600]
    for i in range(300):
        text = "".join(chr(r.choice(bases if r.random() < 0.5 else marks)) for _ in range(r.randint(1, 12 if i % 5 else 60)))
        yield {"text": text, "nfc": unicodedata.normalize("NFC", text)}


def utf8(r):
    valid = ["a", "\u00e9", "\u20ac", "\U0001f999", "\x00", "\ufffd", "\u0800", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff"]
    leads = [0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF]
    for i in range(400):
        b = b""
        for _ in range(r.randint(1, 10)):
            kind = r.random()
            if kind < 0.35:
                b += r.choice(valid).encode()
            elif kind < 0.6:
                whole = r.choice(valid).encode()
                b += whole[:r.randint(1, len(whole))]
            elif kind < 0.9:
                b += bytes([r.choice(leads)])
            else:
                b += bytes([r.randrange(256)])
        yield {"bytes": b.hex(), "text": b.decode("utf-8", errors="replace").encode().hex()}


for name, rows in (("pretok", pretok), ("nfc", nfc), ("utf8_replace", utf8)):
    with open(os.path.join(HERE, name + ".jsonl"), "w", encoding="utf-8") as f:
        for row in rows(random.Random(7)):
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")
