// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies as data: the TOML files that list a study's experiments.
//!
//! This file defines the format and the checks that need no machine; `plan` makes runs from a
//! study.

use crate::axis::{Axis, OneOrMore, Scalar, Seeds};
use crate::cases::{CaseSet, CaseStudy, MeasureSpec};
use crate::claims::{self, Claim, Quick};
use crate::document;
use crate::pairs::{Pair, PairLane};
use crate::plan::{Note, SHIFT, SWITCH_JITTER};
use crate::published::Published;
use crate::redrawn::{self, StudyFigure, StudyTable};
use crate::{FigureKind, View};
use schedlab_model::Nanos;
use schedlab_run::place::{Step, unknown};
use schedlab_run::program::ProgramSpec;
use schedlab_run::{LaneKind, SWITCH_JITTER_NS_MAX, StudyError};
use schedlab_workload::units;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A study: a named list of experiments.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Short name, such as `S0`.
    pub name: String,
    /// Title for people.
    #[serde(default)]
    pub title: String,
    /// Author and publication: `D. Knuth, The Art of Computer Programming (1968)`.
    #[serde(default)]
    pub author: String,
    /// Description and origin, for people.
    #[serde(default)]
    pub text: String,
    /// Kernels and their models; each runs every experiment.
    #[serde(default, rename = "pair")]
    pub pairs: Vec<Pair>,
    /// Lanes of the pairs.
    #[serde(default, rename = "lane")]
    pub lanes: Vec<PairLane>,
    /// Sets of generated workloads.
    #[serde(default, rename = "cases")]
    pub case_sets: Vec<CaseSet>,
    /// What is compared in generated workloads.
    #[serde(default, rename = "measure")]
    pub measures: Vec<MeasureSpec>,
    /// Its experiments.
    #[serde(default, rename = "experiment")]
    pub experiments: Vec<ExperimentSpec>,
    /// Its claims.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Its own figures, to be redrawn.
    #[serde(default, rename = "figure")]
    pub figures: Vec<StudyFigure>,
    /// Its own tables.
    #[serde(default, rename = "table")]
    pub tables: Vec<StudyTable>,
    /// Notes about pairs that are left out here.
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// The generated workloads of the requested half.
    #[serde(skip)]
    pub of_cases: CaseStudy,
}

/// One or more experiments over the same axes.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Name; `{axis}` stands for the value of an axis in `split`.
    pub name: String,
    /// Title for people, with `{axis}` too; `{n:task|tasks}` is "1 task" or "4 tasks".
    #[serde(default)]
    pub title: String,
    /// Description for people, with `{axis}` and `{n:task|tasks}` too.
    #[serde(default)]
    pub text: String,
    /// Figures to draw.
    #[serde(default)]
    pub figures: Vec<FigureKind>,
    /// A built-in workload, with optional parameters (`hogs:n=4`); the path of a file, relative to
    /// the study's file; or a list of these.
    #[serde(default)]
    pub workload: OneOrMore,
    /// The workload itself in rt-app's format, with `{name}` for parameters and axes. `workload` is
    /// then its name; default: the experiment's name.
    #[serde(default)]
    pub tasks: Option<String>,
    /// A third-party program in place of the workload. Only for lane host.
    #[serde(default)]
    pub program: Option<ProgramSpec>,
    /// The modelled machine: a preset (`schedlab list machines`), the path of a file, relative to
    /// the study's file, or `host` for a model of this machine; or a list of these. Without `cpus`,
    /// runs use all its CPUs. Only for lane sim; default: a flat machine.
    #[serde(default)]
    pub machine: Option<OneOrMore>,
    /// Axes whose values each make a separate experiment; the other axes vary within one.
    #[serde(default)]
    pub split: Vec<String>,
    /// Parameters that every run gets.
    #[serde(default)]
    pub parameters: BTreeMap<String, Scalar>,
    /// Parameters that vary. `cpus` is the number of CPUs; all others go to the workload.
    #[serde(default)]
    pub axes: BTreeMap<String, Axis>,
    /// Whether the result keeps the timeline.
    #[serde(default)]
    pub keep_slices: bool,
    /// Whether the result keeps the times of progress.
    #[serde(default)]
    pub keep_progress: bool,
    /// Whether the result keeps the measures of each task, in addition to those of the whole run.
    /// Without them thousands of tasks in many runs take little space.
    #[serde(default = "yes")]
    pub keep_tasks: bool,
    /// Whether every repetition keeps timeline and progress. By default, and without claims, a real
    /// machine keeps only those of the first repetition.
    #[serde(default)]
    pub keep_each: bool,
    /// Seeds of every point, the same in each lane and under each scheduler, so that differences
    /// can be computed seed by seed. Replaces `repetitions`.
    #[serde(default)]
    pub seeds: Option<Seeds>,
    /// Ends every run at this time, such as `2s`, in place of the workload's own end.
    #[serde(default)]
    pub until: Option<String>,
    /// Names that group runs into rows of the table: `lane`, `scheduler`, `workload`, `cpus`,
    /// `policy`, an axis, `set.TUNABLE`. Runs that differ only in the seed are the repetitions of a
    /// row. Default: everything that varies.
    #[serde(default)]
    pub by: Vec<String>,
    /// Measures in the table and in the figures, such as `turnaround_ns_mean` and
    /// `wakeup_latency_ns_p99`.
    #[serde(default)]
    pub measure: Vec<String>,
    /// Values that identify the row to compare with, such as `{ scheduler = "linux-6.1" }`. Other
    /// dimensions equal those of the compared row.
    #[serde(default)]
    pub baseline: BTreeMap<String, Scalar>,
    /// Only runs with these values appear in the table and the figures; all runs are made.
    #[serde(default)]
    pub filter: BTreeMap<String, OneOrMore>,
    /// The name among `by` for the horizontal axis of the figures. Default: the name with most
    /// values, all of them numbers.
    #[serde(default)]
    pub x: Option<String>,
    /// Published values to compare with.
    #[serde(default)]
    pub published: Option<Published>,
    /// Changes for a quick reproduction.
    #[serde(default)]
    pub quick: Option<Quick>,
    /// Lanes and schedulers of each point. In a study with `[[pair]]`, the pairs and lanes define
    /// them.
    #[serde(default)]
    pub runs: Vec<RunsSpec>,
}

