// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab schema`: prints the JSON schemas of workload files and of the program's output, and
//! lists the measures. The output schemas are derived from the printed types, the list of measures
//! from their declarations.

use crate::args::SchemaArgs;
use crate::commands::bisect::BisectResult;
use crate::commands::check::CheckResult;
use crate::commands::diff::{DiffResult, TurnDiffResult};
use crate::commands::sim::InspectedRun;
use crate::error::CliResult;
use crate::output::Out;
use schedlab_core::{Outcome, Request};
use schedlab_lab::cases::Agreement;
use schedlab_lab::claims::ClaimResult;
use schedlab_lab::store::{Manifest, NamedTable};
use schedlab_lab::{ExperimentResult, Study};
use schedlab_metrics::{Distribution, Measures, ModelCounters, RunTotals, TaskMeasures};
use schedlab_run::RunResult;
use schedlab_sim::bench::BenchResult;
use schedlab_sim::explain::ExplainResult;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

/// Which schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SchemaKind {
    /// One run: what `--json` prints.
    Result,
    /// One run with `--printk` and `--maps`.
    Inspected,
    /// A list of experiments with their runs: what `report` reads too.
    Experiments,
    /// One slice: a line of `--slices`.
    Slice,
    /// What `explain --json` prints.
    Explain,
    /// What `check --json` prints.
    Check,
    /// What `diff --json` prints.
    Diff,
    /// What `diff --json` prints if a side is a kernel in a guest.
    DiffKernels,
    /// What `bisect --json` prints.
    Bisect,
    /// An experiment file (TOML) of `compare`, `reproduce` and `validate`.
    Experiment,
    /// The manifest.json of an experiment's results.
    Manifest,
    /// The tables that `compare EXPERIMENT.toml --json` prints.
    Tables,
    /// Claims with their verdicts: what `reproduce --json` and `validate --json` print.
    Claims,
    /// How far models and kernels agree on random workloads: what `validate --cases --json` prints.
    Agreement,
    /// One job measured: what `bench --json` prints.
    Bench,
    /// A request: what the browser and Python take.
    Request,
    /// The outcome of a request.
    Outcome,
    /// A workload file: what `sim` and `run` read.
    Workload,
}

/// One slice, as `--slices` prints it.
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
    /// End (ns since the start of the run).
    pub end_ns: u64,
    /// Why it ended: `preempted`, `yielded`, `sleeping`, `blocked-io`, `exited`, or `running` if
    /// the run ended first.
    pub end: &'t str,
}

