// SPDX-License-Identifier: MIT OR Apache-2.0
//! A found case: what it says, its files, and how it is read again.

use crate::commands::trace_file::{TraceFile, format_of};
use crate::error::{CliError, CliResult};
use crate::table;
use schedlab_check::{Breach, Case, Rule, Subject};
use schedlab_lab::studies::{self, FILE_BYTES_MAX};
use schedlab_model::machine::Caches;
use schedlab_model::{Costs, CpuMask, Machine, Topology};
use schedlab_run::file::{read_text, write_whole};
use schedlab_run::machine::{MachineFile, MachineSpec, TopologyTable};
use schedlab_run::{Lane, RunRequest};
use schedlab_sched::bugs::KnownBug;
use schedlab_sim::SimLane;
use schedlab_sim::explain::{Query, Question, explain};
use schedlab_trace::export::TraceContext;
use schedlab_workload::{units, write_rtapp_short};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Version of the form of findings and results.
const SCHEMA_VERSION: u32 = 1;

/// Ending of the files that describe findings.
const ENDING: &str = ".finding.json";

/// What `check --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// Version of this form.
    pub schema_version: u32,
    /// The schedulers, in the order in which they were named.
    pub schedulers: Vec<Checked>,
}

impl CheckResult {
    /// The result of these schedulers.
    pub fn new(schedulers: Vec<Checked>) -> Self {
        Self { schema_version: SCHEMA_VERSION, schedulers }
    }
}

/// A rule, for `check --rules --json`.
#[derive(Debug, Serialize)]
pub struct StatedRule {
    name: &'static str,
    statement: &'static str,
    source: &'static str,
    holds_for: &'static str,
    tolerance: &'static str,
    traps: &'static str,
}

impl StatedRule {
    /// `rule` for output.
    pub fn of(rule: &Rule) -> Self {
        Self {
            name: rule.name,
            statement: rule.statement,
            source: rule.source,
            holds_for: rule.holds_for,
            tolerance: rule.tolerance,
            traps: rule.traps,
        }
    }
}

/// A known bug, for `check --bugs --json`.
#[derive(Debug, Serialize)]
pub struct StatedBug {
    pub id: &'static str,
    pub statement: &'static str,
    pub kernels: &'static str,
    pub source: &'static str,
    /// Models with the bug; the first is the one to show it with.
    pub schedulers: Vec<String>,
    /// Why no model can have it.
    pub left_out: Option<&'static str>,
}

impl StatedBug {
    /// `bug` for output.
    pub fn of(bug: &KnownBug) -> Self {
        Self {
            id: bug.id,
            statement: bug.statement,
            kernels: bug.kernels,
            source: bug.source,
            schedulers: bug.names().collect(),
            left_out: bug.left_out(),
        }
    }
}

/// The result for one scheduler.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// The scheduler.
    pub scheduler: String,
    /// Stored cases that were checked.
    pub nr_stored: u64,
    /// Random cases that were checked.
    pub nr_cases: u64,
    /// Random cases that the scheduler cannot play, because it lacks a policy or a limit.
    pub nr_refused: u64,
    /// Time of the search (ns).
    pub elapsed_ns: u64,
    /// Seed of the first random case that broke a rule.
    pub found_at_seed: Option<u64>,
    /// Runs that made it smaller.
    pub nr_shrink_runs: u32,
    /// The broken rule and the small case.
    pub finding: Option<Finding>,
}

impl Checked {
    /// Nothing has been checked yet.
    pub fn new(scheduler: &str) -> Self {
        Self {
            scheduler: scheduler.into(),
            nr_stored: 0,
            nr_cases: 0,
            nr_refused: 0,
            elapsed_ns: 0,
            found_at_seed: None,
            nr_shrink_runs: 0,
            finding: None,
        }
    }

    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let time = table::duration(self.elapsed_ns);
        let name = &self.scheduler;
        match &self.finding {
            Some(finding) if self.found_at_seed.is_some() => {
                let rule = &finding.rule;
                let cases = table::counted(self.nr_cases, "case", "cases");
                format!("{name} breaks rule {rule}: found after {cases} in {time}.")
            }
            Some(finding) => format!("{name} still breaks rule {} in a stored case.", finding.rule),
            None if self.nr_cases == 0 => format!("{name} breaks no rule in the stored case."),
            None => format!(
                "{name} breaks no rule in {} ({} more it cannot play) in {time}.",
                table::counted(self.nr_cases - self.nr_refused, "case", "cases"),
                self.nr_refused
            ),
        }
    }
}

