// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workload files: rt-app's JSON grammar with schedlab's additions.
//!
//! Source: rt-app (github.com/scheduler-tools/rt-app), doc/tutorial.txt and
//! src/rt-app_parse_config.c as of May 2026. docs/reference/workload-format.md describes every key.
//! Members that have no equivalent are refused by name, because without them it would be another
//! workload. Settings of rt-app's own logs are accepted with a warning.
//!
//! The reader treats files as hostile. Size, nesting and task counts are limited. Names that may
//! become directories or thread names are checked. Text that goes to a terminal is cleaned.

mod attr;
mod change;
mod error;
mod event;
mod expect;
mod global;
mod json;
mod keys;
mod lenient;
mod memory;
mod objects;
mod sync;
mod task;
mod write;

pub use error::{ReadError, Warning};

pub use write::{write_rtapp, write_rtapp_short};

use crate::WarningKind;
use error::{Problem, Result, position, problem};
use json::{Members, object, span};
use lenient::Filled;
use schedlab_model::workload::SessionSpec;
use schedlab_model::{Nanos, Op, Policy, Workload};
use std::collections::BTreeMap;
use std::ops::Range;
use task::ReadTask;

/// A workload that was read, and the warnings about its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadOutcome {
    /// The workload; it passes [`Workload::check`].
    pub workload: Workload,
    /// Warnings, in file order.
    pub warnings: Vec<Warning>,
}

/// Reads a workload from the text of a file.
///
/// `name` is the file's name for messages, and, without directory and extension, the workload's
/// name if the file gives none. `nr_cpus` is the number of CPUs of the machine that will run it.
///
/// ```
/// let text = r#"{ "tasks": { "hog": { "loop": 1, "run": 100000 } } }"#;
/// let read = schedlab_workload::read_rtapp("hog.json", text, 2).unwrap();
/// assert_eq!((read.workload.name.as_str(), read.workload.nr_released()), ("hog", 1));
///
/// let error = schedlab_workload::read_rtapp("hog.json", "{\n  \"taks\": {}\n}", 2).unwrap_err();
/// assert_eq!(error.to_string(), "hog.json:2:3: the file knows no key \"taks\"");
/// assert!(error.help.starts_with("did you mean `tasks`? "));
/// ```
pub fn read_rtapp(
    name: &str,
    text: &str,
    nr_cpus: u32,
) -> std::result::Result<ReadOutcome, Box<ReadError>> {
    // Spaces instead of a byte order mark keep every offset.
    let spaced;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            spaced = format!("   {rest}");
            spaced.as_str()
        }
        None => text,
    };
    let filled = match text.len() {
        0..=json::TEXT_BYTES_MAX => Filled::new(text),
        _ => Filled::as_it_is(text),
    };
    let mut reader = Reader {
        text,
        filled: &filled,
        nr_cpus,
        default_policy: Policy::Normal,
        task_names: BTreeMap::new(),
        groups: global::Groups::new(),
        sessions: Vec::new(),
        objects: objects::Objects::default(),
        mem_buffer_bytes: memory::MEM_BUFFER_BYTES,
        warnings: Vec::new(),
    };
    match reader.workload(name) {
        Ok(workload) => {
            let mut warnings = reader.warnings;
            warnings.sort_by_key(|warning| (warning.line, warning.column));
            Ok(ReadOutcome { workload, warnings })
        }
        Err(mut problem) => {
            let Range { start, end } = problem.span;
            problem.span = filled.original(start)..filled.original(end);
            Err(ReadError::new(name, text, *problem))
        }
    }
}

/// Keys of the file itself.
const KEYS: [&str; 9] =
    ["$schema", "name", "global", "cgroups", "sessions", "objects", "tasks", "expect", "resources"];

/// State that the parts of the reader share.
pub(crate) struct Reader<'t> {
    /// The original text.
    text: &'t str,
    /// The text that is parsed, with missing values inserted.
    filled: &'t Filled<'t>,
    nr_cpus: u32,
    default_policy: Policy,
    task_names: BTreeMap<String, u32>,
    groups: global::Groups,
    sessions: Vec<SessionSpec>,
    objects: objects::Objects,
    /// rt-app's `mem_buffer_size`.
    mem_buffer_bytes: u64,
    warnings: Vec<Warning>,
}

/// Most warnings that are kept, because a hostile file may cause millions.
const WARNINGS_MAX: usize = 100;

