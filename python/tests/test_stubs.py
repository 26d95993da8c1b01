# SPDX-License-Identifier: MIT OR Apache-2.0
"""The typed stub names what the module has, and the package is marked as typed."""

import ast
from pathlib import Path

import schedlab
from schedlab import _core

PACKAGE = Path(schedlab.__file__).parent


def test_the_stub_has_what_the_module_has():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    stub = set(classes)
    stub |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    stub |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    own = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert stub == own
    for name, node in classes.items():
        if name == "SchedlabError":
            continue
        named = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        named |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        public = {part for part in vars(getattr(_core, name)) if not part.startswith("_")}
        assert {part for part in named if not part.startswith("_")} == public, name


def test_every_public_name_has_a_docstring_and_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()
    for name in schedlab.__all__:
        found = getattr(schedlab, name)
        if callable(found):
            assert found.__doc__, name
