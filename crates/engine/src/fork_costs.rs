// SPDX-License-Identifier: MIT OR Apache-2.0
//! What forks and exits take that depends on other tasks: stacks that the kernel keeps, and pages
//! that parent and child share.
//!
//! A CPU keeps the stacks of up to two tasks that have ended there, and gives them to new ones
//! (`NR_CACHED_STACKS`). Without one a fork maps a new stack, which takes longer. A launcher leaves
//! one, or two if several of its tasks fork: each of these has forked a task before the run.
//!
//! How long an exit takes depends on the memory that the launcher shares with its tasks. Each has
//! mapped it, and more of it where tasks may fork.
//!
//! Source: Linux 6.1 and 6.12, kernel/fork.c (`alloc_thread_stack_node`,
//! `try_release_thread_stack_to_cache`), mm/memory.c (`do_wp_page`). Left out: a stack waits in the
//! list of RCU while the kernel has two others.

use crate::engine::Engine;
use schedlab_model::program::Program;
use schedlab_model::{Arrival, Costs, CpuId, Nanos, ObjectKind, Op, TaskId, TraceSink, Workload};
use schedlab_sched::boundary::core::TaskState;

/// Stacks that a CPU keeps.
const NR_CACHED_STACKS: u8 = 2;

/// Number of stacks of ended tasks that each CPU keeps.
#[derive(Debug)]
pub(crate) struct CachedStacks(Vec<u8>);

impl CachedStacks {
    /// What the launcher of `arrivals` leaves.
    pub fn new(nr_cpus: u32, workload: &Workload, arrivals: &[Arrival]) -> Self {
        let may_fork = |of: &&Arrival| forks(&workload.tasks[of.spec as usize].program);
        let nr =
            if arrivals.iter().filter(may_fork).nth(1).is_some() { NR_CACHED_STACKS } else { 1 };
        Self(vec![nr; nr_cpus as usize])
    }

    /// A fork on `cpu` takes a stack; whether there was one.
    fn take(&mut self, cpu: CpuId) -> bool {
        let nr = &mut self.0[cpu.index()];
        let is_there = *nr > 0;
        *nr = nr.saturating_sub(1);
        is_there
    }

    /// A task has ended on `cpu`.
    pub fn put(&mut self, cpu: CpuId) {
        let nr = &mut self.0[cpu.index()];
        *nr = (*nr + 1).min(NR_CACHED_STACKS);
    }
}

/// What exits of a run take.
#[derive(Debug)]
pub(crate) struct Exits {
    /// Every one.
    all_ns: Nanos,
    /// That of a task that no other one forked, in addition.
    launched_ns: Nanos,
    /// That of a forked one, in addition.
    child_ns: Nanos,
    /// The next one, in addition, if it is the first.
    first_ns: Nanos,
}

impl Exits {
    pub fn new(costs: &Costs, workload: &Workload) -> Self {
        let forks = workload.tasks.iter().any(|spec| forks(&spec.program));
        let has_groups = workload.cgroups.len() > 1;
        let has_queue = |kind| matches!(kind, ObjectKind::Condvar | ObjectKind::Event);
        let nr_queues = workload.objects.iter().filter(|object| has_queue(object.kind)).count();
        let if_so = |is_so: bool, ns: Nanos| if is_so { ns } else { 0 };
        Self {
            all_ns: costs.exit_ns.saturating_add(if_so(forks, costs.exit_shared_ns)),
            launched_ns: if_so(forks, costs.exit_queue_ns.saturating_mul(nr_queues as u64))
                .saturating_add(if_so(has_groups, costs.exit_groups_ns))
                .saturating_add(costs.exit_launched_ns),
            child_ns: if_so(has_groups, costs.child_groups_ns),
            first_ns: costs.first_exit_ns,
        }
    }
}

/// Whether tasks with this program fork.
fn forks(program: &Program) -> bool {
    program.ops.iter().any(|op| matches!(op, Op::Fork { .. }))
}

