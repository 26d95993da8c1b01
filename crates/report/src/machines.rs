// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section on machines, each once. Facts that differ between runs, such as the number of
//! recorded events, are listed with the machine but do not distinguish machines. Tunables of
//! modelled schedulers are listed by scheduler.

use crate::fold::folded;
use crate::group::Group;
use crate::html::escape;
use crate::number::{count, plural};
use schedlab_run::{LaneKind, MachineInfo, Origin, RunResult, Setting};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum number of machines whose settings are open at first.
const OPEN_MAX: usize = 1;
/// Maximum number of listed values of one setting. If more are numbers, the list has the least and
/// the greatest.
const VALUES_MAX: usize = 6;

/// Prefixes of settings that belong to a run, not to its machine. These are the CPUs that it could
/// use, how far its recorder can be trusted, and the identity of its guest.
const OF_RUN: [&str; 9] = [
    "calibration_",
    "cpu_time_overhead_",
    "machine.nr_",
    "recorder_",
    "trace_",
    "vm.checked",
    "vm.conditions",
    "vm.golden",
    "vm.identity",
];

/// A setting with its values, in order of first appearance.
type Values<'a> = Vec<(&'a str, Vec<&'a str>)>;

fn note<'a>(values: &mut Values<'a>, setting: &'a Setting) {
    let at = values.iter().position(|(name, _)| *name == setting.name).unwrap_or_else(|| {
        values.push((&setting.name, Vec::new()));
        values.len() - 1
    });
    if !values[at].1.contains(&setting.value.as_str()) {
        values[at].1.push(&setting.value);
    }
}

/// A machine and the runs that used it.
struct MachineUse<'a> {
    machine: &'a MachineInfo,
    lane: Origin,
    runs: usize,
    schedulers: BTreeSet<&'a str>,
    sources: BTreeSet<&'a str>,
    cpus: BTreeSet<u32>,
    settings: Values<'a>,
}

/// The tunables of a modelled scheduler.
struct Tunables<'a> {
    scheduler: &'a str,
    values: Values<'a>,
}

/// Whether a setting is a tunable of a simulated run's scheduler.
fn is_tunable(run: &RunResult, setting: &Setting) -> bool {
    let rest = setting.name.strip_prefix(run.scheduler.as_str());
    run.lane == LaneKind::Sim && rest.is_some_and(|rest| rest.starts_with('.'))
}

/// The settings that distinguish a machine from others.
fn own_settings(run: &RunResult) -> impl Iterator<Item = &Setting> {
    let is_of_run = |setting: &Setting| {
        setting.name == "cpus" || OF_RUN.iter().any(|begin| setting.name.starts_with(begin))
    };
    let all = run.machine.settings.iter();
    all.filter(move |setting| !is_of_run(setting) && !is_tunable(run, setting))
}

/// Writes the machines with their settings, versions and seeds.
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
    let tunables = tunables(runs());
    if machines.iter().any(|used| used.settings.iter().any(|(_, values)| values.len() > 1))
        || tunables.iter().any(|one| one.values.iter().any(|(_, values)| values.len() > 1))
    {
        out += "<p>Where runs differ, all values are listed; the result of each run has its \
                own.</p>\n";
    }
    // With many machines, their open settings would hide the sections after them.
    let is_open = machines.len() <= OPEN_MAX;
    for used in &machines {
        out += &machine(used, is_open);
    }
    for one in &tunables {
        let mut list = String::from("<dl>\n");
        one.values.iter().for_each(|value| entry(&mut list, value));
        let summary = format!("Tunables of {}", escape(one.scheduler));
        out += &folded(" class=\"machine\"", &summary, list + "</dl>");
    }
    out += "</section>\n";
    out
}

