"""The official npm client with a model that was trained for tools."""
import os

import npm_suite
from serving import main_with_models, models_dir

QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"


class Tools(npm_suite.NpmSuite):
    suite, model, arguments = "tools.mjs", os.path.join(models_dir(), QWEN), ("--parallel", 2, "--ctx", 1024)


if __name__ == "__main__":
    main_with_models(QWEN)