/// A broken rule with the smallest case that breaks it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Version of this form.
    pub schema_version: u32,
    /// The scheduler.
    pub scheduler: String,
    /// Its tunables that were set.
    pub tunables: Vec<(String, String)>,
    /// Name of the rule.
    pub rule: String,
    /// What must hold.
    pub statement: String,
    /// What was found, and what is allowed.
    pub text: String,
    /// When (ns).
    pub time_ns: u64,
    /// The CPU, if it is about one.
    pub cpu: Option<u32>,
    /// The task, if it is about one.
    pub task: Option<String>,
    /// File with the workload, in the directory of this file.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// Ticks per second.
    pub hz: u32,
    /// Whether the machine's operations cost time.
    pub has_costs: bool,
    /// Core of each CPU.
    pub core: Vec<u32>,
    /// Last-level cache of each CPU.
    pub llc: Vec<u32>,
    /// NUMA node of each CPU.
    pub node: Vec<u32>,
    /// Command that simulates the case.
    pub command: String,
    /// Command that explains it.
    pub explain_command: String,
}

/// A name as part of a file's name.
fn file_part(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    last.chars().map(plain).collect()
}

impl Finding {
    /// The finding of `breach` in `case`, with files in `folder`.
    pub fn new(
        folder: &Path,
        subject: &Subject,
        tunables: &[(String, String)],
        case: &Case,
        breach: &Breach,
    ) -> Self {
        let scheduler = subject.scheduler.name.to_string();
        let stem = format!("{}-{}", file_part(&scheduler), breach.rule.name);
        let topology = case.machine.topology.clone();
        let mut finding = Self {
            schema_version: SCHEMA_VERSION,
            tunables: tunables.to_vec(),
            rule: breach.rule.name.into(),
            statement: breach.rule.statement.into(),
            text: breach.to_string(),
            time_ns: breach.time_ns,
            cpu: breach.cpu.map(|cpu| cpu.0),
            task: breach.task.clone(),
            workload: format!("{stem}.json"),
            seed: case.seed,
            hz: case.machine.hz,
            has_costs: case.machine.costs != Costs::ZERO,
            core: topology.core,
            llc: topology.llc,
            node: topology.node,
            command: String::new(),
            explain_command: String::new(),
            scheduler,
        };
        let common = finding.arguments(folder);
        finding.command = format!("schedlab sim {common}");
        let question = match &finding.task {
            Some(task) => format!("--task {task}"),
            None => format!("--at {}", units::format_duration(finding.time_ns)),
        };
        finding.explain_command = format!("schedlab explain {common} {question}");
        finding
    }

    /// The arguments that say which run it is.
    fn arguments(&self, folder: &Path) -> String {
        let path = |name: &str| folder.join(name).display().to_string();
        let mut arguments = format!(
            "{} --scheduler {} --cpus {} --hz {} --costs {} --seed {}",
            path(&self.workload),
            self.scheduler,
            self.core.len(),
            self.hz,
            if self.has_costs { "default" } else { "zero" },
            self.seed
        );
        if !self.is_flat() {
            arguments += &format!(" --machine {}", path(&self.machine_name()));
        }
        for (name, value) in &self.tunables {
            arguments += &format!(" --set {name}={value}");
        }
        arguments
    }

    fn topology(&self) -> Topology {
        let (core, llc, node) = (self.core.clone(), self.llc.clone(), self.node.clone());
        Topology { core, llc, node }
    }

    fn is_flat(&self) -> bool {
        self.topology() == Topology::flat(self.core.len() as u32)
    }

    /// The workload file's name with another ending.
    fn name(&self, ending: &str) -> String {
        format!("{}{ending}", self.workload.trim_end_matches(".json"))
    }

    fn machine_name(&self) -> String {
        self.name(".machine.json")
    }

