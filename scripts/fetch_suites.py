"""Gets other projects' test data: tokenizer vocabularies with expected ids, chat templates and grammars.

    fetch-suites        prints the folder that holds tokenizers/, templates/ and grammars/; fetches them if need be

The data are part of the source package of llama-cpp-python and stay out of this repository. Used in place, if complete, are:
the folder $MICA_SUITES_SOURCE, and ../shared/suites beside the checkout. Otherwise they go to $MICA_SUITES_DIR, by default
${XDG_CACHE_HOME:-$HOME/.cache}/mica/suites. The package is found through pip's own settings but not handed to pip, which
would run its build.
"""
import argparse
import os
import re

from fetch_archive import STAMP, Archive
from fetch_common import Failure, cache_dir, run

SUITES = Archive("llama-cpp-python", "0.3.36", "llama_cpp_python-0.3.36.tar.gz", 76589250,
                 "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e", 62 << 20,
                 "llama_cpp_python-0.3.36/vendor/llama.cpp/", {
                     "tokenizers": r"models/(ggml-vocab-[^/]+\.gguf(?:\.inp|\.out)?)",
                     "templates": r"models/templates/([^/]+\.jinja)",
                     "grammars": r"grammars/([^/]+\.gbnf)",
                 })


def existing_source():
    """A folder to use in place, or None. One that was asked for by name must be right."""
    named = os.environ.get("MICA_SUITES_SOURCE")
    if named:
        if not SUITES.looks_complete(named):
            raise Failure(f"MICA_SUITES_SOURCE is {named}, which does not hold {', '.join(SUITES.members)}")
        return os.path.abspath(named)
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = os.path.join(os.path.dirname(checkout), "shared", "suites")
    return beside if SUITES.looks_complete(beside) else None


def drop_unused_vocabularies(staging):
    """Vocabularies without expected ids test nothing; BERT's is WordPiece, which no generating model uses."""
    folder = os.path.join(staging, "tokenizers")
    for name in os.listdir(folder):
        vocabulary = re.sub(r"\.(inp|out)$", "", name)
        usable = all(os.path.exists(os.path.join(folder, vocabulary + end)) for end in (".inp", ".out"))
        if "-bert-" in name or not usable:
            os.remove(os.path.join(folder, name))


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-suites", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = existing_source()
    if folder is None:
        folder = cache_dir("MICA_SUITES_DIR", "suites")
        # a complete folder without the stamp is one that somebody else laid there: used as it is
        if os.path.exists(os.path.join(folder, STAMP)) or not SUITES.looks_complete(folder):
            SUITES.install(folder, drop_unused_vocabularies)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-suites", main)
