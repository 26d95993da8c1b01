// SPDX-License-Identifier: MIT OR Apache-2.0
//! The analysis of runs, as pictures and sortable tables: what each task did, who kept it waiting,
//! how deep the run queues were, how tasks advanced, and the findings.

mod charts;
mod depth;
mod found;
mod states;

pub use charts::analysis_files;

use crate::group::Group;
use crate::html::escape;
use crate::number::duration;
use crate::order::panel_order;
use crate::timeline::panel_title;
use schedlab_metrics::Analysis;
use schedlab_metrics::analysis::TaskAnalysis;
use schedlab_run::RunResult;
use std::fmt::Write as _;

/// Maximum number of runs shown for one experiment.
const RUNS_MAX: usize = 8;

/// Writes the section of one experiment; empty if none of its runs was analysed.
pub fn analysis_section(group: &Group<'_>) -> String {
    let runs = analysed_runs(group);
    if runs.is_empty() {
        return String::new();
    }
    let mut out = format!("<section class=\"analysis\" id=\"{}-analysis\">\n", group.id);
    out += "<h3>What the tasks did, and who kept them waiting</h3>\n";
    if runs.len() > RUNS_MAX {
        let count = runs.len();
        let _ = writeln!(
            out,
            "<p class=\"notice\">The first {RUNS_MAX} of {count} analysed runs are shown.</p>"
        );
    }
    for (number, (title, run, analysis)) in runs.iter().take(RUNS_MAX).enumerate() {
        let id = format!("{}-analysis-{number}", group.id);
        let _ = writeln!(out, "<h4>{}</h4>", escape(title));
        out += &states::states_part(&id, analysis);
        out += &depth::depth_part(&id, run, analysis);
        out += &depth::queues_part(&id, run, analysis);
        out += &progress_part(run, analysis);
        out += &found::found_part(&id, analysis);
    }
    out += "</section>\n";
    out
}

/// The picture of the tasks' CPU time over time; empty if no task ran.
fn progress_part(run: &RunResult, analysis: &Analysis) -> String {
    let Some(panel) = charts::progress_panel(run, analysis) else { return String::new() };
    let got = |task: &TaskAnalysis| {
        let got = task.progress.as_ref()?.cpu_time_ns.last().copied()?;
        Some(format!("{} {}", task.name, duration(got as f64)))
    };
    let words: Vec<String> = analysis.tasks.iter().filter_map(got).take(16).collect();
    let label = format!("CPU time over time; at the end: {}.", words.join(", "));
    format!("<p>CPU time that the tasks had got:</p>\n{}", charts::panel_html(panel, &label))
}

/// The first analysed run of each cell.
fn analysed_runs<'a>(group: &Group<'a>) -> Vec<(String, &'a RunResult, &'a Analysis)> {
    let cells = panel_order(group).into_iter();
    cells
        .filter_map(|cell| {
            let run = cell.runs.iter().copied().find(|run| run.analysis.is_some())?;
            let title = panel_title(group, cell.config, cell.n, cell.cpus);
            let lane = group.configs[cell.config].lane_words();
            Some((format!("{title}, {lane}"), run, run.analysis.as_ref()?))
        })
        .collect()
}

/// A task's name for people, with its process id if known.
fn id_of(name: &str, pid: Option<u32>) -> String {
    pid.map_or_else(|| name.to_string(), |pid| format!("{name} {pid}"))
}

