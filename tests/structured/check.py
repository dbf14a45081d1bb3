"""Generates random texts from schemas and has the Python package jsonschema judge them.

    check.py --sample PROGRAM --schemas FILE.jsonl [--per-schema N] [--seed N] [MODEL.gguf ...]

PROGRAM is sample.c's, or with models replies.c's.

Exit status 77 (skipped) where jsonschema is not installed; 1 if any text is not valid JSON or not valid for its schema.
"""
import argparse
import datetime
import decimal
import ipaddress
import json
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("jsonschema is not installed: skipped")
    sys.exit(77)

FORMATS = jsonschema.FormatChecker(formats=())
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*")
LEAP = re.compile(r"23:59:60(\.\d+)?([Zz]|[+-]00:00)")


def year_known(text):
    """datetime has no year 0, which RFC 3339 has: as a leap year, like 2000."""
    return "2000" + text[4:] if text.startswith("0000") else text


def is_time(text):
    if LEAP.fullmatch(text):
        return True
    match = re.fullmatch(r"(\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|[+-](\d\d:\d\d))", text)
    for part in (match.group(1), match.group(3) or "00:00") if match else ():
        datetime.time.fromisoformat(part)  # raises
    return match is not None


def check(name, raises=ValueError):
    """Formats, checked without the patterns that made them."""
    return FORMATS.checks(name, raises=raises)


@check("date")
def date(text):
    return not isinstance(text, str) or (len(text) == 10 and datetime.date.fromisoformat(year_known(text)) is not None)


@check("time")
def time(text):
    return not isinstance(text, str) or is_time(text)


@check("date-time")
def date_time(text):
    return not isinstance(text, str) or (text[10:11] in ("T", "t") and date(text[:10]) and is_time(text[11:]))


@check("ipv4")
def ipv4(text):
    return not isinstance(text, str) or ipaddress.IPv4Address(text) is not None


@check("ipv6")
def ipv6(text):
    return not isinstance(text, str) or ("%" not in text and ipaddress.IPv6Address(text) is not None)


@check("uuid")
def uuid(text):
    return not isinstance(text, str) or re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


@check("email")
def email(text):
    if not isinstance(text, str):
        return True
    local, _, domain = text.rpartition("@")
    labels = domain.split(".")
    return 0 < len(local) <= 64 and len(domain) <= 253 and not re.search(r"^\.|\.\.|\.$|[\s\"(),:;<>@\[\]\\]", local) and \
        all(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", label) for label in labels)


@check("uri")
def uri(text):
    return not isinstance(text, str) or URI.fullmatch(text) is not None


def unique(pairs):
    """Keys may repeat where the schema does not name them; what is kept is the last, as everywhere."""
    return dict(pairs)


def judge(validator, text):
    """Why a text is wrong, or None. Numbers are decimals, so that multipleOf is exact."""
    try:
        value = json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=unique)
    except ValueError as e:
        return f"not JSON: {e}"
    error = next(validator.iter_errors(value), None)
    return error and f"{error.json_path}: {error.message}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", required=True)
    parser.add_argument("--schemas", required=True)
    parser.add_argument("--per-schema", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    with open(options.schemas, encoding="utf-8") as f:
        schemas = [json.loads(line, parse_float=decimal.Decimal) for line in f]
    command = [options.sample, options.schemas, str(options.per_schema), str(options.seed), *options.models]
    total = failed = 0
    distinct = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout:
            number, texts = json.loads(line)
            validator = jsonschema.Draft202012Validator(schemas[number], format_checker=FORMATS)
            for text in texts:
                total += 1
                distinct.add((number, text))
                why = judge(validator, text)
                if why:
                    failed += 1
                    if failed <= 20:
                        print(f"schema {number + 1}: {text[:300]}\n    {why[:300]}")
    if process.returncode != 0:
        sys.exit(f"{options.sample} ended with {process.returncode}")
    print(f"{len(schemas)} schemas, {total} texts, {len(distinct)} of them different, {failed} not valid")
    sys.exit(1 if failed or total < len(schemas) * options.per_schema else 0)


if __name__ == "__main__":
    main()
