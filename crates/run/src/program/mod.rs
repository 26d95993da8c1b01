// SPDX-License-Identifier: MIT OR Apache-2.0
//! A third-party program as the workload of an experiment: how it starts, which commands run before
//! and next to it, and which figures are read from its output.
//!
//! This file has the data and the checks that need no machine. A command is a list of words for
//! execve(2); no shell reads it. `{name}` in a word is replaced by a parameter or axis of the run
//! (`template`); `figure` reads numbers. The host lane runs the program.

mod figure;
mod template;

pub use figure::{Figure, Matcher, Pick, UNITS};
pub use template::{DIR, NUMBER, fill};

use crate::StudyError;
use crate::place::Step as Place;
use schedlab_model::{Nanos, Policy};
use schedlab_workload::units;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A third-party program and how to run it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The program and its arguments. A name without `/` is searched in PATH and in the system's
    /// directories of programs. `{axis}` is replaced by the value of a parameter or an axis,
    /// `{cpus}` and `{seed}` by those of the run, `{dir}` by its private directory, `{number}` by a
    /// number that no other run has at the same time. `{{` and `}}` are braces.
    pub argv: Vec<String>,
    /// Debian packages that contain the programs. The error names them if one is not installed.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Environment variables of every command. The others are PATH, LANG, and HOME and TMPDIR,
    /// which are the private directory.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Directories to create in the private one before the first command, such as `data/test`.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Commands that run before the program, in this order.
    #[serde(default)]
    pub setup: Vec<SetupStep>,
    /// Commands that run after the program, in this order.
    #[serde(default)]
    pub teardown: Vec<Vec<String>>,
    /// The run fails if the program has not ended after this time; default `60s`.
    #[serde(default)]
    pub limit: Option<String>,
    /// The run fails if all of `setup` takes longer; default `60s`.
    #[serde(default)]
    pub setup_limit: Option<String>,
    /// Numbers that are read from the program's standard output and error.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

/// A command that runs before the program, or next to it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetupStep {
    /// The command, in the form of the program's `argv`.
    pub argv: Vec<String>,
    /// Whether it keeps running next to the program, such as a server, and is ended after it.
    /// Otherwise it must exit with code 0 before the next step.
    #[serde(default)]
    pub stays: bool,
    /// How often it is started: a number, or an axis in braces; default 1. This key and the
    /// following ones require `stays`.
    #[serde(default)]
    pub count: Option<String>,
    /// The next step waits until the output of this one matches this regular expression.
    #[serde(default)]
    pub ready_output: Option<String>,
    /// The next step waits until this file exists.
    #[serde(default)]
    pub ready_path: Option<String>,
    /// Whether it runs under the run's policy, like the program, instead of OTHER.
    #[serde(default)]
    pub has_policy: bool,
    /// Whether it is killed at the end, instead of being asked to end (SIGTERM) first.
    #[serde(default)]
    pub is_killed: bool,
}

/// A program at one point of an experiment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProgramRun {
    /// The program.
    pub spec: ProgramSpec,
    /// Values for the names in braces.
    pub values: BTreeMap<String, String>,
    /// Policy of the program, and of the steps with `has_policy`.
    pub policy: Policy,
}

/// Properties of a run that commands may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Surroundings<'a> {
    /// Its private directory.
    pub dir: &'a str,
    /// A number that no other run has at the same time.
    pub number: u32,
    /// Its seed.
    pub seed: u64,
}

impl Surroundings<'_> {
    /// For checks of a study, when nothing runs.
    pub const ANYWHERE: Self = Self { dir: "/", number: 1, seed: 1 };
}

/// A program with all names in braces replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadyProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of the environment.
    pub environment: BTreeMap<String, String>,
    /// Directories, relative to the private one.
    pub directories: Vec<String>,
    /// Commands that run before it.
    pub setup: Vec<ReadyStep>,
    /// Commands that run after it.
    pub teardown: Vec<Vec<String>>,
    /// Longest time of the program (ns).
    pub limit_ns: Nanos,
    /// Longest time of all of the setup (ns).
    pub setup_limit_ns: Nanos,
}

