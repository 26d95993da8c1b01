# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tune the base slice of Linux 6.12 with Optuna: `pip install './python[tune]'`.

The search sees the cases of the search only; the best setting is then scored by the cases that were
held out.
"""

import argparse

import optuna
import schedlab


def main() -> None:
    """Search, and print the best setting with its score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", default="linux-6.12")
    parser.add_argument("--tunable", default="base_slice")
    parser.add_argument("--least-us", type=int, default=100)
    parser.add_argument("--most-us", type=int, default=30_000)
    parser.add_argument("--trials", type=int, default=30)
    given = parser.parse_args()
    suite = schedlab.Suite(baseline=given.scheduler)

    def objective(trial: optuna.Trial) -> float:
        value = trial.suggest_int(given.tunable, given.least_us, given.most_us, log=True)
        setting = {given.tunable: f"{value}us"}
        return float(schedlab.score(given.scheduler, suite, part="search", tunables=setting))

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=given.trials)
    best = {given.tunable: f"{study.best_params[given.tunable]}us"}
    final = schedlab.score(given.scheduler, suite, tunables=best)
    print(f"{given.trials} trials; best: {given.tunable}={best[given.tunable]}")
    print(f"search {final.search:.3f}, held out {final.value:.3f} times the default")


if __name__ == "__main__":
    main()
