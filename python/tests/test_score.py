# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scores: what honest schedulers get, and that cheating does not pay."""

import gc
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import schedlab
from schedlab import intervals, remote, scoring

MS = 1_000_000
SUITE = schedlab.Suite()
PATIENT = 120.0
"""Seconds for a candidate where the machine may be busy."""
SMALL = schedlab.Suite(families=("desktop", "batch"), search_cases=1, held_out_cases=2)


class Honest(schedlab.Policy):
    """Least CPU time first, with turns of 3 ms; a waking task gets the CPU at once."""

    def __init__(self):
        self.ran = {}

    def enqueue(self, task, *, now, why):
        self.ran[task.id] = task.ran_ns
        return why == "wakeup"

    def pick(self, cpu, *, now, waiting):
        return min(waiting, key=lambda task: (self.ran[task], task))

    def quantum(self, task):
        return 3 * MS


def processor_seconds():
    """Processor time of this process and of its children so far."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def test_the_baseline_has_the_value_1_and_scores_repeat():
    base = schedlab.score(SUITE.baseline, SUITE)
    assert base.is_valid and base.value == pytest.approx(1) == base.search
    assert len(base.cases) == SUITE.size("all") == 25
    one, other = (schedlab.score(Honest, SMALL, seconds=PATIENT) for _ in range(2))
    assert one.is_valid and one.cases == other.cases and one.value == other.value
    assert 0.7 < one.value < 3


def test_a_policy_in_its_own_process_decides_as_in_this_one():
    for case in SUITE.cases():
        inside = scoring.simulated(case, "candidate", Honest)
        with remote.children(Honest, 1, 10) as (child,):
            outside = scoring.simulated(case, "candidate", child.policy(time.time() + PATIENT))
        assert inside == outside, case.name


def test_a_candidate_takes_less_than_a_second():
    schedlab.score(SUITE.baseline, SUITE)
    before = processor_seconds()
    for candidate in (Honest, "linux-6.12:base_slice=1ms"):
        assert schedlab.score(candidate, SUITE, seconds=PATIENT).is_valid
    # Two candidates on two CPUs, by a build for tests: four times the promise.
    assert processor_seconds() - before < 2 * 2 * 4


def test_worse_settings_score_less():
    values = [
        schedlab.score("rr", SUITE, tunables={"quantum": text}).search
        for text in ("3ms", "30ms", "300ms")
    ]
    assert values[0] > values[1] > values[2] > 0


def test_parts_and_held_out_cases_are_drawn_from_their_seeds():
    search = schedlab.score("rr", SUITE, part="search")
    assert search.value == search.search and len(search.cases) == SUITE.size("search")
    other = schedlab.Suite(held_out="nobody knows")
    assert other.cases("search") == SUITE.cases("search")
    assert not {case.workload for case in other.cases("held-out")} & {
        case.workload for case in SUITE.cases("held-out")
    }
    machines = [case.settings.get("machine") for case in SUITE.cases()]
    assert not any(machines[: SUITE.size("search")][:2]) and any(machines)


FILE = """
import schedlab
class Mine(schedlab.Policy):
    def pick(self, cpu, *, now, waiting):
        {statement}
        return waiting[0]
    def quantum(self, task):
        return 4_000_000
"""


def test_a_policy_in_a_file_decides_as_its_class(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(statement="pass"))
    names = {"__name__": "mine"}
    exec(path.read_text(), names)
    found = schedlab.score(path, SMALL, seconds=PATIENT)
    assert found.is_valid, found.broken
    assert found.cases == schedlab.score(names["Mine"], SMALL, seconds=PATIENT).cases


def test_random_numbers_of_a_policy_are_the_same_in_every_score(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(statement="return __import__('random').choice(waiting)"))
    one, other = (schedlab.score(path, SMALL, seconds=PATIENT) for _ in range(2))
    assert one.is_valid and one.cases == other.cases


def locked_up():
    """The numbers of processes that run a policy of a file, and of all children of this one."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if remote._core.policy_script().encode() in command or int(parent) == os.getpid():
            found.add(folder.name)
    return found


REFUSED = r"PermissionError: \[Errno 1\].* \(a policy may only compute"
HARM = {
    "open('{left}', 'w')": REFUSED + "|NameError: name 'open' is not defined",
    "os.close(os.open('{left}', os.O_CREAT | os.O_WRONLY))": REFUSED,
    "os.remove('{kept}')": REFUSED,
    "os.write({file}, b'harm')": "Bad file descriptor",
    "sys.modules['_socket'].socket()": REFUSED + "|KeyError: '_socket'",
    "ctypes.get_errno() if ctypes.CDLL(None).socket(2, 1, 0) >= 0 else os.urandom(1)": REFUSED,
    "os.fork()": REFUSED,
    "os.execv('/bin/touch', ['touch', '{left}'])": REFUSED,
    "os.kill({pid}, 9)": REFUSED,
    "os.setsid()": REFUSED,
    "sys.modules['resource'].setrlimit(7, (9, 9))": "not allowed|current limit",
    "[0] * 10**9": "MemoryError",
    "[bytearray(1 << 20) for _ in range(1 << 20)]": "MemoryError",
    "any(iter(int, 1))": "took too long|exceeded a limit",
    "sys.setrecursionlimit(1 << 30) or (f := lambda: f())()": (
        "exceeded a limit|RecursionError|MemoryError|SystemError"
    ),
}
"""What a policy tries, and what becomes of it."""


