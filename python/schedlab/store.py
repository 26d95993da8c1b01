# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of runs as Parquet files in a directory that many machines share.

A file holds the results of some runs, a row each, and is named by the runs' keys. It is written
under another name and then renamed, so that a file is whole or absent, even if a worker dies. The
same runs give the same file, so that it does not matter who writes it, or how often.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import secrets
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as error:
    raise ImportError(
        "a sweep needs pyarrow: install it with pip install './python[sweep]'"
    ) from error

from . import _core

MEASURES: dict[str, str] = dict(_core.list_measures())
"""Unit of every measure of a run: ``ns``, ``1/s``, ``count``, or ``1`` for a ratio."""

SCHEMA = pyarrow.schema(
    [
        ("key", pyarrow.string()),
        ("scheduler", pyarrow.string()),
        ("workload", pyarrow.string()),
        ("cpus", pyarrow.uint32()),
        ("seed", pyarrow.uint64()),
        ("repetition", pyarrow.uint32()),
        ("parameters", pyarrow.map_(pyarrow.string(), pyarrow.string())),
        *((name, pyarrow.float64()) for name in MEASURES),
        ("error", pyarrow.string()),
        ("result", pyarrow.string()),
    ]
)
"""Columns of a file. ``result`` is the whole result as ``schedlab compare`` stores it, and
``error`` the text of a run that has none."""

ENDING = ".parquet"


def name_of(keys: Iterable[str]) -> str:
    """The name of the file with the results of these runs."""
    return hashlib.sha256("\n".join(keys).encode()).hexdigest() + ENDING


class Store:
    """A directory with results: a path, or a URL of fsspec such as ``s3://bucket/results``."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self.where = os.fspath(where)
        self._remote: Any = None
        self._root = self.where
        if "://" in self.where:
            try:
                import fsspec
            except ImportError as error:
                raise ImportError(
                    f"{self.where} is a URL, which needs fsspec: pip install fsspec"
                ) from error
            self._remote, self._root = fsspec.core.url_to_fs(self.where)

    def make(self) -> None:
        """Make the directory unless it is there."""
        if self._remote is not None:
            self._remote.makedirs(self._root, exist_ok=True)
        else:
            os.makedirs(self._root, exist_ok=True)

    def names(self) -> list[str]:
        """The names of all files with results, in order."""
        if self._remote is None:
            found = os.listdir(self._root) if os.path.isdir(self._root) else []
        elif self._remote.exists(self._root):
            self._remote.invalidate_cache()
            found = [posixpath.basename(path) for path in self._remote.ls(self._root, False)]
        else:
            found = []
        return sorted(name for name in found if name.endswith(ENDING))

    def _path(self, name: str) -> str:
        join = posixpath.join if self._remote is not None else os.path.join
        return join(self._root, name)

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        if self._remote is not None:
            return bool(self._remote.exists(self._path(name)))
        return os.path.exists(self._path(name))

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Write a file, all of it or nothing."""
        table = pyarrow.Table.from_pylist(list(rows), schema=SCHEMA)
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, sink, compression="zstd")
        self.put(name, sink.getvalue())

    def put(self, name: str, content: Any) -> None:
        """Write bytes under another name, and rename the file when they are all there."""
        beside = self._path(f"{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        if self._remote is not None:
            with self._remote.open(beside, "wb") as file:
                file.write(content)
            self._remote.mv(beside, self._path(name))
            return
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path(name))

    def read(self, name: str, columns: list[str] | None = None) -> pyarrow.Table:
        """Columns of a file; all of them by default."""
        if self._remote is None:
            # Not read_table on a path, which takes `a=b` in it for a column.
            source = pyarrow.OSFile(self._path(name))
        else:
            source = pyarrow.BufferReader(self._remote.cat_file(self._path(name)))
        # In this thread only: pyarrow's own threads may free a Python object after read_table has
        # returned, which aborts the process if Python ends at that moment (apache/arrow #34314).
        with source, pyarrow.parquet.ParquetFile(source, pre_buffer=False) as file:
            absent = set(columns or ()) - set(file.schema_arrow.names)
            if absent:
                raise pyarrow.ArrowKeyError(f"has no column {min(absent)}")
            return file.read(columns, use_threads=False)

    def remove(self, name: str) -> None:
        """Remove a file."""
        if self._remote is not None:
            self._remote.rm(self._path(name))
        else:
            os.remove(self._path(name))

    def read_all(self, columns: list[str]) -> pyarrow.Table:
        """Columns of all files, one row for each ``key``. Removes damaged files, with a warning:
        their runs run again."""
        tables = []
        for name in self.names():
            try:
                tables.append(self.read(name, columns))
            except (pyarrow.ArrowInvalid, pyarrow.ArrowKeyError, OSError) as error:
                if isinstance(error, FileNotFoundError):
                    continue
                warnings.warn(
                    f"{self._path(name)} is damaged and is removed; its runs run again ({error})",
                    stacklevel=2,
                )
                self.remove(name)
        empty = SCHEMA.empty_table().select(columns)
        table = pyarrow.concat_tables([empty, *tables])
        firsts = _firsts(table.column("key").to_pylist())
        return table.take(pyarrow.array(firsts.values(), pyarrow.int64()))

    def done(self) -> set[str]:
        """The keys of all stored runs."""
        return set(self.read_all(["key"]).column("key").to_pylist())


def _firsts(keys: list[str]) -> dict[str, int]:
    """The first row of each key. Equal keys have equal results."""
    firsts: dict[str, int] = {}
    for row, key in enumerate(keys):
        firsts.setdefault(key, row)
    return firsts
