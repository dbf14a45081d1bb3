"""Models that `convert` made: the recipe beside each, and how a driver finds the one that came from a GGUF file.

A recipe is STEM.recipe.json beside the model: the source file with its SHA-256, the steps, the packages, the bits per weight.
"""
import json
import os

import places
from adapter import Failure

SCHEMA = 1


def default_path(name, source, ending=""):
    return places.cache(name, "models", places.stem_of(source) + ending)


def recipe_path(model):
    return os.path.normpath(model) + ".recipe.json"


def write_recipe(name, source, model, facts):
    """facts: recipe, steps, packages, weight_bytes, parameters; what is computed from them is added here."""
    recipe = {"schema": SCHEMA, "adapter": name, "runtime": places.manifest(name)["runtime"],
              "source": {"file": os.path.basename(source), "bytes": os.path.getsize(source),
                         "mtime_ns": os.stat(source).st_mtime_ns, "sha256": places.sha256_of(source)},
              "file": os.path.basename(os.path.normpath(model)), "file_bytes": places.size_of(os.path.realpath(model)),
              "bits_per_weight": round(8 * facts["weight_bytes"] / facts["parameters"], 4), **facts}
    new = recipe_path(model) + ".new"
    with open(new, "w", encoding="utf-8") as f:
        json.dump(recipe, f, indent=1)
        f.write("\n")
    os.replace(new, recipe_path(model))
    return recipe


def read_recipe(model):
    """The recipe of a model, or {} if it was made otherwise."""
    try:
        with open(recipe_path(model), encoding="utf-8") as f:
            recipe = json.load(f)
        return recipe if recipe.get("schema") == SCHEMA else {}
    except (OSError, ValueError):
        return {}


def find(name, model, ending=""):
    """The file that the runtime shall load. A GGUF file stands for what was made of it."""
    if not os.path.exists(model):
        raise Failure("model", f"{model} is not there")
    if not model.endswith(".gguf"):
        return model
    made = default_path(name, model, ending)
    how = f"run adapters/{name}/convert {model}"
    if not os.path.exists(made):
        raise Failure("model", f"nothing was made of {os.path.basename(model)} for this runtime yet: {how}")
    if not is_source(read_recipe(made).get("source", {}), model):
        raise Failure("model", f"{made} was made of another file of this name: {how}")
    return made


def is_source(source, path):
    """Compares sizes and times, and reads the file only if the times differ."""
    st = os.stat(path)
    if source.get("bytes") != st.st_size:
        return False
    return source.get("mtime_ns") == st.st_mtime_ns or source.get("sha256") == places.sha256_of(path)
