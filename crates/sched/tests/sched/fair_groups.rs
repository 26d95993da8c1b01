// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of fair tasks: shares between groups and tasks, on one CPU and on several, moves
//! between groups, buddies, and the load averages behind the shares.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, nice};
use schedlab_model::{CgroupId, CpuId, CpuMask, SchedAttr, TaskId, ids::ROOT_CGROUP};
use schedlab_sched::balance::FairQueues;
use schedlab_sched::fair::rules::Rules;

const ALL: [Rules; 6] = [
    Rules::LINUX_6_1,
    Rules::LINUX_6_6,
    Rules::LINUX_6_12_0,
    Rules::LINUX_6_12,
    Rules::LINUX_6_18,
    Rules::LINUX_7_1,
];

fn member(cgroup: CgroupId) -> SchedAttr {
    SchedAttr { cgroup, ..SchedAttr::default() }
}

fn assert_share(kernel: &Kernel, tasks: &[TaskId], of: u64, num: u64, den: u64, rules: Rules) {
    let ran: u64 = tasks.iter().map(|task| kernel.ran(*task)).sum();
    let due = of * num / den;
    assert!(ran.abs_diff(due) * 1000 < of, "{rules:?}: {ran} ns instead of {due} of {of}");
}

#[test]
fn section_1_16_groups_share_by_weight_on_one_cpu() {
    for rules in ALL {
        let mut setup = Setup::new(rules, 1, 1000);
        let heavy = setup.group(ROOT_CGROUP, 200);
        let light = setup.group(ROOT_CGROUP, 100);
        let mut kernel = setup.build();
        kernel.record = false;
        let a = [kernel.hog(member(heavy))];
        let b: Vec<_> = (0..3).map(|_| kernel.hog(member(light))).collect();
        let c = [kernel.hog(nice(0))];
        let end = 100_000 * MS;
        kernel.run_until(end);
        assert_share(&kernel, &a, end, 2, 4, rules);
        assert_share(&kernel, &b, end, 1, 4, rules);
        assert_share(&kernel, &c, end, 1, 4, rules);
        for task in b {
            assert_share(&kernel, &[task], end, 1, 12, rules);
        }
    }
}

#[test]
fn section_1_16_nested_groups_share_level_by_level() {
    for rules in ALL {
        let mut setup = Setup::new(rules, 1, 1000);
        let top = setup.group(ROOT_CGROUP, 100);
        let inner = setup.group(top, 300);
        let mut kernel = setup.build();
        kernel.record = false;
        let deep = kernel.hog(member(inner));
        let middle = kernel.hog(member(top));
        let outside = kernel.hog(nice(0));
        let end = 100_000 * MS;
        kernel.run_until(end);
        assert_share(&kernel, &[deep], end, 3, 8, rules);
        assert_share(&kernel, &[middle], end, 1, 8, rules);
        assert_share(&kernel, &[outside], end, 4, 8, rules);
    }
}

#[test]
fn section_1_16_shares_follow_load_on_two_cpus() {
    for rules in ALL {
        let mut setup = Setup::new(rules, 2, 1000);
        setup.nr_cpus = 2;
        let group = setup.group(ROOT_CGROUP, 100);
        let mut kernel = setup.build();
        kernel.record = false;
        let on =
            |cpu, cgroup| SchedAttr { affinity: Some(CpuMask::only(CpuId(cpu))), ..member(cgroup) };
        // The group has a task on each CPU, so each of its entities weighs half: 512 against 1024.
        let members = [kernel.hog(on(0, group)), kernel.hog(on(1, group))];
        let others = [kernel.hog(on(0, ROOT_CGROUP)), kernel.hog(on(1, ROOT_CGROUP))];
        kernel.run_until(2_000 * MS);
        let before: Vec<_> = members.iter().chain(&others).map(|t| kernel.ran(*t)).collect();
        let span = 60_000 * MS;
        kernel.run_until(2_000 * MS + span);
        for (index, task) in members.iter().chain(&others).enumerate() {
            let ran = kernel.ran(*task) - before[index];
            let due = if index < 2 { span / 3 } else { span * 2 / 3 };
            // The averages, and with them the weights, oscillate with the turns.
            assert!(ran.abs_diff(due) * 50 < span, "{rules:?} task {index}: {ran} of {due}");
        }
    }
}

