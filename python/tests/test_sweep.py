# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps: the runs of an experiment file, on workers that may die."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import schedlab
from schedlab import _core, sweeps
from schedlab.store import Store

EXPERIMENT = """
name = "small"

[[experiment]]
name = "small"
workload = ["hogs:n=2,work=20ms", "interactive:n=1"]
machine = ["laptop", "pi"]
until = "200ms"
seeds = { first = 1, count = 3 }

[[experiment.runs]]
lane = "sim"
schedulers = ["linux-6.12", "fcfs"]

[[experiment.runs]]
lane = "sim"
schedulers = ["rr"]
set = { quantum = ["1ms", "10ms"] }
"""
RUNS = 2 * 2 * 3 * 4

# Long enough that a worker can be killed before the end.
LONGER = """
name = "longer"

[[experiment]]
name = "longer"
workload = "queue"
axes.cpus = [1, 2, 4]
until = "5s"
seeds = { first = 1, count = 12 }

[[experiment.runs]]
lane = "sim"
schedulers = ["linux-6.12", "linux-6.1", "rr", "lottery"]
"""


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """The small experiment, in this process."""
    return schedlab.sweep(EXPERIMENT, tmp_path_factory.mktemp("small") / "out")


def files(opened):
    return sorted(Path(opened.output).glob("*.parquet"))


def stored_keys(opened):
    """The keys in all files, as often as they are there."""
    store = Store(opened.output)
    tables = [store.read(name, ["key"]) for name in store.names()]
    return [key for table in tables for key in table.column("key").to_pylist()]


def test_a_table_has_every_run_once_in_the_order_of_the_plan(serial):
    table = serial.table()
    assert len(serial) == len(table) == RUNS and len(set(serial.keys)) == RUNS
    assert all(len(key) == 64 for key in serial.keys)
    assert table.column("run").to_pylist() == list(range(RUNS))
    assert table.column("key").to_pylist() == serial.keys
    assert serial.missing() == [] and serial.failures() == []
    assert set(table.column("set.quantum").to_pylist()) == {None, "1ms", "10ms"}
    assert set(table.column("machine").to_pylist()) == {"laptop", "pi"}
    assert serial.title == "small" and repr(serial).startswith("<schedlab.Sweep 'small': 48 of 48")


def test_a_run_is_that_of_simulate(serial):
    rows = serial.table().to_pylist()
    found = [
        row
        for row in rows
        if (row["scheduler"], row["machine"], row["seed"]) == ("linux-6.12", "pi", 2)
    ]
    assert len(found) == 2
    for row in found:
        name = {"hogs": "hogs:n=2,work=20ms", "interactive": "interactive:n=1"}[row["workload"]]
        result = schedlab.simulate(name, "linux-6.12", machine="pi", until="200ms", seed=2)
        assert row["run_delay_ns_mean"] == result.totals["run_delay"]["ns_mean"]
        assert row["nr_switches"] == result.totals["nr_switches"]


def test_a_file_is_named_by_its_runs_and_nothing_else_is_left(serial):
    for path in files(serial):
        keys = pyarrow.parquet.ParquetFile(path).read(["key"]).column("key").to_pylist()
        assert path.stem == hashlib.sha256("\n".join(keys).encode()).hexdigest()
    others = [path.suffix for path in Path(serial.output).iterdir() if path not in files(serial)]
    assert others == [".json"]
    source = json.loads(next(Path(serial.output).glob("*.json")).read_text())
    assert source["text"] == EXPERIMENT and source["models"] == _core.program()[1]


def test_what_is_there_is_not_made_again(serial, tmp_path, monkeypatch):
    output = tmp_path / "out"
    shutil.copytree(serial.output, output)
    made = []
    run_batch = sweeps.run_batch

    def counted(spec, runs, where):
        made.extend(key for _, key in runs)
        return run_batch(spec, runs, where)

    monkeypatch.setattr(sweeps, "run_batch", counted)
    again = schedlab.sweep(EXPERIMENT, output)
    assert made == [] and again.table() == serial.table()
    lost = files(again)[0]
    keys = pyarrow.parquet.ParquetFile(lost).read(["key"]).column("key").to_pylist()
    lost.unlink()
    assert [again.keys[run] for run in again.missing()] == [k for k in again.keys if k in keys]
    assert again.table().column("makespan_ns").null_count >= len(keys)
    schedlab.sweep(EXPERIMENT, output)
    assert sorted(made) == sorted(keys) and again.table() == serial.table()


