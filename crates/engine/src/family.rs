// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of exits and waits for children, if the kernel looks through lists of tasks.
//!
//! In Linux 2.4 an exit looks at every task of the system, to find children that need another
//! parent. The call wait4() goes through the children of the caller, youngest first, until it finds
//! one that has exited. A program that waits for all its children calls it once for each child. It
//! is woken at each exit, finds the exited child, and then looks through all others before it
//! sleeps again. This module charges that time if a class has
//! [`schedlab_sched::ClassTraits::walks_tasks`] and the machine has a cost for a cache line
//! (`task_line_ns`). Otherwise an exit costs nothing. A task then waits for its children in the
//! order of their forks, as a program does that calls waitpid() for each. It sleeps until the first
//! one exits, then until the next one does that still lives.
//!
//! The number of cache lines per task follows from `struct task_struct`, with lines of 32 bytes as
//! on a Pentium III. An exit reads `next_task` and `p_opptr`, which are in two lines; a wait reads
//! `state`, `exit_signal` and `p_osptr`, which are in three. A structure begins at a multiple of 8
//! KiB, so few of them fit into a cache.
//!
//! The search after an exit is assumed to find the child at the end of the list. The next task on
//! the CPU is charged for the search of an exit, as for the switch.
//!
//! Source: Linux 2.4.17, kernel/exit.c (`forget_original_parent`, `sys_wait4`),
//! include/linux/sched.h (`struct task_struct`). Left out: tasklist_lock and the big kernel lock,
//! which are held meanwhile; exited tasks for which no task has waited yet; a wait for children of
//! one description.

use crate::engine::Engine;
use crate::exec::Waiting;
use crate::step::Next;
use schedlab_model::{Costs, CpuId, EventKind, Nanos, Step, TaskId, TraceSink};
use schedlab_sched::TaskState;

/// Cache lines of a task that an exit reads.
const EXIT_LINES: Nanos = 2;
/// Cache lines of a child that a wait reads.
const WAIT_LINES: Nanos = 3;

/// Searches through lists of tasks, if machine and scheduler have them.
#[derive(Debug)]
pub struct Walks {
    line_ns: Nanos,
    /// Time (ns) of the exit before the present switch.
    owed: Nanos,
}

impl Walks {
    /// `Some` if the scheduler has such searches and they cost time.
    pub fn new(costs: &Costs, walks_tasks: bool) -> Option<Self> {
        (walks_tasks && costs.task_line_ns > 0)
            .then_some(Self { line_ns: costs.task_line_ns, owed: 0 })
    }

    /// Time (ns) of a search through `nr` tasks that reads `lines` of each.
    const fn ns(&self, nr: u64, lines: Nanos) -> Nanos {
        nr.saturating_mul(lines).saturating_mul(self.line_ns)
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// `parent` has forked `child`.
    pub(crate) fn note_child(&mut self, parent: TaskId, child: TaskId) {
        self.tasks[parent].children += 1;
        if self.objects.joins(self.tasks[parent].spec) {
            self.shared(parent).children.push_back(child);
        }
    }

    /// The child that `task` waits for next: the first one that lives, of description `spec` or of
    /// any. The call has found that those before it have exited.
    pub(crate) fn next_child(&mut self, task: TaskId, spec: Option<u32>) -> Option<TaskId> {
        let mut children = std::mem::take(&mut self.shared(task).children);
        let mut at = 0;
        let found = loop {
            let Some(&child) = children.get(at) else { break None };
            let exec = &self.tasks[child];
            if spec.is_some_and(|spec| spec != exec.spec) {
                at += 1;
            } else if exec.has_left {
                children.remove(at);
                self.charge(task, self.costs.join_child_ns);
            } else {
                break Some(child);
            }
        };
        self.shared(task).children = children;
        found
    }

    /// `task`, running on `cpu`, waits for its children, or for those of description `spec`.
    pub(crate) fn wait_for_children(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        spec: Option<u32>,
    ) -> Next {
        let Some(child) = self.next_child(task, spec) else { return Next::Call };
        let step = spec.map_or(Step::JoinAll, |task| Step::Join { task });
        self.shared(task).pending = Some(step);
        let waits_for_any = self.walks.is_some() && spec.is_none();
        if let Some(walks) = self.walks.as_ref().filter(|_| waits_for_any) {
            let children = u64::from(self.tasks[task].children);
            let each = walks.ns(children, WAIT_LINES);
            let shared = self.shared(task);
            // One walk for each child that was found, and one that finds none.
            let nr = u64::from(std::mem::take(&mut shared.reaped)) + 1;
            self.charge(task, nr.saturating_mul(each));
        }
        debug_assert_eq!(self.core.rq(cpu).curr, Some(task), "task {task} waits without a CPU");
        debug_assert_eq!(self.tasks[task].waiting, Waiting::No, "task {task} waits twice");
        self.tasks[task].waiting = match waits_for_any {
            true => Waiting::AnyChild,
            false => Waiting::Child(child),
        };
        self.emit(cpu, EventKind::Block { task, object: self.workload.trace_children() });
        Next::Block(TaskState::Sleeping)
    }

    /// `task` has exited, and `parent` may wait for it. Returns whether the parent wakes.
    pub(crate) fn ends_wait(&mut self, task: TaskId, parent: TaskId) -> bool {
        self.tasks[task].has_left = true;
        let exec = &mut self.tasks[parent];
        assert!(exec.children > 0, "task {task} is no child of task {parent}");
        exec.children -= 1;
        let is_awaited = exec.waiting == Waiting::Child(task);
        if is_awaited {
            self.forget_child(parent, task);
        }
        self.walk_of_exit(parent) || is_awaited
    }

    /// `parent` has waited for `child`, which is among the first of those that are left.
    fn forget_child(&mut self, parent: TaskId, child: TaskId) {
        let children = &mut self.shared(parent).children;
        if let Some(at) = children.iter().position(|one| *one == child) {
            children.remove(at);
        }
    }

    fn walk_of_exit(&mut self, parent: TaskId) -> bool {
        let nr_live = self.tasks.nr_live();
        let Some(walks) = &mut self.walks else { return false };
        debug_assert_eq!(walks.owed, 0, "nobody has paid for the exit before");
        walks.owed = walks.ns(nr_live, EXIT_LINES);
        self.shared(parent).reaped += 1;
        let exec = &mut self.tasks[parent];
        let waits = exec.waiting == Waiting::AnyChild;
        if waits {
            // Those that exit before it runs find it awake.
            exec.waiting = Waiting::No;
        }
        waits
    }

    /// Time (ns) that the next task is charged for the exit of the previous one.
    #[inline(never)]
    pub(crate) fn walk_debt(&mut self) -> Nanos {
        self.walks.as_mut().map_or(0, |walks| std::mem::take(&mut walks.owed))
    }
}
