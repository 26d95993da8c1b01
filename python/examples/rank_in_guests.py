# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does the ranking of settings by their simulated score hold on the kernel itself?

Plays cases of the suite on one CPU under 30 settings, simulated and in guests with counted time.
Prints both scores of each with Kendall's tau, and how far the ranking of each lane depends on the
cases. It needs the command line program with its guest.
"""

import argparse
import json
import subprocess
from pathlib import Path

import schedlab
from schedlab import intervals, scoring

SLICES = ["100us", "300us", "500us", "1ms", "2ms", "3ms", "4ms", "6ms", "8ms", "12ms", "20ms"]
SLICES += ["30ms", "50ms", "100ms"]
# A slice for each place, and the policies that the kernel has besides.
BASE = "OTHER 3ms"
PLACES = [("OTHER", SLICES), ("BATCH", SLICES), ("FIFO", [None]), ("RR", [None])]


def runs(lane: str, name: str, extra: str) -> str:
    """The entries of an experiment file for one lane."""
    text = ""
    for policy, slices in PLACES:
        scheduler = name if policy == "OTHER" else f"{name}:{policy}"
        text += f'\n[[experiment.runs]]\nlane = "{lane}"\nschedulers = ["{scheduler}"]\n{extra}'
        if slices != [None]:
            text += f"set = {{ base_slice = {json.dumps(slices)} }}\n"
    return text


def write_experiment(folder: Path, cases: list[schedlab.Case], quick: bool) -> Path:
    """The workload files, and an experiment with both lanes."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        name = f"{case.family}{case.number}"
        document = {**json.loads(case.workload), "name": name}
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1))
    names = [f"./{case.family}{case.number}.json" for case in cases]
    head = f'name = "ranking"\n\n[[experiment]]\nname = "ranking"\nworkload = {json.dumps(names)}\n'
    head += 'parameters = { cpus = 1 }\nmachine = "guest-counted"\nseeds = [1]\n'
    lanes = runs("sim", "linux-6.12", "")
    if not quick:
        lanes += runs("vm", "6.12", "")
    path = folder / "ranking.toml"
    path.write_text(head + lanes)
    return path


def measured(path: Path) -> dict[tuple[str, str, str], scoring.Measured]:
    """What counts of each run: by lane, setting and workload."""
    found = {}
    for line in path.open(encoding="utf-8"):
        result = json.loads(line)["result"]
        parameters = result["parameters"]
        policy = parameters.get("policy") or (result["scheduler"].partition(":")[2] or "OTHER")
        setting = f"{policy} {parameters.get('set.base_slice', '')}".strip()
        found[result["lane"], setting, result["workload"]] = scoring.measured(result)
    return found


def scores_of(
    found: dict[tuple[str, str, str], scoring.Measured], lane: str, workloads: list[str]
) -> list[float]:
    """The score of each setting in a lane: the geometric mean over these workloads."""
    settings = dict.fromkeys(setting for _, setting, _ in found)
    return [
        scoring.geometric([
            scoring.value_of(found[lane, setting, workload], found[lane, BASE, workload])
            for workload in workloads
        ])
        for setting in settings
    ]


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="schedlab")
    parser.add_argument("--folder", type=Path, default=Path("ranking"))
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--simulate-only", action="store_true")
    given = parser.parse_args()
    drawn = schedlab.Suite(search_cases=given.cases, held_out_cases=0).cases("search")
    alone = [case for case in drawn if case.settings.get("cpus") == 1]
    cases = sorted(alone, key=lambda case: (case.number, case.family))[: given.cases]
    path = write_experiment(given.folder, cases, given.simulate_only)
    output = given.folder / "results"
    command = [given.program, "compare", str(path), "--output", str(output)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = measured(output / "runs.jsonl")
    lanes = sorted({lane for lane, _, _ in found})
    workloads = list(dict.fromkeys(workload for _, _, workload in found))
    settings = list(dict.fromkeys(setting for _, setting, _ in found))
    scores = {lane: scores_of(found, lane, workloads) for lane in lanes}
    print(f"{'setting':16}" + "".join(f"{lane:>10}" for lane in lanes))
    for row, setting in enumerate(settings):
        print(f"{setting:16}" + "".join(f"{scores[lane][row]:10.3f}" for lane in lanes))
    if len(lanes) == 2:
        tau = intervals.kendall_tau(scores[lanes[0]], scores[lanes[1]])
        print(f"{len(settings)} settings, {len(workloads)} workloads: Kendall's tau {tau:.3f}")
    for lane in lanes if len(workloads) > 1 else []:
        halves = [scores_of(found, lane, workloads[first::2]) for first in (0, 1)]
        tau = intervals.kendall_tau(*halves)
        print(f"{lane}, every other workload against the rest: {tau:.3f}")


if __name__ == "__main__":
    main()
