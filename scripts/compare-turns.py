#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Show by how much turns and sleeps of a kernel differ from those of its model.

    scripts/compare-turns.py 6.12 validation-cases/cases/*.json

Plays each workload on a kernel in a guest of one CPU and in the simulator, and compares their
turns up to the first one that differs. A turn is the time from one switch to the next. Turns are
grouped by how they begin and end, sleeps by who runs when the task wakes. Each line has the number
of workloads and turns, and the median and quartiles (us) of the guest's time less the model's, over
the medians of the workloads. So the line shows which cost of the machine is wrong, and how much.
R, D and F0 are real-time, deadline and fair tasks as they begin; F1 and F2 are so deep in groups.
Workloads named ...-N.json, as those of `schedlab validate --cases`, are played with seed N.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# Turns that differ by more (us) are other turns.
DIFFERENCE_MAX = 100.0


class Turn(NamedTuple):
    """A turn of a task; times in us."""

    begin: float
    end: float
    task: int
    # How the turn before ended, and this one.
    after: str
    out: str
    # What the task was before: "new", "preempted" or "woken".
    state: str


def turns(path: Path) -> list[Turn]:
    """The turns of a trace."""
    found: list[Turn] = []
    before: dict[int, str] = {}
    now = None
    with path.open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["kind"] != "switch":
                continue
            time, task = event["time_ns"] / 1000, event["next"]
            if now:
                begin, runs, after = now
                ended = before.get(runs, "new")
                state = ended if ended in ("new", "preempted") else "woken"
                found.append(Turn(begin, time, runs, after, event["out"], state))
                before[runs] = event["out"]
            now = (time, task, event["out"]) if task is not None else None
    return found


def equal(kernel: list[Turn], model: list[Turn]) -> int:
    """How many turns are the same."""
    for number, (a, b) in enumerate(zip(kernel, model)):
        same = (a.task, a.after, a.out) == (b.task, b.after, b.out)
        if not same or abs((a.end - a.begin) - (b.end - b.begin)) > DIFFERENCE_MAX:
            return number
    return min(len(kernel), len(model))


def policies(path: Path) -> list[str]:
    """A letter for the policy of each task of a workload, in the order of traces, and its depth."""
    letters = {"FIFO": "R", "RR": "R", "DEADLINE": "D"}
    found = []
    try:
        tasks = json.loads(path.read_text())["tasks"]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{path}: no workload in plain JSON: {error}; name a file without comments")
    for spec in tasks.values():
        policy = spec.get("policy", "").removeprefix("SCHED_")
        depth = spec.get("taskgroup", "/").rstrip("/").count("/")
        found += [letters.get(policy, f"F{depth}")] * spec.get("instance", 1)
    return found


def play(options: argparse.Namespace, path: Path) -> tuple[list[Turn], list[Turn]]:
    """The turns of a workload on the kernel, whose trace is kept, and under the model."""
    name, number = path.stem, path.stem.rpartition("-")[2]
    seed = number if number.isdecimal() else "1"
    options.traces.mkdir(parents=True, exist_ok=True)
    traces = [options.traces / f"{name}-{side}.ndjson" for side in (options.kernel, "model")]
    model = ["sim", "-S", options.model or f"linux-{options.kernel}", "--machine", options.machine]
    commands = [["vm", "--kernel", options.kernel], model]
    for trace, command in zip(traces, commands):
        if command is model or not trace.exists():
            whole = [options.schedlab, *command, str(path), "--seed", seed, "--trace", str(trace)]
            try:
                done = subprocess.run(whole, capture_output=True, text=True, check=False)
            except OSError as error:
                sys.exit(f"{options.schedlab}: {error.strerror}; build it, or name it (--schedlab)")
            if done.returncode:
                sys.exit(f"{path}: {done.stderr.strip()}")
    return turns(traces[0]), turns(traces[1])


def main() -> None:
    """Compares the workloads of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("kernel", help="series of the kernel, such as 6.12")
    parser.add_argument("workloads", nargs="+", type=Path, help="workload files")
    parser.add_argument("--schedlab", default="target/release/schedlab", help="the program")
    parser.add_argument("--model", help="the model, if it is not linux-KERNEL")
    parser.add_argument("--machine", default="guest-counted", help="preset or file of costs")
    parser.add_argument("--traces", type=Path, default=Path("turns"), help="where traces are kept")
    options = parser.parse_args()
    with ThreadPoolExecutor(2) as pool:
        played = list(pool.map(lambda path: play(options, path), options.workloads))
    kinds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path, (kernel, model) in zip(options.workloads, played):
        count, letters = equal(kernel, model), policies(path)
        letter = lambda task: letters[task] if task < len(letters) else "child"
        slept: dict[int, tuple[float, float]] = {}
        for number, (a, b) in enumerate(zip(kernel[:count], model)):
            last = letter(kernel[number - 1].task) if number and a.after != "idle" else ""
            begins = f"{a.after} {last}".strip()
            kind = f"turn of {letter(a.task)} ({a.state}) after {begins}, ends {a.out}"
            kinds[kind][path.stem].append((a.end - a.begin) - (b.end - b.begin))
            if a.task in slept and a.after in ("idle", "preempted"):
                kernels, models = slept.pop(a.task)
                sleep = f"sleep of {letter(a.task)}, wakes on {last or 'an idle CPU'}"
                kinds[sleep][path.stem].append((a.begin - kernels) - (b.begin - models))
            if a.out == "sleeping":
                slept[a.task] = (a.end, b.end)
        print(f"{path.stem}: {count} of {len(kernel)} turns are equal")
    print("workloads  turns  median  quartiles (us)")
    for kind, by_workload in sorted(kinds.items(), key=lambda one: -len(one[1])):
        medians = sorted(statistics.median(values) for values in by_workload.values())
        low, high = medians[len(medians) // 4], medians[-1 - len(medians) // 4]
        number = sum(map(len, by_workload.values()))
        median = statistics.median(medians)
        print(f"{len(medians):9} {number:6} {median:7.2f} {low:7.2f} {high:7.2f}  {kind}")


if __name__ == "__main__":
    main()
