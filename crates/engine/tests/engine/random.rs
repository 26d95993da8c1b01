// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawn workloads on drawn machines: every scheduler keeps the rules on what nobody thought of.
//!
//! The draws are a function of the number of the workload, so that a failure can be run again.
//! SCHEDLAB_RANDOM_WORKLOADS sets how many are tried.

use crate::common;

use common::checks::check_case;
use common::workloads::{nice, on, policy};
use common::{Case, MS};
use schedlab_model::machine::{InterruptArrivals, InterruptSource};
use schedlab_model::objects::CHANNEL_BYTES_MAX;
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, ChannelKind, Costs, CpuMask, LoopCount, Machine, MutexProtocol,
    ObjectId, ObjectKind, ObjectSpec, Op, Policy, Preempt, Program, Release, SchedAttr, TaskSpec,
    TimerMode, Topology, Workload,
};
use schedlab_sched::registry::SCHEDULERS;

/// Workloads tried unless the environment says otherwise.
const NR_WORKLOADS: u64 = 200;

/// The semaphore and the pipe of every workload; the mutexes are 0 to 2. Whoever waits has given
/// as much before, so that there is always enough for somebody.
const SEM: ObjectId = ObjectId(3);
const PIPE: ObjectId = ObjectId(4);

struct Draw {
    stream: Stream,
    nr_cpus: u32,
    nr_cgroups: u64,
}

impl Draw {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.stream.below(end)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Often equal, often short, sometimes 0: times that meet are where orders go wrong.
    fn amount(&mut self, most_ns: u64) -> Amount {
        match self.below(6) {
            0 => Amount::Constant(self.below(4) * MS),
            1 => Amount::Constant(self.below(3)),
            2 => Amount::Exponential { mean: 1 + self.below(most_ns) },
            3 => {
                let low = self.below(most_ns);
                Amount::Uniform { low, high: low + self.below(most_ns) }
            }
            _ => Amount::Constant(self.below(most_ns)),
        }
    }

    fn attr(&mut self) -> SchedAttr {
        let mut attr = match self.below(8) {
            0 => policy(Policy::Fifo, 1 + self.below(99) as u8),
            1 => policy(Policy::Rr, 1 + self.below(3) as u8),
            2 => policy(Policy::Batch, 0),
            3 => policy(Policy::Idle, 0),
            _ => nice(self.below(40) as i8 - 20),
        };
        attr.cgroup = CgroupId(self.below(self.nr_cgroups) as u32);
        if self.one_in(6) {
            attr.slice_ns = Some(100_000 + self.below(20 * MS));
        }
        attr
    }

    /// Two CPUs, which may be one and the same.
    fn affinity(&mut self) -> SchedAttr {
        let cpus = u64::from(self.nr_cpus);
        on(&[self.below(cpus) as u32, self.below(cpus) as u32])
    }

