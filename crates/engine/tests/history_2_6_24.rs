// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact sequences of the fair classes of Linux 2.6.24 and 2.6.32 through the whole engine:
//! programs, ticks, tree, schedule() and the trace. Nothing costs time.
//!
//! The sequences follow from the rules of kernel/sched_fair.c of the two versions; HZ=1000 and one
//! CPU unless a test says otherwise.

mod common;

use common::checks::measures;
use common::workloads::{bursts, endless, nice, on, policy, task};
use common::{Case, MS, Run, S};
use schedlab_metrics::TaskMeasures;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    CgroupId, CgroupSpec, LoopCount, Machine, Op, Policy, SchedAttr, TaskSpec, Workload,
};
use schedlab_sched::options::Options;
use schedlab_sched::registry::find;

const FIRST: &str = "linux-2.6.24";
const LATER: &str = "linux-2.6.32";

/// A run: what, where, how long.
struct Setup<'a> {
    scheduler: &'a str,
    hz: u32,
    nr_cpus: u32,
    set: Vec<(&'a str, u64)>,
}

impl<'a> Setup<'a> {
    fn new(scheduler: &'a str) -> Self {
        Self { scheduler, hz: 1000, nr_cpus: 1, set: Vec::new() }
    }

    fn run(&self, workload: &Workload, until_ms: u64) -> (Run, Vec<TaskMeasures>) {
        let info = find(self.scheduler).expect("it is registered");
        let mut case = Case::new(workload, info, self.nr_cpus);
        case.machine = Machine { hz: self.hz, ..case.machine };
        case.until_ns = Some(until_ms * MS);
        case.options = Options::defaults(info.tunables);
        for (name, value) in &self.set {
            case.options.set(info.tunables, name, *value).unwrap();
        }
        let run = case.run().unwrap_or_else(|error| panic!("{error}"));
        let tasks = measures(&case, &run).tasks;
        (run, tasks)
    }

    fn turns(&self, tasks: Vec<TaskSpec>, until_ms: u64) -> String {
        common::turns(&self.run(&Workload::new("vector", tasks), until_ms).0, MS)
    }
}

/// Hogs A, B, ... of these nice values, released by a wake-up at 0.
fn hogs(nices: &[i8]) -> Vec<TaskSpec> {
    let name = |index: usize| char::from(b'A' + index as u8).to_string();
    let hog = |(index, value): (usize, &i8)| task(&name(index), nice(*value), endless());
    nices.iter().enumerate().map(hog).collect()
}

fn shares(scheduler: &str, nices: &[i8], until_ms: u64) -> Vec<u64> {
    let (_, tasks) = Setup::new(scheduler).run(&Workload::new("shares", hogs(nices)), until_ms);
    let all: u64 = tasks.iter().map(|task| task.cpu_time_ns).sum();
    tasks.iter().map(|task| (task.cpu_time_ns * 1000 + all / 2) / all).collect()
}

#[test]
fn section_5_5_two_hogs_have_turns_of_11_ms() {
    let setup = Setup::new(FIRST);
    assert_eq!(setup.turns(hogs(&[0, 0]), 55), "A11 B11 A11 B11 A11");
    assert_eq!(Setup { hz: 250, ..Setup::new(FIRST) }.turns(hogs(&[0, 0]), 48), "A12 B12 A12 B12");
}

#[test]
fn section_5_5_three_hogs_have_turns_of_7_ms() {
    assert_eq!(Setup::new(FIRST).turns(hogs(&[0, 0, 0]), 42), "A7 B7 C7 A7 B7 C7");
}

#[test]
fn section_5_5_hogs_of_unequal_nice_values() {
    // B is chosen twice in a row: it is behind after one slice. A turn shows both.
    let setup = Setup::new(FIRST);
    assert_eq!(setup.turns(hogs(&[0, 5]), 63), "A16 B10 A16 B5 A16");
    assert_eq!(setup.turns(hogs(&[0, 10]), 65), "A19 B4 A19 B2 A19 B2");
    assert_eq!(shares(FIRST, &[0, 5], 20_000), [754, 246]);
    assert_eq!(shares(FIRST, &[0, 10], 20_000), [903, 97]);
    assert_eq!(shares(LATER, &[0, 5], 20_000), [754, 246]);
}