/// A step of the setup with all names in braces replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadyStep {
    /// The command.
    pub argv: Vec<String>,
    /// How often it is started.
    pub count: u32,
    /// Whether it keeps running next to the program.
    pub stays: bool,
    /// Pattern of its output that the next step waits for.
    pub ready_output: Option<String>,
    /// File that the next step waits for.
    pub ready_path: Option<String>,
    /// Whether it runs under the run's policy.
    pub has_policy: bool,
    /// Whether it is killed at the end.
    pub is_killed: bool,
}

/// Default of the time limits.
const LIMIT_NS: Nanos = 60 * 1_000_000_000;
/// Longest time limit: an hour.
const LIMIT_NS_MAX: Nanos = 3_600 * 1_000_000_000;
/// Most processes that one step may start.
pub const COUNT_MAX: u32 = 1_000;
/// Most words of a command, and most steps.
const LIST_MAX: usize = 200;

impl ProgramSpec {
    /// Short name: the last part of the program's path.
    pub fn name(&self) -> String {
        let program = self.argv.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or_default().to_string()
    }

    /// Names of its figures.
    pub fn figure_names(&self) -> Vec<String> {
        self.figures.iter().map(|figure| figure.name.clone()).collect()
    }

    /// Checks what can be checked without a run. `known` are the names that braces may contain.
    pub fn check(&self, known: &[String]) -> Result<(), StudyError> {
        let mut names = BTreeSet::new();
        for (index, figure) in self.figures.iter().enumerate() {
            let place = |error: StudyError| error.at(["figure".into(), index.into()]);
            figure.check().map_err(place)?;
            if !names.insert(&figure.name) {
                let text = format!("two figures are called {:?}", figure.name);
                return Err(place(StudyError::new(text, "give each its own name").below("name")));
            }
        }
        for (index, step) in self.setup.iter().enumerate() {
            step.check().map_err(|error| error.at(["setup".into(), index.into()]))?;
        }
        for (index, dir) in self.directories.iter().enumerate() {
            if !is_inside(dir) {
                return Err(StudyError::new(
                    format!("the directory {dir:?} does not lie in the private one"),
                    "give a path without a leading / and without ..",
                )
                .at(["directories".into(), index.into()]));
            }
        }
        for name in self.environment.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(StudyError::new(
                    format!("{name:?} cannot be the name of a variable"),
                    "give a name without =",
                )
                .below("environment"));
            }
        }
        for (name, text) in [("limit", &self.limit), ("setup_limit", &self.setup_limit)] {
            limit(text.as_deref()).map_err(|text| StudyError::new(text, "").below(name))?;
        }
        // Every text is filled with some values, so that errors with braces show.
        let values = known.iter().map(|name| (name.clone(), "1".to_string())).collect();
        let run = ProgramRun { spec: self.clone(), values, policy: Policy::Normal };
        run.ready(Surroundings::ANYWHERE).map(drop)
    }
}

/// Whether a relative path stays inside its directory.
fn is_inside(path: &str) -> bool {
    let mut parts = path.split('/');
    !path.is_empty() && parts.all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Reads a time limit.
fn limit(text: Option<&str>) -> Result<Nanos, String> {
    let Some(text) = text else { return Ok(LIMIT_NS) };
    match units::parse_duration(text) {
        Ok(ns) if (1..=LIMIT_NS_MAX).contains(&ns) => Ok(ns),
        Ok(_) => Err(format!("a limit of {text:?}: allowed are times above 0 up to 3600s")),
        Err(error) => Err(format!("a limit of {text:?}: {error}")),
    }
}

impl SetupStep {
    fn check(&self) -> Result<(), StudyError> {
        if let Some(pattern) = &self.ready_output {
            figure::compile(pattern).map_err(|error| error.below("ready_output"))?;
        }
        let only_if_it_stays = [
            ("count", self.count.is_some()),
            ("has_policy", self.has_policy),
            ("ready_output", self.ready_output.is_some()),
            ("ready_path", self.ready_path.is_some()),
            ("is_killed", self.is_killed),
        ];
        if let Some((name, _)) = only_if_it_stays.iter().find(|(_, given)| *given && !self.stays) {
            return Err(StudyError::new(
                format!("`{name}` stands at a step that does not stay"),
                "the next step waits for its end anyway; say `stays = true` or drop it",
            )
            .below(*name));
        }
        Ok(())
    }

    fn ready(&self, put: &dyn Fn(&str) -> Result<String, String>) -> Result<ReadyStep, StudyError> {
        let optional = |name: &'static str, text: &Option<String>| {
            let filled = text.as_deref().map(put).transpose();
            filled.map_err(|text| StudyError::new(text, "").below(name))
        };
        Ok(ReadyStep {
            argv: words(&self.argv, put, &["argv".into()])?,
            count: match optional("count", &self.count)? {
                None => 1,
                Some(text) => count(&text).map_err(|error| error.below("count"))?,
            },
            stays: self.stays,
            ready_output: self.ready_output.clone(),
            ready_path: optional("ready_path", &self.ready_path)?,
            has_policy: self.has_policy,
            is_killed: self.is_killed,
        })
    }
}