    /// Commands for people: what each shows, and the command.
    pub fn commands(&self) -> [(&'static str, &str); 2] {
        [("Run it", &self.command), ("Explain it", &self.explain_command)]
    }

    /// The text of the workload file.
    pub fn workload_text(&self, case: &Case) -> String {
        write_rtapp_short(&case.workload)
    }

    /// Writes the files: the workload, the machine if it is not flat, this description, a trace and
    /// the explanation.
    pub fn write(
        &self,
        folder: &Path,
        subject: &Subject,
        case: &Case,
        breach: &Breach,
    ) -> CliResult<()> {
        std::fs::create_dir_all(folder)
            .map_err(|error| CliError::file("create", folder, &error))?;
        write_whole(&folder.join(&self.workload), self.workload_text(case).as_bytes())?;
        if !self.is_flat() {
            write_json(&folder.join(self.machine_name()), &self.machine_file())?;
        }
        write_json(&folder.join(self.name(ENDING)), self)?;
        let lane = self.lane(subject)?;
        let request = self.request(subject, case);
        let path = folder.join(self.name(".pftrace"));
        let context = TraceContext::of_run(&case.workload, case.machine.nr_cpus());
        let mut trace = TraceFile::create(&path, format_of(&path)?, &context)?;
        // A scheduler that is stopped leaves the events up to there.
        let _ = lane.run(&request, trace.sink());
        trace.commit()?;
        let question = match &breach.task {
            Some(task) => Question::Task(task.clone(), None),
            None => Question::At(breach.time_ns),
        };
        let query = Query { question, cpu: None, decisions_max: 20, candidates_max: 12 };
        // A run that is stopped cannot be explained.
        match explain(&lane, &request, &query) {
            Ok(answer) => write_json(&folder.join(self.name(".explain.json")), &answer),
            Err(_) => Ok(()),
        }
    }

    fn machine_file(&self) -> MachineFile {
        let Topology { core, llc, node } = self.topology();
        MachineFile {
            name: "found".into(),
            topology: TopologyTable { core, llc, node, ..TopologyTable::default() },
            hz: Some(self.hz),
            ..MachineFile::default()
        }
    }

    /// The lane that runs the case as its command does.
    fn lane(&self, subject: &Subject) -> CliResult<SimLane> {
        let spec = match self.is_flat() {
            true => None,
            false => Some(self.machine_file().spec().map_err(CliError::usage)?),
        };
        Ok(SimLane {
            machine: spec.map(|spec: MachineSpec| Arc::new(spec)),
            hz: Some(self.hz),
            costs: Some(if self.has_costs { Costs::DEFAULT } else { Costs::ZERO }),
            schedulers: vec![Arc::clone(&subject.scheduler)],
            ..SimLane::default()
        })
    }

    fn request(&self, subject: &Subject, case: &Case) -> RunRequest {
        let cpus = CpuMask::first(case.machine.nr_cpus());
        RunRequest {
            tunables: self.tunables.clone(),
            seed: self.seed,
            ..RunRequest::new(case.workload.clone(), subject.scheduler.name.as_ref(), cpus)
        }
    }
}

/// A stored finding, and its case.
pub struct Stored {
    /// Name of the rule that it broke.
    pub rule: String,
    /// The workload file.
    pub workload: String,
    /// The case.
    pub case: Case,
}

/// The findings in `folder` of the scheduler called `scheduler`, in order of their names.
pub fn stored(folder: &Path, scheduler: &str) -> CliResult<Vec<Stored>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths.iter().filter(|path| path.to_string_lossy().ends_with(ENDING)) {
        let finding = read_finding(path)?;
        if finding.scheduler == scheduler {
            found.push(read_case(folder, finding)?);
        }
    }
    Ok(found)
}

/// The finding that `path` describes.
pub fn read(path: &Path) -> CliResult<Stored> {
    read_case(path.parent().unwrap_or(Path::new("")), read_finding(path)?)
}

fn read_finding(path: &Path) -> CliResult<Finding> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| {
        CliError::usage_help(
            format!("{}: {error}", path.display()),
            "remove the file, or let `schedlab check` write it again",
        )
    })
}

fn read_case(folder: &Path, finding: Finding) -> CliResult<Stored> {
    let path = folder.join(&finding.workload);
    let text = read_text(&path, FILE_BYTES_MAX)?;
    let nr_cpus = finding.core.len() as u32;
    let mut warnings = Vec::new();
    let workload = studies::rtapp(&path.display().to_string(), &text, nr_cpus, &mut warnings)?;
    let mut machine = Machine { hz: finding.hz, ..Machine::flat(nr_cpus) };
    machine.topology = finding.topology();
    if !finding.has_costs {
        machine.costs = Costs::ZERO;
        machine.caches = Caches::NONE;
    }
    let case = Case { workload, machine, seed: finding.seed };
    Ok(Stored { rule: finding.rule, workload: path.display().to_string(), case })
}

fn write_json(path: &Path, value: &impl Serialize) -> CliResult<()> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    text.push('\n');
    Ok(write_whole(path, text.as_bytes())?)
}