/// Ticks per second that a modelled kernel can be built with.
pub const HZ: [u32; 4] = [100, 250, 300, 1000];

/// Schedulers of one lane.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsSpec {
    /// `sim`, `host` or `vm`.
    pub lane: LaneKind,
    /// For sim: names of the registry; `name:POLICY` runs tasks under another policy than their
    /// own. For host: policies. For vm: `KERNEL`, `KERNEL:POLICY`, or `KERNEL:SCHEDULER` to load a
    /// scheduler.
    pub schedulers: Vec<String>,
    /// Number of repetitions of each point, each with the next seed [default: 1].
    #[serde(default)]
    pub repetitions: Option<u32>,
    /// Ticks per second of the modelled kernel, instead of the machine's: 100, 250, 300 or 1000.
    /// Only for sim.
    #[serde(default)]
    pub hz: Option<u32>,
    /// Tunables of the schedulers, each with a value or a list; each scheduler must have all of
    /// them. Not for host.
    #[serde(default)]
    pub set: BTreeMap<String, OneOrMore>,
    /// Repeats every run with a shifted start.
    #[serde(default)]
    pub shift: Option<Shift>,
    /// Whether a quick reproduction includes these runs.
    #[serde(default = "yes")]
    pub quick: bool,
}

/// Repetitions with shifted starts: all tasks are released later by a time that the seed draws.
/// Their difference from the unshifted runs is a scheduler's own variation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shift {
    /// Least time, such as `20us`.
    pub from: String,
    /// Greatest time.
    pub to: String,
    /// Number of runs with each seed, each with its own time.
    pub count: u32,
    /// In the last half of these runs every switch also takes longer, by a time of its own up to
    /// this one, such as `2us`. Only for guests and the simulator.
    #[serde(default)]
    pub switch_jitter: Option<String>,
    /// Whether each of these runs has a boot of its own, in which the kernel draws other random
    /// numbers. Only for guests and the simulator.
    #[serde(default)]
    pub other_boots: bool,
}

impl Shift {
    /// Starts that are 20 to 80 us later: another phase of the tick, the same workload.
    pub fn usual(count: u32) -> Self {
        let [from, to] = ["20us", "80us"].map(String::from);
        Self { from, to, count, switch_jitter: None, other_boots: false }
    }

    /// Maximum number of runs with each seed.
    const COUNT_MAX: u32 = 100;