@pytest.mark.parametrize("way", ("file", "class"))
@pytest.mark.parametrize("harm", HARM)
def test_a_policy_can_compute_and_do_nothing_else(harm, way, tmp_path):
    left, kept = tmp_path / "left", tmp_path / "kept"
    kept.write_text("as it was")
    before = locked_up()
    with kept.open("r+") as file:
        os.set_inheritable(file.fileno(), True)
        tried = harm.format(left=left, kept=kept, file=file.fileno(), pid=os.getpid())
        candidate = tmp_path / "mine.py"
        candidate.write_text(
            "import dataclasses\nsys = dataclasses.sys\nos = sys.modules['os']\n"
            "ctypes = sys.modules['ctypes']\n" + FILE.format(statement=tried)
        )
        if way == "class":
            # What the caller has imported is there.
            __import__("ctypes"), __import__("socket")
            names = {"__name__": "mine"}
            exec(candidate.read_text(), names)
            candidate = names["Mine"]
        suite = schedlab.Suite(families=("desktop",), search_cases=1, held_out_cases=0)
        is_endless = harm.startswith("any")
        found = schedlab.score(candidate, suite, seconds=2.0 if is_endless else PATIENT)
    assert found.value == 0 and re.search(HARM[harm], found.broken[0]), found.broken
    assert not left.exists() and kept.read_text() == "as it was"
    until = time.time() + 10
    while locked_up() - before and time.time() < until:
        time.sleep(0.05)
    assert not locked_up() - before


def test_a_policy_in_a_file_finds_nothing_of_its_caller(tmp_path):
    """No module, no environment, no argument that tells the cases or what the caller knows."""
    os.environ["SCHEDLAB_TEST_SECRET"] = "held out"
    look = (
        "sys = __import__('dataclasses').sys; raise KeyError(sorted(sys.modules['os'].environ), "
        "[name for name in sys.modules if 'schedlab' in name or 'pytest' in name], sys.argv)"
    )
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(statement=look))
    found = schedlab.score(path, SMALL, part="search", seconds=PATIENT)
    text = found.broken[0]
    assert "SECRET" not in text and "['schedlab'], ['-c', '120', '536870912'" in text, text


def test_wrong_arguments_are_errors(tmp_path):
    with pytest.raises(TypeError, match="give its class"):
        schedlab.score(Honest(), SMALL)
    with pytest.raises(FileNotFoundError, match="is no file"):
        schedlab.score("no.bpf.c", SMALL)
    with pytest.raises(schedlab.SchedlabError, match="did you mean"):
        schedlab.score("lottry", SMALL)
    with pytest.raises(ValueError, match="part is 'rest'"):
        schedlab.score("rr", SMALL, part="rest")
    with pytest.raises(ValueError, match="seconds is 0"):
        schedlab.score("rr", SMALL, seconds=0)
    with pytest.raises(ValueError, match="families names"):
        schedlab.Suite(families=("games",))
    (tmp_path / "mine.bpf.c").write_text("")
    with pytest.raises(FileNotFoundError, match="is no program"):
        schedlab.score(tmp_path / "mine.bpf.c", SMALL, program="/no/schedlab")
    with pytest.raises(ValueError, match="params cannot be set for a .bpf.c: allowed are costs"):
        schedlab.score(tmp_path / "mine.bpf.c", SMALL, params={"n": 3})


SOURCES = Path(__file__).parents[2] / "bpf" / "scx"