impl Reader<'_> {
    fn warn(&mut self, kind: WarningKind, offset: usize, text: String) {
        if self.warnings.len() < WARNINGS_MAX {
            let (line, column) = position(self.text, self.filled.original(offset));
            self.warnings.push(Warning { kind, line, column, text });
        }
    }

    fn workload(&mut self, file: &str) -> Result<Workload> {
        let root = json::parse(&self.filled.text)?;
        let root = object(&root, "the file")?;
        let mut members = Members::new(root, &KEYS, "the file")?;
        let name = match members.take("name") {
            Some(value) => global::read_name(value)?,
            None => name_of_file(file),
        };
        members.take("$schema");
        if let Some(member) = members.take_member("resources") {
            objects::check_resources(&member.value)?;
            let text = "`resources` has no effect: rt-app itself creates what events name";
            self.warn(WarningKind::Resources, json::key_span(member).start, text.into());
        }
        let duration_ns: Option<Nanos> = match members.take("global") {
            Some(value) => global::read_global(self, value)?,
            None => None,
        };
        if let Some(value) = members.take("cgroups") {
            global::read_cgroups(self, value)?;
        }
        if let Some(value) = members.take("sessions") {
            self.sessions = global::read_sessions(value)?;
        }
        let Some(tasks_value) = members.take("tasks") else {
            return Err(problem(
                span(root),
                "the file has no `tasks`",
                "add \"tasks\": { \"name\": { \"run\": 1000, ... } }",
            ));
        };
        let tasks_object = object(tasks_value, "tasks")?;
        self.task_names = task::task_names(tasks_object)?;
        self.objects.uses = objects::Uses::of(tasks_object);
        if let Some(value) = members.take("objects") {
            objects::read_objects(self, value)?;
        }
        let mut tasks = Vec::with_capacity(tasks_object.properties.len());
        for member in &tasks_object.properties {
            tasks.push(task::read_task(self, member)?);
        }
        task::warn_of_forked_delays(self, &tasks);
        let expect = match members.take("expect") {
            Some(value) => expect::read(value, &tasks)?,
            None => Vec::new(),
        };
        check_timers(&tasks)?;
        check_names(&tasks)?;
        let places = (span(tasks_value), tasks.iter().map(|t| t.places.clone()).collect());
        let specs = tasks.into_iter().map(|task| task.spec).collect();
        let mut workload = Workload::new(name, specs);
        workload.cgroups = std::mem::take(&mut self.groups.specs);
        workload.sessions = std::mem::take(&mut self.sessions);
        workload.duration_ns = duration_ns;
        workload.objects = std::mem::take(&mut self.objects.specs);
        workload.wait_sets = std::mem::take(&mut self.objects.wait_sets);
        workload.expect = expect;
        check_workload(&workload, self.nr_cpus, places)?;
        Ok(workload)
    }
}

/// The file's name without directory and extension, without characters that names may not have.
fn name_of_file(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = base.strip_suffix(".json").unwrap_or(base);
    if global::check_name(stem, 0..0, "workload").is_ok() { stem.into() } else { "workload".into() }
}

/// Refuses a timer that several tasks share. In rt-app a timer whose `ref` does not begin with
/// `unique` is one timer for all tasks that name it. Here a task's timers are its own. Both mean
/// the same if only one task uses the timer.
fn check_timers(tasks: &[ReadTask]) -> Result<()> {
    let mut forked = vec![false; tasks.len()];
    for op in tasks.iter().flat_map(|task| &task.spec.program.ops) {
        if let Op::Fork { task } = op {
            forked[*task as usize] = true;
        }
    }
    let mut users: BTreeMap<&str, u64> = BTreeMap::new();
    for (task, forked) in tasks.iter().zip(forked) {
        let shared = task.timers.iter().filter(|(timer_ref, _)| !timer_ref.starts_with("unique"));
        for (timer_ref, place) in shared {
            let sum = users.entry(timer_ref).or_default();
            *sum += u64::from(task.spec.instances) + if forked { 2 } else { 0 };
            if *sum > 1 {
                return Err(problem(
                    place.clone(),
                    format!("timer {timer_ref:?} is shared by several tasks"),
                    format!(
                        "no lane has timers that tasks share: begin the `ref` with `unique` \
                         (\"unique_{timer_ref}\") to give each task its own"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Refuses a task with the name of an instance: instances are called `name-0`, `name-1`, ...
fn check_names(tasks: &[ReadTask]) -> Result<()> {
    let names: BTreeMap<&str, &ReadTask> =
        tasks.iter().map(|task| (task.spec.name.as_str(), task)).collect();
    for task in tasks {
        let Some((base, number)) = task.spec.name.rsplit_once('-') else { continue };
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        if is_number && names.get(base).is_some_and(|base| base.spec.instances != 1) {
            return Err(problem(
                task.key_place.clone(),
                format!("task {:?} is called like an instance of {base:?}", task.spec.name),
                "choose another name: instances are numbered with a hyphen",
            ));
        }
    }
    Ok(())
}

type Places = (std::ops::Range<usize>, Vec<Vec<std::ops::Range<usize>>>);

/// Runs the model's own check last, so that every workload that is read can run in a lane.
fn check_workload(workload: &Workload, nr_cpus: u32, places: Places) -> Result<()> {
    let (tasks_place, op_places) = places;
    if let Err(cycle) = workload.fork_order() {
        let (first, second) = (cycle[0], *cycle.get(1).unwrap_or(&cycle[0]));
        let ops = &workload.tasks[first].program.ops;
        let fork = ops.iter().position(|op| *op == Op::Fork { task: second as u32 });
        let place = fork.and_then(|op| op_places[first].get(op).cloned());
        let names: Vec<&str> = cycle
            .iter()
            .chain([&cycle[0]])
            .map(|&task| workload.tasks[task].name.as_str())
            .collect();
        return Err(problem(
            place.unwrap_or(tasks_place),
            format!("cycle of forks: {}", names.join(" -> ")),
            "a task may not fork, directly or through others, a task that forks it again: the \
             number of tasks would grow without end",
        ));
    }
    workload.check(nr_cpus).map_err(|error| {
        Box::new(Problem {
            span: tasks_place,
            message: error.to_string(),
            help: "correct the tasks, or their `instance`".into(),
        })
    })
}
