// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first line of the answer: which task lost most time, how much, and which tasks ran
//! meanwhile.

use crate::commands::analysis::{id_of, sharers};
use crate::table::{duration, percent};
use schedlab_metrics::analysis::{Analysis, Antagonists, TaskAnalysis};

/// Maximum number of antagonists that the line names.
const NAMED: usize = 3;

/// `db 117 lost most time: it waited 40.00 ms for a CPU, 25.0 % of 160.0 ms; meanwhile hog (3
/// tasks) ran 30.00 ms, sh 8 ran 9.000 ms, the CPU was idle 1.000 ms`.
pub fn line(analysis: &Analysis) -> String {
    let waited = |task: &TaskAnalysis| task.time_in("runnable");
    let most = analysis.tasks.iter().max_by_key(|task| (waited(task), std::cmp::Reverse(task.id)));
    let Some(task) = most.filter(|task| waited(task) > 0) else {
        return "no task waited for a CPU".into();
    };
    let ns = waited(task);
    let part = percent(ns as f64 / task.life_ns.max(1) as f64);
    let whom = whom(&task.antagonists);
    let whom = if whom.is_empty() { String::new() } else { format!("; meanwhile {whom}") };
    let (id, ns, life) = (id_of(&task.name, task.pid), duration(ns), duration(task.life_ns));
    format!("{id} lost most time: it waited {ns} for a CPU, {part} of {life}{whom}")
}

/// Names the tasks that had the CPU meanwhile, the longest first.
fn whom(antagonists: &Antagonists) -> String {
    let named = antagonists.names.iter().take(NAMED);
    let rest = antagonists.ran_ns.saturating_sub(named.clone().map(|one| one.ns).sum());
    let mut all: Vec<(u64, String)> =
        named.map(|one| (one.ns, format!("{} ran {}", sharers(one), duration(one.ns)))).collect();
    let mut other = |ns: u64, what: &str| {
        if ns > 0 {
            all.push((ns, format!("{what} {}", duration(ns))));
        }
    };
    other(rest, "others ran");
    other(antagonists.idle_ns, "the CPU was idle");
    other(antagonists.unnamed_ns, "it is not known who ran for");
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    all.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_metrics::analysis::{NamedAntagonist, StateTime};

    fn task(name: &str, pid: u32, ns: u64) -> TaskAnalysis {
        let state = StateTime { state: "runnable".into(), ns, ..StateTime::default() };
        TaskAnalysis {
            name: name.into(),
            pid: Some(pid),
            life_ns: 4_000,
            states: vec![state],
            ..TaskAnalysis::default()
        }
    }

    #[test]
    fn the_task_that_lost_most_is_named_with_its_antagonists() {
        let hogs = NamedAntagonist {
            name: "hog".into(),
            nr_tasks: 3,
            ns: 600,
            ns_most: 600,
            ..NamedAntagonist::default()
        };
        let sh =
            NamedAntagonist { name: "sh".into(), nr_tasks: 1, pid: Some(8), ns: 100, ns_most: 100 };
        let mut db = task("db", 117, 1_000);
        db.antagonists =
            Antagonists { names: vec![hogs, sh], ran_ns: 700, idle_ns: 300, ..Default::default() };
        let analysis = Analysis { tasks: vec![task("a", 5, 10), db], ..Analysis::default() };
        assert_eq!(
            line(&analysis),
            "db 117 lost most time: it waited 1.000 us for a CPU, 25.0 % of 4.000 us; meanwhile \
             hog (3 tasks) ran 600 ns, the CPU was idle 300 ns, sh 8 ran 100 ns"
        );
        let idle = Analysis { tasks: vec![task("a", 5, 0)], ..Analysis::default() };
        assert_eq!(line(&idle), "no task waited for a CPU");
    }
}
