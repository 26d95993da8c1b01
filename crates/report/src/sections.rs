// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of plain text: machines and settings, definitions of the measures, what the
//! models simplify.

use crate::ModelNote;
use crate::group::Group;
use crate::html::escape;
use schedlab_run::{LaneKind, MachineInfo, Origin, RunResult};
use std::collections::BTreeSet;
use std::fmt::Write as _;

struct MachineUse<'a> {
    machine: &'a MachineInfo,
    lane: Origin,
    runs: usize,
    schedulers: BTreeSet<&'a str>,
    sources: BTreeSet<&'a str>,
    cpus: BTreeSet<u32>,
}

/// Most machines whose settings stand open.
const OPEN_MAX: usize = 3;

/// Machines with their settings, versions and seeds.
pub fn machine_section(groups: &[Group<'_>], command: Option<&str>) -> String {
    let runs = || groups.iter().flat_map(|group| &group.result.runs);
    let mut out =
        String::from("<section id=\"machine\">\n<h2>Machine, settings, versions, seeds</h2>\n");
    let versions: BTreeSet<&str> = runs().map(|run| run.schedlab_version.as_str()).collect();
    let seeds: BTreeSet<u64> = runs().map(|run| run.seed).collect();
    let shown: Vec<String> = seeds.iter().take(20).map(u64::to_string).collect();
    let more =
        if seeds.len() > 20 { format!(" and {} more", seeds.len() - 20) } else { String::new() };
    let _ = writeln!(
        out,
        "<p>schedlab {}; seed{} {}{more}. A run is repeated exactly by version, experiment and \
         seed; measured runs repeat only within their spread.</p>",
        escape(&versions.into_iter().collect::<Vec<_>>().join(", ")),
        if seeds.len() == 1 { "" } else { "s" },
        shown.join(", "),
    );
    if let Some(command) = command {
        let _ = writeln!(out, "<p>Made by <code>{}</code>.</p>", escape(command));
    }
    let machines = machines(runs());
    // The settings of many would bury what comes after them.
    let is_open = machines.len() <= OPEN_MAX;
    for used in &machines {
        machine(&mut out, used, is_open);
    }
    out += "</section>\n";
    out
}

/// Each distinct machine once, in order of first use. Runs that differ only in how many of its CPUs
/// they could use, or modelled ones only in the scheduler's name, count as one.
fn machines<'a>(runs: impl Iterator<Item = &'a RunResult>) -> Vec<MachineUse<'a>> {
    let mut out: Vec<MachineUse<'a>> = Vec::new();
    for run in runs {
        let same = |used: &MachineUse<'_>| {
            let (a, b) = (used.machine, &run.machine);
            used.lane == run.lane
                && a.cpu_model == b.cpu_model
                && a.hz == b.hz
                && a.settings == b.settings
                && (run.lane == LaneKind::Sim || a.kernel == b.kernel)
        };
        let index = out.iter().position(same).unwrap_or_else(|| {
            out.push(MachineUse {
                machine: &run.machine,
                lane: run.lane,
                runs: 0,
                schedulers: BTreeSet::new(),
                sources: BTreeSet::new(),
                cpus: BTreeSet::new(),
            });
            out.len() - 1
        });
        out[index].runs += 1;
        out[index].cpus.insert(run.machine.nr_cpus);
        out[index].schedulers.insert(&run.scheduler);
        out[index].sources.insert(&run.source);
    }
    out
}

fn machine(out: &mut String, used: &MachineUse<'_>, is_open: bool) {
    let info = used.machine;
    let most = used.cpus.last().copied().unwrap_or(0);
    let each: Vec<String> = used.cpus.iter().map(u32::to_string).collect();
    let cpus = format!("{}\u{a0}{}", each.join(", "), if most == 1 { "CPU" } else { "CPUs" });
    let join = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
    let title = if used.lane == LaneKind::Sim {
        format!("Modelled machine, {cpus}, under {}", join(&used.schedulers))
    } else {
        format!("{}, {cpus}, kernel {}", info.cpu_model, info.kernel)
    };
    let _ = write!(
        out,
        "<details class=\"machine\"{}><summary>{}</summary>\n<dl>\n\
         <dt>runs</dt><dd>{}</dd>\n<dt>schedulers</dt><dd>{}</dd>\n<dt>numbers from</dt>\
         <dd>{}</dd>\n",
        if is_open { " open" } else { "" },
        escape(&title),
        used.runs,
        escape(&join(&used.schedulers)),
        escape(&join(&used.sources)),
    );
    if let Some(hz) = info.hz {
        let _ = writeln!(out, "<dt>HZ</dt><dd>{hz}</dd>");
    }
    for setting in &info.settings {
        let _ =
            writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(&setting.name), escape(&setting.value));
    }
    *out += "</dl></details>\n";
}

