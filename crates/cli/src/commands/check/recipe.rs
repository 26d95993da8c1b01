// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a found case is run again: scheduler, machine, seed, and the workload's text.

use super::finding::Finding;
use crate::error::{CliError, CliResult};
use schedlab_check::Case;
use schedlab_lab::studies::FILE_BYTES_MAX;
use schedlab_model::machine::Caches;
use schedlab_model::{Costs, Machine, Topology};
use schedlab_run::LaneKind;
use schedlab_run::file::read_text;
use schedlab_run::machine::{MachineFile, TopologyTable};
use schedlab_run::workload_file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Ending of the files that describe findings.
pub const FINDING: &str = ".finding.json";
/// Ending of the files of a corpus.
pub const CASE: &str = ".case.json";

/// Version of the files of a corpus.
const CASE_VERSION: u32 = 1;

/// How a case is run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recipe {
    /// The scheduler; in lane vm the kernel.
    pub scheduler: String,
    /// Its tunables that were set.
    pub tunables: Vec<(String, String)>,
    /// The lane.
    #[serde(default = "sim")]
    pub lane: LaneKind,
    /// Name of the rule.
    pub rule: String,
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
}

fn sim() -> LaneKind {
    LaneKind::Sim
}

/// A case of a corpus: a file that needs no other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseFile {
    /// Version of this form.
    pub schema_version: u32,
    /// How it is run.
    #[serde(flatten)]
    pub recipe: Recipe,
    /// The workload file's text.
    pub workload: String,
}

/// A stored case.
pub struct Stored {
    /// How it was run.
    pub recipe: Recipe,
    /// The file.
    pub file: String,
    /// The case.
    pub case: Case,
}

/// A name as part of a file's name.
pub fn file_part(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    last.chars().map(plain).collect()
}

impl Recipe {
    /// The recipe of `case`, which breaks `rule`.
    pub fn new(
        (lane, scheduler): (LaneKind, &str),
        tunables: &[(String, String)],
        rule: &str,
        case: &Case,
    ) -> Self {
        let Topology { core, llc, node } = case.machine.topology.clone();
        Self {
            scheduler: scheduler.to_owned(),
            tunables: tunables.to_vec(),
            lane,
            rule: rule.to_owned(),
            seed: case.seed,
            hz: case.machine.hz,
            has_costs: case.machine.costs != Costs::ZERO,
            core,
            llc,
            node,
        }
    }

    /// How the names of its files begin.
    pub fn stem(&self) -> String {
        format!("{}-{}", file_part(&self.scheduler), file_part(&self.rule))
    }

    fn topology(&self) -> Topology {
        let (core, llc, node) = (self.core.clone(), self.llc.clone(), self.node.clone());
        Topology { core, llc, node }
    }

    /// Whether the machine needs no file.
    pub fn is_flat(&self) -> bool {
        self.topology() == Topology::flat(self.core.len() as u32)
    }

    /// The machine as a file.
    pub fn machine_file(&self) -> MachineFile {
        let Topology { core, llc, node } = self.topology();
        MachineFile {
            name: "found".into(),
            topology: TopologyTable { core, llc, node, ..TopologyTable::default() },
            hz: Some(self.hz),
            ..MachineFile::default()
        }
    }

    /// The case with the workload of `text`, which the file `name` holds.
    fn case(&self, name: &str, text: &str) -> CliResult<Case> {
        let refused = |why: String| {
            CliError::usage_help(
                format!("{name}: {why}"),
                "remove the file, or let `schedlab check` find the case again",
            )
        };
        let mut machine = Machine { hz: self.hz, ..Machine::flat(1) };
        machine.topology = self.topology();
        if !self.has_costs {
            machine.costs = Costs::ZERO;
            machine.caches = Caches::NONE;
        }
        machine.check().map_err(refused)?;
        let mut warnings = Vec::new();
        let workload = workload_file::read(name, text, machine.nr_cpus(), &mut warnings)?;
        let case = Case { workload, machine, seed: self.seed };
        case.check().map_err(refused)?;
        Ok(case)
    }
}

impl CaseFile {
    /// The file of a case whose workload has this text.
    pub fn new(recipe: Recipe, workload: String) -> Self {
        Self { schema_version: CASE_VERSION, recipe, workload }
    }
}

/// Reads a found case: the description of a finding, or a file of a corpus.
pub fn read(path: &Path) -> CliResult<Stored> {
    let file = path.display().to_string();
    let text = read_text(path, FILE_BYTES_MAX)?;
    let wrong = |why: String| {
        CliError::usage_help(
            format!("{file}: {why}"),
            "remove the file, or let `schedlab check` write it again",
        )
    };
    let (recipe, name, workload) = if file.ends_with(CASE) {
        let found: CaseFile =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if found.schema_version != CASE_VERSION {
            let version = found.schema_version;
            return Err(wrong(format!("it has version {version}, allowed is {CASE_VERSION}")));
        }
        (found.recipe, file.clone(), found.workload)
    } else {
        let found: Finding =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let workload = path.parent().unwrap_or(Path::new("")).join(&found.workload);
        let text = read_text(&workload, FILE_BYTES_MAX)?;
        (found.recipe, workload.display().to_string(), text)
    };
    let case = recipe.case(&name, &workload)?;
    Ok(Stored { recipe, file, case })
}
