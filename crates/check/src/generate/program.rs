// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tasks do: alone, and with each other.

use super::{Draft, Draw, Feature, constant};
use crate::tree::Node;
use schedlab_model::program::IoDirection;
use schedlab_model::time::NSEC_PER_USEC as US;
use schedlab_model::{
    Amount, LoopCount, MutexProtocol, ObjectId, ObjectKind, Op, SchedAttr, TaskSpec, TimerMode,
};

impl Draw {
    /// An amount of CPU time of at least 1 us: without it a loop might take no time.
    pub(super) fn amount_of_work(&mut self) -> Amount {
        match self.amount() {
            Amount::Exponential { mean } => Amount::Constant(mean),
            Amount::Uniform { low, high } => Amount::Uniform { low: low.max(US), high },
            constant => constant,
        }
    }

    /// The body of a task's outer loop, and how often it runs.
    pub(super) fn body(&mut self) -> (Vec<Node>, LoopCount) {
        if self.one_in(4) {
            return (self.quick_round().into(), LoopCount::Forever);
        }
        let mut body = vec![Node::Op(Op::Run(self.amount_of_work()))];
        let is_hog = self.one_in(3);
        let nr_more = if is_hog { 0 } else { 1 + self.below(2) + self.below(2) };
        for _ in 0..nr_more {
            let op = self.step();
            body.push(Node::Op(op));
        }
        if !is_hog && self.one_in(4) {
            let rounds = LoopCount::Times(2 + self.below(9));
            body.push(Node::Loop(rounds, self.quick_round().into()));
        }
        let rounds = match self.below(4) {
            0 => LoopCount::Times(2 + self.below(30)),
            _ => LoopCount::Forever,
        };
        (body, rounds)
    }

    /// A short run and a short sleep.
    fn quick_round(&mut self) -> [Node; 2] {
        let run = Op::Run(constant(self.short_time()));
        let sleep = Op::Sleep(constant(self.short_time()));
        [run, sleep].map(Node::Op)
    }

    /// A step of a task that acts alone.
    fn step(&mut self) -> Op {
        let mut kinds = vec![0, 0, 0, 1];
        for (feature, kind) in [(Feature::Timers, 2), (Feature::Io, 3), (Feature::Yields, 4)] {
            if self.has(feature) {
                kinds.push(kind);
            }
        }
        match self.choose(&kinds) {
            0 => Op::Sleep(self.amount()),
            1 => Op::Run(self.amount_of_work()),
            2 => {
                let mode = match self.one_in(2) {
                    true => TimerMode::Relative,
                    false => TimerMode::Absolute,
                };
                let period = Amount::Constant(self.time().max(100 * US));
                Op::Timer { timer: 0, period, mode }
            }
            3 => {
                let direction = if self.one_in(2) { IoDirection::Read } else { IoDirection::Write };
                Op::Io { direction, bytes: constant(4_096), sync: true }
            }
            _ => Op::Yield,
        }
    }

    /// Lets tasks act on each other.
    pub(super) fn couple(&mut self, drafts: &mut [Draft]) {
        let last = drafts.len() - 1;
        if self.has(Feature::Pipes) && last > 0 {
            self.pipes(drafts);
        }
        if self.has(Feature::Sync) && last > 0 {
            self.sync(drafts);
        }
        if self.has(Feature::Locks) {
            self.locks(drafts);
        }
    }

    /// Two different drafts.
    fn pair(&mut self, drafts: &[Draft]) -> (usize, usize) {
        let first = self.below(drafts.len() as u64) as usize;
        let distance = 1 + self.below(drafts.len() as u64 - 1) as usize;
        (first, (first + distance) % drafts.len())
    }

    /// A writer and a reader; one time in two an answer goes back.
    fn pipes(&mut self, drafts: &mut [Draft]) {
        let (writer, reader) = self.pair(drafts);
        let bytes = constant(self.choose(&[1, 64, 4_096]));
        let there = self.object("p", ObjectKind::PIPE);
        drafts[writer].body.push(Node::Op(Op::Send { channel: there, bytes }));
        drafts[reader].body.insert(0, Node::Op(Op::Receive { channel: there, bytes }));
        if self.one_in(2) {
            let back = self.object("p", ObjectKind::PIPE);
            drafts[writer].body.push(Node::Op(Op::Receive { channel: back, bytes }));
            drafts[reader].body.push(Node::Op(Op::Send { channel: back, bytes }));
        }
    }

    fn sync(&mut self, drafts: &mut [Draft]) {
        let (first, second) = self.pair(drafts);
        match self.below(3) {
            0 => {
                let parties = drafts[first].spec.instances + drafts[second].spec.instances;
                let object = self.object("b", ObjectKind::Barrier { parties });
                for draft in [first, second] {
                    drafts[draft].body.push(Node::Op(Op::Barrier { object }));
                }
            }
            1 => {
                let object = self.object("s", ObjectKind::Semaphore { initial: 0 });
                drafts[first].body.push(Node::Op(Op::SemPost { object }));
                drafts[second].body.insert(0, Node::Op(Op::SemWait { object }));
            }
            _ => {
                let object = self.object("e", ObjectKind::Event);
                drafts[first].body.push(Node::Op(Op::Resume { object }));
                drafts[second].body.insert(0, Node::Op(Op::Suspend { object }));
            }
        }
    }

    /// Critical sections of one mutex in one or more tasks.
    fn locks(&mut self, drafts: &mut [Draft]) {
        let inherits = self.has(Feature::Inherit) && self.one_in(2);
        let protocol = if inherits { MutexProtocol::Inherit } else { MutexProtocol::None };
        let object = self.object("m", ObjectKind::Mutex { protocol });
        for draft in drafts.iter_mut() {
            if self.one_in(3) {
                continue;
            }
            let section = self.section(object);
            draft.body.extend(section);
        }
    }

    fn section(&mut self, object: ObjectId) -> [Node; 3] {
        let within = match self.one_in(4) {
            true => Op::Sleep(constant(self.short_time())),
            false => Op::Run(constant(self.short_time())),
        };
        [Op::Lock { object }, within, Op::Unlock { object }].map(Node::Op)
    }

    /// Lets one task fork others that end.
    pub(super) fn fork(&mut self, drafts: &mut Vec<Draft>) {
        if !self.has(Feature::Forks) {
            return;
        }
        let parent = self.below(drafts.len() as u64) as usize;
        let child = drafts.len() as u32;
        let joins = self.one_in(2);
        let draft = &mut drafts[parent];
        draft.body.push(Node::Op(Op::Fork { task: child }));
        if joins {
            draft.body.push(Node::Op(Op::JoinAll));
        } else {
            // Else children might come faster than they go.
            draft.rounds = LoopCount::Times(2 + self.below(8));
        }
        let work = Node::Op(Op::Run(constant(self.short_time())));
        let mut body = vec![work.clone()];
        if self.one_in(2) {
            body.push(Node::Op(Op::Sleep(constant(self.short_time()))));
            body.push(work);
        }
        let attr = match self.one_in(2) {
            true => self.attr(),
            false => SchedAttr::default(),
        };
        let spec = TaskSpec { instances: 0, attr, ..TaskSpec::new("child", Default::default()) };
        drafts.push(Draft { spec, body, rounds: LoopCount::Times(1) });
    }
}
