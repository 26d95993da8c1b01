// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups tasks by process, the process that lost most time first.

use schedlab_metrics::TaskMeasures;
use schedlab_trace::Facts;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The tasks of a process, or all tasks of one name if the trace does not show processes.
pub struct Process<'a> {
    /// Process id of its first thread, if known.
    pub tgid: Option<u32>,
    /// Its tasks by run delay, the greatest first.
    pub tasks: Vec<&'a TaskMeasures>,
    /// Sum of its tasks' run delays.
    pub run_delay_ns: u64,
}

/// What the tasks of one group share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Tgid(u32),
    Name(&'a str),
}

impl<'a> Process<'a> {
    /// The name of its first thread, or of the task that lost most.
    pub fn name(&self) -> &'a str {
        let first = self.tasks.iter().find(|task| task.pid.is_some() && task.pid == self.tgid);
        first.or(self.tasks.first()).map_or("", |task| task.name.as_str())
    }

    /// Sums `value` over its tasks.
    pub fn sum(&self, value: impl Fn(&TaskMeasures) -> u64) -> u64 {
        self.tasks.iter().map(|task| value(task)).sum()
    }
}

/// All processes, the one with the greatest run delay first.
pub fn of<'a>(tasks: &'a [TaskMeasures], facts: &Facts) -> Vec<Process<'a>> {
    let tgids: BTreeMap<u32, u32> =
        facts.processes.iter().map(|(task, tgid)| (task.0, *tgid)).collect();
    let mut by_key: BTreeMap<Key<'a>, Vec<&TaskMeasures>> = BTreeMap::new();
    for task in tasks {
        let key = tgids.get(&task.id).map_or(Key::Name(&task.name), |tgid| Key::Tgid(*tgid));
        by_key.entry(key).or_default().push(task);
    }
    let process = |(key, mut tasks): (Key<'a>, Vec<&'a TaskMeasures>)| {
        tasks.sort_by_key(|task| (Reverse(task.run_delay_ns), task.id));
        let tgid = match key {
            Key::Tgid(tgid) => Some(tgid),
            Key::Name(_) => None,
        };
        let run_delay_ns = tasks.iter().map(|task| task.run_delay_ns).sum();
        Process { tgid, tasks, run_delay_ns }
    };
    let mut all: Vec<Process<'a>> = by_key.into_iter().map(process).collect();
    all.sort_by_key(|one| (Reverse(one.run_delay_ns), one.tasks.first().map(|task| task.id)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::TaskId;

    #[test]
    fn processes_are_known_by_tgid_else_by_name() {
        let task = |id: u32, name: &str, run_delay_ns| TaskMeasures {
            id,
            name: name.into(),
            pid: Some(100 + id),
            run_delay_ns,
            ..TaskMeasures::default()
        };
        let tasks = [
            task(0, "db", 5),
            task(1, "db-io", 9),
            task(2, "sh", 6),
            task(3, "sh", 7),
            task(4, "x", 1),
        ];
        let processes = vec![(TaskId(0), 100), (TaskId(1), 100), (TaskId(4), 104)];
        let facts = Facts { processes, ..Facts::default() };
        let seen: Vec<(&str, Option<u32>, u64, Vec<u32>)> = of(&tasks, &facts)
            .iter()
            .map(|one| {
                let ids = one.tasks.iter().map(|task| task.id).collect();
                (one.name(), one.tgid, one.run_delay_ns, ids)
            })
            .collect();
        let want = [
            ("db", Some(100), 14, vec![1, 0]),
            ("sh", None, 13, vec![3, 2]),
            ("x", Some(104), 1, vec![4]),
        ];
        assert_eq!(seen, want);
    }
}