/// Each distinct machine once, in order of first use. Runs share a machine if they differ only in
/// the number of CPUs that they could use, in facts about the run or, if modelled, in the
/// scheduler.
fn machines<'a>(runs: impl Iterator<Item = &'a RunResult>) -> Vec<MachineUse<'a>> {
    let mut out: Vec<(&RunResult, MachineUse<'a>)> = Vec::new();
    for run in runs {
        let same = |(first, used): &(&RunResult, MachineUse<'_>)| {
            let (a, b) = (used.machine, &run.machine);
            used.lane == run.lane
                && a.cpu_model == b.cpu_model
                && a.hz == b.hz
                && (run.lane == LaneKind::Sim || a.kernel == b.kernel)
                && own_settings(first).eq(own_settings(run))
        };
        let index = out.iter().position(same).unwrap_or_else(|| {
            let used = MachineUse {
                machine: &run.machine,
                lane: run.lane,
                runs: 0,
                schedulers: BTreeSet::new(),
                sources: BTreeSet::new(),
                cpus: BTreeSet::new(),
                settings: Vec::new(),
            };
            out.push((run, used));
            out.len() - 1
        });
        let used = &mut out[index].1;
        used.runs += 1;
        used.cpus.insert(run.machine.nr_cpus);
        used.schedulers.insert(&run.scheduler);
        used.sources.insert(&run.source);
        let settings = run.machine.settings.iter();
        settings
            .filter(|setting| !is_tunable(run, setting))
            .for_each(|setting| note(&mut used.settings, setting));
    }
    out.into_iter().map(|(_, used)| used).collect()
}

/// Tunables of each modelled scheduler, in order of first use.
fn tunables<'a>(runs: impl Iterator<Item = &'a RunResult>) -> Vec<Tunables<'a>> {
    let mut out: Vec<Tunables<'a>> = Vec::new();
    for run in runs {
        for setting in run.machine.settings.iter().filter(|setting| is_tunable(run, setting)) {
            let at = out.iter().position(|one| one.scheduler == run.scheduler);
            let at = at.unwrap_or_else(|| {
                out.push(Tunables { scheduler: &run.scheduler, values: Vec::new() });
                out.len() - 1
            });
            note(&mut out[at].values, setting);
        }
    }
    out
}

fn machine(used: &MachineUse<'_>, is_open: bool) -> String {
    let info = used.machine;
    let most = used.cpus.last().copied().unwrap_or(0);
    let each: Vec<String> = used.cpus.iter().map(u32::to_string).collect();
    let cpus = format!("{}\u{a0}{}", each.join(", "), if most == 1 { "CPU" } else { "CPUs" });
    let join = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
    let title = if used.lane == LaneKind::Sim {
        let name = info.setting("machine.name").map_or_else(String::new, |n| format!(" {n:?}"));
        format!("Modelled machine{name}, {cpus}")
    } else {
        format!("{}, {cpus}, kernel {}", info.cpu_model, info.kernel)
    };
    let mut list = String::from("<dl>\n");
    let hz = info.hz.map(|hz| hz.to_string());
    let (runs, schedulers) = (count(used.runs as u64), join(&used.schedulers));
    let sources = join(&used.sources);
    let facts = [("runs", Some(&runs)), ("schedulers", Some(&schedulers)), ("HZ", hz.as_ref())];
    for (name, value) in facts.into_iter().chain([("numbers from", Some(&sources))]) {
        if let Some(value) = value {
            entry(&mut list, &(name, vec![value.as_str()]));
        }
    }
    used.settings.iter().for_each(|value| entry(&mut list, value));
    list += "</dl>";
    let summary = format!("{}, {}", escape(&title), plural(used.runs, "run", "runs"));
    match is_open {
        true => format!(
            "<details class=\"machine\" open><summary>{summary}</summary>\n{list}</details>\n"
        ),
        false => folded(" class=\"machine\"", &summary, list),
    }
}