/// The head of a sortable table. Each column has a name and a flag for numbers.
fn table_head(id: &str, heads: &[(&str, bool)]) -> String {
    let mut out =
        format!("<div class=\"scroll\"><table class=\"sortable\" id=\"{id}\">\n<thead><tr>");
    for (head, is_number) in heads {
        let class = if *is_number { " class=\"num\"" } else { "" };
        let _ =
            write!(out, "<th scope=\"col\"{class}><button type=\"button\">{head}</button></th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    out
}

/// The end of a table, with the link to its rows as CSV.
fn table_foot(id: &str) -> String {
    format!(
        "</tbody></table></div>\n<div class=\"fig-foot\"><a class=\"csv-of\" href=\"#{id}\" \
         data-table=\"{id}\" download=\"{id}.csv\">Rows as CSV</a></div>\n"
    )
}

/// A cell with the number by which its column is sorted.
fn number_cell(value: impl std::fmt::Display, text: &str) -> String {
    format!("<td class=\"num\" data-v=\"{value}\">{text}</td>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::group_all;
    use crate::group::tests::{experiment, run};
    use schedlab_metrics::analysis::{
        Antagonists, Curve, Depth, DepthTime, Findings, Lag, NamedAntagonist, Progress, QueueDepth,
        Starved, StateTime, Wasted,
    };
    use schedlab_run::LaneKind::Sim;

    fn analysis() -> Analysis {
        let state = |state: &str, object: Option<&str>, ns| StateTime {
            state: state.into(),
            object: object.map(Into::into),
            kind: object.map(|_| "mutex".into()),
            ns,
            share: ns as f64 / 100.0,
            count: 1,
            ns_max: ns,
        };
        let antagonist =
            NamedAntagonist { name: "<b>".into(), nr_tasks: 1, pid: None, ns: 30, ns_most: 30 };
        let task = TaskAnalysis {
            id: 0,
            pid: Some(4711),
            name: "<i>".into(),
            life_ns: 100,
            states: vec![state("running", None, 60), state("blocked", Some("<m>"), 40)],
            antagonists: Antagonists { names: vec![antagonist], ran_ns: 30, ..Default::default() },
            lag: Some(Lag { behind_ns_max: 7, ..Lag::default() }),
            progress: Some(Progress { bin_ns: 50, cpu_time_ns: vec![10, 60], units: vec![] }),
        };
        let starved = Starved { name: "<u>".into(), cause: "idle".into(), ..Starved::default() };
        let wasted = Wasted { name: "<s>".into(), ..Wasted::default() };
        let depth = Depth {
            mean: 1.5,
            max: 2,
            histogram: vec![DepthTime { from: 1, to: 1, ns: 100 }],
            curve: Some(Curve { bin_ns: 50, mean: vec![1.0, 2.0], max: vec![1, 2] }),
            ..Depth::default()
        };
        Analysis {
            tasks: vec![task],
            cpus: vec![depth.clone()],
            queues: vec![QueueDepth { queue: "<dsq>".into(), depth: depth.clone() }],
            depth,
            starved: Findings { count: 1, longest: vec![starved], ..Findings::default() },
            wasted: Findings { count: 1, longest: vec![wasted], ..Findings::default() },
        }
    }

    #[test]
    fn names_stay_text_and_parts_keep_their_size() {
        let mut analysed = run(Sim, "rr", 1, 1);
        analysed.analysis = Some(analysis());
        analysed.measures.totals.end_ns = 100;
        let results = [experiment("x", vec![analysed, run(Sim, "fcfs", 1, 1)])];
        let html = analysis_section(&group_all(&results)[0]);
        assert!(html.contains("&lt;i&gt; 4711</th>"), "{html}");
        assert!(html.contains("&lt;i&gt;") && html.contains("mutex &lt;m&gt;"), "{html}");
        for tag in ["<i>", "<b>", "<u>", "<s>", "<dsq>"] {
            assert!(!html.contains(tag), "{tag}: {html}");
        }
        assert!(html.contains("&lt;u&gt;") && html.contains("&lt;s&gt;"), "{html}");
        assert!(html.contains("<th scope=\"row\">&lt;dsq&gt;</th>"), "{html}");
        assert!(html.contains("style=\"width:60.000%\""), "{html}");
        assert_eq!(html.matches("<h4>").count(), 1);
        // Depth and CPU time in two widths, the key of depth's two series, the small pictures of
        // the CPU and of the queue.
        assert_eq!(html.matches("<svg").count(), 2 + 2 + 2 + 2);
        let names: Vec<String> =
            analysis_files(&group_all(&results)[0]).into_iter().map(|file| file.0).collect();
        assert_eq!(names, ["x-analysis-depth", "x-analysis-progress", "x-analysis-states"]);
    }

    #[test]
    fn without_an_analysis_there_is_no_section() {
        let results = [experiment("x", vec![run(Sim, "rr", 1, 1)])];
        assert_eq!(analysis_section(&group_all(&results)[0]), "");
        assert!(analysis_files(&group_all(&results)[0]).is_empty());
    }
}
