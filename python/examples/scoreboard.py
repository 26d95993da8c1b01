# SPDX-License-Identifier: MIT OR Apache-2.0
"""10,000 simulations on a local cluster of processes, and their scoreboard.

Needs `pip install './python[dask]'`. Prints what the cluster itself costs: the processor time of
all its processes against that of the simulations.
"""

import argparse
import time
from pathlib import Path

import distributed
import schedlab

EXPERIMENT = Path(__file__).parents[2] / "studies" / "examples" / "scoreboard.toml"
MEASURES = ("run_delay_ns_mean", "wakeup_latency_ns_p99", "turnaround_ns_mean")


def main() -> None:
    """Run the experiment, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", type=Path, default=EXPERIMENT)
    parser.add_argument("--output", default="scoreboard.sweep")
    parser.add_argument("--page", default="scoreboard.html")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-seconds", type=float, default=1.0)
    given = parser.parse_args()
    with (
        distributed.LocalCluster(
            n_workers=given.workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = sum(client.run(time.process_time).values())
        since, own = time.time(), time.process_time()
        sweep = schedlab.sweep(
            given.experiment,
            given.output,
            client=client,
            batch_seconds=given.batch_seconds,
            progress=True,
        )
        wall, own = time.time() - since, time.process_time() - own
        workers = sum(client.run(time.process_time).values()) - before
    print(sweep)
    if sweep.cpu_seconds:
        whole = own + workers
        print(
            f"{given.workers} workers: {wall:.1f} s; {sweep.nr_batches} batches; processor time "
            f"{sweep.cpu_seconds:.1f} s of simulations, {workers:.1f} s of workers, {own:.1f} s of "
            f"caller and scheduler; overhead {whole / sweep.cpu_seconds - 1:.1%}"
        )
    since = time.process_time()
    first, *others = (sweep.scoreboard(measure) for measure in MEASURES)
    first.write(given.page, *others)
    print(f"{given.page}: {time.process_time() - since:.1f} s; {len(sweep.failures())} failed runs")
    for name in first.schedulers()[:5]:
        print(f"{name:14} {first.overall(name):8.2f}  medals {first.medals(name)}")


if __name__ == "__main__":
    main()
