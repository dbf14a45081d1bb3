"""The Hugging Face folder that the converters start from: made once of a GGUF file and shared by them."""
import json
import os
import shutil
import subprocess
import sys

import installer
import places


def hf_folder(gguf_path):
    """-> the folder with the file's weights, made if it is not there; and the facts that gguf_to_hf found."""
    digest = places.sha256_of(gguf_path)
    folder = places.cache("common", "hf", f"{places.stem_of(gguf_path)}-{digest[:12]}")
    facts = os.path.join(folder, "mica_source.json")
    if not os.path.exists(facts):
        installer.set_up("common", "source")
        installer.say(f"convert: decoding {os.path.basename(gguf_path)}")
        new = folder + ".new"
        shutil.rmtree(new, ignore_errors=True)
        script = os.path.join(places.ROOT, "common", "gguf_to_hf.py")
        done = subprocess.run([places.python_of("common", "source"), "-B", script, gguf_path, new], check=False,
                              stdout=sys.stderr, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise installer.SetupError(f"{os.path.basename(gguf_path)} could not be decoded")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(new, folder)
    with open(facts, encoding="utf-8") as f:
        return folder, json.load(f)