    /// Least and greatest time (ns).
    pub(crate) fn range(&self) -> Result<[Nanos; 2], StudyError> {
        let read = |text: &str, key: &str| {
            let found = units::parse_duration(text);
            found.map_err(|error| StudyError::new(format!("`{key}`: {error}"), "").below(key))
        };
        let range = [read(&self.from, "from")?, read(&self.to, "to")?];
        match 0 < range[0] && range[0] <= range[1] {
            true => Ok(range),
            false => Err(StudyError::new(
                format!("`shift` goes from {} to {}", self.from, self.to),
                "give a time above 0, and one that is no shorter",
            )
            .below("from")),
        }
    }

    /// How much longer switches of shifted run `number` take at most (ns).
    pub(crate) fn switch_jitter_ns(&self, number: u32) -> Result<Nanos, StudyError> {
        let Some(text) = self.switch_jitter.as_ref().filter(|_| number > self.count / 2) else {
            return Ok(0);
        };
        let wrong = |text: String, hint: &str| StudyError::new(text, hint).below("switch_jitter");
        let ns = units::parse_duration(text).map_err(|e| wrong(format!("{e}"), ""))?;
        match (1..=SWITCH_JITTER_NS_MAX).contains(&ns) {
            true => Ok(ns),
            false => {
                Err(wrong(format!("switches take up to {text} longer"), "allowed are 1ns to 20us"))
            }
        }
    }

    pub(crate) fn check(&self, lane: LaneKind) -> Result<(), StudyError> {
        self.range()?;
        if self.switch_jitter.is_some() && lane == LaneKind::Host {
            let text = format!("`switch_jitter` with lane {lane}");
            let help =
                "a running kernel's switches take their time: drop it, or use lane vm or sim";
            return Err(StudyError::new(text, help).below("switch_jitter"));
        }
        if self.other_boots && lane == LaneKind::Host {
            let text = format!("`other_boots` with lane {lane}");
            let help = "a running kernel has one boot: drop it, or use lane vm or sim";
            return Err(StudyError::new(text, help).below("other_boots"));
        }
        self.switch_jitter_ns(self.count)?;
        match (1..=Self::COUNT_MAX).contains(&self.count) {
            true => Ok(()),
            false => {
                let text = format!("`count` is {}", self.count);
                Err(StudyError::new(text, "allowed are 1 to 100").below("count"))
            }
        }
    }
}

const fn yes() -> bool {
    true
}

impl Study {
    /// Parses a study. The error names the position and, for an unknown key, the known keys.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let mut study: Self = toml::from_str(text).map_err(|error| document::from_toml(&error))?;
        let located = |error| document::located(error, text);
        study.check().map_err(located)?;
        if study.pairs.is_empty() {
            claims::pairs::add_cases(&mut study.claims).map_err(located)?;
        }
        Ok(study)
    }

    /// Applies the changes for a quick reproduction to its experiments.
    pub fn quick(mut self) -> Self {
        let is_skipped = |spec: &ExperimentSpec| {
            spec.quick.as_ref().is_some_and(|q| q.skip) || spec.runs.iter().all(|runs| !runs.quick)
        };
        self.experiments.retain(|spec| !is_skipped(spec));
        for spec in &mut self.experiments {
            spec.runs.retain(|runs| runs.quick);
            let Some(quick) = spec.quick.take() else { continue };
            spec.axes.extend(quick.axes);
            spec.parameters.extend(quick.parameters);
            if !quick.schedulers.is_empty() {
                for runs in &mut spec.runs {
                    runs.schedulers.retain(|name| quick.schedulers.contains(name));
                }
                spec.runs.retain(|runs| !runs.schedulers.is_empty());
            }
            for runs in spec.runs.iter_mut().filter(|runs| runs.repetitions.is_some()) {
                runs.repetitions = quick.repetitions.or(runs.repetitions);
            }
        }
        self
    }

    pub(crate) fn check(&self) -> Result<(), StudyError> {
        if self.experiments.is_empty() && self.case_sets.is_empty() {
            return Err(StudyError::new(
                format!("study {:?} has no experiment", self.name),
                "begin one with [[experiment]]",
            ));
        }
        let mut names = BTreeSet::new();
        for (index, spec) in self.experiments.iter().enumerate() {
            let inside = |error: StudyError| error.at(["experiment".into(), index.into()]);
            if !names.insert(&spec.name) {
                return Err(inside(
                    StudyError::new(
                        format!("two experiments are called {:?}", spec.name),
                        "give each its own name",
                    )
                    .below("name"),
                ));
            }
            spec.check(!self.pairs.is_empty()).map_err(inside)?;
        }
        self.check_pairs()?;
        self.check_cases()?;
        claims::check(self)?;
        redrawn::check(&self.figures, &self.tables, &self.experiments)
    }
}

