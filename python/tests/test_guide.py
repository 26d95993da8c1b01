# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples of guides and tutorials run as they are, in the order of the page."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a page needs besides the package, and how many examples it has at least.
PAGES = {
    "guide/python.md": (("polars", "pyarrow", "gymnasium"), 5),
    "guide/sweep.md": (("pyarrow",), 2),
    "guide/score-schedulers.md": ((), 1),
    "tutorials/tuner.md": (("optuna",), 5),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    needed, count = PAGES[page]
    for name in needed:
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) >= count
    names = {"__name__": "__guide__"}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), names)
        # What a line prints stands behind it, if it is short.
        wanted = re.findall(r"^print\(.*?\) +# (.*)$", block, re.MULTILINE)
        shown = printed.getvalue().splitlines()
        for expected in wanted:
            pattern = re.escape(expected).replace(r"\.\.\.", ".*")
            assert any(re.fullmatch(pattern, line) for line in shown), (expected, shown)
