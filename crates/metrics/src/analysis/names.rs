// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and process ids of tasks. Each name is stored once, with the number of tasks that share
//! it.
//!
//! Bounded memory: all names after [`NAMES_MAX`] count as one.

use schedlab_model::TaskId;
use schedlab_model::trace::TaskInfo;
use std::collections::BTreeMap;

/// Maximum number of distinct names.
const NAMES_MAX: usize = 1 << 20;
/// The common name of all later names.
const OTHERS: &str = "(other names)";

/// Number of a name, in order of appearance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NameId(pub u32);

/// A name, and the tasks that have it now.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    nr_tasks: u64,
    /// A task that has or had the name.
    task: TaskId,
}

/// The names of all tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Name and process id of each task.
    tasks: Vec<(NameId, u32)>,
    entries: Vec<Entry>,
    by_name: BTreeMap<String, NameId>,
}

impl Names {
    /// Adds the next task.
    pub fn task(&mut self, info: &TaskInfo) {
        let task = TaskId(self.tasks.len() as u32);
        let name = self.enter(&info.name, task);
        self.tasks.push((name, info.pid));
    }

    /// Records a task's new name.
    pub fn renamed(&mut self, task: TaskId, name: &str) {
        let Some(&(old, pid)) = self.tasks.get(task.index()) else { return };
        self.entries[old.0 as usize].nr_tasks -= 1;
        self.tasks[task.index()] = (self.enter(name, task), pid);
    }

    fn enter(&mut self, name: &str, task: TaskId) -> NameId {
        let name = if self.entries.len() < NAMES_MAX || self.by_name.contains_key(name) {
            name
        } else {
            OTHERS
        };
        let next = NameId(self.entries.len() as u32);
        let id = *self.by_name.entry(name.into()).or_insert(next);
        if id == next {
            self.entries.push(Entry { name: name.into(), nr_tasks: 0, task });
        }
        let entry = &mut self.entries[id.0 as usize];
        entry.nr_tasks += 1;
        entry.task = task;
        id
    }

    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Number of the present name of an announced task.
    pub fn id(&self, task: TaskId) -> NameId {
        self.tasks.get(task.index()).map_or(NameId(u32::MAX), |(name, _)| *name)
    }

    /// The present name of a task; empty if no event announced it.
    pub fn name(&self, task: TaskId) -> &str {
        let entry = self.entries.get(self.id(task).0 as usize);
        entry.map_or("", |entry| entry.name.as_str())
    }

    /// Its process id; `None` in the simulator.
    pub fn pid(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(task.index()).map(|(_, pid)| *pid).filter(|pid| *pid > 0)
    }

    /// A name, the number of tasks that have it now, and the process id if only one has it.
    pub fn sharers(&self, name: NameId) -> (&str, u64, Option<u32>) {
        let Some(entry) = self.entries.get(name.0 as usize) else { return ("", 0, None) };
        let pid = self.pid(entry.task).filter(|_| entry.nr_tasks <= 1);
        (&entry.name, entry.nr_tasks, pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_the_tasks_that_have_it_now() {
        let mut names = Names::default();
        for (name, pid) in [("sh", 7), ("sh", 8), ("a", 9)] {
            names.task(&TaskInfo { name: name.into(), pid, ..TaskInfo::default() });
        }
        let sh = names.id(TaskId(0));
        assert_eq!(names.sharers(sh), ("sh", 2, None));
        names.renamed(TaskId(1), "cc1");
        assert_eq!(names.sharers(sh).1, 1);
        assert_eq!(names.sharers(names.id(TaskId(1))), ("cc1", 1, Some(8)));
        assert_eq!((names.name(TaskId(1)), names.pid(TaskId(2))), ("cc1", Some(9)));
        assert_eq!((names.name(TaskId(3)), names.pid(TaskId(3)), names.len()), ("", None, 3));
    }
}