const DEFINITIONS: [(&str, &str); 15] = [
    ("response", "from a task's release to the moment it first runs"),
    ("turnaround", "from a task's release to its exit"),
    ("makespan", "from the first release of a run to its last exit"),
    ("throughput", "tasks that exited, divided by the makespan"),
    ("run delay", "time a task was runnable but not running, summed over its life"),
    ("longest wait", "the longest single stay of any task on a run queue"),
    ("wake-up latency", "from a wake-up to the moment the task runs"),
    ("slice", "one uninterrupted stay of a task on a CPU"),
    ("switches", "changes of the task that a CPU runs, to or from a task of the run"),
    ("voluntary switch", "the task stopped running because it slept, waited or exited (nvcsw)"),
    ("involuntary switch", "the task could have gone on but was taken off the CPU (nivcsw)"),
    ("migrations", "moves of a task from one CPU to another"),
    ("utilisation", "busy CPU time divided by CPUs times the length of the run"),
    (
        "Jain",
        "Jain's fairness index of the tasks' CPU time: (sum x)\u{b2} / (n \u{b7} sum x\u{b2}), \
         1 when all got the same, 1/n when one got all",
    ),
    ("p50, p95, p99", "the value that 50, 95 or 99 % of the samples do not exceed"),
];

/// What each measure means.
pub fn definitions_section() -> String {
    let mut out =
        String::from("<section id=\"definitions\">\n<h2>What the measures mean</h2>\n<dl>\n");
    for (term, text) in DEFINITIONS {
        let _ = writeln!(out, "<dt>{term}</dt><dd>{text}</dd>");
    }
    out += "</dl>\n<p>Every mean over repetitions has a 95\u{a0}% confidence interval from \
        Student's t; hold the pointer over a number in a table to see it.</p>\n</section>\n";
    out
}

/// What the models leave out.
pub fn footer(notes: &[ModelNote]) -> String {
    let mut out = String::from(
        "<footer id=\"models\">\n<h2>What the models simplify</h2>\n<p>A simulated run knows only \
         its workload, the scheduler's rules and what is listed with the modelled machine. There \
         are no interrupts and no refills of caches but those that it names, no other processes, \
         no change of clock frequency, no contention for memory, and every cost is the same each \
         time. A real machine has all of these; where the two differ, look there first.</p>\n",
    );
    if !notes.is_empty() {
        out += "<dl>\n";
        for note in notes {
            let _ = writeln!(
                out,
                "<dt>{}</dt><dd>Faithful to: {}. Left out or simplified: {}.</dd>",
                escape(&note.scheduler),
                escape(note.source.trim_end_matches('.')),
                escape(note.leaves_out.trim_end_matches('.'))
            );
        }
        out += "</dl>\n";
    }
    out += "<p class=\"made\">This page is one file: it loads nothing from anywhere and sends \
        nothing.</p>\n</footer>\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};
    use schedlab_run::Setting;

    #[test]
    fn the_settings_of_many_machines_are_folded() {
        let machine = |index: u64| {
            let mut one = run(Sim, "rr", 1, 1);
            one.machine.settings = vec![Setting { name: "x".into(), value: index.to_string() }];
            one
        };
        for (count, open) in [(3, 3), (4, 0)] {
            let results = [experiment("x", (0..count).map(machine).collect())];
            let html = machine_section(&group_all(&results), None);
            assert_eq!(html.matches("<details").count() as u64, count);
            assert_eq!(html.matches("\" open>").count(), open);
            assert!(html.contains(", under rr</summary>"));
        }
    }

    #[test]
    fn modelled_machines_merge_over_schedulers_and_settings_are_escaped() {
        let mut a = run(Sim, "rr", 1, 1);
        a.machine.kernel = "rr".into();
        let mut b = run(Sim, "fcfs", 1, 1);
        b.machine.kernel = "fcfs".into();
        let mut c = run(Host, "RR", 1, 1);
        c.machine.settings = vec![Setting { name: "<x>".into(), value: "</dd><script>".into() }];
        let results = [experiment("x", vec![a, b, c])];
        let groups = group_all(&results);
        let html = machine_section(&groups, Some("schedlab <run>"));
        assert_eq!(html.matches("<details").count(), 2);
        assert!(html.contains("fcfs, rr"));
        assert!(!html.contains("<script") && html.contains("schedlab &lt;run&gt;"));
    }
}