/// Whether a task with this program has memory of its own for what it records. The calls on objects
/// of a forked one need none.
fn has_marks(program: &Program, is_forked: bool) -> bool {
    program.ops.iter().any(|op| match op {
        Op::Progress | Op::Phase(_) | Op::Yield | Op::JoinAll | Op::Join { .. } => true,
        op => !is_forked && op.uses_objects(),
    })
}

impl<S: TraceSink> Engine<'_, S> {
    /// What the fork that `task` begins takes.
    pub(crate) fn fork_ns(&mut self, task: TaskId) -> Nanos {
        let costs = self.costs;
        let mut ns = costs.fork_ns.saturating_add(self.for_others(costs.fork_task_ns));
        if costs.fork_groups_ns > 0 && self.workload.cgroups.len() > 1 {
            ns = ns.saturating_add(costs.fork_groups_ns);
        }
        if !std::mem::replace(&mut self.shared(task).has_forked, true) {
            ns = ns.saturating_add(costs.first_fork_ns);
        }
        if !self.stacks.take(self.core.task(task).cpu) {
            ns = ns.saturating_add(costs.fork_stack_ns);
        }
        ns
    }

    /// `child` runs for the first time. If no task shares its memory any more, it need not copy
    /// the pages to which it writes.
    #[inline(never)]
    pub(crate) fn starts_alone(&mut self, child: TaskId) {
        let Some(parent) = self.tasks[child].parent else { return };
        let exec = &self.tasks[parent];
        // It frees its memory before it leaves its autogroup, where it may lose the CPU.
        let has_freed = exec.shared.as_ref().is_some_and(|own| own.has_left_group || own.has_left);
        let has_ended = has_freed || self.core.task(parent).state == TaskState::Dead;
        if has_ended && exec.children == 1 {
            self.spare(child, self.costs.child_alone_ns);
        }
    }

    /// `ns` for each launched task of the run beyond the first.
    fn for_others(&self, ns: Nanos) -> Nanos {
        ns.saturating_mul(self.tasks.nr_launched().saturating_sub(1))
    }

    /// What the exit of `task` takes.
    pub(crate) fn exit_ns(&mut self, task: TaskId) -> Nanos {
        let exec = &self.tasks[task];
        let Exits { all_ns, launched_ns, child_ns, .. } = self.exits;
        let own_ns = match exec.parent {
            None => launched_ns,
            Some(_) => child_ns.saturating_add(self.for_others(self.costs.exit_task_ns)),
        };
        let mut ns = all_ns.saturating_add(own_ns);
        if self.costs.exit_marks_ns > 0
            && has_marks(&self.workload.tasks[exec.spec as usize].program, exec.parent.is_some())
        {
            ns = ns.saturating_add(self.costs.exit_marks_ns);
        }
        ns = ns.saturating_add(std::mem::take(&mut self.exits.first_ns));
        match self.tasks[task].shared.as_ref().is_some_and(|own| own.has_slept) {
            true => ns.saturating_sub(self.costs.child_sleep_ns),
            false => ns,
        }
    }

    /// What the first sleep of `task` takes in addition if it was forked.
    #[inline]
    pub(crate) fn first_sleep_ns(&mut self, task: TaskId) -> Nanos {
        if self.costs.child_sleep_ns == 0 || self.tasks[task].parent.is_none() {
            return 0;
        }
        match std::mem::replace(&mut self.shared(task).has_slept, true) {
            true => 0,
            false => self.costs.child_sleep_ns,
        }
    }

    /// What the step `op` of `task`, a change of a group, takes before the change. The program
    /// writes to its heap, which it shares with a child that has not run.
    pub(crate) fn first_change_ns(&mut self, task: TaskId, op: u32) -> Nanos {
        let ns = self.change_ns(task, op);
        let heap_ns = self.costs.fork_heap_ns;
        if heap_ns == 0 || ns == 0 {
            return ns;
        }
        match self.shared(task).heap_child.take() {
            Some(child) if !self.tasks[child].has_run => {
                self.spare(child, heap_ns);
                ns.saturating_add(heap_ns)
            }
            _ => ns,
        }
    }
}