impl ExperimentSpec {
    fn check(&self, has_pairs: bool) -> Result<(), StudyError> {
        self.check_axes()?;
        if let Some(seeds) = &self.seeds {
            seeds.values().map_err(|error| error.below("seeds"))?;
        }
        self.check_work()?;
        self.check_keep()?;
        if self.machine.is_some() && self.machines().is_empty() {
            return Err(
                StudyError::new("`machine` is an empty list", "name one or more").below("machine")
            );
        }
        for (index, runs) in self.runs.iter().enumerate() {
            runs.check(self.seeds.is_some())
                .map_err(|error| error.at(["runs".into(), index.into()]))?;
        }
        if self.runs.is_empty() && !has_pairs {
            return Err(StudyError::new(
                format!("experiment {:?} has no runs", self.name),
                "say where with [[experiment.runs]]",
            ));
        }
        if let Some(quick) = &self.quick {
            let known: Vec<&str> =
                self.runs.iter().flat_map(|runs| &runs.schedulers).map(String::as_str).collect();
            if let Some(at) = quick.schedulers.iter().position(|s| !known.contains(&s.as_str())) {
                let name = &quick.schedulers[at];
                let place: [Step; 3] = ["quick".into(), "schedulers".into(), at.into()];
                return Err(unknown("scheduler", name, known.into_iter()).at(place));
            }
        }
        self.view().check(&self.figure_names())?;
        if let Some(published) = &self.published {
            published
                .check(&self.dimensions(), &self.figure_names())
                .map_err(|error| error.below("published"))?;
        }
        self.check_names()
    }

    fn check_axes(&self) -> Result<(), StudyError> {
        for (index, axis) in self.split.iter().enumerate() {
            let place = |error: StudyError| error.at(["split".into(), index.into()]);
            if !self.axes.contains_key(axis) {
                return Err(place(unknown("axis", axis, self.axes.keys().map(String::as_str))));
            }
            if !self.name.contains(&format!("{{{axis}}}")) {
                return Err(StudyError::new(
                    format!("the name must contain {{{axis}}}"),
                    "`split` makes several experiments, and they would get one name",
                )
                .below("name"));
            }
        }
        if let Some(both) = self.axes.keys().find(|axis| self.parameters.contains_key(*axis)) {
            return Err(StudyError::new(
                format!("{both:?} is an axis and a parameter"),
                "drop one of them",
            )
            .at(["axes".into(), both.as_str().into()]));
        }
        Ok(())
    }

    /// Checks that what the result keeps does not depend on what it drops.
    fn check_keep(&self) -> Result<(), StudyError> {
        let needs = self.keep_slices || self.keep_progress || !self.figures.is_empty();
        match needs && !self.keep_tasks {
            false => Ok(()),
            true => Err(StudyError::new(
                "`keep_tasks = false` beside figures, slices or progress, which are of tasks",
                "leave out the one or the other",
            )
            .below("keep_tasks")),
        }
    }