#[test]
fn section_1_16_load_averages_of_groups_reach_their_weight() {
    let mut setup = Setup::new(Rules::LINUX_6_12, 1, 1000);
    let group = setup.group(ROOT_CGROUP, 200);
    let mut kernel = setup.build();
    let task = kernel.hog(member(group));
    kernel.run_until(1_000 * MS);
    // One hog alone: its load is its weight; that of the root queue is the group's 2048.
    let cpu = CpuId(0);
    assert!(kernel.class.cpu_util(cpu).abs_diff(1024) <= 2, "{}", kernel.class.cpu_util(cpu));
    assert!(kernel.class.cpu_load(cpu).abs_diff(2048) <= 8, "{}", kernel.class.cpu_load(cpu));
    let h_load = kernel.class.task_h_load(task);
    assert!(h_load.abs_diff(2048) <= 16, "{h_load}");
    assert_eq!(kernel.class.h_nr_running(cpu), 1);
    // During a sleep all of it decays: by half every 32 periods.
    kernel.sleep(task);
    kernel.settle();
    kernel.core.now += 32 * 1024 * 1024;
    kernel.class.update_averages(&kernel.core, cpu);
    assert!(kernel.class.cpu_util(cpu).abs_diff(511) <= 2, "{}", kernel.class.cpu_util(cpu));
    assert!(kernel.class.cpu_load(cpu).abs_diff(1023) <= 8, "{}", kernel.class.cpu_load(cpu));
}

#[test]
fn a_task_moves_between_groups_while_it_waits_runs_and_sleeps() {
    for rules in ALL {
        let mut setup = Setup::new(rules, 1, 1000);
        let group = setup.group(ROOT_CGROUP, 100);
        let mut kernel = setup.build();
        let a = kernel.hog(nice(0));
        let b = kernel.hog(nice(0));
        let c = kernel.hog(nice(0));
        kernel.run_until(10 * MS);
        for task in [a, b, c] {
            kernel.set_attr(task, member(group));
            kernel.run_until(kernel.core.now + 7 * MS);
        }
        kernel.set_attr(b, nice(0));
        let sleeper = kernel.core.rqs[0].curr.unwrap();
        kernel.sleep(sleeper);
        kernel.settle();
        kernel.set_attr(sleeper, member(group));
        kernel.set_attr(sleeper, nice(-5));
        kernel.wake(sleeper);
        kernel.run_until(kernel.core.now + 100 * MS);
        let total: u64 = [a, b, c].iter().map(|task| kernel.ran(*task)).sum();
        assert_eq!(total, kernel.core.now, "{rules:?}");
        assert_eq!(kernel.class.h_nr_running(CpuId(0)), 3, "{rules:?}");
    }
}

#[test]
fn section_1_8_a_group_keeps_the_cpu_when_one_of_its_tasks_sleeps() {
    let mut setup = Setup::new(Rules::LINUX_6_1, 8, 1000);
    let group = setup.group(ROOT_CGROUP, 100);
    let mut kernel = setup.build();
    kernel.sleeper(member(group), &[0], 2 * MS);
    kernel.run_until(0);
    kernel.hog(member(group));
    kernel.hog(nice(0));
    kernel.run_until(3 * MS);
    // A's group is 2 ms ahead of C, less than the wakeup granularity of 4 ms: B continues in its
    // place.
    assert_eq!(kernel.timeline(), "0A 2B");
}

#[test]
fn many_sleepers_in_nested_groups_on_four_cpus_lose_no_time() {
    for rules in ALL {
        let mut setup = Setup::new(rules, 4, 250);
        setup.nr_cpus = 4;
        let top = setup.group(ROOT_CGROUP, 300);
        let inner = setup.group(top, 50);
        let other = setup.group(ROOT_CGROUP, 20);
        let mut kernel = setup.build();
        kernel.record = false;
        let groups = [ROOT_CGROUP, top, inner, other];
        let mut wanted = 0;
        for index in 0..24u64 {
            let attr =
                SchedAttr { nice: (index as i8 % 7) * 3 - 9, ..member(groups[index as usize % 4]) };
            let times: Vec<u64> = (0..40).map(|n| (n * 25 + index) * MS + index * 1_000).collect();
            let run = 300_000 + index * 50_000;
            kernel.sleeper(attr, &times, run);
            wanted += 40 * run;
        }
        kernel.run_until(3_000 * MS);
        let ran: u64 = (0..24).map(|task| kernel.ran(TaskId(task))).sum();
        assert_eq!(ran, wanted, "{rules:?}");
        for cpu in 0..4 {
            assert_eq!(kernel.core.rqs[cpu].nr_running, 0, "{rules:?}");
            assert_eq!(kernel.class.h_nr_running(CpuId(cpu as u32)), 0, "{rules:?}");
        }
    }
}
