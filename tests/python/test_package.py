"""The wheel: built from this tree and library, installed in an empty environment, used without a compiler; and the types."""
import os
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, SCRIPTED

PACKAGE = os.path.join(ROOT, "bindings", "python")
USE = """
import mica, sys
assert "site-packages" in mica.__file__, mica.__file__
maps = open("/proc/self/maps").read()
assert mica.__file__.replace("__init__.py", "libmica.so") in maps
model = mica.Model(sys.argv[1])
print(mica.__version__, model.generate("E", temperature=0).text())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-B", os.path.join(PACKAGE, "build_wheel.py"), "--library", os.environ["MICA_LIBRARY"],
                           "--out", str(out)], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "is consistent with the following" in done.stderr
    return done.stdout.strip()


def test_contents(wheel):
    name = os.path.basename(wheel)
    assert "-py3-none-manylinux_2_" in name
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        metadata = z.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    sources = sorted(f"mica/{n}" for n in os.listdir(os.path.join(PACKAGE, "mica")) if n.endswith((".py", ".typed")))
    assert sorted(n for n in names if n.startswith("mica/") and n.endswith((".py", ".typed"))) == sources
    for library in ("jansson", "pcre2", "utf8proc"):  # inside, with its licence
        assert any(n.startswith("mica.libs/") and library in n for n in names)
        assert any(n.endswith(f"licenses/LICENSE.{library}") for n in names)
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist: numpy" in metadata
    assert all("extra ==" in line for line in metadata.splitlines() if line.startswith("Requires-Dist"))


def test_install_and_use(wheel, tmp_path):
    """Nothing but Python: no compiler can be found, and no library of the tree."""
    folder = str(tmp_path / "venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = os.path.join(folder, "bin", "python3")
    packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['platlib'])"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    with zipfile.ZipFile(wheel) as z:
        z.extractall(packages)  # all that an installation of a wheel without scripts does
    done = subprocess.run([python, "-B", "-c", USE, SCRIPTED], env={"PATH": "/nonexistent", "LANG": "C.UTF-8"}, cwd=tmp_path, check=True,
                          stdout=subprocess.PIPE, text=True)
    assert done.stdout == f"{os.path.basename(wheel).split('-')[1]} Hi \U0001f642!\n"


def imported(**environment):
    env = {**os.environ, "PYTHONPATH": PACKAGE, **environment}
    return subprocess.run([sys.executable, "-B", "-c", "import mica"], env=env, check=False, text=True, stderr=subprocess.PIPE)


def test_a_library_that_does_not_fit(tmp_path):
    done = imported(MICA_LIBRARY="/no/libmica.so")
    assert done.returncode == 1 and "set MICA_LIBRARY" in done.stderr.splitlines()[-1]
    source, other = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text('const char *mica_version(void) { return "9"; }\n')
    subprocess.run([os.environ.get("MICA_CC", "cc"), "-shared", "-fPIC", str(source), "-o", str(other)], check=True)
    done = imported(MICA_LIBRARY=str(other))
    assert done.returncode == 1 and "of another version" in done.stderr.splitlines()[-1]


USER = """
import mica

model = mica.Model("m.gguf", lock=True)
stream: mica.Stream = model.generate([{"role": "user", "content": "x"}], temperature=0.5, stop=["a"], json_schema={"type": "object"})
text: str = stream.text()
speed: float = stream.result.decode_tps if stream.result else 0.0
"""


WRONG = {"argument": ('model.generate("x", temprature=1)', "temprature"), "option": ('model.session(n_ctx="8")', "n_ctx"),
         "result": ("number: int = stream.text()", "Incompatible types")}


def test_types(tmp_path):
    """Users' programs are checked against the package, strictly: a good one passes, and what is wrong in the others is found."""
    (tmp_path / "good.py").write_text(USER)
    for name, (line, _) in WRONG.items():
        (tmp_path / f"{name}.py").write_text(USER + line + "\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", os.devnull, "-m", "mica", "-m", "mica.lm_eval",
                           *(arg for name in ("good", *WRONG) for arg in ("-m", name))],
                          env={**os.environ, "MYPYPATH": f"{PACKAGE}:{tmp_path}", "PYTHONPATH": ""}, cwd=tmp_path, check=False, text=True,
                          stdout=subprocess.PIPE)
    found = {}
    for line in done.stdout.splitlines():
        if ": error:" in line:
            found.setdefault(os.path.basename(line.split(":")[0]), []).append(line)
    assert set(found) == {f"{name}.py" for name in WRONG}, done.stdout
    for name, (_, error) in WRONG.items():
        assert len(found[f"{name}.py"]) == 1 and error in found[f"{name}.py"][0]
