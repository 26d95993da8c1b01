// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random cases: a seed gives a workload, a machine and the seed of the run.
//!
//! Each case draws first which features it has, each with one chance in two, then draws its tasks
//! from these features only (swarm testing). A feature that hides the effect of another is thus
//! absent from half of the cases. Small cases are the most frequent.
//!
//! Every case is sound by construction. It has a duration, so it ends. Every round of a loop takes
//! CPU time. Locks are taken and released in one go, so no task waits for ever while it holds one.

mod amounts;
mod attrs;
mod group_changes;
mod machine;
mod program;
mod tunes;

use crate::case::Case;
use crate::tree::{self, Node};
pub(crate) use amounts::{forks, steps};
pub use tunes::Tunes;

use amounts::pace;
use schedlab_model::ids::ROOT_CGROUP;
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::time::{NSEC_PER_MSEC as MS, NSEC_PER_USEC as US};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, CpuId, CpuMask, CpuMax, LoopCount, Machine, Nanos, ObjectId,
    ObjectKind, ObjectSpec, Op, Release, SchedAttr, TaskSpec, Workload,
};

/// A feature of the workload language or of machines that a case may have or lack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Feature {
    /// More than one CPU.
    Smp,
    /// CPUs that share cores, or several last-level caches.
    Topology,
    /// Other tick rates than 250.
    Hz,
    /// Costs of switches, wake-ups and ticks.
    Costs,
    /// Control groups with weights.
    Groups,
    /// Limits of groups (cpu.max).
    Quota,
    /// Nice values.
    Nice,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
    /// SCHED_DEADLINE.
    Deadline,
    /// Custom slices.
    Slices,
    /// Affinities.
    Affinity,
    /// Tasks that fork others.
    Forks,
    /// Pipes between tasks.
    Pipes,
    /// Mutexes.
    Locks,
    /// Barriers, semaphores and events.
    Sync,
    /// Periodic timers.
    Timers,
    /// The block device.
    Io,
    /// sched_yield.
    Yields,
    /// Tasks that change their own attributes.
    Changes,
    /// Several instances of a task.
    Instances,
    /// Tasks that start later than the others.
    Late,
    /// Amounts that are drawn at each step.
    Drawn,
    /// Tasks that exist and sleep before they are released.
    Wakeups,
    /// Mutexes with priority inheritance.
    Inherit,
    /// Dozens of tasks that are pinned to one CPU.
    Crowds,
    /// Weights, limits and CPUs of groups that change during the run.
    GroupChanges,
    /// Groups that start with CPUs of their own.
    Cpusets,
    /// Tunables and features that change during the run.
    Tunes,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 30] = [
        Self::Smp,
        Self::Topology,
        Self::Hz,
        Self::Costs,
        Self::Groups,
        Self::Quota,
        Self::Nice,
        Self::Batch,
        Self::Idle,
        Self::RealTime,
        Self::Deadline,
        Self::Slices,
        Self::Affinity,
        Self::Forks,
        Self::Pipes,
        Self::Locks,
        Self::Sync,
        Self::Timers,
        Self::Io,
        Self::Yields,
        Self::Changes,
        Self::Instances,
        Self::Late,
        Self::Drawn,
        Self::Wakeups,
        Self::Inherit,
        Self::Crowds,
        Self::GroupChanges,
        Self::Cpusets,
        Self::Tunes,
    ];
}

/// Features by which tasks differ.
const UNEQUAL: [Feature; 12] = [
    Feature::Groups,
    Feature::Quota,
    Feature::Nice,
    Feature::Batch,
    Feature::Idle,
    Feature::RealTime,
    Feature::Deadline,
    Feature::Slices,
    Feature::Changes,
    Feature::Inherit,
    Feature::GroupChanges,
    Feature::Cpusets,
];

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features(u32);

impl Features {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether `feature` is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    /// The set without `feature`.
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(1 << feature as u32))
    }

    /// Those of `features` that are in the set.
    pub fn only(self, features: &[Feature]) -> Self {
        Self(features.iter().fold(0, |all, feature| all | self.0 & 1 << *feature as u32))
    }

    /// Each of them with one chance in two; SCHED_DEADLINE with half of it if it is rare.
    fn some(self, stream: &mut Stream, deadline_is_rare: bool) -> Self {
        let drawn = stream.next_u64() as u32;
        let rare =
            if deadline_is_rare { drawn | !(1 << Feature::Deadline as u32) } else { u32::MAX };
        Self(self.0 & stream.next_u64() as u32 & rare)
    }
}

