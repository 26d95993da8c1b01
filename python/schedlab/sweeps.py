# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: every run of an experiment file, in this process, in several, or on a cluster."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from .backends import Backend, Lost, backend
from .batch import PlanSpec, run_batch
from .store import MEASURES, Store, pyarrow

if TYPE_CHECKING:
    from .scoreboard import Scoreboard

PROBES = 4
"""Batches from which the first size is measured."""
PROBE_RUNS = 4
"""Runs in each of them."""
TRIES = 3
"""How often a batch may lose its worker."""
RUNS_MAX = 1_000_000

Progress = Callable[[int, int], Any]
"""Called with the number of finished runs, and of all runs."""


class Sweep:
    """An experiment with the results that its directory holds.

    pyarrow, polars and pandas read it as a table (:meth:`table`) by its Arrow interface.
    """

    def __init__(self, spec: PlanSpec, plan: _core.Plan, store: Store) -> None:
        self._spec, self._plan, self._store = spec, plan, store
        self._keys: list[str] = plan.keys
        self.nr_batches = 0
        """Number of batches that ended in this call."""
        self.cpu_seconds = 0.0
        """Processor time of the simulations of these batches."""

    @property
    def title(self) -> str:
        """Title of the experiment file, or else its name."""
        return self._plan.title

    @property
    def output(self) -> str:
        """The directory with the results."""
        return self._store.where

    @property
    def keys(self) -> list[str]:
        """The key of each run, as ``schedlab compare`` stores it in ``runs.jsonl``."""
        return self._keys

    @property
    def notes(self) -> list[str]:
        """Remarks about the experiment."""
        return self._plan.notes

    def __len__(self) -> int:
        return len(self._plan)

    def missing(self) -> list[int]:
        """The numbers of the runs without a stored result."""
        done = self._store.done()
        return [index for index, key in enumerate(self.keys) if key not in done]

    def failures(self) -> list[tuple[int, str]]:
        """The runs that ended with an error, by number, and its text."""
        errors = self.table(["error"]).column("error").to_pylist()
        return [(index, text) for index, text in enumerate(errors) if text is not None]

    def table(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """A row for each run, in the order of the plan.

        Its columns are ``experiment``, ``run``, ``scheduler``, ``workload``, ``cpus``, ``seed``,
        ``repetition``, each parameter, each measure, ``error`` and ``key``. ``columns`` chooses
        measures and ``error``. A run without a result has empty measures.
        """
        wanted = [*MEASURES, "error"] if columns is None else list(columns)
        unknown = [name for name in wanted if name != "error" and name not in MEASURES]
        if unknown:
            raise ValueError(
                f"no measure is called {unknown[0]!r}: schedlab.measures() lists them"
            )
        stored = self._store.read_all(["key", *wanted])
        rows = {key: row for row, key in enumerate(stored.column("key").to_pylist())}
        place = pyarrow.array([rows.get(key) for key in self.keys], pyarrow.int64())
        heads = list(zip(*(self._plan.describe(run) for run in range(len(self))), strict=True))
        named: dict[str, Any] = {
            "experiment": heads[0],
            "run": range(len(self)),
            "scheduler": heads[1],
            "workload": heads[2],
            "cpus": heads[3],
            "seed": pyarrow.array(heads[4], pyarrow.uint64()),
            "repetition": heads[5],
        }
        values = zip(*heads[6], strict=True)
        for name, column in zip(self._plan.parameters, values, strict=False):
            named[name] = pyarrow.array(column, pyarrow.string())
        for name in wanted:
            named[name] = stored.column(name).take(place)
        return pyarrow.table({**named, "key": self.keys})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def scoreboard(self, measure: str = "turnaround_ns_mean", **settings: Any) -> Scoreboard:
        """Schedulers against workloads by a measure; see :class:`schedlab.scoreboard.Scoreboard`.
        """
        from .scoreboard import Scoreboard

        return Scoreboard.of(self, measure, **settings)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as one Parquet file."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.table(), os.fspath(path), compression="zstd")

    def write_results(self, directory: str | os.PathLike[str]) -> Path:
        """Write the results as an unfinished directory of ``schedlab compare EXPERIMENT --output
        DIRECTORY``, which then makes its tables and report without a run."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        stored = self._store.read_all(["key", "result"])
        texts = dict(zip(*(column.to_pylist() for column in stored.columns), strict=True))
        path = folder / "runs.jsonl"
        if path.exists():
            raise FileExistsError(f"{path} exists: give another directory")
        manifest = json.dumps(self._manifest(), indent=2)
        (folder / "manifest.json").write_text(manifest + "\n", encoding="utf-8")
        with path.open("x", encoding="utf-8", newline="\n") as file:
            for key in dict.fromkeys(self.keys):
                text = texts.get(key)
                if text is not None:
                    digest = hashlib.sha256(text.encode()).hexdigest()
                    file.write(f'{{"key":"{key}","sha256":"{digest}","result":{text}}}\n')
        return path

    def _manifest(self) -> dict[str, Any]:
        """The manifest of a sweep that begins (``schedlab schema manifest``)."""
        spec = self._spec
        settings = {
            "seed": 1,
            "host_cpus": spec.host_cpus,
            "hz": None,
            "costs": None,
            "preempt": None,
            "watchdog": "auto",
            "host": "",
        }
        return {
            "schema_version": 2,
            "schedlab_version": spec.program[0],
            "models": spec.program[1],
            "experiment_file": os.path.basename(spec.name),
            "experiment_text": spec.text,
            "workload_files": dict(spec.files),
            "settings": settings,
            "plan_key": spec.key,
            "nr_runs": len(self),
            "is_complete": False,
            "runs": [],
            "files": {},
        }

    def __repr__(self) -> str:
        count = len(self) - len(self.missing())
        return f"<schedlab.Sweep {self.title!r}: {count} of {len(self)} runs in {self.output}>"


def sweep(
    experiment: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    client: Any = None,
    workers: int = 1,
    batch_seconds: float = 1.0,
    progress: bool | Progress = False,
    runs_max: int = RUNS_MAX,
) -> Sweep:
    """Make every run of an experiment file that the directory ``output`` does not hold yet.

    ``experiment`` is the path of the file that ``schedlab compare`` takes, or its text. All its
    runs must be in lane sim. ``output`` is a directory, or a URL of fsspec; default: the name of
    the file with the ending ``.sweep``. The same call continues where another ended.

    ``client`` is where it runs: a ``distributed.Client`` of Dask, the module ``ray``, an executor
    of ``concurrent.futures``, or None: ``workers`` processes of this machine (1: this process).

    ``batch_seconds`` is the processor time of a batch. ``progress`` is True for a bar (of tqdm, if
    it is installed), or a function that gets the numbers of finished runs and of all.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}: allowed are 1 and more")
    if not batch_seconds > 0:
        raise ValueError(f"batch_seconds is {batch_seconds}: allowed are times above 0")
    opened = open_sweep(experiment, output, runs_max=runs_max)
    store = opened._store
    store.make()
    _keep_source(opened)
    place = backend(client, workers)
    with _Bar(progress, len(opened)) as bar:
        try:
            _run(opened, place, batch_seconds, bar)
        finally:
            place.close()
    return opened


