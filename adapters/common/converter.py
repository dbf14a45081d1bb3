"""What every `convert` shares: arguments, the environment, the folder with the source's weights, the recipe.

    convert MODEL.gguf [--output PATH] [--force]      prints the path of what it made
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import adapter
import installer
import models
import places


def parse(name):
    parser = argparse.ArgumentParser(prog=f"adapters/{name}/convert", description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL.gguf")
    parser.add_argument("--output", metavar="PATH", help="where to put it (default: the adapters' cache folder)")
    parser.add_argument("--force", action="store_true", help="make it anew though it is there")
    return parser.parse_args()


def is_made(source, target):
    recipe = models.read_recipe(target)
    return os.path.exists(target) and bool(recipe) and models.is_source(recipe["source"], source)


def main(name, convert, ending="", environment=None):
    """convert(source, target) -> facts for the recipe; it runs in `environment`, by default the adapter's for converting."""
    options = parse(name)
    source = os.path.abspath(options.model)
    target = os.path.abspath(options.output) if options.output else models.default_path(name, source, ending)
    try:
        if not os.path.isfile(source):
            raise installer.SetupError(f"{source} is not there")
        if options.force or not is_made(source, target):
            owner, kind = environment or (name, "convert")
            installer.set_up(owner, kind)
            places.enter(owner, kind)
            make(name, convert, source, target)
        print(target)
    except (installer.SetupError, adapter.Failure) as e:
        sys.exit(f"convert: {e}")


def make(name, convert, source, target):
    """The model appears under its name when it is whole; what is there of it before goes away."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    for path in (target, models.recipe_path(target)):
        remove(path)
    recipe = models.write_recipe(name, source, target, convert(source, target))
    installer.say(f"convert: {target}: {recipe['file_bytes'] / 1e6:.1f} MB, {recipe['bits_per_weight']} bits a weight")


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def run(command, log, folder=None, **variables):
    """Runs a converter, in a folder if it leaves files where it runs; its output goes to a log beside the model, and its end into the message if it fails."""
    installer.say(f"convert: {os.path.basename(command[0])} {' '.join(command[1:4])} ... (log: {log})")
    with open(log, "wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, cwd=folder,
                              env=dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", **variables))
    if done.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as f:
            tail = "\n  ".join(f.read().strip().splitlines()[-5:])
        raise installer.SetupError(f"the converter ended with status {done.returncode} (log: {log}):\n  {tail}")


def packages(name, environment):
    with open(places.cache(name, environment + ".json"), encoding="utf-8") as f:
        return json.load(f)["packages"]