/// The schema of `kind`. The schema of workload files is written by hand, next to their reader.
pub fn schema(kind: SchemaKind) -> Schema {
    match kind {
        SchemaKind::Workload => serde_json::from_str(schedlab_workload::SCHEMA).unwrap_or_default(),
        SchemaKind::Result => schema_for!(RunResult),
        SchemaKind::Inspected => schema_for!(InspectedRun<'static>),
        SchemaKind::Experiments => schema_for!(Vec<ExperimentResult>),
        SchemaKind::Slice => schema_for!(SliceLine<'static>),
        SchemaKind::Explain => schema_for!(ExplainResult),
        SchemaKind::Check => schema_for!(CheckResult),
        SchemaKind::Diff => schema_for!(DiffResult),
        SchemaKind::DiffKernels => schema_for!(TurnDiffResult),
        SchemaKind::Bisect => schema_for!(BisectResult),
        SchemaKind::Experiment => schema_for!(Study),
        SchemaKind::Manifest => schema_for!(Manifest),
        SchemaKind::Tables => schema_for!(Vec<NamedTable>),
        SchemaKind::Claims => schema_for!(Vec<ClaimResult>),
        SchemaKind::Agreement => schema_for!(Agreement),
        SchemaKind::Bench => schema_for!(BenchResult),
        SchemaKind::Request => schema_for!(Request),
        SchemaKind::Outcome => schema_for!(Outcome),
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
    /// Its meaning.
    pub meaning: String,
}

/// Every measure, from its declaration.
pub fn measures() -> Vec<Measure> {
    fn of<S: Measures>(of: &str) -> impl Iterator<Item = Measure> {
        S::LIST.iter().map(move |declared| Measure {
            name: declared.name.into(),
            of: of.into(),
            meaning: declared.meaning.trim_start().into(),
        })
    }
    of::<RunTotals>("run")
        .chain(of::<ModelCounters>("run"))
        .chain(of::<TaskMeasures>("task"))
        .chain(of::<Distribution>("distribution"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The shape of a value under this schema, such as `integer`, `[string]` or `Task | null`.
    fn shape(schema: &Value) -> String {
        let joined = |all: &[Value]| all.iter().map(shape).collect::<Vec<_>>().join(" | ");
        if let Some(name) = schema["$ref"].as_str() {
            return name.rsplit('/').next().unwrap_or(name).into();
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(all) = ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array()) {
            return joined(all);
        }
        match &schema["type"] {
            Value::Array(types) => {
                let one = |kind: &Value| {
                    let mut schema = schema.clone();
                    schema["type"] = kind.clone();
                    shape(&schema)
                };
                types.iter().map(one).collect::<Vec<_>>().join(" | ")
            }
            Value::String(kind) if kind == "array" => format!("[{}]", shape(&schema["items"])),
            Value::String(kind) if kind == "object" => match properties("", schema) {
                lines if lines.is_empty() => {
                    format!("{{{}}}", shape(&schema["additionalProperties"]))
                }
                lines => format!("{{{}}}", lines.join(", ")),
            },
            Value::String(kind) => kind.clone(),
            _ => "any".into(),
        }
    }

    /// Every property of an object with its shape; `?` marks an optional property.
    fn properties(prefix: &str, schema: &Value) -> Vec<String> {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let properties = schema["properties"].as_object().into_iter().flatten();
        let line = |(name, property): (&String, &Value)| {
            let mark = if required.contains(&Value::from(name.as_str())) { "" } else { "?" };
            format!("{prefix}{name}{mark}: {}", shape(property))
        };
        properties.map(line).collect()
    }

    /// Checks what programs that read and write these formats rely on: each kind of document, its
    /// new definitions, and the shape of each property.
    #[test]
    fn the_formats_are_as_before() {
        let mut text = String::new();
        let mut known = BTreeSet::new();
        for kind in SchemaKind::value_variants() {
            if *kind == SchemaKind::Workload {
                continue;
            }
            let name = kind.to_possible_value().unwrap();
            let root = schema(*kind).to_value();
            text += &format!("\n# schedlab schema {}: {}\n", name.get_name(), root["title"]);
            let own = (root["title"].as_str().unwrap_or("document"), &root);
            let definitions = root["$defs"].as_object().into_iter().flatten();
            let definitions = definitions.map(|(name, definition)| (name.as_str(), definition));
            for (name, definition) in std::iter::once(own).chain(definitions) {
                let lines = match properties(&format!("{name}."), definition) {
                    lines if lines.is_empty() => vec![format!("{name}: {}", shape(definition))],
                    lines => lines,
                };
                let new = lines.into_iter().filter(|line| known.insert(line.clone()));
                new.for_each(|line| text += &format!("{line}\n"));
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/formats.txt");
        schedlab_testing::golden(Path::new(path), text.trim_start()).unwrap_or_else(|difference| {
            panic!("a format changed; if that is meant, run `cargo xtask bless`: {difference}")
        });
    }

    #[test]
    fn shapes_are_told_apart() {
        let of = |schema: Value| shape(&schema);
        assert_eq!(
            of(json!({"type": ["array", "null"], "items": {"type": "string"}})),
            "[string] | null"
        );
        assert_eq!(
            of(json!({"oneOf": [{"const": "holds"}, {"$ref": "#/$defs/Task"}]})),
            "\"holds\" | Task"
        );
        let object = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        });
        assert_eq!(of(object), "{a: integer, b?: {number}}");
        assert_eq!(of(json!(true)), "any");
    }

    #[test]
    fn the_schema_of_workload_files_is_the_published_one() {
        let schema = schema(SchemaKind::Workload).to_value();
        assert_eq!(schema["title"], "schedlab workload");
        assert!(schema["$defs"]["event_lock"].is_object());
    }
}