fn count(text: &str) -> Result<u32, StudyError> {
    text.parse().ok().filter(|n| (0..=COUNT_MAX).contains(n)).ok_or_else(|| {
        StudyError::new(
            format!("{text:?} is no number of processes"),
            format!("allowed are 0 to {COUNT_MAX}"),
        )
    })
}

/// Replaces all names in braces of a command.
fn words(
    argv: &[String],
    put: &dyn Fn(&str) -> Result<String, String>,
    place: &[Place],
) -> Result<Vec<String>, StudyError> {
    let wrong = |mut error: StudyError| {
        error.path.splice(0..0, place.iter().cloned());
        error
    };
    if argv.first().is_none_or(String::is_empty) || argv.len() > LIST_MAX {
        return Err(wrong(StudyError::new(
            format!("a command of {} words, or without a name", argv.len()),
            format!("give the program and its arguments, 1 to {LIST_MAX} words"),
        )));
    }
    let mut filled = Vec::new();
    for (index, word) in argv.iter().enumerate() {
        let text = put(word).and_then(|text| match text.contains('\0') {
            true => Err(format!("{word:?} holds a zero byte, which no program can get")),
            false => Ok(text),
        });
        filled.push(text.map_err(|text| wrong(StudyError::new(text, "").below(index)))?);
    }
    Ok(filled)
}

impl ProgramRun {
    /// Replaces all names in braces. The error has a path into the table `program`.
    pub fn ready(&self, at: Surroundings<'_>) -> Result<ReadyProgram, StudyError> {
        let mut values = self.values.clone();
        values.insert(DIR.into(), at.dir.into());
        values.insert(NUMBER.into(), at.number.to_string());
        values.insert("seed".into(), at.seed.to_string());
        let put = |text: &str| fill(text, &values);
        let spec = &self.spec;
        if spec.setup.len().max(spec.teardown.len()).max(spec.directories.len()) > LIST_MAX {
            return Err(StudyError::new(
                "a list of steps is too long",
                format!("allowed are {LIST_MAX} entries"),
            ));
        }
        let mut setup = Vec::new();
        for (index, step) in spec.setup.iter().enumerate() {
            let place = |error: StudyError| error.at(["setup".into(), index.into()]);
            setup.push(step.ready(&put).map_err(place)?);
        }
        let mut teardown = Vec::new();
        for (index, argv) in spec.teardown.iter().enumerate() {
            teardown.push(words(argv, &put, &["teardown".into(), index.into()])?);
        }
        let mut environment = BTreeMap::new();
        for (name, value) in &spec.environment {
            let place: [Place; 2] = ["environment".into(), name.as_str().into()];
            let value = put(value).map_err(|text| StudyError::new(text, "").at(place))?;
            environment.insert(name.clone(), value);
        }
        let limit_of = |name: &'static str, text: &Option<String>| {
            limit(text.as_deref()).map_err(|text| StudyError::new(text, "").below(name))
        };
        Ok(ReadyProgram {
            argv: words(&spec.argv, &put, &["argv".into()])?,
            environment,
            directories: spec.directories.clone(),
            setup,
            teardown,
            limit_ns: limit_of("limit", &spec.limit)?,
            setup_limit_ns: limit_of("setup_limit", &spec.setup_limit)?,
        })
    }

    /// Reads the figures from the output, by name. The error names the missing figure.
    pub fn figures(&self, output: &str) -> Result<BTreeMap<String, f64>, String> {
        let read = |figure: &Figure| Ok((figure.name.clone(), figure.read(output)?));
        self.spec.figures.iter().map(read).collect()
    }
}
