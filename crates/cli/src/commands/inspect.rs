// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sim --printk --maps --coverage`: prints what a .bpf.c printed, its maps and variables at the
//! end, and which of its lines were reached.

use super::coverage;
use crate::error::{CliError, CliResult};
use crate::output::printable;
use crate::schedulers::is_source;
use schedlab_scx::inspect::{
    Inspected, MapElement, MapState, Printk, PrintkLine, State, Value, Wanted, WantedMaps,
};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Number of elements that `--maps` shows of each map.
const ELEMENTS: usize = 32;
/// Number of elements that `--maps=NAME` shows of each map.
const ELEMENTS_NAMED: usize = 4_096;

/// What to show of a simulated .bpf.c.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct InspectArgs {
    /// Print the lines of bpf_printk(), the first N [default N: 1000]
    ///
    /// Each line has the task that the CPU was running, its process id, the CPU, the simulated
    /// time and the callback. For one run of a .bpf.c; also if the run fails.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "1000", conflicts_with = "slices")]
    pub printk: Option<usize>,
    /// Print the maps and global variables of a .bpf.c as they are at the end
    ///
    /// Names, separated by commas, select maps and variables, and show 4096 instead of 32 elements
    /// of each map. For one run of a .bpf.c; also if the run fails.
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with = "slices")]
    pub maps: Option<String>,
    /// Print which lines of a .bpf.c its runs reached; =FILE also writes them in LCOV's format
    ///
    /// Counts are added up over all repetitions. genhtml, editors and CI services read FILE.
    #[arg(long, value_name = "FILE", require_equals = true, conflicts_with = "slices")]
    pub coverage: Option<Option<PathBuf>>,
}

impl InspectArgs {
    /// What to keep of the runs of `schedulers`, `repetitions` of each; `None`: nothing was asked
    /// for.
    pub fn wanted(&self, schedulers: &[String], repetitions: u32) -> CliResult<Option<Wanted>> {
        let maps = self.maps.as_deref().map(|names| {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            let names: Vec<String> = names.map(str::to_owned).collect();
            let elements = if names.is_empty() { ELEMENTS } else { ELEMENTS_NAMED };
            WantedMaps { names, elements }
        });
        let coverage = self.coverage.is_some();
        let wanted = Wanted { lines: self.printk, maps, coverage };
        if wanted == Wanted::default() {
            return Ok(None);
        }
        let only_coverage = wanted == Wanted { coverage, ..Wanted::default() };
        let nr_runs = schedulers.len() * repetitions as usize;
        let (options, runs) = match only_coverage {
            true => ("--coverage shows", "the runs of one .bpf.c"),
            false => ("--printk and --maps show", "one run of a .bpf.c"),
        };
        let (what, help) = match schedulers {
            [one] if is_source(one) && (only_coverage || nr_runs == 1) => return Ok(Some(wanted)),
            [one] if !is_source(one) => {
                (format!("{one} is no .bpf.c"), "--scheduler ./my_sched.bpf.c")
            }
            _ if only_coverage => {
                (format!("here are {} schedulers", schedulers.len()), "give one scheduler")
            }
            _ => (
                format!("here are {nr_runs} runs"),
                "give one scheduler and one repetition; --coverage alone takes repetitions",
            ),
        };
        Err(CliError::usage_help(format!("{options} {runs}: {what}"), help))
    }

    /// Refuses to lose coverage: the JSON of several runs is an array, which has no place for it.
    pub fn check_json(&self) -> CliResult<()> {
        match &self.coverage {
            Some(None) => Err(CliError::usage_help(
                "--json of several runs has no place for their coverage",
                "--coverage=FILE writes it to a file, or leave --json out",
            )),
            _ => Ok(()),
        }
    }

    /// Writes the reached lines to the file of `--coverage=FILE`.
    pub fn write(&self, inspected: &Inspected) -> CliResult<()> {
        let (Some(Some(file)), Some(coverage)) = (&self.coverage, &inspected.coverage) else {
            return Ok(());
        };
        schedlab_run::file::write_whole(file, coverage::lcov(coverage).as_bytes())?;
        Ok(())
    }
}

/// What was kept, as text; empty if that is nothing.
pub fn text(inspected: &Inspected) -> String {
    let printk = inspected.printk.as_ref().map(printk_text);
    let state = inspected.state.as_ref().map(state_text);
    let reached = inspected.coverage.as_ref().map(coverage::text);
    let parts: Vec<String> = printk.into_iter().chain(state).chain(reached).collect();
    parts.join("\n")
}

