# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Gymnasium environment."""

import pytest
import schedlab

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from schedlab.gym import SchedulerEnv  # noqa: E402


def episode(choose, **options):
    env = SchedulerEnv("hogs:n=4,work=20ms", **{"cpus": 1, "seed": 1, **options})
    observed, info = env.reset()
    rewards, steps, ended = 0.0, 0, False
    while not ended:
        assert env.observation_space.contains(observed)
        assert int(observed[:, 0].sum()) == int(info["action_mask"].sum()) == len(info["tasks"]) > 1
        observed, reward, ended, truncated, info = env.step(choose(observed, info))
        rewards, steps = rewards + reward, steps + 1
        assert reward <= 0 and not truncated
    return rewards, steps, info


def test_gymnasiums_own_checks_pass():
    check_env(SchedulerEnv("hogs:n=5,work=30ms", cpus=2), skip_render_check=True)


def test_the_first_row_is_round_robin():
    rewards, steps, info = episode(lambda observed, info: 0)
    totals = info["measures"]["totals"]
    wanted = schedlab.simulate("hogs:n=4,work=20ms", "rr:quantum=5ms").totals
    for measure in ("makespan_ns", "turnaround_ns_mean", "nr_switches", "run_delay"):
        assert totals[measure] == wanted[measure], measure
    # Every task that waits costs a millisecond a millisecond.
    waited = sum(task["run_delay_ns"] for task in info["measures"]["tasks"])
    assert rewards == pytest.approx(-waited / 1e6)
    assert steps > 10


def test_finishing_tasks_first_is_rewarded():
    def greedy(observed, info):
        return int(observed[: len(info["tasks"]), 2].argmax())

    assert episode(greedy)[0] > episode(lambda observed, info: 0)[0]


def test_episodes_repeat_by_seed_and_can_be_left():
    env = SchedulerEnv("queue", until="200ms")
    first, _ = env.reset(seed=3)
    env.step(0)
    again, _ = env.reset(seed=3)
    assert (first == again).all()
    other, info = env.reset(seed=4)
    assert (first != other).any() or info["now_ns"] > 0
    with pytest.raises(gymnasium.error.ResetNeeded):
        SchedulerEnv("hogs").step(0)


def test_every_episode_has_a_decision():
    env = SchedulerEnv("queue", cpus=2, quantum="5ms", until="200ms")
    for seed in range(100):
        assert len(env.reset(seed=seed)[1]["tasks"]) > 1
    again = [env.reset(seed=5)[1]["now_ns"] for _ in range(2)]
    assert again[0] == again[1]
    for lonely in (SchedulerEnv("hogs:n=1"), SchedulerEnv("hogs:n=1", seed=1)):
        with pytest.raises(ValueError, match="no CPU has a choice"):
            lonely.reset()


def test_an_invalid_action_is_marked():
    env = SchedulerEnv("hogs:n=3,work=20ms", seed=1)
    env.reset()
    assert env.step(15)[4]["is_valid"] is False
    with pytest.raises(ValueError, match="quantum is 'x'"):
        SchedulerEnv("hogs", quantum="x")
    with pytest.raises(schedlab.SchedlabError, match="no built-in workload is called"):
        SchedulerEnv("hog")
