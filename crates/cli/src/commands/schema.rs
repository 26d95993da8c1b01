// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab schema`: the JSON schemas of workload files and of the program's output, the latter
//! made from the very types that are printed; and the list of measures, read from the same schema,
//! so that no name is written twice.

use super::bench::BenchResult;
use super::sweep::{Manifest, NamedTable};
use crate::args::SchemaArgs;
use crate::error::CliResult;
use crate::output::Out;
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::validate::{Validation, ValidationResult};
use schedlab_lab::{ExperimentResult, Study};
use schedlab_run::RunResult;
use schedlab_sim::explain::ExplainResult;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

/// Which schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SchemaKind {
    /// One run: what `--json` prints.
    Result,
    /// A list of experiments with their runs: what `report` reads too.
    Experiments,
    /// One slice: a line of `--slices`.
    Slice,
    /// What `explain --json` prints.
    Explain,
    /// An experiment file (TOML) of `compare` and `reproduce`.
    Experiment,
    /// The manifest.json of an experiment's results.
    Manifest,
    /// The tables that `compare EXPERIMENT.toml --json` prints.
    Tables,
    /// Claims with their verdicts: what `reproduce --json` prints.
    Claims,
    /// A validation file (TOML) of `validate`.
    Validation,
    /// Models beside kernels: what `validate --json` prints.
    ValidationResult,
    /// One job measured: what `bench --json` prints.
    Bench,
    /// A workload file: what `sim` and `run` read.
    Workload,
}

/// A line of `--slices`.
#[derive(Serialize, JsonSchema)]
pub struct SliceLine<'t> {
    /// CPU.
    pub cpu: u32,
    /// Task number.
    pub task: u32,
    /// Task name.
    pub name: &'t str,
    /// Start (ns since the start of the run).
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// How it ended: `preempted`, `yielded`, `sleeping`, `blocked-io`, `exited`, `running` (the
    /// run ended).
    pub end: &'t str,
}

/// The schema of `kind`. That of a workload file is written by hand, beside its reader.
pub fn schema(kind: SchemaKind) -> Schema {
    match kind {
        SchemaKind::Workload => serde_json::from_str(schedlab_workload::SCHEMA).unwrap_or_default(),
        SchemaKind::Result => schema_for!(RunResult),
        SchemaKind::Experiments => schema_for!(Vec<ExperimentResult>),
        SchemaKind::Slice => schema_for!(SliceLine<'static>),
        SchemaKind::Explain => schema_for!(ExplainResult),
        SchemaKind::Experiment => schema_for!(Study),
        SchemaKind::Manifest => schema_for!(Manifest),
        SchemaKind::Tables => schema_for!(Vec<NamedTable>),
        SchemaKind::Claims => schema_for!(Vec<ClaimResult>),
        SchemaKind::Validation => schema_for!(Validation),
        SchemaKind::ValidationResult => schema_for!(ValidationResult),
        SchemaKind::Bench => schema_for!(BenchResult),
    }
}

/// Runs the command.
pub fn print(args: &SchemaArgs, out: &mut Out) -> CliResult<()> {
    out.json(&schema(args.which))
}

/// A measure for people.
#[derive(Debug)]
pub struct Measure {
    /// Name as in JSON.
    pub name: String,
    /// `run`, `task` or `distribution`.
    pub of: String,
    /// What it means.
    pub meaning: String,
}

/// Every measure, from the schema's descriptions.
pub fn measures() -> Vec<Measure> {
    let schema = schema(SchemaKind::Result).to_value();
    let mut measures = Vec::new();
    for (definition, of) in
        [("RunTotals", "run"), ("TaskMeasures", "task"), ("Distribution", "distribution")]
    {
        let properties = &schema["$defs"][definition]["properties"];
        for (name, property) in properties.as_object().into_iter().flatten() {
            measures.push(Measure {
                name: name.clone(),
                of: of.into(),
                meaning: property["description"].as_str().unwrap_or_default().replace('\n', " "),
            });
        }
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema as the text of the published file.
    fn text(kind: SchemaKind) -> String {
        serde_json::to_string_pretty(&schema(kind).to_value()).unwrap() + "\n"
    }

    /// `cargo xtask bless` sets the variable and so writes the files anew.
    #[test]
    fn the_published_schemas_are_current() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
        for (kind, name) in [
            (SchemaKind::Result, "result.schema.json"),
            (SchemaKind::Experiments, "experiments.schema.json"),
            (SchemaKind::Slice, "slice.schema.json"),
            (SchemaKind::Explain, "explain.schema.json"),
            (SchemaKind::Experiment, "experiment.schema.json"),
            (SchemaKind::Manifest, "manifest.schema.json"),
            (SchemaKind::Tables, "tables.schema.json"),
            (SchemaKind::Claims, "claims.schema.json"),
            (SchemaKind::Validation, "validation.schema.json"),
            (SchemaKind::ValidationResult, "validation-result.schema.json"),
            (SchemaKind::Bench, "bench.schema.json"),
        ] {
            let path = format!("{folder}/{name}");
            let current = text(kind);
            if std::env::var_os("SCHEDLAB_BLESS").is_some() {
                std::fs::write(&path, &current).unwrap();
            }
            let published = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(published == current, "{name} is out of date: run `cargo xtask bless`");
        }
    }

    #[test]
    fn the_schema_of_workload_files_is_the_published_one() {
        let schema = schema(SchemaKind::Workload).to_value();
        assert_eq!(schema["title"], "schedlab workload");
        assert!(schema["$defs"]["event_lock"].is_object());
    }

    #[test]
    fn every_measure_has_a_meaning() {
        let measures = measures();
        assert!(measures.len() > 40, "{}", measures.len());
        for measure in measures {
            assert!(!measure.meaning.is_empty(), "{} has no meaning", measure.name);
        }
    }
}
