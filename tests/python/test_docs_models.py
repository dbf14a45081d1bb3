"""Every program in docs/python.md runs, in one interpreter from top to bottom, and prints what the document says."""
import contextlib
import io
import os
import re

from conftest import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?^```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_programs(smollm2, tmp_path, monkeypatch):
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as f:
        blocks = BLOCK.findall(f.read())
    assert len(blocks) > 6 and sum(bool(output) for _, output in blocks) > 6
    monkeypatch.chdir(tmp_path)
    os.symlink(smollm2.path, tmp_path / "smollm2.gguf")
    names = {}
    for program, output in blocks:
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(program, "docs/python.md", "exec"), names)  # pylint: disable=exec-used
        assert told.getvalue() == (output or ""), program