    /// Checks that it has either a workload, or a program that fits the other settings.
    fn check_work(&self) -> Result<(), StudyError> {
        let Some(program) = &self.program else {
            return match (self.workload.values().len(), &self.tasks) {
                (0, None) => Err(StudyError::new(
                    format!("experiment {:?} has no workload", self.name),
                    "name one or more in `workload`, or give `tasks` or a [experiment.program]",
                )
                .below("workload")),
                (0 | 1, _) | (_, None) => Ok(()),
                _ => Err(StudyError::new(
                    "`tasks` has several names in `workload`",
                    "it is one workload: give one name, or none",
                )
                .below("workload")),
            };
        };
        let refuse = |name: &'static str, help: &str| {
            Err(StudyError::new(format!("`{name}` stands beside a program"), help).below(name))
        };
        if !self.workload.values().is_empty() {
            return refuse("workload", "an experiment has one or the other: drop one");
        }
        if self.tasks.is_some() {
            return refuse("tasks", "an experiment has one or the other: drop one");
        }
        if self.machine.is_some() {
            return refuse("machine", "a program runs on this machine: drop it");
        }
        if self.until.is_some() {
            return refuse("until", "a program ends by itself; give `limit` in its table");
        }
        if let Some(at) = self.runs.iter().position(|runs| runs.lane != LaneKind::Host) {
            return Err(StudyError::new(
                format!("lane {} stands with a program", self.runs[at].lane),
                "only this machine has programs: say lane = \"host\"",
            )
            .at(["runs".into(), at.into(), "lane".into()]));
        }
        let own = ["cpus", "seed"].map(String::from);
        let parameters = self.parameters.keys().chain(self.axes.keys()).cloned();
        let known: Vec<String> = own.into_iter().chain(parameters).collect();
        program.check(&known).map_err(|error| error.below("program"))
    }

    /// The workloads, or the program's short name.
    pub fn workloads(&self) -> Vec<String> {
        match (&self.program, &self.tasks) {
            (Some(program), _) => vec![program.name()],
            (None, Some(_)) if self.workload.values().is_empty() => vec![self.name.clone()],
            (None, _) => self.workload.values(),
        }
    }

    /// Whether a scheduler also runs at another HZ, so that runs differ in it.
    pub(crate) fn has_other_hz(&self, hz: u32, scheduler: &str) -> bool {
        self.runs.iter().any(|runs| {
            let is_its = |name: &String| name.split(':').next() == Some(scheduler);
            runs.hz.is_some_and(|other| other != hz) && runs.schedulers.iter().any(is_its)
        })
    }

    /// Figures of its program, which are measures of its runs.
    pub fn figure_names(&self) -> Vec<String> {
        self.program.as_ref().map_or_else(Vec::new, ProgramSpec::figure_names)
    }

    /// The named machines.
    pub fn machines(&self) -> Vec<String> {
        self.machine.as_ref().map_or_else(Vec::new, OneOrMore::values)
    }

    /// Every dimension that can distinguish runs.
    pub fn dimensions(&self) -> Vec<String> {
        let mut names: Vec<String> =
            ["lane", "scheduler", "workload", "machine", "cpus", "policy", "seed"]
                .map(String::from)
                .into();
        names.extend(self.axes.keys().cloned());
        names.extend(self.parameters.keys().cloned());
        names.extend(self.runs.iter().flat_map(|runs| runs.set.keys()).map(|n| format!("set.{n}")));
        names.extend(self.runs.iter().any(|runs| runs.hz.is_some()).then(|| "hz".into()));
        names.extend(self.runs.iter().any(|runs| runs.shift.is_some()).then(|| SHIFT.into()));
        let has_jitter = |shift: &Shift| shift.switch_jitter.is_some();
        let mut shifts = self.runs.iter().filter_map(|runs| runs.shift.as_ref());
        names.extend(shifts.any(has_jitter).then(|| SWITCH_JITTER.into()));
        for workload in self.workload.values() {
            let given = workload.split_once(':').map_or("", |(_, given)| given);
            names.extend(given.split(',').filter_map(|p| Some(p.split_once('=')?.0.to_string())));
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// Checks that everything in `by`, `baseline`, `filter` and `x` exists.
    fn check_names(&self) -> Result<(), StudyError> {
        let known = self.dimensions();
        let check = |name: &str, steps: [Step; 2]| {
            if known.iter().any(|known| known == name) {
                return Ok(());
            }
            Err(unknown("dimension", name, known.iter().map(String::as_str)).at(steps))
        };
        for (index, name) in self.by.iter().enumerate() {
            check(name, ["by".into(), index.into()])?;
        }
        for name in self.baseline.keys() {
            check(name, ["baseline".into(), name.as_str().into()])?;
        }
        for (name, values) in &self.filter {
            check(name, ["filter".into(), name.as_str().into()])?;
            if values.values().is_empty() {
                return Err(StudyError::new(
                    format!("the filter of {name:?} lets nothing through"),
                    "name one or more values",
                )
                .at(["filter".into(), name.as_str().into()]));
            }
        }
        match &self.x {
            Some(x) if !self.by.is_empty() && !self.by.contains(x) => {
                Err(unknown("dimension", x, self.by.iter().map(String::as_str)).below("x"))
            }
            Some(x) => check(x, ["x".into(), 0.into()]),
            None => Ok(()),
        }
    }

    /// Names with more than one value: the default order of a table.
    fn varying(&self) -> Vec<String> {
        let mut names = Vec::new();
        let lanes: BTreeSet<LaneKind> = self.runs.iter().map(|runs| runs.lane).collect();
        if lanes.len() > 1 {
            names.push("lane".to_string());
        }
        names.push("scheduler".into());
        if self.workload.values().len() > 1 {
            names.push("workload".into());
        }
        if self.machines().len() > 1 {
            names.push("machine".into());
        }
        let is_one = |axis: &Axis| matches!(axis, Axis::List(list) if list.len() < 2);
        let axes =
            self.axes.iter().filter(|(name, axis)| !self.split.contains(name) && !is_one(axis));
        names.extend(axes.map(|(name, _)| name.clone()));
        for runs in &self.runs {
            for (tunable, values) in &runs.set {
                let name = format!("set.{tunable}");
                let varies = values.values().len() > 1 || self.runs.len() > 1;
                if varies && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Whether the study defines a table of its runs.
    pub fn has_view(&self) -> bool {
        self.seeds.is_some()
            || !self.by.is_empty()
            || !self.measure.is_empty()
            || !self.baseline.is_empty()
            || self.published.is_some()
    }

    /// How to arrange the runs in a table.
    pub fn view(&self) -> View {
        let mut by = if self.by.is_empty() { self.varying() } else { self.by.clone() };
        let lanes: BTreeSet<LaneKind> = self.runs.iter().map(|runs| runs.lane).collect();
        // A modelled run and a measured run are never repetitions of one another.
        if lanes.len() > 1 && !by.iter().any(|name| name == "lane") {
            by.insert(0, "lane".into());
        }
        View {
            by,
            measures: self.measure.clone(),
            baseline: self.baseline.iter().map(|(n, v)| (n.clone(), v.to_string())).collect(),
            filter: self.filter.iter().map(|(n, v)| (n.clone(), v.values())).collect(),
            x: self.x.clone(),
            published: self.published.clone(),
        }
    }
}

impl RunsSpec {
    /// Runs under `schedulers` in `lane`, once each.
    pub fn new(lane: LaneKind, schedulers: Vec<String>) -> Self {
        Self {
            lane,
            schedulers,
            repetitions: None,
            hz: None,
            set: BTreeMap::new(),
            shift: None,
            quick: true,
        }
    }

    /// Maximum number of repetitions of a point.
    const REPETITIONS_MAX: u32 = 100_000;

    fn check(&self, has_seeds: bool) -> Result<(), StudyError> {
        let lane = self.lane;
        if self.schedulers.is_empty() {
            return Err(
                StudyError::new("`schedulers` is empty", "name one or more").below("schedulers")
            );
        }
        let repetitions =
            |text: String, help: &str| Err(StudyError::new(text, help).below("repetitions"));
        match self.repetitions {
            Some(_) if has_seeds => repetitions(
                "`repetitions` stands beside `seeds`".into(),
                "each seed is one repetition: drop one of the two",
            ),
            Some(n) if !(1..=Self::REPETITIONS_MAX).contains(&n) => {
                repetitions(format!("`repetitions` is {n}"), "allowed are 1 to 100000")
            }
            _ => Ok(()),
        }?;
        match self.hz {
            Some(_) if lane != LaneKind::Sim => {
                return Err(StudyError::new(
                    format!("`hz` stands with lane {}", self.lane),
                    "only a modelled kernel can have another HZ: move it to a lane sim",
                )
                .below("hz"));
            }
            Some(hz) if !HZ.contains(&hz) => {
                return Err(StudyError::new(
                    format!("`hz` is {hz}"),
                    "allowed are 100, 250, 300 and 1000",
                )
                .below("hz"));
            }
            _ => {}
        }
        if let Some(shift) = &self.shift {
            shift.check(lane).map_err(|error| error.below("shift"))?;
        }
        if lane == LaneKind::Host && !self.set.is_empty() {
            return Err(StudyError::new(
                "`set` stands with lane host",
                "this machine's own settings are not changed: move it to a lane sim or vm",
            )
            .below("set"));
        }
        for (name, values) in &self.set {
            if values.values().is_empty() {
                return Err(StudyError::new(format!("`set.{name}` is an empty list"), "")
                    .at(["set".into(), name.as_str().into()]));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, column and text of the error.
    fn refused(text: &str) -> (usize, usize, String) {
        let error = Study::parse(text).unwrap_err();
        let (line, column) = error.position(text).unwrap();
        (line, column, error.to_string())
    }

    const HEAD: &str = "name='x'\n[[experiment]]\nname='a'\nworkload='hogs'\n";
    const RUNS: &str = "[[experiment.runs]]\nlane='sim'\nschedulers=['fcfs']\n";

    #[test]
    fn an_unknown_key_is_shown_with_its_place_and_the_nearest_known_one() {
        let (line, column, text) = refused("name='x'\ntitle='t'\n  exprmiment=1\n");
        assert_eq!((line, column), (3, 3));
        assert!(text.contains("did you mean `experiment`?"), "{text}");
        let (line, _, text) = refused(&format!("{HEAD}messure=[]\n{RUNS}"));
        assert!(line == 5 && text.contains("did you mean `measure`?"), "{line} {text}");
    }

    #[test]
    fn experiments_of_one_name_are_refused() {
        let (line, _, text) = refused(
            "name='x'\n[[experiment]]\nname='a'\nworkload='hogs'\nsplit=['n']\naxes.n=[1,2]\n\
             [[experiment.runs]]\nlane='sim'\nschedulers=['fcfs']\n",
        );
        assert!(line == 3 && text.contains("must contain {n}"), "{line} {text}");
        let twice = format!("{HEAD}{RUNS}{}{RUNS}", &HEAD[9..]);
        let (line, _, text) = refused(&twice);
        assert!(line == 9 && text.contains("two experiments"), "{line} {text}");
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_stands() {
        for (keys, runs, line, wanted) in [
            ("by=['scheduler','m']", "", 5, "no dimension is called \"m\""),
            ("baseline={schedler='fcfs'}", "", 5, "did you mean `scheduler`?"),
            ("filter={cpus=[]}", "", 5, "lets nothing through"),
            ("measure=['turnaround']", "", 5, "no measure is called \"turnaround\""),
            ("seeds=[1,1]", "", 5, "names a seed twice"),
            ("seeds=[1,2]", "repetitions=2", 9, "beside `seeds`"),
            ("", "repetitions=0", 9, "1 to 100000"),
            ("", "set={slice=[]}", 9, "empty list"),
            ("", "hz=99", 9, "`hz` is 99"),
            (
                "published={source='x',measure='last_phase_ns',along='m',at=[1],row=[]}",
                "",
                5,
                "\"m\"",
            ),
            ("keep_tasks=false\nkeep_slices=true", "", 5, "which are of tasks"),
            ("axes.n='x'", "", 5, "expected a list such as"),
            ("seeds='x'", "", 5, "expected a list such as [1, 2, 3]"),
        ] {
            let (at, _, text) = refused(&format!("{HEAD}{keys}\n{RUNS}{runs}\n"));
            assert!(at == line && text.contains(wanted), "{keys} {runs}: {at}: {text}");
        }
        let (line, _, text) =
            refused(&format!("{HEAD}[[experiment.runs]]\nlane='smi'\nschedulers=['x']\n"));
        assert!(line == 6 && text.contains("did you mean `sim`?"), "{line} {text}");
    }

    #[test]
    fn a_table_is_sorted_by_what_varies() {
        let study = Study::parse(&format!(
            "{HEAD}axes={{n=[1,2], cpus=[1]}}\n{RUNS}set={{slice=['1ms','2ms']}}\n"
        ))
        .unwrap();
        assert_eq!(study.experiments[0].view().by, ["scheduler", "n", "set.slice"]);
    }

    #[test]
    fn a_quick_study_leaves_out_what_says_so() {
        let text = format!(
            "{HEAD}{RUNS}quick=false\n{RUNS}repetitions=5\n[experiment.quick]\nrepetitions=2\n\
             [[experiment]]\nname='b'\nworkload='hogs'\n{RUNS}quick=false\n"
        );
        let study = Study::parse(&text).unwrap();
        assert_eq!(study.experiments[0].runs.len(), 2);
        let quick = study.quick();
        assert_eq!(quick.experiments.len(), 1, "nothing is left of the other");
        let runs = &quick.experiments[0].runs;
        assert_eq!((runs.len(), runs[0].repetitions), (1, Some(2)));
    }
}