    /// A critical section of one or two mutexes, taken in order so that nobody waits crosswise.
    fn section<'b>(
        &mut self,
        builder: &'b mut ProgramBuilder,
        nr_phases: &mut u32,
    ) -> &'b mut ProgramBuilder {
        let first = self.below(3) as u32;
        let second = first + 1 + self.below(2) as u32;
        let second = (second < 3).then_some(ObjectId(second));
        builder.lock(ObjectId(first)).op(Op::Run(self.amount(2 * MS)));
        if let Some(second) = second {
            builder.lock(second);
        }
        match self.below(4) {
            0 => builder.op(Op::Sleep(self.amount(2 * MS))),
            1 => builder.op(Op::Yield),
            2 => {
                let attr = self.attr();
                *nr_phases += 1;
                builder.op(Op::Phase(*nr_phases - 1)).op(Op::SetAttr(Box::new(attr)))
            }
            _ => builder.op(Op::Run(self.amount(2 * MS))),
        };
        if let Some(second) = second {
            builder.unlock(second);
        }
        builder.unlock(ObjectId(first))
    }

    /// A program of task description `index`; it forks only descriptions with higher numbers.
    fn program(&mut self, index: u64, nr_specs: u64) -> (Program, u32) {
        let mut builder = ProgramBuilder::new();
        let mut nr_phases = 0;
        builder.begin_loop(LoopCount::Times(1 + self.below(6)));
        for _ in 0..1 + self.below(6) {
            let timer = self.below(2) as u32;
            let period = Amount::Constant(1 + self.below(5 * MS));
            let mode = if self.one_in(2) { TimerMode::Relative } else { TimerMode::Absolute };
            let sync = self.one_in(2);
            let direction = if self.one_in(2) { IoDirection::Read } else { IoDirection::Write };
            match self.below(13) {
                10 => self.section(&mut builder, &mut nr_phases),
                11 => builder.op(Op::SemPost { object: SEM }).op(Op::SemWait { object: SEM }),
                12 => {
                    let bytes = 1 + self.below(200_000);
                    builder.send(PIPE, bytes).receive(PIPE, bytes)
                }
                0..=2 => builder.op(Op::Run(self.amount(6 * MS))),
                3 => builder.op(Op::RunWall(self.amount(6 * MS))),
                4 => builder.op(Op::Sleep(self.amount(6 * MS))),
                5 => builder.op(Op::Timer { timer, period, mode }),
                6 => builder.op(Op::Io { direction, bytes: self.amount(100_000), sync }),
                7 => builder.op(Op::Yield),
                8 if index + 1 < nr_specs => {
                    let task = (index + 1 + self.below(nr_specs - index - 1)) as u32;
                    builder.op(Op::Fork { task });
                    if self.one_in(2) { builder.op(Op::JoinAll) } else { &mut builder }
                }
                _ => {
                    let SchedAttr { affinity, .. } = self.affinity();
                    let affinity = affinity.filter(|_| self.one_in(2));
                    let attr = SchedAttr { affinity, ..self.attr() };
                    nr_phases += 1;
                    builder.op(Op::Phase(nr_phases - 1)).op(Op::SetAttr(Box::new(attr)))
                }
            };
        }
        builder.end_loop();
        if self.one_in(3) {
            builder.op(Op::JoinAll);
        }
        (builder.build(), nr_phases)
    }

    fn workload(&mut self, number: u64) -> Workload {
        let nr_specs = 1 + self.below(4);
        let mut tasks = Vec::new();
        for index in 0..nr_specs {
            let (program, nr_phases) = self.program(index, nr_specs);
            let mut attr = self.attr();
            if self.one_in(4) {
                attr.affinity = self.affinity().affinity;
            }
            tasks.push(TaskSpec {
                attr,
                instances: (1 + self.below(4)) as u32,
                release_ns: self.amount(10 * MS),
                interarrival_ns: self.one_in(3).then(|| self.amount(5 * MS)),
                release: if self.one_in(2) { Release::Fork } else { Release::Wakeup },
                working_set_bytes: if self.one_in(3) { self.below(8 << 20) } else { 0 },
                phases: (0..nr_phases).map(|phase| format!("phase {phase}")).collect(),
                ..TaskSpec::new(format!("task{index}"), program)
            });
        }
        let mut workload = Workload::new(format!("random {number}"), tasks);
        let ceiling = MutexProtocol::Ceiling { rt_priority: 99 };
        let mutexes = [MutexProtocol::None, MutexProtocol::Inherit, ceiling];
        for (number, protocol) in mutexes.into_iter().enumerate() {
            let kind = ObjectKind::Mutex { protocol };
            workload.add_object(ObjectSpec::new(format!("mutex{number}"), kind));
        }
        workload.add_object(ObjectSpec::new("sem", ObjectKind::Semaphore { initial: 0 }));
        // It takes what all may write: else all could be writing at once.
        let (kind, capacity_bytes) = (ChannelKind::Pipe, CHANNEL_BYTES_MAX);
        let pipe = ObjectKind::Channel { kind, capacity_bytes };
        workload.add_object(ObjectSpec::new("pipe", pipe));
        for group in 1..self.nr_cgroups {
            let parent = CgroupId(self.below(group) as u32);
            let weight = 1 + self.below(10_000) as u32;
            workload.cgroups.push(CgroupSpec::new(format!("/{group}"), parent, weight));
        }
        workload
    }

    fn interrupt(&mut self) -> InterruptSource {
        let interval_ns = 50_000 + self.below(2 * MS);
        InterruptSource {
            name: "drawn".into(),
            cpus: CpuMask::first(1 + self.below(6) as u32),
            interval_ns,
            // At most a quarter of the time: the slowest thread has 0.3 of a core.
            cost_ns: self.below(interval_ns / 8),
            softirq_ns: self.below(interval_ns / 8),
            arrivals: if self.one_in(2) {
                InterruptArrivals::Periodic
            } else {
                InterruptArrivals::Exponential
            },
        }
    }

    fn machine(&mut self) -> Machine {
        let flat = Topology::flat(self.nr_cpus);
        let half = |cpu: u32| cpu / self.nr_cpus.div_ceil(2);
        let halves: Vec<u32> = (0..self.nr_cpus).map(half).collect();
        let topology = match self.below(3) {
            0 => Topology { llc: halves.clone(), node: halves, ..flat },
            1 => Topology { core: (0..self.nr_cpus).map(|cpu| cpu / 2).collect(), ..flat },
            _ => flat,
        };
        let hz = [100, 250, 300, 1000][self.below(4) as usize];
        let costs = if self.one_in(2) { Costs::ZERO } else { Costs::DEFAULT };
        let flat = Machine::flat(self.nr_cpus);
        let preempt = Preempt::ALL[self.below(4) as usize];
        let smt_speed =
            if self.one_in(2) { vec![300 + self.below(700) as u32] } else { Vec::new() };
        let interrupts = if self.one_in(3) { vec![self.interrupt()] } else { Vec::new() };
        Machine { topology, hz, costs, preempt, smt_speed, interrupts, ..flat }
    }
}

#[test]
fn drawn_workloads_keep_the_rules() {
    let asked = std::env::var("SCHEDLAB_RANDOM_WORKLOADS").ok();
    let count = asked.map_or(NR_WORKLOADS, |text| text.parse().expect("a number of workloads"));
    let mut failures = Vec::new();
    for number in 0..count {
        let stream = Stream::new(number, Purpose::Scheduler, 1);
        let mut draw = Draw { stream, nr_cpus: 1, nr_cgroups: 1 };
        draw.nr_cpus = 1 + draw.below(6) as u32;
        draw.nr_cgroups = 1 + draw.below(4);
        let workload = draw.workload(number);
        let machine = draw.machine();
        for info in SCHEDULERS.iter() {
            // Linux balances load and not tasks: beside pinned, light or real-time tasks a CPU may
            // idle for many intervals of balancing, and no bound holds for every workload.
            let machine = machine.clone();
            let case = Case {
                machine,
                judges_balance: false,
                // Importance differs, so waiting for long is no fault.
                watchdog_ns: None,
                ..Case::new(&workload, info, 1)
            };
            failures.extend(check_case(&case).err().map(|broken| broken.text));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