def open_sweep(
    experiment: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    runs_max: int = RUNS_MAX,
) -> Sweep:
    """The sweep of an experiment file with the results so far, without running anything."""
    name = os.fspath(experiment)
    if "\n" in name:
        text, name, folder = name, "experiment.toml", "."
    else:
        text, folder = Path(name).read_text(encoding="utf-8"), os.path.dirname(name) or "."
    host = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    cpus = ",".join(str(cpu) for cpu in sorted(host))
    plan = _core.Plan(name, text, cpus, folder, runs_max=runs_max)
    spec = PlanSpec(name, text, cpus, tuple(plan.files.items()), plan.key, runs_max)
    where = Path(name).stem + ".sweep" if output is None else os.fspath(output)
    # Workers may have another working directory.
    where = where if "://" in where else os.path.abspath(where)
    return Sweep(spec, plan, Store(where))


def _keep_source(opened: Sweep) -> None:
    """Put what the results are of beside them."""
    spec = opened._spec
    name = f"{spec.key[:16]}.json"
    if not opened._store.exists(name):
        source = {
            "name": spec.name,
            "text": spec.text,
            "files": dict(spec.files),
            "host_cpus": spec.host_cpus,
            "key": spec.key,
            "schedlab_version": spec.program[0],
            "models": spec.program[1],
        }
        opened._store.put(name, json.dumps(source, indent=1).encode())


