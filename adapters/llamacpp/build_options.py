"""Prints the environment variables for building llama.cpp on this machine, as JSON: for this processor (-march=native), with
tile_config.h in front of every file, which says why."""
import json
import os
import platform
import shlex

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    variables = {"CMAKE_ARGS": "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF", "CMAKE_GENERATOR": "Ninja"}
    if platform.machine() == "x86_64":
        header = "-include " + shlex.quote(os.path.join(HERE, "tile_config.h"))
        for name in ("CFLAGS", "CXXFLAGS"):
            variables[name] = f"{os.environ.get(name, '')} {header}".strip()
    print(json.dumps(variables))


if __name__ == "__main__":
    main()
