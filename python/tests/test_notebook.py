# SPDX-License-Identifier: MIT OR Apache-2.0
"""The notebooks among the examples run, and the widget of the timeline has what it draws."""

import subprocess
from array import array
from pathlib import Path
from shutil import which

import pytest
import schedlab
from schedlab import _core

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for needed in ("ipykernel", "anywidget", "matplotlib", "pandas", "pyarrow"):
        pytest.importorskip(needed)
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    assert not [one for one in outputs if one.output_type == "error"]
    shown = [one.data for one in outputs if one.output_type == "execute_result"]
    assert "<svg" in shown[0]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in shown[1]
    assert any("image/png" in one for one in shown), "the plot"
    assert all(not cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells)


def test_the_widget_has_the_slices_as_columns():
    pytest.importorskip("anywidget")
    result = schedlab.simulate("hogs:n=2,work=10ms", "rr:quantum=5ms", cpus=2, keep="slices")
    widget = result.widget()
    starts = array("d", widget.start).tolist()
    assert starts == result.slices.column("start_ns") and len(widget.how) == len(starts)
    assert array("I", widget.task).tolist() == result.slices.column("task")
    assert [task["name"] for task in widget.panel["tasks"]] == result.names
    assert widget.panel["cpus"] == [0, 1] and widget.panel["end_ns"] == result.end_ns
    with pytest.raises(ValueError, match="the result holds no slices"):
        schedlab.simulate("hogs:n=2,work=10ms", "rr").widget()


def test_the_script_of_the_widget_is_a_module(tmp_path):
    pytest.importorskip("anywidget")
    node = which("node")
    if node is None:
        pytest.skip("node is not installed")
    from schedlab.widget import GLUE

    path = tmp_path / "widget.mjs"
    path.write_text(_core.timeline_script() + GLUE)
    done = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
