// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload: tasks with programs and attributes, and the groups they run in.

use crate::trace::{ObjectInfo, WaitKind};
use crate::{
    Amount, CgroupId, CpuMask, Expectation, Nanos, ObjectId, ObjectSpec, Op, Program, SchedAttr,
};

mod changes;
mod check;
mod check_objects;
mod cpusets;
mod forks;
mod sessions;
pub mod uses;

pub use changes::{CPU_MAX_PERIOD_NS, Change, CpuMaxWrite};
pub use cpusets::effective_cpus;
pub use sessions::SessionSpec;

/// How a task starts at its release time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Release {
    /// The launcher creates it: the scheduler sees a fork (wake_up_new_task).
    #[default]
    Fork,
    /// It exists and sleeps already: the scheduler sees a wake-up. For models that must start with
    /// equal virtual times.
    Wakeup,
}

/// One kind of task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct TaskSpec {
    /// Name; instances and forks get `name-k` (k from 0) when there is more than one.
    pub name: String,
    /// Attributes at its start.
    pub attr: SchedAttr,
    /// How many the launcher starts; 0: only forks create this task.
    pub instances: u32,
    /// Release time (ns after the start of the run), drawn for each instance.
    pub release_ns: Amount,
    /// Open arrivals: time (ns) from the release of one instance to that of the next.
    pub interarrival_ns: Option<Amount>,
    /// How it starts.
    pub release: Release,
    /// Its program.
    pub program: Program,
    /// Names of its phases; `Op::Phase` numbers them.
    pub phases: Vec<String>,
    /// Bytes that it accesses repeatedly. After a migration, or after another task ran, they must
    /// be read into the cache again. 0: unknown, and no time is charged.
    pub working_set_bytes: u64,
    /// Whether it is a process with its own address space, instead of a thread of the workload's
    /// one process.
    pub is_process: bool,
    /// Index of its session; `None`: the session of the task that forks it, or the launcher's.
    /// Sessions matter only with autogroups.
    pub session: Option<u32>,
}

impl TaskSpec {
    /// A task with default attributes, released once at time 0.
    pub fn new(name: impl Into<String>, program: Program) -> Self {
        Self {
            name: name.into(),
            attr: SchedAttr::default(),
            instances: 1,
            release_ns: Amount::Constant(0),
            interarrival_ns: None,
            release: Release::Fork,
            program,
            phases: Vec::new(),
            working_set_bytes: 0,
            is_process: false,
            session: None,
        }
    }
}

/// Limit of a group's CPU time (cpu.max of cgroup v2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct CpuMax {
    /// CPU time (ns) that the group may use in each period, on all CPUs together; at least 1 ms.
    pub quota_ns: Nanos,
    /// Period (ns), 1 ms to 1 s.
    pub period_ns: Nanos,
    /// Unused CPU time (ns) of earlier periods that the group may use in one period in addition to
    /// the quota (cpu.max.burst); at most the quota.
    pub burst_ns: Nanos,
}

/// A control group of the controllers cpu and cpuset.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CgroupSpec {
    /// Path below the run's own group, such as `/a/b`; the root group is `/`.
    pub path: String,
    /// Parent group; the root group is its own parent.
    pub parent: CgroupId,
    /// cpu.weight, 1 to 10000, default 100.
    pub weight: u32,
    /// cpu.weight.nice, -20 to 19. If set, it replaces `weight`: the group weighs as a task with
    /// this nice value.
    pub weight_nice: Option<i8>,
    /// cpu.max; `None`: no limit.
    pub cpu_max: Option<CpuMax>,
    /// cpuset.cpus: where its tasks and those of the groups below it may run at the start; `None`:
    /// where those of its parent may.
    pub cpus: Option<CpuMask>,
}

impl CgroupSpec {
    /// The root group.
    pub fn root() -> Self {
        Self::new("/", CgroupId(0), 100)
    }

    /// A group without a CPU limit.
    pub fn new(path: impl Into<String>, parent: CgroupId, weight: u32) -> Self {
        Self { path: path.into(), parent, weight, weight_nice: None, cpu_max: None, cpus: None }
    }
}