/// What generated cases may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Allowed features.
    pub features: Features,
    /// Most CPUs, at least 1.
    pub cpus_max: u32,
    /// Most kinds of task, at least 1.
    pub tasks_max: u32,
    /// Shortest run, sleep or period (ns), from 1 us to 10 ms.
    pub time_ns_min: Nanos,
    /// Shortest duration of a run (ns), if `steps_max` allows it.
    pub duration_ns_min: Nanos,
    /// Longest duration of a run (ns).
    pub duration_ns_max: Nanos,
    /// About how many steps all tasks together may take: it bounds the time that a run takes.
    pub steps_max: u64,
    /// Tunables that may change.
    pub tunes: Tunes,
    /// Whether one case of four has tasks with equal attributes and the longest duration: only such
    /// cases show that a scheduler starves a task without reason.
    pub has_equals: bool,
    /// Whether SCHED_DEADLINE is half as frequent as other features: few schedulers know it.
    pub deadline_is_rare: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            features: Features::ALL,
            cpus_max: 8,
            tasks_max: 6,
            time_ns_min: US,
            duration_ns_min: 0,
            duration_ns_max: 2_000 * MS,
            steps_max: 20_000,
            tunes: Tunes::NONE,
            has_equals: false,
            deadline_is_rare: true,
        }
    }
}

/// The case of `seed`, within `shape`.
pub fn generate(shape: &Shape, seed: u64) -> Case {
    let mut stream = Stream::new(seed, Purpose::Experiment, 1);
    let mut features = shape.features.some(&mut stream, shape.deadline_is_rare);
    // A stream of its own: the other cases are those of a shape without equals.
    let is_equal = shape.has_equals && Stream::new(seed, Purpose::Experiment, 5).below(4) == 0;
    if is_equal {
        features = UNEQUAL.into_iter().fold(features, Features::without);
    }
    let mut draw = Draw {
        stream,
        features,
        nr_cpus: 1,
        hz: 250,
        time_ns_min: shape.time_ns_min.clamp(US, 10 * MS),
        workload: empty(seed),
        pins_all: false,
        is_equal,
        home: ROOT_CGROUP,
    };
    draw.pins_all = draw.one_in(2);
    let machine = draw.machine(shape);
    draw.groups();
    let mut drafts = draw.drafts(shape);
    // A stream of its own: cases without a crowd stay what they were before there were any.
    let stream = std::mem::replace(&mut draw.stream, Stream::new(seed, Purpose::Experiment, 2));
    drafts.extend(draw.crowd());
    // Likewise, for those without changes of groups.
    draw.stream = Stream::new(seed, Purpose::Experiment, 3);
    draw.change_groups(&mut drafts);
    draw.stream = Stream::new(seed, Purpose::Experiment, 4);
    draw.confine_groups(&drafts);
    draw.tune(&mut drafts, shape.tunes);
    draw.stream = stream;
    draw.finish(drafts, shape, &machine);
    Case { workload: draw.workload, machine, seed }
}

fn empty(seed: u64) -> Workload {
    Workload::new(format!("check-{seed}"), Vec::new())
}

/// A task in the making: the body of its outer loop, and the number of rounds.
#[derive(Clone, Debug)]
struct Draft {
    spec: TaskSpec,
    body: Vec<Node>,
    rounds: LoopCount,
}

/// The state of a generation.
struct Draw {
    stream: Stream,
    features: Features,
    nr_cpus: u32,
    hz: u32,
    time_ns_min: Nanos,
    workload: Workload,
    /// Every task is pinned to a CPU.
    pins_all: bool,
    /// All tasks have the same attributes.
    is_equal: bool,
    /// The group that most tasks are in.
    home: CgroupId,
}

impl Draw {
    fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.stream.below(bound)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Groups, chains rather than bushes.
    fn groups(&mut self) {
        if !self.has(Feature::Groups) {
            return;
        }
        let count = 1 + self.below(3).min(self.below(4)) as u32;
        for index in 1..=count {
            let parent = match self.one_in(2) {
                true => CgroupId(index - 1),
                false => CgroupId(self.below(u64::from(index)) as u32),
            };
            let name = char::from(b'g' + index as u8 - 1);
            let above = &self.workload.cgroups[parent.index()].path;
            let path = format!("{}/{name}", above.trim_end_matches('/'));
            let weight = match self.one_in(2) {
                true => 100,
                false => self.choose(&group_changes::WEIGHTS),
            };
            let mut group = CgroupSpec::new(path, parent, weight);
            if self.has(Feature::Quota) && self.one_in(2) {
                group.cpu_max = Some(self.cpu_max());
            }
            self.workload.cgroups.push(group);
        }
        self.home = CgroupId(self.below(u64::from(count) + 1) as u32);
    }

