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
import shutil
import tarfile

from fetch_common import Failure, cache_dir, copy_stream, locked, make_folder, require_space, run, say, sha256_of

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
ARCHIVE = "llama_cpp_python-0.3.36.tar.gz"
ARCHIVE_BYTES = 76589250
ARCHIVE_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
UNPACKED_BYTES = 62 << 20
STAMP = ".complete"

ROOT = re.escape("llama_cpp_python-0.3.36/vendor/llama.cpp/")
# folder here -> members of the archive, of which the last path element is kept
MEMBERS = {
    "tokenizers": re.compile(ROOT + r"models/(ggml-vocab-[^/]+\.gguf(?:\.inp|\.out)?)"),
    "templates": re.compile(ROOT + r"models/templates/([^/]+\.jinja)"),
    "grammars": re.compile(ROOT + r"grammars/([^/]+\.gbnf)"),
}


def looks_complete(folder):
    return all(os.path.isdir(os.path.join(folder, name)) and os.listdir(os.path.join(folder, name)) for name in MEMBERS)


def existing_source():
    """A folder to use in place, or None. One that was asked for by name must be right."""
    named = os.environ.get("MICA_SUITES_SOURCE")
    if named:
        if not looks_complete(named):
            raise Failure(f"MICA_SUITES_SOURCE is {named}, which does not hold {', '.join(MEMBERS)}")
        return os.path.abspath(named)
    checkout = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = os.path.join(os.path.dirname(checkout), "shared", "suites")
    return beside if looks_complete(beside) else None


def pip_download_command():
    try:
        from pip._internal.commands import create_command
        return create_command("download")
    except ImportError as e:
        raise Failure("pip is missing for this python3; install it (Debian and Ubuntu: apt install python3-pip)") from e


def find_link(command, options, session):
    """The package's source archive among the indexes and folders that pip is configured with."""
    from pip._vendor.packaging.specifiers import SpecifierSet
    finder = command._build_package_finder(options=options, session=session)
    best = finder.find_best_candidate(PACKAGE, SpecifierSet("==" + VERSION)).best_candidate
    if best is None:
        raise Failure(f"no package index offered {PACKAGE} {VERSION}; "
                      "check the network and pip's settings (pip config list)")
    return best.link


def download(path):
    """pip's internals give the index, proxy, certificates and credentials that the user set up; they are no public
    interface, so whatever they raise becomes advice to place the archive by hand."""
    command = pip_download_command()
    with command.main_context():
        try:
            options, _ = command.parse_args(["--quiet", "--no-deps", "--no-binary", ":all:", "--retries", "2", PACKAGE])
            session = command.get_default_session(options)
            link = find_link(command, options, session)
            if link.is_file:
                shutil.copyfile(link.file_path, path)
            else:
                stream(session, link.url_without_fragment, path)
        except (Failure, OSError) as e:
            # pip's network errors are OSErrors without a number
            if isinstance(e, OSError) and e.errno is None:
                raise Failure(f"the download of {ARCHIVE} failed ({type(e).__name__}); "
                              "check the network and run it again") from e
            raise
        except Exception as e:
            raise Failure(f"this version of pip cannot be used to find {ARCHIVE} ({e}); download that file yourself, "
                          f"put it into {os.path.dirname(path)} and run this again") from e


def stream(session, url, path):
    """Goes on after the bytes that an earlier try left, where the server can."""
    have = os.path.getsize(path) if os.path.exists(path) else 0
    headers = {"Accept-Encoding": "identity"}
    if 0 < have < ARCHIVE_BYTES:
        headers["Range"] = f"bytes={have}-"
    response = session.get(url, headers=headers, stream=True)
    response.raise_for_status()
    with open(path, "ab" if response.status_code == 206 else "wb") as out:
        for block in response.iter_content(1 << 20):
            out.write(block)


def checked_archive(folder):
    path = os.path.join(folder, ARCHIVE)
    if not os.path.exists(path):
        require_space(folder, ARCHIVE_BYTES + UNPACKED_BYTES)
        say(f"fetching {ARCHIVE} ({ARCHIVE_BYTES >> 20} MiB)")
        download(path + ".part")
        if os.path.getsize(path + ".part") < ARCHIVE_BYTES:
            raise Failure(f"the download of {ARCHIVE} was cut off; run it again to go on")
        os.replace(path + ".part", path)
    if sha256_of(path) != ARCHIVE_SHA256:
        os.remove(path)
        raise Failure(f"{path} had the wrong checksum and was removed: run fetch-suites again")
    return path


def unpack(archive, target):
    """Writes by the last path element only, regular files only: nothing in the archive chooses a place."""
    for name in MEMBERS:
        make_folder(os.path.join(target, name))
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            for name, pattern in MEMBERS.items():
                match = pattern.fullmatch(member.name)
                if match and member.isreg():
                    with open(os.path.join(target, name, match.group(1)), "wb") as out:
                        copy_stream(tar.extractfile(member), out)


def drop_unused_vocabularies(folder):
    """Vocabularies without expected ids test nothing; BERT's is WordPiece, which no generating model uses."""
    for name in os.listdir(folder):
        vocabulary = re.sub(r"\.(inp|out)$", "", name)
        usable = all(os.path.exists(os.path.join(folder, vocabulary + end)) for end in (".inp", ".out"))
        if "-bert-" in name or not usable:
            os.remove(os.path.join(folder, name))


def install(folder):
    archive = checked_archive(folder)
    staging = os.path.join(folder, ".partial")
    shutil.rmtree(staging, ignore_errors=True)
    unpack(archive, staging)
    drop_unused_vocabularies(os.path.join(staging, "tokenizers"))
    for name in MEMBERS:
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        os.rename(os.path.join(staging, name), os.path.join(folder, name))
    shutil.rmtree(staging)
    with open(os.path.join(folder, STAMP), "w", encoding="ascii") as f:
        f.write(ARCHIVE_SHA256 + "\n")
    os.remove(archive)


def is_installed(folder):
    try:
        with open(os.path.join(folder, STAMP), encoding="ascii") as f:
            return f.read().strip() == ARCHIVE_SHA256 and looks_complete(folder)
    except OSError:
        return False


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-suites", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    folder = existing_source()
    if folder is None:
        folder = cache_dir("MICA_SUITES_DIR", "suites")
        # a complete folder without the stamp is one that somebody else laid there: used as it is
        if not is_installed(folder) and (os.path.exists(os.path.join(folder, STAMP)) or not looks_complete(folder)):
            make_folder(folder)
            with locked(folder):
                if not is_installed(folder):
                    install(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    run("fetch-suites", main)
