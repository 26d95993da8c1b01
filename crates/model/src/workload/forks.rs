// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which task forks which: the tree of forks, its size, and cycles.

use super::{Workload, WorkloadError};

impl Workload {
    /// Number of tasks that the launcher starts, plus those that they fork, directly or through
    /// others. A fork in an endless loop counts once. The number saturates. There must be no cycle
    /// of forks.
    pub fn nr_tasks_least(&self) -> u64 {
        // Tasks in one tree, by description; filled from the leaves up.
        let mut sizes: Vec<u64> = vec![1; self.tasks.len()];
        for index in self.fork_order().unwrap_or_default() {
            sizes[index] = tree_size(&self.tasks[index].program, &sizes);
        }
        self.tasks.iter().zip(sizes).fold(0, |sum: u64, (task, size)| {
            sum.saturating_add(u64::from(task.instances).saturating_mul(size))
        })
    }

    /// Refuses a task that forks itself through others: such a run would never end.
    pub(super) fn check_forks(&self) -> Result<(), WorkloadError> {
        match self.fork_order() {
            Ok(_) => Ok(()),
            Err(cycle) => {
                let mut names: Vec<&str> =
                    cycle.iter().map(|&task| self.tasks[task].name.as_str()).collect();
                names.extend(names.first().copied());
                Err(WorkloadError(format!(
                    "cycle of forks: {}: a task may not fork, directly or through others, a task \
                     that forks it again",
                    names.join(" -> ")
                )))
            }
        }
    }

    /// Returns the task descriptions in an order in which each follows all that it forks; or else
    /// the tasks of a cycle. Depth first with its own stack, because files decide the depth.
    pub fn fork_order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let targets = |task: usize| {
            self.tasks[task].program.ops.iter().filter_map(|op| match op {
                crate::Op::Fork { task } => Some(*task as usize),
                _ => None,
            })
        };
        let mut order = Vec::with_capacity(self.tasks.len());
        let mut seen = vec![false; self.tasks.len()];
        let mut done = vec![false; self.tasks.len()];
        for root in 0..self.tasks.len() {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut path = vec![(root, targets(root))];
            while let Some((task, rest)) = path.last_mut() {
                match rest.next() {
                    Some(next) if next >= self.tasks.len() || done[next] => {}
                    Some(next) if seen[next] => {
                        let start = path.iter().position(|(task, _)| *task == next).unwrap_or(0);
                        return Err(path[start..].iter().map(|(task, _)| *task).collect());
                    }
                    Some(next) => {
                        seen[next] = true;
                        path.push((next, targets(next)));
                    }
                    None => {
                        done[*task] = true;
                        order.push(*task);
                        path.pop();
                    }
                }
            }
        }
        Ok(order)
    }
}

/// 1 plus the trees of all forks of a program.
fn tree_size(program: &crate::Program, sizes: &[u64]) -> u64 {
    let mut rounds = vec![1u64];
    let mut size: u64 = 1;
    for op in &program.ops {
        let factor = *rounds.last().unwrap_or(&1);
        match op {
            crate::Op::LoopBegin { count, .. } => rounds.push(match count {
                crate::LoopCount::Times(times) => factor.saturating_mul(*times),
                crate::LoopCount::Forever => factor,
            }),
            crate::Op::LoopEnd { .. } => {
                rounds.pop();
            }
            crate::Op::Fork { task } => {
                let child = sizes.get(*task as usize).copied().unwrap_or(1);
                size = size.saturating_add(factor.saturating_mul(child));
            }
            _ => {}
        }
    }
    size
}