    fn cpu_max(&mut self) -> CpuMax {
        let period_ns = self.choose(&[1, 4, 5, 10, 20, 100]) * MS;
        let percent = self.choose(&[1, 5, 10, 25, 50, 75, 90, 100, 150]);
        let quota_ns = (period_ns * percent / 100).max(MS);
        let burst_ns = if self.one_in(4) { quota_ns / 2 } else { 0 };
        CpuMax { quota_ns, period_ns, burst_ns }
    }

    fn drafts(&mut self, shape: &Shape) -> Vec<Draft> {
        let mut count = 1;
        while count < shape.tasks_max && !self.one_in(4) {
            count += 1;
        }
        let mut drafts = Vec::new();
        for index in 0..count {
            let name = char::from(b'a' + index as u8).to_string();
            let (body, rounds) = self.body();
            let attr = self.attr();
            let mut spec = TaskSpec { attr, ..TaskSpec::new(name, Default::default()) };
            if self.has(Feature::Instances) && self.one_in(2) {
                spec.instances = 2 + self.below(4).min(self.below(6)) as u32;
            }
            if self.has(Feature::Late) && self.one_in(2) {
                spec.release_ns = self.amount();
                spec.interarrival_ns = self.one_in(2).then(|| self.amount());
            }
            if self.has(Feature::Wakeups) && self.one_in(2) {
                spec.release = Release::Wakeup;
            }
            drafts.push(Draft { spec, body, rounds });
        }
        self.couple(&mut drafts);
        self.change(&mut drafts);
        self.fork(&mut drafts);
        drafts
    }

    /// Dozens of tasks on one CPU that may not leave it, in one of four cases that may have them.
    fn crowd(&mut self) -> Option<Draft> {
        let may = self.has(Feature::Crowds) && self.has(Feature::Affinity);
        if !may || self.nr_cpus < 2 || !self.one_in(4) {
            return None;
        }
        let cpu = CpuId(self.below(u64::from(self.nr_cpus)) as u32);
        let attr = SchedAttr { affinity: Some(CpuMask::only(cpu)), ..SchedAttr::default() };
        let mut spec = TaskSpec { attr, ..TaskSpec::new("z", Default::default()) };
        spec.instances = 33 + self.below(32) as u32;
        let mut body = vec![Node::Op(Op::Run(constant(self.choose(&[1, 5, 20]) * MS)))];
        if self.one_in(2) {
            body.push(Node::Op(Op::Sleep(constant(self.choose(&[1, 10, 50]) * MS))));
        }
        Some(Draft { spec, body, rounds: LoopCount::Forever })
    }

    /// Makes the workload of the drafts.
    fn finish(&mut self, drafts: Vec<Draft>, shape: &Shape, machine: &Machine) {
        let mut steps_per_sec = 1;
        for Draft { mut spec, body, rounds } in drafts {
            let body = match rounds {
                LoopCount::Times(1) => body,
                rounds => vec![Node::Loop(rounds, body)],
            };
            steps_per_sec += u64::from(spec.instances) * pace(&body);
            spec.program = tree::program(&body);
            self.workload.tasks.push(spec);
        }
        admit_deadlines(&mut self.workload);
        let affordable = shape.steps_max.saturating_mul(1_000 * MS) / steps_per_sec;
        let most = affordable.clamp(20 * MS, shape.duration_ns_max.max(20 * MS));
        let wanted = self.choose(&[50, 100, 200, 400, 1_000, 2_000]) * MS;
        let wanted = wanted.max(shape.duration_ns_min);
        let wanted = if self.is_equal { shape.duration_ns_max } else { wanted };
        self.workload.duration_ns = Some(wanted.min(most) / MS * MS);
        debug_assert_eq!(self.workload.check(machine.nr_cpus()), Ok(()));
    }

    fn object(&mut self, name: &str, kind: ObjectKind) -> ObjectId {
        let number = self.workload.objects.len();
        self.workload.add_object(ObjectSpec::new(format!("{name}{number}"), kind))
    }
}

/// Gives every DEADLINE task but the first two the default policy, and those one instance: more
/// might not be admitted.
fn admit_deadlines(workload: &mut Workload) {
    let mut admitted = 0;
    for task in &mut workload.tasks {
        if task.attr.policy == schedlab_model::Policy::Deadline {
            admitted += 1;
            if admitted > 2 || task.instances != 1 {
                task.attr = SchedAttr::default();
            }
        }
    }
}

/// Constant amounts are the most frequent.
fn constant(ns: Nanos) -> Amount {
    Amount::Constant(ns)
}
