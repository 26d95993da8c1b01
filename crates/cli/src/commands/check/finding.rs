// SPDX-License-Identifier: MIT OR Apache-2.0
//! A found case: what it says, its files, and the commands that show it.

use super::place::Place;
use super::recipe::{FINDING, Recipe};
use crate::error::{CliError, CliResult};
use schedlab_check::{Breach, Case};
use schedlab_run::LaneKind;
use schedlab_run::file::write_whole;
use schedlab_workload::{units, write_rtapp_short};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the form of findings.
const SCHEMA_VERSION: u32 = 1;

/// What the command that explains a finding does.
pub const EXPLAIN: &str = "Explain it";

/// Endings of the files of a finding.
const TRACE: &str = ".pftrace";
const EXPLANATION: &str = ".explain.json";

/// A broken rule with the smallest case that breaks it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Version of this form.
    pub schema_version: u32,
    /// How the case is run, and the rule.
    #[serde(flatten)]
    pub recipe: Recipe,
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
    /// File with the changed workload, whose run must agree with that of the first.
    #[serde(default)]
    pub changed: Option<String>,
    /// Command that runs the case.
    pub command: String,
    /// Command that runs the changed case.
    #[serde(default)]
    pub changed_command: Option<String>,
    /// Command that explains it; none if no scheduler of the simulator is like that of the case.
    pub explain_command: Option<String>,
}

/// A found case with its breach. A rule of pairs has a second case.
pub struct Found {
    pub case: Case,
    pub changed: Option<Case>,
    pub breach: Breach,
}

impl Finding {
    /// The finding of `found` at `place`, with files in `folder`.
    pub fn new(folder: &Path, place: &dyn Place, found: &Found) -> Self {
        let Found { case, changed, breach } = found;
        let recipe = Recipe::new(place.target(), place.tunables(), breach.rule.name, case);
        let stem = recipe.stem();
        let mut finding = Self {
            schema_version: SCHEMA_VERSION,
            statement: breach.rule.statement.into(),
            text: breach.to_string(),
            time_ns: breach.time_ns,
            cpu: breach.cpu.map(|cpu| cpu.0),
            task: breach.task.clone(),
            workload: format!("{stem}.json"),
            changed: changed.as_ref().map(|_| format!("{stem}.changed.json")),
            command: String::new(),
            changed_command: None,
            explain_command: None,
            recipe,
        };
        finding.command = finding.run_command(folder, &finding.workload);
        finding.changed_command =
            finding.changed.as_ref().map(|file| finding.run_command(folder, file));
        finding.explain_command = place.model().map(|model| finding.explanation(folder, model));
        finding
    }

    /// The command that runs a workload file as this case.
    fn run_command(&self, folder: &Path, file: &str) -> String {
        let arguments = self.arguments(folder, file, &self.recipe.scheduler);
        match self.recipe.lane {
            LaneKind::Vm => format!("schedlab vm {arguments}"),
            _ => format!("schedlab sim {arguments}"),
        }
    }

    /// The command that explains the case. Only models explain.
    fn explanation(&self, folder: &Path, model: &str) -> String {
        let sim =
            Self { recipe: Recipe { lane: LaneKind::Sim, ..self.recipe.clone() }, ..self.clone() };
        let common = sim.arguments(folder, &self.workload, model);
        match &self.task {
            Some(task) => format!("schedlab explain {common} --task {task}"),
            None => {
                format!("schedlab explain {common} --at {}", units::format_duration(self.time_ns))
            }
        }
    }

    /// The arguments that say which run it is.
    fn arguments(&self, folder: &Path, file: &str, scheduler: &str) -> String {
        let recipe = &self.recipe;
        let path = |name: &str| folder.join(name).display().to_string();
        let nr_cpus = recipe.core.len();
        let mut arguments = path(file);
        match recipe.lane {
            LaneKind::Vm => {
                let (kernel, own) = scheduler.rsplit_once(':').unwrap_or((scheduler, ""));
                arguments += &format!(" --kernel {kernel}");
                if !own.is_empty() {
                    arguments += &format!(" --scheduler {own}");
                }
                arguments += &format!(" --cpus {nr_cpus} --seed {}", recipe.seed);
            }
            _ => {
                let costs = if recipe.has_costs { "default" } else { "zero" };
                arguments += &format!(
                    " --scheduler {scheduler} --cpus {nr_cpus} --hz {} --costs {costs} --seed {}",
                    recipe.hz, recipe.seed
                );
                if !recipe.is_flat() {
                    arguments += &format!(" --machine {}", path(&self.machine_name()));
                }
            }
        }
        for (name, value) in &recipe.tunables {
            arguments += &format!(" --set {name}={value}");
        }
        arguments
    }

    /// The workload file's name with another ending.
    fn name(&self, ending: &str) -> String {
        format!("{}{ending}", self.workload.trim_end_matches(".json"))
    }

    fn machine_name(&self) -> String {
        self.name(".machine.json")
    }

    /// Commands for people: what each shows, and the command.
    pub fn commands(&self) -> Vec<(&'static str, &str)> {
        let mut commands = vec![("Run it", self.command.as_str())];
        commands.extend(self.changed_command.as_deref().map(|command| ("Run it changed", command)));
        let explains = match self.recipe.lane {
            LaneKind::Vm => "Explain what the model does",
            _ => EXPLAIN,
        };
        commands.extend(self.explain_command.as_deref().map(|command| (explains, command)));
        commands
    }

    /// What `folder` holds. A run that fails has no explanation.
    pub fn holds(&self, folder: &Path) -> &'static str {
        match (self.has(folder, TRACE), self.is_explained(folder)) {
            (true, true) => "it, the trace and the explanation",
            (true, false) => "it and the trace",
            (false, true) => "it and the explanation",
            (false, false) => "it",
        }
    }

    /// Whether `folder` has the explanation.
    pub fn is_explained(&self, folder: &Path) -> bool {
        self.has(folder, EXPLANATION)
    }

    fn has(&self, folder: &Path, ending: &str) -> bool {
        folder.join(self.name(ending)).is_file()
    }

    /// Writes the files: the workload, the changed one, the machine if it is not flat, this
    /// description, a trace and the explanation.
    pub fn write(&self, folder: &Path, place: &dyn Place, found: &Found) -> CliResult<()> {
        std::fs::create_dir_all(folder)
            .map_err(|error| CliError::file("create", folder, &error))?;
        let text = |case: &Case| write_rtapp_short(&case.workload);
        write_whole(&folder.join(&self.workload), text(&found.case).as_bytes())?;
        if let (Some(file), Some(changed)) = (&self.changed, &found.changed) {
            write_whole(&folder.join(file), text(changed).as_bytes())?;
        }
        if !self.recipe.is_flat() {
            write_json(&folder.join(self.machine_name()), &self.recipe.machine_file())?;
        }
        write_json(&folder.join(self.name(FINDING)), self)?;
        let trace = folder.join(self.name(TRACE));
        let explanation = folder.join(self.name(EXPLANATION));
        place.record(&self.recipe, found, &trace, &explanation)
    }
}

/// Writes `value` as JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> CliResult<()> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    text.push('\n');
    Ok(write_whole(path, text.as_bytes())?)
}
