// SPDX-License-Identifier: MIT OR Apache-2.0
//! Autogroup through the whole engine: sessions share the CPU, not tasks, where the kernel is told
//! so, and the run is that of control groups with the same tasks.

use crate::common;

use common::checks::measures;
use common::workloads::{endless, task};
use common::{Case, S};
use schedlab_model::workload::SessionSpec;
use schedlab_model::{CgroupId, CgroupSpec, Policy, SchedAttr, TaskSpec, Workload};
use schedlab_sched::registry::find;

const ALL: [&str; 6] =
    ["linux-6.1", "linux-6.6", "linux-6.12.0", "linux-6.12", "linux-6.18", "linux-7.1"];

/// Three tasks of one session and one of another, whose group has nice value `nice`.
fn three_against_one(nice: i8) -> Workload {
    let member = |name: &str, instances, session| TaskSpec {
        instances,
        session: Some(session),
        ..task(name, SchedAttr::default(), endless())
    };
    let mut workload = Workload::new("sessions", vec![member("many", 3, 0), member("one", 1, 1)]);
    let session = |name: &str, nice| SessionSpec { name: name.into(), nice };
    workload.sessions = vec![session("build", 0), session("player", nice)];
    workload
}

fn case<'a>(workload: &'a Workload, name: &str, nr_cpus: u32, is_on: bool) -> Case<'a> {
    let scheduler = find(name).unwrap();
    let mut case = Case::new(workload, scheduler, nr_cpus);
    let value = u64::from(is_on);
    case.options.set(&scheduler.tunables, "sched_autogroup_enabled", value).unwrap();
    case.until_ns = Some(8 * S);
    case
}

/// Per mille of the CPU that the task alone in its session gets.
fn share_of_one(workload: &Workload, name: &str, is_on: bool) -> u64 {
    let case = case(workload, name, 1, is_on);
    let run = case.run().unwrap_or_else(|error| panic!("{}: {error}", case.describe()));
    let tasks = measures(&case, &run).tasks;
    let one = tasks.iter().find(|task| task.name == "one").unwrap();
    one.cpu_time_ns * 1_000 / (8 * S)
}

#[test]
fn section_1_18_sessions_share_the_cpu_where_autogroup_is_on() {
    for name in ALL {
        let (plain, favoured) = (three_against_one(0), three_against_one(-5));
        for (workload, is_on, expected) in [
            (&plain, false, 250),
            (&plain, true, 500),
            // The weights of nice -5 and 0: 3121 of 3121 + 1024.
            (&favoured, true, 753),
            (&favoured, false, 250),
        ] {
            let share = share_of_one(workload, name, is_on);
            assert!(share.abs_diff(expected) <= 4, "{name}, {is_on}: {share}, not {expected}");
        }
    }
}

#[test]
fn the_run_is_that_of_control_groups() {
    for name in ALL {
        let sessions = three_against_one(0);
        let mut groups = sessions.clone();
        groups.sessions.clear();
        for (index, task) in (0..).zip(&mut groups.tasks) {
            task.session = None;
            groups.cgroups.push(CgroupSpec::new(format!("/g{index}"), CgroupId(0), 100));
            task.attr.cgroup = CgroupId(index + 1);
        }
        for nr_cpus in [1, 2, 4] {
            let with_sessions = case(&sessions, name, nr_cpus, true).run().unwrap();
            let with_groups = case(&groups, name, nr_cpus, false).run().unwrap();
            let is_same = with_sessions.trace.events == with_groups.trace.events;
            assert!(is_same, "{name} on {nr_cpus} CPUs");
        }
    }
}

/// A real-time task keeps its priority over all groups, and a control group is no session's.
#[test]
fn real_time_tasks_and_control_groups_are_beside_sessions() {
    for name in ALL {
        let mut workload = three_against_one(0);
        workload.cgroups.push(CgroupSpec::new("/own", CgroupId(0), 100));
        let own = SchedAttr { cgroup: CgroupId(1), ..SchedAttr::default() };
        workload.tasks.push(TaskSpec { session: Some(0), ..task("own", own, endless()) });
        let share = share_of_one(&workload, name, true);
        assert!(share.abs_diff(333) <= 4, "{name}: {share}, not one of three groups");
        let rt = SchedAttr { policy: Policy::Rr, rt_priority: 1, ..SchedAttr::default() };
        workload.tasks[1].attr = rt;
        let share = share_of_one(&workload, name, true);
        assert!(share >= 949, "{name}: {share}, not what a real-time task may have");
    }
}
