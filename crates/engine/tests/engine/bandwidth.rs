// SPDX-License-Identifier: MIT OR Apache-2.0
//! cpu.max through the whole engine: the fixed workloads inside limited groups keep every rule of
//! the conformance suite, and what each group gets is what its limit allows.

use crate::common;

use common::checks::{check_case, measures};
use common::workloads::{all, endless, nice, task};
use common::{Case, MS, S};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, CpuMax, Machine, Op, Preempt, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::Scheduler;
use schedlab_sched::registry::find;

const ALL: [&str; 6] =
    ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];

fn scheduler(name: &str) -> &'static Scheduler {
    find(name).expect("the scheduler is registered")
}

fn max(quota_ms: u64, period_ms: u64) -> Option<CpuMax> {
    Some(CpuMax { quota_ns: quota_ms * MS, period_ns: period_ms * MS, burst_ns: 0 })
}

/// `workload` with its tasks in turn in the root group, in a limited group, and in a limited group
/// below that.
fn within_limits(mut workload: Workload, quota_ms: u64, period_ms: u64) -> Workload {
    let first = workload.cgroups.len() as u32;
    let mut top = CgroupSpec::new("/limited", CgroupId(0), 100);
    top.cpu_max = max(quota_ms, period_ms);
    let mut inner = CgroupSpec::new("/limited/inner", CgroupId(first), 50);
    inner.cpu_max = max(quota_ms.div_ceil(2), period_ms);
    workload.cgroups.extend([top, inner]);
    let place = |attr: &mut SchedAttr, index: usize| {
        if attr.cgroup == CgroupId(0) && !index.is_multiple_of(3) {
            attr.cgroup = CgroupId(first + index as u32 % 3 - 1);
        }
    };
    for (index, spec) in workload.tasks.iter_mut().enumerate() {
        place(&mut spec.attr, index + 1);
        for op in &mut spec.program.ops {
            if let Op::SetAttr(attr) = op {
                place(attr, index + 1);
            }
        }
    }
    workload
}

#[test]
fn the_conformance_workloads_hold_within_limits() {
    let mut failures = Vec::new();
    for name in ALL {
        for nr_cpus in [1, 2, 4] {
            for workload in all(nr_cpus) {
                let workload = within_limits(workload, 4, 20);
                for (costs, hz, preempt) in [
                    (Costs::ZERO, 250, Preempt::Full),
                    (Costs::DEFAULT, 1000, Preempt::Full),
                    (Costs::DEFAULT, 250, Preempt::Lazy),
                ] {
                    let mut case = Case::new(&workload, scheduler(name), nr_cpus);
                    case.machine = Machine { costs, hz, preempt, ..case.machine };
                    // A throttled task waits beside an idle CPU.
                    case.judges_balance = false;
                    failures.extend(check_case(&case).err().map(|broken| broken.text));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A group of hogs with half a CPU beside hogs without a limit.
#[test]
fn limited_hogs_get_their_quota_and_the_others_the_rest() {
    for name in ALL {
        for nr_cpus in [1, 2, 4] {
            let mut limited = CgroupSpec::new("/limited", CgroupId(0), 1_000);
            limited.cpu_max = max(50, 100);
            let inside = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
            let hogs =
                |name: &str, attr| TaskSpec { instances: nr_cpus, ..task(name, attr, endless()) };
            let tasks = vec![hogs("in", inside), hogs("out", SchedAttr::default())];
            let mut workload = Workload::new("limited", tasks);
            workload.cgroups.push(limited);
            let mut case = Case::new(&workload, scheduler(name), nr_cpus);
            case.until_ns = Some(4 * S);
            let run = case.run().unwrap_or_else(|error| panic!("{error}"));
            let tasks = measures(&case, &run).tasks;
            let ran = |prefix: &str| -> u64 {
                let of = tasks.iter().filter(|task| task.name.starts_with(prefix));
                of.map(|task| task.cpu_time_ns).sum()
            };
            let slack = u64::from(nr_cpus) * 10 * MS + 50 * MS;
            let (inside, outside) = (ran("in"), ran("out"));
            assert!(inside.abs_diff(2 * S) <= slack, "{name}, {nr_cpus} CPUs: {inside} ns");
            let (group, stats) = run.outcome.bandwidth[0];
            assert_eq!((group, run.outcome.bandwidth.len()), (CgroupId(1), 1), "{name}");
            assert!((38..=41).contains(&stats.nr_periods), "{name}: {stats:?}");
            assert!(stats.throttled_ns >= S, "{name}: {stats:?}");
            let total = u64::from(nr_cpus) * 4 * S;
            // A CPU with throttled tasks only may idle until it is balanced.
            assert!(inside + outside >= total * 95 / 100, "{name}, {nr_cpus} CPUs: {outside} ns");
        }
    }
}

/// A task that is held back for longer than the watchdog's limit is not starved: 1 ms in each
/// second, overrun by a tick of 10 ms, keeps it away for ten seconds.
#[test]
fn what_is_throttled_is_not_starved() {
    for name in ALL {
        let mut limited = CgroupSpec::new("/limited", CgroupId(0), 100);
        limited.cpu_max = max(1, 1_000);
        let inside = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
        let tasks = vec![task("in", inside, endless()), task("in", inside, endless())];
        let mut workload = Workload::new("held back", tasks);
        workload.cgroups.push(limited);
        let mut case = Case::new(&workload, scheduler(name), 1);
        case.machine = Machine { hz: 100, ..case.machine };
        case.watchdog_ns = Some(4 * S);
        case.until_ns = Some(60 * S);
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let ran: u64 = measures(&case, &run).tasks.iter().map(|task| task.cpu_time_ns).sum();
        assert!((50 * MS..=75 * MS).contains(&ran), "{name}: {ran} ns");
    }
}

/// A task uses up its budget while it goes to sleep, across the end of a period: its clock has
/// stopped before the end, and the switch comes after it. The timer of the pool, which had stopped,
/// starts for a period that ends later.
#[test]
fn a_pool_starts_again_as_a_period_ends_on_the_way_to_a_switch() {
    const US: u64 = 1_000;
    for name in ALL {
        for late_us in 0..30 {
            let mut program = ProgramBuilder::new();
            let program = program.run(400 * US).sleep(1_900 * US);
            let program = program.run((680 + late_us) * US).sleep(MS).run(MS / 2).build();
            let mut limited = task("limited", nice(0), program);
            limited.attr.cgroup = CgroupId(1);
            let mut workload = Workload::new("again", vec![limited]);
            let mut group = CgroupSpec::new("/limited", CgroupId(0), 100);
            group.cpu_max = max(1, 1);
            workload.cgroups.push(group);
            let mut case = Case::new(&workload, scheduler(name), 1);
            let costs = Costs { block_ns: 20 * US, ..Costs::ZERO };
            case.machine = Machine { costs, aligns_periods: true, ..case.machine };
            let run = case.run().unwrap_or_else(|error| panic!("{name}, {late_us} us: {error}"));
            let ran_ns = run.trace.end_ns - (1_900 + 1_000 - 2 * 20) * US;
            assert_eq!(ran_ns, (400 + 680 + late_us + 500 + 2 * 20) * US, "{name}, {late_us} us");
        }
    }
}