fn printk_text(printk: &Printk) -> String {
    let mut out = match printk.lines.len() {
        0 => "bpf_printk: no lines\n".to_owned(),
        _ => "bpf_printk:\n".to_owned(),
    };
    for line in &printk.lines {
        let PrintkLine { time_ns, cpu, task, pid, callback, text } = line;
        let (s, ns) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let (task, text) = (one_line(task), one_line(text));
        let _ = writeln!(out, "  {task}-{pid} [{cpu:03}] {s}.{ns:09}: {callback}: {text}");
    }
    if printk.nr_left_out > 0 {
        let (kept, more) = (printk.lines.len(), printk.nr_left_out);
        let _ = writeln!(
            out,
            "  {more} more lines after the first {kept}; --printk={} keeps all",
            more.saturating_add(kept as u64)
        );
    }
    out
}

fn state_text(state: &State) -> String {
    let (ms, ns) = (state.time_ns / 1_000_000, state.time_ns % 1_000_000);
    let mut out = format!("Maps at {ms}.{ns:06} ms:\n");
    for map in &state.maps {
        map_text(&mut out, map);
    }
    if state.maps.is_empty() {
        out.push_str("  none\n");
    }
    out.push_str("\nVariables:\n");
    for variable in &state.variables {
        let option = if variable.is_option { " (option)" } else { "" };
        let _ =
            writeln!(out, "  {} = {}{option}", one_line(&variable.name), value(&variable.value));
    }
    if state.variables.is_empty() {
        out.push_str("  none\n");
    }
    out
}

fn map_text(out: &mut String, map: &MapState) {
    let MapState { kind, nr_elements, nr_zero, nr_left_out, elements, .. } = map;
    let elements_word = if *nr_elements == 1 { "element" } else { "elements" };
    let zero = if *nr_zero > 0 { format!(", {nr_zero} all zero") } else { String::new() };
    let name = one_line(&map.name);
    let _ = writeln!(out, "  {name} ({kind}, {nr_elements} {elements_word}{zero})");
    for MapElement { key, value: of } in elements {
        let _ = match key {
            Some(key) => writeln!(out, "    {}: {}", value(key), value(of)),
            None => writeln!(out, "    {}", value(of)),
        };
    }
    if *nr_left_out > 0 {
        let _ = writeln!(out, "    {nr_left_out} more; --maps={name} shows up to {ELEMENTS_NAMED}");
    }
}

/// A value as C programmers write it.
fn value(of: &Value) -> String {
    match of {
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Text(text) => format!("\"{}\"", one_line(&text.replace('"', "\\\""))),
        Value::Word(word) => one_line(word),
        Value::List(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Members(members) => {
            let member =
                |(name, of): &(String, Value)| format!("{} = {}", one_line(name), value(of));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Text of the scheduler on one line, so that it cannot look like a line of this program.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_cannot_forge_lines() {
        let line = PrintkLine {
            time_ns: 1_000_000_002,
            cpu: 3,
            task: "a\nb".into(),
            pid: 1_000,
            callback: "ops.enqueue".into(),
            text: "x\n  hog-1000 [000] 0.1: y\u{1b}[2J\t.".into(),
        };
        let printk = Printk { lines: vec![line], nr_left_out: 2 };
        assert_eq!(
            printk_text(&printk),
            "bpf_printk:\n  a\\nb-1000 [003] 1.000000002: ops.enqueue: \
             x\\n  hog-1000 [000] 0.1: y\\u{1b}[2J\\t.\n  \
             2 more lines after the first 1; --printk=3 keeps all\n"
        );
        let members = vec![
            ("name".into(), Value::Text("a\"b\n".into())),
            ("list".into(), Value::List(vec![Value::Signed(-1), Value::Flag(true)])),
        ];
        let text = value(&Value::Members(members));
        assert_eq!(text, "{name = \"a\\\"b\\n\", list = [-1, true]}");
    }

    #[test]
    fn one_run_of_a_file_can_be_inspected() {
        let args =
            InspectArgs { printk: Some(5), maps: Some("a, b".into()), ..InspectArgs::default() };
        let [file, name] = ["./x.bpf.c", "rr"].map(|name| vec![name.to_owned()]);
        let wanted = args.wanted(&file, 1).unwrap().unwrap();
        assert_eq!(wanted.lines, Some(5));
        assert_eq!(wanted.maps.unwrap().names, ["a", "b"]);
        assert!(args.wanted(&file, 2).unwrap_err().text().contains("here are 2 runs"));
        assert!(args.wanted(&name, 1).unwrap_err().text().contains("rr is no .bpf.c"));
        assert_eq!(InspectArgs::default().wanted(&name, 9).unwrap(), None);
        let args = InspectArgs { coverage: Some(None), ..InspectArgs::default() };
        assert!(args.wanted(&file, 20).unwrap().unwrap().coverage, "repetitions add up");
        let two = [file, name].concat();
        assert!(args.wanted(&two, 1).unwrap_err().text().contains("here are 2 schedulers"));
    }
}
