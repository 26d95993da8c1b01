// SPDX-License-Identifier: MIT OR Apache-2.0
//! What forks and exits take that depends on other tasks: stacks that the kernel keeps, and pages
//! that parent and child share.
//!
//! A CPU keeps the stacks of up to two tasks that have ended there, and gives them to new ones
//! (`NR_CACHED_STACKS`). Without one a fork maps a new stack, which takes longer. A launcher leaves
//! one.
//!
//! Source: Linux 6.1 and 6.12, kernel/fork.c (`alloc_thread_stack_node`,
//! `try_release_thread_stack_to_cache`), mm/memory.c (`do_wp_page`). Left out: a stack waits in the
//! list of RCU while the kernel has two others.

use crate::engine::Engine;
use schedlab_model::program::Program;
use schedlab_model::{CpuId, Nanos, Step, TaskId, TraceSink};
use schedlab_sched::boundary::core::TaskState;

/// Stacks that a CPU keeps.
const NR_CACHED_STACKS: u8 = 2;

/// Number of stacks of ended tasks that each CPU keeps.
#[derive(Debug)]
pub(crate) struct CachedStacks(Vec<u8>);

impl CachedStacks {
    pub fn new(nr_cpus: u32) -> Self {
        Self(vec![1; nr_cpus as usize])
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

impl<S: TraceSink> Engine<'_, S> {
    /// What the fork that `task` begins takes.
    pub(crate) fn fork_ns(&mut self, task: TaskId) -> Nanos {
        let costs = self.costs;
        let mut ns = costs.fork_ns;
        if !std::mem::replace(&mut self.shared(task).has_forked, true) {
            ns = ns.saturating_add(costs.first_fork_ns);
        }
        if !self.stacks.take(self.core.task(task).cpu) {
            ns = ns.saturating_add(costs.fork_stack_ns);
        }
        ns
    }

    /// What the exit of `task` takes.
    pub(crate) fn exit_ns(&mut self, task: TaskId) -> Nanos {
        let costs = self.costs;
        let mut ns = costs.exit_ns;
        if self.tasks[task].parent.is_none() {
            ns = ns.saturating_add(costs.exit_launched_ns);
        }
        if self.tasks[task].shared.as_ref().is_some_and(|own| own.has_forked) {
            ns = ns.saturating_add(costs.exit_forked_ns);
        }
        ns
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

    /// The next step of `task`, which has forked since its loop began. If the loop begins again, it
    /// copies the page of the counters.
    #[inline(never)]
    pub(crate) fn next_after_fork(&mut self, task: TaskId, program: &Program) -> Step {
        let exec = &mut self.tasks[task];
        let before = exec.interpreter.position();
        let step = exec.interpreter.next(program);
        if exec.interpreter.position() <= before
            && let Some(child) = self.shared(task).loop_child.take()
            && self.core.task(child).state != TaskState::Dead
        {
            self.charge(task, self.costs.fork_loop_ns);
        }
        step
    }
}
