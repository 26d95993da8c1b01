// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases as kernels in guests play them.

use schedlab_model::{Op, Policy, SchedAttr, TaskSpec};

/// Gives forked tasks the attributes of their parents, which keep theirs. A real task sets its own
/// attributes some time after the fork, and no event shows when.
pub fn inherit(tasks: &mut [TaskSpec]) {
    let forked = |task: &TaskSpec| -> Vec<u32> {
        let child = |op: &Op| match op {
            Op::Fork { task } => Some(*task),
            _ => None,
        };
        task.program.ops.iter().filter_map(child).collect()
    };
    for parent in 0..tasks.len() {
        let children = forked(&tasks[parent]);
        if children.is_empty() {
            continue;
        }
        // A DEADLINE task may not fork.
        if tasks[parent].attr.policy == Policy::Deadline {
            tasks[parent].attr = SchedAttr::default();
        }
        let attr = tasks[parent].attr;
        for op in &mut tasks[parent].program.ops {
            if let Op::SetAttr(own) = op {
                **own = attr;
            }
        }
        for child in children {
            if let Some(child) = tasks.get_mut(child as usize) {
                child.attr = attr;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Shape, generate};

    #[test]
    fn forked_tasks_have_the_attributes_of_their_parents() {
        let shape = Shape { features: Features::ALL, ..Shape::default() };
        let mut nr_forks = 0;
        for seed in 0..200 {
            let mut tasks = generate(&shape, seed).workload.tasks;
            inherit(&mut tasks);
            let before = tasks.clone();
            inherit(&mut tasks);
            assert_eq!(tasks, before, "seed {seed}: it is done once");
            for task in &tasks {
                for op in &task.program.ops {
                    let Op::Fork { task: child } = op else { continue };
                    nr_forks += 1;
                    assert_eq!(tasks[*child as usize].attr, task.attr);
                    assert_ne!(task.attr.policy, Policy::Deadline);
                }
            }
        }
        assert!(nr_forks > 20);
    }
}
