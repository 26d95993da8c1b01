// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same recording read directly and as the text that its own tool prints.

use crate::{Facts, ReadError, text};
use schedlab_model::trace::MemorySink;
use schedlab_model::{EventKind, Nanos, TaskId, TraceSink};

/// What a trace shows, with process ids for tasks: readers may number them differently.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    pub events: Vec<(Nanos, u32, String)>,
    /// Process ids and last names of the tasks that switches, wake-ups and forks name.
    pub tasks: Vec<(u32, String)>,
    pub end_ns: Nanos,
    pub start_clock_ns: Nanos,
    pub nr_cpus: u32,
    pub nr_switches: u64,
    pub nr_lost_events: u64,
}

fn seen(memory: &MemorySink, facts: &Facts) -> Seen {
    let pid = |task: TaskId| memory.tasks[task.index()].pid;
    let maybe = |task: Option<TaskId>| task.map_or(0, pid);
    let mut named = vec![false; memory.tasks.len()];
    let events = memory.events.iter().map(|event| {
        let (what, task, other) = match event.kind {
            EventKind::Switch { prev, next, out } => {
                (format!("{} to {} {out:?}", maybe(prev), maybe(next)), prev, next)
            }
            // perf's text takes an interrupted task for the waker.
            EventKind::Wakeup { task, .. } => (format!("wakes {}", pid(task)), Some(task), None),
            EventKind::Fork { task, parent } => {
                (format!("{} forks {}", maybe(parent), pid(task)), Some(task), None)
            }
            EventKind::Exit { task } => (format!("{} exits", pid(task)), None, None),
            EventKind::Migrate { task, from } => (format!("{} from {from}", pid(task)), None, None),
            kind => (format!("{kind:?}"), None, None),
        };
        [task, other].into_iter().flatten().for_each(|task| named[task.index()] = true);
        (event.time_ns, event.cpu.0, what)
    });
    let events = events.collect();
    let mut names: Vec<String> = memory.tasks.iter().map(|task| task.name.clone()).collect();
    facts.last_names.iter().for_each(|(task, name)| names[task.index()].clone_from(name));
    let mut tasks: Vec<(u32, String)> = (0..names.len())
        .filter(|at| named[*at])
        .map(|at| (memory.tasks[at].pid, names[at].clone()))
        .collect();
    tasks.sort();
    Seen {
        events,
        tasks,
        end_ns: memory.end_ns,
        start_clock_ns: facts.start_clock_ns,
        nr_cpus: facts.nr_cpus,
        nr_switches: facts.nr_switches,
        nr_lost_events: facts.nr_lost_events,
    }
}

/// What a reader sees.
pub fn read(
    reader: impl FnOnce(&mut MemorySink) -> Result<Facts, ReadError>,
) -> Result<(Seen, Facts), ReadError> {
    let mut memory = MemorySink::default();
    let facts = reader(&mut memory)?;
    Ok((seen(&memory, &facts), facts))
}

/// What is seen of the text.
pub fn read_text(bytes: &[u8]) -> Seen {
    read(|memory| text::read(bytes, Vec::new(), memory)).expect("the text can be read").0
}

/// Damages `bytes` in many ways, by a generator of its own: single bytes and words are changed,
/// pieces left out and doubled, the end cut off. Calls `reader` with each; it must not panic.
pub fn damage(bytes: &[u8], rounds: u64, mut reader: impl FnMut(&[u8])) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    for _ in 0..rounds {
        let mut copy = bytes.to_vec();
        for _ in 0..=draw(4) {
            // Heads are where most decisions are made.
            let near = if draw(2) == 0 { copy.len() } else { copy.len().min(2_000) };
            let at = draw(near);
            let len = draw(64).min(copy.len() - at);
            match draw(5) {
                0 => copy[at] = draw(256) as u8,
                1 => copy[at..at + len].fill([0, 0xff, 0x7f][draw(3)]),
                2 => drop(copy.drain(at..at + len)),
                3 => {
                    let piece = copy[at..at + len].to_vec();
                    copy.splice(at..at, piece);
                }
                _ => copy.truncate(at.max(1)),
            }
            if copy.is_empty() {
                copy.push(0);
            }
        }
        reader(&copy);
    }
}

/// A sink that keeps only the end.
#[derive(Debug, Default)]
pub struct Count(pub u64);

impl TraceSink for Count {
    fn task(&mut self, _: TaskId, _: &schedlab_model::trace::TaskInfo) {}
    fn event(&mut self, _: &schedlab_model::Event) {
        self.0 += 1;
    }
}
