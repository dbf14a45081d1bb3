"""Gets the official JSON-Schema-Test-Suite (draft 2020-12), which the Python package jsonschema has in its source archive.

    fetch-schema-suite      prints the folder that holds tests/, optional/ and format/; fetches them if need be

The data stay out of this repository. They go to $MICA_SCHEMA_SUITE_DIR, by default
${XDG_CACHE_HOME:-$HOME/.cache}/mica/schema-suite. The package is found through pip's own settings, as in fetch-suites.
"""
import argparse

from fetch_archive import Archive
from fetch_common import cache_dir, run

SUITE = Archive("jsonschema", "4.26.0", "jsonschema-4.26.0.tar.gz", 366583,
                "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326", 4 << 20,
                "jsonschema-4.26.0/json/tests/draft2020-12/", {
                    "tests": r"([^/]+\.json)",
                    "optional": r"optional/([^/]+\.json)",
                    "format": r"optional/format/([^/]+\.json)",
                })


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-schema-suite", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = cache_dir("MICA_SCHEMA_SUITE_DIR", "schema-suite")
    SUITE.install(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-schema-suite", main)
