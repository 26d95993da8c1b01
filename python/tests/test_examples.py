# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples run, in a short form."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import schedlab

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *args, cwd):
    command = [sys.executable, EXAMPLES / name, *args]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_optuna_tunes_a_slice(tmp_path):
    pytest.importorskip("optuna")
    printed = run("tune.py", "--trials", "4", cwd=tmp_path)
    best, search = re.search(r"base_slice=(\d+us)\nsearch ([\d.]+),", printed).groups()
    found = schedlab.score("linux-6.12", part="search", tunables={"base_slice": best})
    assert f"{found.search:.3f}" == search


def test_a_cluster_makes_a_scoreboard(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "small.toml").write_text(
        'name = "small"\n[[experiment]]\nname = "small"\nworkload = ["hogs", "interactive"]\n'
        'machine = ["laptop", "pi"]\nuntil = "50ms"\n[[experiment.runs]]\nlane = "sim"\n'
        'schedulers = ["rr", "linux-6.12"]\n'
    )
    printed = run(
        "scoreboard.py", "--experiment", "small.toml", "--workers", "1", cwd=tmp_path
    )
    assert "8 of 8 runs" in printed and "1 workers:" in printed
    assert "<h2>run_delay_ns_mean" in (tmp_path / "scoreboard.html").read_text()


def test_settings_are_ranked(tmp_path):
    program = os.environ.get("SCHEDLAB_PROGRAM", "")
    if not os.access(program, os.X_OK):
        pytest.skip("SCHEDLAB_PROGRAM names no program")
    args = ("--program", program, "--simulate-only", "--cases", "1")
    lines = run("rank_in_guests.py", *args, cwd=tmp_path).splitlines()
    assert len(lines) == 31 and "OTHER 3ms            1.000" in lines