class _Queue:
    """The runs that are to be made, as batches."""

    def __init__(self, runs: list[tuple[int, str]], batch_seconds: float) -> None:
        # In the order of their keys, which have nothing to do with what a run costs: so every batch
        # is a like mixture, and lasts as long as the others.
        self._runs = sorted(runs, key=lambda run: run[1])
        self._seconds = batch_seconds
        self._nr_timed, self._took = 0, 0.0
        self._tries: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def measured(self, count: int, took: float) -> None:
        """A batch of ``count`` runs took this long."""
        if took > 0:
            self._nr_timed, self._took = self._nr_timed + count, self._took + took

    def take(self, slots: int) -> list[tuple[int, str]]:
        """The next batch."""
        if self._nr_timed == 0:
            size = PROBE_RUNS
        else:
            full = self._seconds * self._nr_timed / self._took
            # The last batches are smaller, so that all workers end at the same time.
            size = int(max(min(full, len(self._runs) / (2 * slots)), full / 4, 1))
        batch, self._runs = self._runs[:size], self._runs[size:]
        return batch

    def again(self, batch: Sequence[tuple[int, str]], why: Lost) -> None:
        """The worker of a batch was lost."""
        for run, _ in batch:
            self._tries[run] = self._tries.get(run, 0) + 1
            if self._tries[run] >= TRIES:
                raise RuntimeError(
                    f"run {run} lost its worker {TRIES} times ({why}): the same call continues, "
                    "but look at the memory of the workers first"
                ) from why
        self._runs.extend(batch)


def _run(opened: Sweep, place: Backend, batch_seconds: float, bar: _Bar) -> None:
    """Make what is missing until the directory has all. Only the directory counts."""
    for _ in range(TRIES):
        missing = {opened.keys[index]: index for index in opened.missing()}
        bar.start(len(opened) - len(missing))
        if not missing:
            return
        queue = _Queue([(index, key) for key, index in missing.items()], batch_seconds)
        _run_queue(opened, queue, place, bar)
    left = opened.missing()
    if left:
        raise RuntimeError(
            f"{len(left)} runs have no result in {opened.output} although their batches ended: "
            "does every worker write to the same directory?"
        )


def _run_queue(opened: Sweep, queue: _Queue, place: Backend, bar: _Bar) -> None:
    running: dict[Any, list[tuple[int, str]]] = {}
    slots, where = place.slots(), opened.output

    def begin(count: int) -> None:
        while len(queue) and len(running) < count:
            batch = queue.take(slots)
            running[place.submit(run_batch, opened._spec, batch, where)] = batch

    begin(min(PROBES, 2 * slots))
    while running:
        for future in place.wait(list(running)):
            batch = running.pop(future)
            try:
                count, took = place.result(future)
            except Lost as error:
                queue.again(batch, error)
                slots = place.slots()
                continue
            queue.measured(count, took)
            opened.nr_batches += 1
            opened.cpu_seconds += took
            bar.step(count)
        begin(2 * slots)


class _Bar:
    """The progress of a sweep: tqdm's bar, the caller's function, or nothing."""

    def __init__(self, wanted: bool | Progress, total: int) -> None:
        self._total, self._done = total, 0
        self._tell = wanted if callable(wanted) else None
        self._tqdm: Any = None
        self._is_text = False
        if wanted is True:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._is_text = True
            else:
                self._tqdm = tqdm(total=total, unit="run")

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        if self._is_text:
            print(file=sys.stderr)

    def start(self, done: int) -> None:
        """So many runs are stored."""
        self.step(done - self._done)

    def step(self, count: int) -> None:
        """So many more runs have ended."""
        self._done += count
        if self._tqdm is not None:
            self._tqdm.update(count)
        if self._is_text:
            print(f"\r{self._done} of {self._total} runs", end="", file=sys.stderr, flush=True)
        if self._tell is not None:
            self._tell(self._done, self._total)