def test_a_damaged_file_is_made_again(serial, tmp_path):
    output = tmp_path / "out"
    shutil.copytree(serial.output, output)
    damaged = files(serial)[0].name
    content = (output / damaged).read_bytes()
    (output / damaged).write_bytes(content[: len(content) // 2])
    (output / f"{damaged}.1.ab.tmp").write_bytes(b"of a killed worker")
    with pytest.warns(UserWarning, match="is damaged and is removed"):
        again = schedlab.sweep(EXPERIMENT, output)
    assert again.table() == serial.table()


def test_a_parameter_of_the_text_changes_some_keys_only(serial, tmp_path):
    other = EXPERIMENT.replace('"10ms"', '"20ms"')
    with_other = schedlab.open_sweep(other, tmp_path)
    common = set(with_other.keys) & set(serial.keys)
    assert len(common) == RUNS * 3 // 4


def kill_one(killed):
    """A progress function that kills a worker process when a quarter of the runs have ended."""
    psutil = pytest.importorskip("psutil")

    def tell(done, total):
        if not killed and done >= total // 4:
            workers = [
                child
                for child in psutil.Process().children()
                if any("worker.py" in word for word in child.cmdline())
            ]
            assert len(workers) == 2
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)

    return tell


def same_results(opened, tmp_path):
    """Whether a tenth of the runs are those of this process, bit by bit."""
    plan = _core.Plan("longer.toml", LONGER, "0")
    rows = opened.table(["makespan_ns", "run_delay_ns_mean", "nr_switches"]).to_pylist()
    names = list(schedlab.measures())
    for run in range(0, len(plan), 10):
        _, values, _ = plan.run(run)
        values = dict(zip(names, values, strict=True))
        for name in ("makespan_ns", "run_delay_ns_mean", "nr_switches"):
            assert rows[run][name] == values[name], (run, name)


def test_a_killed_process_loses_and_doubles_nothing(tmp_path):
    killed = []
    opened = schedlab.sweep(
        LONGER, tmp_path / "out", workers=2, batch_seconds=0.03, progress=kill_one(killed)
    )
    assert len(killed) == 1
    assert opened.missing() == [] and opened.failures() == []
    table = opened.table(["makespan_ns"])
    assert len(table) == 144 and len(set(table.column("key").to_pylist())) == 144
    assert set(stored_keys(opened)) == set(opened.keys)
    same_results(opened, tmp_path)


def test_a_killed_worker_of_dask_loses_and_doubles_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def tell(done, total):
            if not killed and done >= total // 4:
                pids = client.run(os.getpid)
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        opened = schedlab.sweep(
            LONGER, tmp_path / "out", client=client, batch_seconds=0.03, progress=tell
        )
        assert killed[0] not in client.run(os.getpid).values()
    assert opened.missing() == [] and opened.failures() == []
    assert set(stored_keys(opened)) == set(opened.keys)
    table = opened.table(["nr_switches"])
    assert len(table) == 144 and table.column("nr_switches").null_count == 0
    same_results(opened, tmp_path)


def test_a_script_needs_no_guard_and_leaves_no_process(tmp_path):
    """The processes of ``workers`` do not run the caller's script again."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import schedlab\nprint(schedlab.sweep({EXPERIMENT!r}, 'out', workers=2))\n"
    )
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("48 of 48 runs") == 1, done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_reading_results_starts_no_thread(serial, tmp_path):
    """A thread of pyarrow that frees a Python object while Python ends aborts the process."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, schedlab\n"
        f"opened = schedlab.open_sweep({EXPERIMENT!r}, {serial.output!r})\n"
        "before = os.listdir('/proc/self/task')\n"
        "assert opened.missing() == []\n"
        "print(len(before), len(os.listdir('/proc/self/task')))\n"
    )
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    assert before == after


@pytest.fixture
def ray(tmp_path, monkeypatch):
    """Ray with two CPUs of this machine."""
    module = pytest.importorskip("ray", reason="Ray is not installed: pip install './python[ray]'")
    # Its workers would find the sources of the package in this directory.
    monkeypatch.chdir(tmp_path)
    # Else it writes a token into the home directory.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


def test_ray_makes_the_same_files(serial, tmp_path, ray):
    opened = schedlab.sweep(EXPERIMENT, tmp_path / "out", client=ray)
    assert opened.table() == serial.table()


def test_a_killed_worker_of_ray_loses_and_doubles_nothing(tmp_path, ray):
    psutil = pytest.importorskip("psutil")
    killed = []

    def workers():
        """Its processes that run, or have run, a batch: a title such as ray::run_batch."""
        found = psutil.Process().children(recursive=True)
        titles = {one.pid: " ".join(one.cmdline()) for one in found if one.is_running()}
        return [pid for pid, title in titles.items() if title.startswith("ray::run_batch")]

    def tell(done, total):
        if not killed and done >= total // 4 and (pids := workers()):
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    opened = schedlab.sweep(
        LONGER, tmp_path / "out", client=ray, batch_seconds=0.03, progress=tell
    )
    assert len(killed) == 1 and killed[0] not in workers()
    assert opened.missing() == [] and opened.failures() == []
    assert set(stored_keys(opened)) == set(opened.keys)
    table = opened.table(["nr_switches"])
    assert len(table) == 144 and table.column("nr_switches").null_count == 0
    same_results(opened, tmp_path)


