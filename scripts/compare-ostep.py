#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compare the model `mlfq` with mlfq.py of "Operating Systems: Three Easy Pieces".

Runs random job lists through both and compares which job runs in each unit of time. mlfq.py is
cpu-sched-mlfq/mlfq.py of the repository remzi-arpacidusseau/ostep-homework. The page
docs/reference/schedulers-textbook.md says which options correspond.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MS = 1_000_000
# I/O of jobs: none, or with these options of mlfq.py.
GROUPS = {"no I/O": "", "I/O": "io", "I/O, -S": "io S", "I/O, -I": "io I", "I/O, -S -I": "io S I"}


def draw(rng: random.Random, number: int, kind: str) -> dict:
    """Settings and jobs (start, run time, time between I/O) of a case."""
    nr_queues = rng.randint(1, 4)
    freq = [0, *range(1, 13)] if "io" in kind else [0]
    jobs = [
        (rng.choice([0, rng.randint(0, 40)]), rng.randint(1, 60), rng.choice(freq))
        for _ in range(rng.randint(1, 5))
    ]
    return {
        "quanta": [rng.randint(1, 9) for _ in range(nr_queues)],
        "allotment": rng.randint(2, 3) if number & 1 else 1,
        "boost": rng.randint(3, 60) if number & 2 else 0,
        "io": rng.randint(1, 12),
        "stay": "S" in kind,
        "bump": "I" in kind,
        "jobs": jobs,
    }


def reference(case: dict) -> list[str]:
    """Arguments of mlfq.py."""
    quanta = case["quanta"]
    args = ["-c", "-l", ":".join(f"{start},{run},{freq}" for start, run, freq in case["jobs"])]
    args += ["-Q", ",".join(map(str, quanta))]
    args += ["-A", ",".join([str(case["allotment"])] * len(quanta))]
    args += ["-B", str(case["boost"]), "-i", str(case["io"])]
    return args + ["-S"] * case["stay"] + ["-I"] * case["bump"]


def settings(case: dict) -> list[str]:
    """Arguments of schedlab; 1 ms is a unit of time."""
    values = {f"quantum-{queue}": f"{value}ms" for queue, value in enumerate(case["quanta"])}
    values |= {
        "queues": len(case["quanta"]),
        "allotment": case["allotment"],
        "boost": f"{case['boost']}ms",
        "accounting": "turn" if case["stay"] else "allotment",
        "wake-to": "head" if case["bump"] else "tail",
        "conventions": "ostep",
    }
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def workload(case: dict) -> dict:
    """The jobs in the format of workload files."""
    tasks = {}
    for number, (start, run, freq) in enumerate(case["jobs"]):
        # The last burst ends the job, without I/O.
        turns = (run - 1) // freq if freq else 0
        last = {"loop": 1, "run": f"{run - turns * freq}ms"}
        before = {"loop": turns, "run": f"{freq}ms", "sleep": f"{case['io']}ms"}
        phases = {"before": before, "last": last} if turns else {"last": last}
        tasks[f"job{number}"] = {"delay": f"{start}ms", "loop": 1, "phases": phases}
    return {"tasks": tasks}


def output(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def timeline_of_mlfq_py(text: str) -> dict[int, int]:
    return {int(at): int(job) for at, job in re.findall(r"time (\d+) \] Run JOB (\d+)", text)}


def timeline_of_schedlab(text: str) -> dict[int, int]:
    timeline = {}
    for slice_ in map(json.loads, text.splitlines()):
        begin, end = slice_["start_ns"], slice_["end_ns"]
        assert begin % MS == end % MS == 0, slice_
        # Numbers of tasks follow their release.
        job = int(slice_["name"].removeprefix("job"))
        timeline |= dict.fromkeys(range(begin // MS, end // MS), job)
    return timeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mlfq_py", type=Path)
    parser.add_argument("--schedlab", default="schedlab", help="the program to run")
    parser.add_argument("--cases", type=int, default=200, help="cases of each group")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "jobs.json"
        for group, kind in GROUPS.items():
            rng, equal = random.Random(f"{args.seed} {group}"), 0
            for number in range(args.cases):
                case = draw(rng, number, kind)
                file.write_text(json.dumps(workload(case)))
                theirs = output([sys.executable, args.mlfq_py, *reference(case)])
                command = [args.schedlab, "sim", file, "--scheduler", "mlfq", "--slices"]
                ours = output(command + settings(case))
                if timeline_of_mlfq_py(theirs) == timeline_of_schedlab(ours):
                    equal += 1
                else:
                    differ += 1
                    print("differs:", " ".join(reference(case)), *settings(case)[1::2])
            print(f"{group}: {equal} of {args.cases} are equal", flush=True)
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
