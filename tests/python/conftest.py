"""What the tests share: the scripted model, which answers by a table, and the real ones where they are."""
import os
import sys

import pytest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.environ.get("MICA_TEST_DATA") or os.path.join(ROOT, "tests", "data")
SCRIPTED = os.path.join(DATA, "cases", "_common", "scripted.gguf")
SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf"


@pytest.fixture(scope="session")
def model():
    import mica
    with mica.Model(SCRIPTED) as opened:
        yield opened


@pytest.fixture
def session(model):
    with model.session() as made:
        yield made


@pytest.fixture
def endless(model):
    """A session in which the reply to "X" never ends."""
    with model.session(full_policy="shift") as made:
        yield made


@pytest.fixture(scope="session")
def smollm2():
    import mica
    path = os.path.join(os.environ.get("MICA_MODELS_DIR", ""), SMOLLM2)
    if not os.path.exists(path):
        pytest.skip(f"{SMOLLM2} is not in MICA_MODELS_DIR (scripts/fetch-models all)")
    with mica.Model(path) as opened:
        yield opened
