// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bugs of kernels that the models have where the kernels had them, and nowhere else.

use crate::common;

use common::checks::measures;
use common::workloads::{bursts, endless, on, policy, task};
use common::{Case, MS, S};
use schedlab_metrics::RunMeasures;
use schedlab_model::{CgroupId, CgroupSpec, Policy, SchedAttr, TaskSpec, Workload};
use schedlab_sched::registry::find;

/// Steps of tasks that act until the run ends.
const MANY: u64 = 100_000;
const US: u64 = 1_000;

fn run(scheduler: &str, workload: &Workload, nr_cpus: u32) -> RunMeasures {
    let mut case = Case::new(workload, find(scheduler).unwrap(), nr_cpus);
    case.until_ns = Some(2 * S);
    let run = case.run().unwrap_or_else(|error| panic!("{scheduler}: {error}"));
    measures(&case, &run)
}

/// A group with tasks on both CPUs, one of which sleeps often, so that the group's weight on that
/// CPU changes every 50 us; and a task outside of the group.
fn changing_weights() -> Workload {
    let member = |name: &str, cpu: u32, program| {
        let attr = SchedAttr { cgroup: CgroupId(1), ..on(&[cpu]) };
        task(name, attr, program)
    };
    let tasks: Vec<TaskSpec> = vec![
        task("victim", on(&[0]), endless()),
        member("sleepy", 0, bursts(MANY, 50 * US, 50 * US)),
        member("near", 0, endless()),
        member("far", 1, endless()),
    ];
    let mut workload = Workload::new("changing-weights", tasks);
    workload.cgroups.push(CgroupSpec::new("/g", CgroupId(0), 100));
    workload
}

/// The starvation of 6.13 to 7.0 and of 6.18.0 to 6.18.44 (fixed by commit 101f3498b4bd). The
/// victim is due two thirds of its CPU: its weight is 1024, that of the group there about 512.
#[test]
fn changing_weights_starve_only_under_6_18_44() {
    for scheduler in ["linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"] {
        let victim = run(scheduler, &changing_weights(), 2).tasks[0].cpu_time_ns;
        assert!(victim > 1_100 * MS, "{scheduler}: {victim} ns of 2 s");
    }
    let victim = run("linux-6.18.44", &changing_weights(), 2).tasks[0].cpu_time_ns;
    assert!(victim < 50 * MS, "{victim} ns of 2 s");
}

/// A normal task that wakes next to a SCHED_IDLE hog runs at once. Before commit f553741ac8c0
/// (6.15, and 6.12 after 6.12.0) the hog could stay protected until a tick. In 6.12.0 this needs
/// another order of wake-ups (crates/sched/tests/sched/eevdf.rs has one).
#[test]
fn an_idle_task_keeps_its_protection_only_in_early_eevdf() {
    let hog = task("hog", policy(Policy::Idle, 0), endless());
    let normal = task("normal", SchedAttr::default(), bursts(MANY, 100 * US, 200 * US));
    let workload = Workload::new("idle", vec![hog, normal]);
    let longest = |scheduler: &str| {
        let measures = run(scheduler, &workload, 1);
        measures.tasks[1].wakeup_latency.ns_max.unwrap_or_default()
    };
    let wait = longest("linux-6.6");
    assert!((MS..=4 * MS).contains(&wait), "{wait} ns");
    for scheduler in ["linux-6.1", "linux-6.12", "linux-6.18.44", "linux-6.18", "linux-7.1"] {
        assert_eq!(longest(scheduler), 0, "{scheduler}");
    }
}
