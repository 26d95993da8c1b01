// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the tables of a sweep as files. Every measure of every run goes in long form (one value
//! per line) into CSV and Parquet, the rows with their intervals into CSV.
//!
//! Columns of the long form: `experiment`, `run` (its index in the plan), `lane`, `scheduler`,
//! `workload`, `cpus`, `seed`, `repetition`, every other parameter, `measure`, `unit`, `value`. A
//! measure that a run does not have has no line.

use crate::ExperimentResult;
use crate::view::{Estimate, Table};
use schedlab_run::file::{AtomicFile, FileError};
use schedlab_run::{RunResult, values};
use schedlab_trace::export::csv::quoted;
use schedlab_trace::parquet_table::{Column, ColumnKind, TableWriter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// Number of lines in a row group of the Parquet file.
const ROW_GROUP: usize = 1 << 16;

/// The table of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NamedTable {
    /// Name of the experiment.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// The table.
    #[serde(flatten)]
    pub table: Table,
}

/// The table of each experiment that has a run.
pub fn tables(results: &[ExperimentResult]) -> Vec<NamedTable> {
    let with_runs = results.iter().filter(|result| !result.runs.is_empty());
    with_runs
        .map(|result| NamedTable {
            experiment: result.experiment.name.clone(),
            title: result.experiment.title.clone(),
            table: result.experiment.view.clone().unwrap_or_default().table(&result.runs),
        })
        .collect()
}

/// Writes the files and returns their names.
pub fn write(results: &[ExperimentResult], folder: &Path) -> Result<Vec<String>, FileError> {
    let names = ["results.csv", "results.parquet", "tables.csv"];
    let long = Long::new(results);
    csv(&folder.join(names[0]), |file| long.write_csv(file))?;
    let path = folder.join(names[1]);
    let file = long.write_parquet(AtomicFile::create(&path)?).map_err(|source| FileError {
        what: "write",
        path,
        source,
    })?;
    file.commit()?;
    csv(&folder.join(names[2]), |file| write_tables(&tables(results), file))?;
    Ok(names.map(String::from).to_vec())
}

fn csv(path: &Path, write: impl Fn(&mut AtomicFile) -> io::Result<()>) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    let written = write(&mut file);
    written.map_err(|source| FileError { what: "write", path: path.into(), source })?;
    file.commit()
}

/// Every run's values, one per line.
struct Long<'r> {
    results: &'r [ExperimentResult],
    /// Parameters with a column of their own.
    parameters: Vec<String>,
}

/// Columns before those of the parameters.
const FIXED: [&str; 8] =
    ["experiment", "run", "lane", "scheduler", "workload", "cpus", "seed", "repetition"];

/// The part of a line that describes its run.
struct Head {
    texts: [String; 4],
    run: usize,
    cpus: i64,
    seed: u64,
    repetition: u32,
    parameters: Vec<String>,
}

impl<'r> Long<'r> {
    fn new(results: &'r [ExperimentResult]) -> Self {
        let runs = results.iter().flat_map(|result| &result.runs);
        let names: BTreeSet<&String> = runs.flat_map(|run| run.parameters.keys()).collect();
        let parameters =
            names.into_iter().filter(|name| !FIXED.contains(&name.as_str())).cloned().collect();
        Self { results, parameters }
    }

    fn head(&self, experiment: &str, index: usize, run: &RunResult) -> Head {
        let of = |name: &String| run.parameters.get(name).cloned().unwrap_or_default();
        Head {
            texts: [
                experiment.into(),
                run.lane.to_string(),
                values::scheduler_label(run),
                run.workload.clone(),
            ],
            run: index,
            cpus: values::dimension(run, "cpus").parse().unwrap_or(0),
            seed: run.seed,
            repetition: run.repetition,
            parameters: self.parameters.iter().map(of).collect(),
        }
    }