def test_results_can_be_at_a_url(serial):
    pytest.importorskip("fsspec")
    opened = schedlab.sweep(EXPERIMENT, "memory://results/small")
    assert opened.table() == serial.table()
    assert "of 48 runs in memory://" in repr(opened)


def test_a_failed_run_is_stored_with_its_error(tmp_path):
    text = """
name = "starved"
[[experiment]]
name = "starved"
workload = "hogs:n=2,work=100s"
parameters = { cpus = 1 }
until = "300s"
[[experiment.runs]]
lane = "sim"
schedulers = ["rr"]
set = { quantum = ["1s", "80s"] }
"""
    opened = schedlab.sweep(text, tmp_path / "out")
    failures = opened.failures()
    assert opened.missing() == [] and [run for run, _ in failures] == [1]
    assert "starved a task" in failures[0][1]
    assert opened.table(["nr_switches"]).column("nr_switches").null_count == 1
    before = files(opened)
    assert files(schedlab.sweep(text, tmp_path / "out")) == before


def test_progress_is_told(tmp_path):
    told = []
    schedlab.sweep(EXPERIMENT, tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, RUNS) and told[-1] == (RUNS, RUNS)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_table_is_read_by_other_libraries(serial):
    assert pyarrow.table(serial).num_rows == RUNS
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(serial)
    assert frame.filter(polars.col("scheduler") == "fcfs").height == RUNS // 4


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (('lane = "sim"', 'lane = "host"'), "runs in lane host; a sweep only simulates"),
        (("fcfs", "fcsf"), "did you mean"),
        (("quantum", "quantun"), "quantun"),
        (("seeds", "sedes"), "sedes"),
        (('"pi"', '"host"'), "a sweep has no machine"),
        (("hogs:n=2", "./no.json:n=2"), "no.json"),
    ],
)
def test_a_mistake_in_the_file_is_an_error_with_its_place(change, text, tmp_path):
    with pytest.raises(schedlab.SchedlabError, match=text):
        schedlab.sweep(EXPERIMENT.replace(*change, 1), tmp_path)


def test_wrong_arguments_are_errors(serial, tmp_path):
    with pytest.raises(ValueError, match="workers is 0"):
        schedlab.sweep(EXPERIMENT, tmp_path, workers=0)
    with pytest.raises(ValueError, match="batch_seconds is 0"):
        schedlab.sweep(EXPERIMENT, tmp_path, batch_seconds=0)
    with pytest.raises(TypeError, match="client is a str: allowed are"):
        schedlab.sweep(EXPERIMENT, tmp_path, client="dask")
    with pytest.raises(ValueError, match="no measure is called 'speed'"):
        serial.table(["speed"])
    with pytest.raises(FileNotFoundError):
        schedlab.sweep(tmp_path / "no.toml", tmp_path)
    with pytest.raises(schedlab.SchedlabError, match="there are 48 runs"):
        schedlab.sweep(EXPERIMENT, tmp_path, runs_max=10)


def test_without_pyarrow_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['pyarrow'] = None; import schedlab\n"
        "try:\n    schedlab.sweep\nexcept ImportError as error:\n    print(error)"
    )
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a sweep needs pyarrow: install it with pip install './python[sweep]'" in done.stdout


def test_the_program_takes_the_results_over(serial, tmp_path):
    """The keys and the bytes are those that ``schedlab compare`` stores."""
    program = os.environ.get("SCHEDLAB_PROGRAM", "")
    if not os.access(program, os.X_OK):
        pytest.skip("SCHEDLAB_PROGRAM names no program")
    (tmp_path / "small.toml").write_text(EXPERIMENT)

    def compare(output):
        command = [program, "compare", "small.toml", "--output", output]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    compare("its")
    manifest = json.loads((tmp_path / "its" / "manifest.json").read_text())
    if _core.program()[1] not in json.dumps(manifest):
        pytest.skip(f"{program} has other models than the package")
    ours = serial.write_results(tmp_path / "ours")
    assert ours.read_bytes() == (tmp_path / "its" / "runs.jsonl").read_bytes()
    assert "48 are stored in ours and not run again" in compare("ours").stderr
    with pytest.raises(FileExistsError):
        serial.write_results(tmp_path / "ours")
