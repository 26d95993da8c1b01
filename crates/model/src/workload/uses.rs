// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which descriptions use which ends of which objects: themselves, or through tasks that they fork.

use super::Workload;
use crate::{ObjectId, Op};

/// Receives from it, waits for it or posts it.
pub const READS: u8 = 1;
/// Sends to it.
pub const WRITES: u8 = 2;

/// Ends that one description uses, by object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Uses(Vec<u8>);

impl Uses {
    /// The ends that it uses of object `index`.
    pub fn get(&self, index: usize) -> u8 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// The ends that every description of a checked workload uses.
    ///
    /// An end that no task uses stays open in the tasks that use the other end. A transfer then
    /// waits forever instead of finding a closed end.
    pub fn of(workload: &Workload) -> Vec<Self> {
        let none = Self(vec![0; workload.objects.len()]);
        let mut all = vec![none.clone(); workload.tasks.len()];
        // Each description follows those that it forks.
        for spec in workload.fork_order().unwrap_or_default() {
            let mut own = none.clone();
            for op in &workload.tasks[spec].program.ops {
                match op {
                    Op::Fork { task } => {
                        let child = all[*task as usize].clone();
                        own.0.iter_mut().zip(&child.0).for_each(|(own, child)| *own |= child);
                    }
                    Op::WaitAny { set } => {
                        let members = &workload.wait_sets[*set as usize];
                        members.iter().for_each(|id| own.add(*id, READS));
                    }
                    Op::Receive { channel, .. } => own.add(*channel, READS),
                    Op::Send { channel, .. } => own.add(*channel, WRITES),
                    Op::SemWait { object } | Op::SemPost { object } => own.add(*object, READS),
                    _ => {}
                }
            }
            all[spec] = own;
        }
        for index in 0..workload.objects.len() {
            let by_anyone = all.iter().fold(0, |ends, uses| ends | uses.get(index));
            let unused = (READS | WRITES) & !by_anyone;
            for uses in all.iter_mut().filter(|uses| uses.0[index] != 0) {
                uses.0[index] |= unused;
            }
        }
        all
    }

    fn add(&mut self, id: ObjectId, ends: u8) {
        self.0[id.index()] |= ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramBuilder;
    use crate::{ObjectKind, ObjectSpec, TaskSpec};

    #[test]
    fn a_task_keeps_what_it_and_its_forks_use() {
        let (a, b) = (ObjectId(0), ObjectId(1));
        let parent = ProgramBuilder::new().receive(a, 1).op(Op::Fork { task: 2 }).build();
        let writer = ProgramBuilder::new().send(a, 1).build();
        let child = ProgramBuilder::new().send(b, 1).build();
        let tasks = [("parent", parent), ("writer", writer), ("child", child)];
        let tasks = tasks.map(|(name, program)| TaskSpec::new(name, program));
        let mut workload = Workload::new("w", tasks.into());
        workload.add_object(ObjectSpec::new("a", ObjectKind::PIPE));
        workload.add_object(ObjectSpec::new("b", ObjectKind::PIPE));
        let uses = Uses::of(&workload);
        assert_eq!(uses[0].0, [READS, READS | WRITES], "nobody reads b: its writers keep that end");
        assert_eq!((uses[1].0.as_slice(), uses[2].get(1)), ([WRITES, 0].as_slice(), 3));
    }
}