    /// Calls `line` for each value with its run, its measure and the value.
    fn each(&self, mut line: impl FnMut(&Head, &str, f64) -> io::Result<()>) -> io::Result<()> {
        let mut index = 0;
        for result in self.results {
            for run in &result.runs {
                let head = self.head(&result.experiment.name, index, run);
                index += 1;
                for (measure, value) in values::run_values(run) {
                    if let Some(value) = value {
                        line(&head, &measure, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write_csv(&self, file: &mut AtomicFile) -> io::Result<()> {
        let heads = FIXED.iter().map(|name| (*name).to_string()).chain(self.parameters.clone());
        let heads: Vec<String> = heads.map(|head| quoted(&head).into_owned()).collect();
        writeln!(file, "{},measure,unit,value", heads.join(","))?;
        self.each(|head, measure, value| {
            let Head { texts, run, cpus, seed, repetition, .. } = head;
            let [experiment, lane, scheduler, workload] =
                [&texts[0], &texts[1], &texts[2], &texts[3]].map(|text| quoted(text));
            write!(
                file,
                "{experiment},{run},{lane},{scheduler},{workload},{cpus},{seed},{repetition},"
            )?;
            for parameter in &head.parameters {
                write!(file, "{},", quoted(parameter))?;
            }
            writeln!(file, "{measure},{},{value}", values::unit(measure))
        })
    }

    fn columns(&self) -> Vec<(String, ColumnKind)> {
        let kind = |name: &str| match name {
            "run" | "cpus" | "seed" | "repetition" => ColumnKind::Int,
            _ => ColumnKind::Text,
        };
        let fixed = FIXED.iter().map(|name| ((*name).to_string(), kind(name)));
        let parameters = self.parameters.iter().map(|name| (name.clone(), ColumnKind::Text));
        let values = [
            ("measure".into(), ColumnKind::Text),
            ("unit".into(), ColumnKind::Text),
            ("value".into(), ColumnKind::Float),
        ];
        fixed.chain(parameters).chain(values).collect()
    }

    fn write_parquet(&self, file: AtomicFile) -> io::Result<AtomicFile> {
        let kinds = self.columns();
        let mut writer = TableWriter::new(file, "runs", &kinds)?;
        let empty = || -> Vec<Column> { kinds.iter().map(|(_, kind)| kind.empty()).collect() };
        let mut columns = empty();
        let mut rows = 0;
        self.each(|head, measure, value| {
            push(&mut columns, head, measure, value);
            rows += 1;
            if rows == ROW_GROUP {
                writer.write(&std::mem::replace(&mut columns, empty()))?;
                rows = 0;
            }
            Ok(())
        })?;
        if rows > 0 {
            writer.write(&columns)?;
        }
        writer.finish()
    }
}

/// Appends one line to the columns, in the order of [`Long::columns`].
fn push(columns: &mut [Column], head: &Head, measure: &str, value: f64) {
    let [experiment, lane, scheduler, workload] = &head.texts;
    let ints = [head.cpus, head.seed.cast_signed(), i64::from(head.repetition)];
    let mut columns = columns.iter_mut();
    if let Some(Column::Text(values)) = columns.next() {
        values.push(experiment.clone());
    }
    if let Some(Column::Int(values)) = columns.next() {
        values.push(head.run as i64);
    }
    for part in [lane, scheduler, workload] {
        if let Some(Column::Text(values)) = columns.next() {
            values.push(part.clone());
        }
    }
    for int in ints {
        if let Some(Column::Int(values)) = columns.next() {
            values.push(int);
        }
    }
    let unit = values::unit(measure);
    for part in head.parameters.iter().map(String::as_str).chain([measure, unit]) {
        if let Some(Column::Text(values)) = columns.next() {
            values.push(part.into());
        }
    }
    if let Some(Column::Float(values)) = columns.next() {
        values.push(value);
    }
}

/// Writes one line for each row and measure. The key is a single column, `name=value` parts
/// separated by blanks, because rows of several experiments have different dimensions.
fn write_tables(tables: &[NamedTable], file: &mut AtomicFile) -> io::Result<()> {
    writeln!(
        file,
        "experiment,row,is_baseline,runs,measure,unit,n,mean,std_dev,ci95_low,ci95_high,\
         difference_n,difference_mean,difference_ci95_low,difference_ci95_high,baseline_mean"
    )?;
    for named in tables {
        for row in &named.table.rows {
            let key = named.table.by.iter().zip(&row.key);
            let key: Vec<String> = key.map(|(name, value)| format!("{name}={value}")).collect();
            for (measure, value) in named.table.measures.iter().zip(&row.values) {
                write!(
                    file,
                    "{},{},{},{},{measure},{},",
                    quoted(&named.experiment),
                    quoted(&key.join(" ")),
                    row.is_baseline,
                    row.nr_runs,
                    values::unit(measure),
                )?;
                let estimate = value.estimate;
                let deviation = optional(estimate.and_then(|estimate| estimate.std_dev));
                let [n, mean, low, high] = cells(estimate);
                write!(file, "{n},{mean},{deviation},{low},{high},")?;
                let [n, mean, low, high] = cells(value.difference.map(|found| found.paired));
                let base = optional(value.difference.map(|found| found.baseline_mean));
                writeln!(file, "{n},{mean},{low},{high},{base}")?;
            }
        }
    }
    Ok(())
}

/// n, mean and the ends of the interval; empty without an estimate.
fn cells(estimate: Option<Estimate>) -> [String; 4] {
    let ci95 = estimate.and_then(|estimate| estimate.ci95);
    [
        estimate.map_or_else(String::new, |estimate| estimate.n.to_string()),
        optional(estimate.map(|estimate| estimate.mean)),
        optional(ci95.map(|ends| ends[0])),
        optional(ci95.map(|ends| ends[1])),
    ]
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