/// Most tasks in a run: the kernel's limit of process ids (`PID_MAX_LIMIT`,
/// include/linux/threads.h, 64-bit).
pub const TASKS_MAX: u64 = 4_194_304;

/// A workload: tasks, their groups and sessions, and the objects that they share.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "borsh", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Workload {
    /// Name in results and titles.
    pub name: String,
    /// Kinds of task. `Op::Fork` names them by index.
    pub tasks: Vec<TaskSpec>,
    /// Groups; index 0 is the root group.
    pub cgroups: Vec<CgroupSpec>,
    /// Sessions that tasks name.
    pub sessions: Vec<SessionSpec>,
    /// Objects that tasks share and wait for. Operations name them by index.
    pub objects: Vec<ObjectSpec>,
    /// Sets of objects that `Op::WaitAny` names by index: channels and semaphores.
    pub wait_sets: Vec<Vec<ObjectId>>,
    /// Ends the run at this time (ns) if it has not ended by itself.
    pub duration_ns: Option<Nanos>,
    /// Expected results. The lanes ignore them.
    #[cfg_attr(feature = "borsh", borsh(skip))]
    pub expect: Vec<Expectation>,
}

/// A workload cannot be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadError(
    /// What was found, what is allowed, what to do.
    pub String,
);

impl std::fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorkloadError {}

impl Workload {
    /// A workload with only the root group.
    pub fn new(name: impl Into<String>, tasks: Vec<TaskSpec>) -> Self {
        Self {
            name: name.into(),
            tasks,
            cgroups: vec![CgroupSpec::root()],
            sessions: Vec::new(),
            objects: Vec::new(),
            wait_sets: Vec::new(),
            duration_ns: None,
            expect: Vec::new(),
        }
    }

    /// Adds an object and returns its id.
    pub fn add_object(&mut self, object: ObjectSpec) -> ObjectId {
        self.objects.push(object);
        ObjectId(self.objects.len() as u32 - 1)
    }

    /// Returns the first task that loops for ever, if the workload has no duration either. Such a
    /// run would never end.
    pub fn endless_task(&self) -> Option<&TaskSpec> {
        let mut tasks = self.tasks.iter().filter(|_| self.duration_ns.is_none());
        tasks.find(|task| task.program.is_endless())
    }

    /// Names in a trace of everything that tasks wait for, by the number in
    /// [`crate::EventKind::Block`]: first the objects, then the sets of objects, then, if any
    /// program joins tasks, the exit of children.
    pub fn trace_objects(&self) -> Vec<ObjectInfo> {
        let name_of = |id: &ObjectId| match self.objects.get(id.index()) {
            Some(object) => object.name.as_str(),
            None => "?",
        };
        let objects = self
            .objects
            .iter()
            .map(|object| ObjectInfo { name: object.name.clone(), kind: object.kind.into() });
        let sets = self.wait_sets.iter().map(|set| ObjectInfo {
            name: set.iter().map(name_of).collect::<Vec<_>>().join("|"),
            kind: WaitKind::Set,
        });
        let joins = |op: &Op| matches!(op, Op::JoinAll | Op::Join { .. });
        let has_joins = self.tasks.iter().any(|task| task.program.ops.iter().any(joins));
        let children = ObjectInfo { name: "children".into(), kind: WaitKind::Children };
        objects.chain(sets).chain(has_joins.then_some(children)).collect()
    }

    /// Number in a trace of the set of objects `set`.
    pub fn trace_set(&self, set: u32) -> ObjectId {
        ObjectId(self.objects.len() as u32 + set)
    }

    /// Number in a trace of the exit of children.
    pub fn trace_children(&self) -> ObjectId {
        self.trace_set(self.wait_sets.len() as u32)
    }

    /// Total number of tasks that the launcher starts.
    pub fn nr_released(&self) -> u64 {
        self.tasks.iter().map(|task| u64::from(task.instances)).sum()
    }
}