@pytest.fixture(scope="module")
def program():
    """The command line program, which compiles a ``.bpf.c``."""
    path = os.environ.get("SCHEDLAB_PROGRAM", "")
    if not os.access(path, os.X_OK):
        pytest.skip("SCHEDLAB_PROGRAM names no program")
    command = [path, "sim", "hogs:n=1,work=1ms", "--scheduler", SOURCES / "fifo.bpf.c"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    return path


def test_a_scheduler_in_c_is_scored_with_its_options(program):
    def score(**settings):
        path = SOURCES / "rr.bpf.c"
        return schedlab.score(path, SMALL, program=program, seconds=PATIENT, **settings)

    long, same, short = score(), score(), score(tunables={"quantum_ns": "2ms"})
    assert long.is_valid and short.is_valid and long.cases == same.cases
    assert short.value > long.value + 0.05
    with pytest.raises(ValueError, match='tunable "quantun" is unknown'):
        score(tunables={"quantun": "2ms"})


def test_a_scheduler_in_c_that_fails_is_worth_nothing_and_says_why(program, tmp_path):
    wrong = tmp_path / "wrong.bpf.c"
    wrong.write_text('#include "scx.bpf.h"\nint wrong(void) { return nothing; }\n')
    for path, why in (
        (SOURCES / "bad" / "stall.bpf.c", "was disabled at .*runnable task stall"),
        (SOURCES / "bad" / "missing-dsq.bpf.c", "non-existent DSQ 0x2a for"),
        (wrong, "does not compile: .*undeclared identifier 'nothing'"),
    ):
        found = schedlab.score(path, SMALL, program=program, seconds=PATIENT)
        assert found.value == 0 and len(found.broken) == SMALL.size("all")
        assert all(re.search(why, text) for text in found.broken), found.broken


def test_a_scheduler_in_c_that_never_answers_is_ended(program):
    found = schedlab.score(SOURCES / "bad" / "endless-loop.bpf.c", program=program, seconds=1.0)
    assert found.value == 0 and found.seconds < 30
    assert "took too long" in found.broken[-1]


# Twenty ways to cheat, and what becomes of each: "broken" with a reason, or nothing gained over the
# honest twin.


class Starves(Honest):
    """Never runs two of the tasks while others wait."""

    def pick(self, cpu, *, now, waiting):
        others = [task for task in waiting if task > 1]
        return super().pick(cpu, now=now, waiting=others or waiting)


class StarvesTheNice(Honest):
    """Lets tasks of low weight wait for everybody else."""

    def __init__(self):
        super().__init__()
        self.nice = {}

    def enqueue(self, task, *, now, why):
        self.nice[task.id] = task.nice
        return super().enqueue(task, now=now, why=why)

    def pick(self, cpu, *, now, waiting):
        return min(waiting, key=lambda task: (self.nice[task], task))


class Idles(Honest):
    """Leaves the CPU idle although tasks wait."""

    def pick(self, cpu, *, now, waiting):
        return None


class IdlesAtTheEnd(Honest):
    """Leaves the CPU idle when few tasks are left."""

    def pick(self, cpu, *, now, waiting):
        return waiting[0] if len(waiting) > 1 else None


class Raises(Honest):
    """Ends the run before the tasks that would be slow."""

    def pick(self, cpu, *, now, waiting):
        if now > 50 * MS:
            raise SystemExit
        return waiting[0]


class Exits(Honest):
    """Ends its process."""

    def pick(self, cpu, *, now, waiting):
        os._exit(0)


class PicksTheAbsent(Honest):
    """Runs a task that does not wait."""

    def pick(self, cpu, *, now, waiting):
        return max(waiting) + 1


class PicksTwice(Honest):
    """Runs one task on every CPU."""

    def pick(self, cpu, *, now, waiting):
        self.first = getattr(self, "first", waiting[0])
        return self.first


class KnowsNames(Honest):
    """Knows by their names which tasks the public cases measure."""

    def quantum(self, task):
        return 10**10 if task.name.startswith("t") and task.name[1:].isdigit() else 3 * MS


class Remembers(Honest):
    """Remembers in its class how long the tasks of earlier cases ran."""

    seen = []

    def __init__(self):
        super().__init__()
        self.seen.append(self)

    def quantum(self, task):
        return 3 * MS if len(self.seen) == 1 else 10**10


class RemembersInAFile(Honest):
    """Counts its runs in a file, to decide otherwise in later ones."""

    path = Path(tempfile.gettempdir(), f"schedlab-cheat-{os.getpid()}")

    def __init__(self):
        super().__init__()
        with self.path.open("a") as file:
            file.write("x")
        self.count = self.path.stat().st_size

    def quantum(self, task):
        return self.count * MS


class ReadsTheClock(Honest):
    """Decides by the clock of the machine."""

    def quantum(self, task):
        return 2 * MS + time.time_ns() % MS


class Draws(Honest):
    """Decides by chance, to be scored until it is lucky."""

    def pick(self, cpu, *, now, waiting):
        return random.SystemRandom().choice(waiting)


class Loops(Honest):
    """Never answers."""

    def pick(self, cpu, *, now, waiting):
        while True:
            pass


class Sleeps(Honest):
    """Answers late: what is searched for in the time is not in the score."""

    def pick(self, cpu, *, now, waiting):
        time.sleep(0.05)
        return waiting[0]


class ShortTurns(Honest):
    """Switches all the time, as if switches cost nothing."""

    def quantum(self, task):
        return 1


class NegativeTurns(Honest):
    """Gives a turn that ends before it begins."""

    def quantum(self, task):
        return -1


class Forges(Honest):
    """Answers with something that compares as every task."""

    def pick(self, cpu, *, now, waiting):
        return float("nan")


class Patches(Honest):
    """Replaces what computes its score."""

    def __init__(self):
        super().__init__()
        scoring.mean = intervals.mean = lambda values: 1e-9
        scoring._judged = lambda *_: scoring.CaseScore(_[0], 100.0)
        math.exp = lambda value: 100.0


class LooksAround(Honest):
    """Searches its memory for the cases, and gives turns by what it finds."""

    def __init__(self):
        super().__init__()
        cases = [one for one in gc.get_objects() if isinstance(one, schedlab.Case)]
        frame, named = sys._getframe(), set()
        while frame is not None:
            named |= {name for name, value in frame.f_locals.items() if "tasks" in str(value)[:99]}
            frame = frame.f_back
        self.found = bool(cases or {"case", "workload", "asked"} & named)

    def quantum(self, task):
        return 10**10 if self.found else 3 * MS


class WritesToThePipe(Honest):
    """Writes a result of its own to whatever is open."""

    def pick(self, cpu, *, now, waiting):
        for file in range(1, 64):
            try:
                os.write(file, b'\x00\x00\x00\x7f{"makespan_ns": 1}')
            except OSError:
                continue
        return waiting[0]


class KillsTheEvaluator(Honest):
    """Ends a thread of the evaluation, if it shares the process."""

    def __init__(self):
        super().__init__()
        self.shared = threading.active_count() > 1

    def quantum(self, task):
        return 10**10 if self.shared else 3 * MS


BROKEN = {
    Idles: "pick returned None",
    IdlesAtTheEnd: "pick returned None",
    Raises: "SystemExit",
    Exits: "its process ended",
    PicksTheAbsent: "does not wait|not wait|waiting",
    PicksTwice: "wait",
    RemembersInAFile: "may only compute",
    ReadsTheClock: "decides otherwise",
    Draws: "may only compute",
    Loops: "took too long|its process ended",
    Sleeps: "may only compute",
    ShortTurns: "took too long|ended",
    NegativeTurns: "quantum returned -1",
    Forges: "pick returned nan",
    WritesToThePipe: "socket of its answers",
}
NOTHING_GAINED = (KnowsNames, Remembers, Patches, LooksAround, KillsTheEvaluator)
LESS = (Starves, StarvesTheNice)


def test_there_are_twenty_ways_to_cheat():
    assert len({*BROKEN, *NOTHING_GAINED, *LESS}) == 22


@pytest.fixture(scope="module")
def honest():
    return schedlab.score(Honest, SMALL, seconds=PATIENT)


@pytest.mark.parametrize("cheat", BROKEN, ids=lambda cheat: cheat.__name__)
def test_a_broken_rule_is_worth_nothing(cheat):
    is_slow = "too long" in BROKEN[cheat]
    found = schedlab.score(cheat, SMALL, seconds=2.0 if is_slow else PATIENT)
    RemembersInAFile.path.unlink(missing_ok=True)
    assert found.value == 0 and not found.is_valid
    assert re.search(BROKEN[cheat], " ".join(found.broken)), found.broken
    assert not is_slow or found.seconds < 30


@pytest.mark.parametrize("cheat", NOTHING_GAINED, ids=lambda cheat: cheat.__name__)
def test_what_is_hidden_cannot_be_used(cheat, honest):
    """It decides as its honest twin, in every case."""
    found = schedlab.score(cheat, SMALL, seconds=PATIENT)
    assert found.cases == honest.cases and found.value == honest.value


@pytest.mark.parametrize("cheat", LESS, ids=lambda cheat: cheat.__name__)
def test_what_hurts_some_task_is_worth_less(cheat, honest):
    found = schedlab.score(cheat, SUITE, seconds=PATIENT)
    assert found.value < schedlab.score(Honest, SUITE, seconds=PATIENT).value - 0.02, found


def test_what_is_learnt_by_heart_is_not_worth_more_where_it_counts():
    """A policy that knows the order of the search's shortest tasks by their numbers."""
    orders = {}
    for case in SMALL.cases("search"):
        result = schedlab.simulate(case.workload, "srtf", **case.settings)
        times = {task["id"]: task["cpu_time_ns"] for task in result.tasks}
        orders[len(times)] = times

    class Heart(Honest):
        def __init__(self):
            super().__init__()
            self.known = set()

        def pick(self, cpu, *, now, waiting):
            times = orders.get(len(orders) and max(orders), {})
            return min(waiting, key=lambda task: (times.get(task, 0), task))

    learnt = schedlab.score(Heart, SMALL, seconds=PATIENT)
    assert learnt.value < learnt.search