/// Writes a name and its values.
fn entry(out: &mut String, (name, values): &(&str, Vec<&str>)) {
    let numbers: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
    let text = match (values.len() > VALUES_MAX, numbers) {
        (false, _) => values.join(", "),
        (true, Some(numbers)) => {
            let [least, most] = [numbers.iter().min(), numbers.iter().max()];
            let [least, most] = [least, most].map(|end| end.copied().unwrap_or_default());
            format!("{least} to {most}")
        }
        (true, None) => {
            let more = values.len() - VALUES_MAX;
            format!("{} and {more} more", values[..VALUES_MAX].join(", "))
        }
    };
    let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(&text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_run::LaneKind::{Host, Sim};

    fn set(run: &mut RunResult, name: &str, value: &str) {
        run.machine.settings.push(Setting { name: name.into(), value: value.into() });
    }

    fn section(runs: Vec<RunResult>) -> String {
        machine_section(&group_all(&[experiment("x", runs)]), Some("schedlab <run>"))
    }

    #[test]
    fn the_settings_of_many_machines_are_folded() {
        let machine = |index: u64| {
            let mut one = run(Sim, "rr", 1, 1);
            set(&mut one, "x", &index.to_string());
            one
        };
        for (count, open) in [(1, 1), (2, 0)] {
            let html = section((0..count).map(machine).collect());
            assert_eq!(html.matches("<details").count() as u64, count);
            assert_eq!(html.matches("\" open>").count(), open);
            assert!(html.contains("<dd>rr</dd>"), "{html}");
        }
    }

    #[test]
    fn modelled_machines_merge_over_schedulers_and_settings_are_escaped() {
        let mut a = run(Sim, "rr", 1, 1);
        a.machine.kernel = "rr".into();
        let mut b = run(Sim, "fcfs", 1, 1);
        b.machine.kernel = "fcfs".into();
        let mut c = run(Host, "RR", 1, 1);
        set(&mut c, "<x>", "</dd><script>");
        let html = section(vec![a, b, c]);
        assert_eq!(html.matches("<details").count(), 2);
        assert!(html.contains("fcfs, rr"));
        assert!(!html.contains("<script") && html.contains("schedlab &lt;run&gt;"));
    }

    /// The number of recorded events differs between runs; the machine is the same.
    #[test]
    fn what_a_run_tells_of_itself_is_no_other_machine() {
        let host = |events: u64, throttling: &str| {
            let mut one = run(Host, "RR", 1, 1);
            set(&mut one, "kernel.sched_rt_runtime_us", throttling);
            set(&mut one, "cpus", if events > 4 { "0" } else { "0-1" });
            set(&mut one, "recorder_events", &events.to_string());
            one
        };
        let mut runs: Vec<RunResult> = (1..=9).map(|events| host(events, "950000")).collect();
        let html = section(runs.clone());
        assert_eq!(html.matches("<details").count(), 1, "{html}");
        assert!(html.contains("<dt>recorder_events</dt><dd>1 to 9</dd>"), "{html}");
        assert!(html.contains("<dt>cpus</dt><dd>0-1, 0</dd>"), "{html}");
        runs.push(host(1, "-1"));
        assert_eq!(section(runs).matches("<details").count(), 2, "without throttling it differs");
    }

    #[test]
    fn tunables_are_listed_by_scheduler() {
        let sim = |scheduler: &str, quantum: &str, cores: &str| {
            let mut one = run(Sim, scheduler, 1, 1);
            set(&mut one, &format!("{scheduler}.quantum"), quantum);
            set(&mut one, "machine.name", "flat");
            set(&mut one, "machine.nr_cores", cores);
            one
        };
        let html =
            section(vec![sim("rr", "1ms", "1"), sim("rr", "2ms", "2"), sim("wrr", "3ms", "1")]);
        assert_eq!(html.matches("<details").count(), 1 + 2, "{html}");
        assert!(html.contains("Modelled machine &quot;flat&quot;"), "{html}");
        assert!(html.contains("<dt>rr.quantum</dt><dd>1ms, 2ms</dd>"), "{html}");
        assert!(html.contains("<dt>machine.nr_cores</dt><dd>1, 2</dd>"), "{html}");
    }
}
