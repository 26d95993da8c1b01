// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedulers of Linux 6.1 and later: deadline tasks above real-time tasks above fair ones.
//!
//! A model is a row with its tunables and the rules that differ from the previous row. The rules
//! are in [`crate::fair::rules`] and [`crate::deadline::tunables`]. [`crate::deadline`],
//! [`crate::rt`], [`crate::fair`] and [`crate::balance`] describe them and what they leave out.

use crate::SchedClass;
use crate::boundary::options::{Options, Tunable};
use crate::deadline::tunables::{self as dl, DlRules};
use crate::deadline::{DlClass, DlOptions};
use crate::fair::{FairClass, features, rules::Rules, tunables as fair};
use crate::rt::{RtClass, RtOptions, tunables as rt};
use crate::scheduler::{Claims, Make, Scheduler};
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{CgroupSpec, Costs, Kernel, KernelVersion, Machine, Preempt};

/// A kernel's scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The kernel.
    pub version: KernelVersion,
    /// The first release of the series that is known to have these rules.
    pub since: KernelVersion,
    /// A description, without the name.
    pub summary: &'static str,
    /// Source of its rules.
    pub source: &'static str,
    /// What it leaves out or simplifies.
    pub leaves_out: &'static [&'static str],
    /// Rules of the fair class.
    pub fair: Rules,
    /// Rules of the deadline class.
    pub deadline: DlRules,
    /// Tunables, except those that only some rules have ([`Model::tunables`]).
    pub tunables: [&'static [Tunable]; 6],
    /// Defaults that changed with this version. Later versions keep them.
    pub defaults: &'static [(&'static str, u64)],
    /// Bug P13 on purpose.
    pub rt_forgets_timer: bool,
}

const LEAVES_OUT: &str = "the threads of the stop class, core scheduling, NUMA balancing, \
     cpu.idle groups, control groups of real-time tasks";

/// Tunables of kernels with EEVDF.
const fn eevdf(rt: &'static [Tunable], eevdf: &'static [Tunable]) -> [&'static [Tunable]; 6] {
    [fair::EEVDF, dl::TUNABLES, features::BALANCE, rt::FEATURES, rt, eevdf]
}

/// Linux 6.1, with CFS.
const LINUX_6_1: Model = Model {
    version: KernelVersion::series(6, 1),
    since: KernelVersion::release(6, 1, 160),
    summary: "Linux 6.1: deadline > real-time (FIFO, RR) > fair (CFS)",
    source: "Linux 6.1.158, kernel/sched/{deadline,rt,fair,topology}.c; NI_RANDOM of 6.1.160",
    leaves_out: &[LEAVES_OUT],
    fair: Rules::LINUX_6_1,
    deadline: DlRules::LINUX_6_1,
    tunables: [
        fair::CFS,
        rt::TUNABLES,
        dl::TUNABLES,
        features::BALANCE,
        rt::FEATURES,
        features::CFS,
    ],
    // As in guests of 6.1.192 and 6.12.117, but not of 6.18.15: 7.1's default in later releases.
    defaults: &[("RT_PUSH_IPI", 0)],
    rt_forgets_timer: false,
};

/// Linux 6.6, the first with EEVDF.
const LINUX_6_6: Model = Model {
    version: KernelVersion::series(6, 6),
    since: KernelVersion::release(6, 6, 87),
    summary: "Linux 6.6: deadline > real-time (FIFO, RR) > fair (EEVDF, first version)",
    source: "Linux 6.6.87, kernel/sched/{deadline,rt,fair,topology}.c",
    fair: Rules::LINUX_6_6,
    deadline: DlRules::LINUX_6_6,
    tunables: eevdf(rt::TUNABLES, features::EEVDF_6_6),
    defaults: &[("RT_PUSH_IPI", 1)],
    ..LINUX_6_1
};

/// Linux 6.12.0.
const LINUX_6_12_0: Model = Model {
    version: KernelVersion::release(6, 12, 0),
    since: KernelVersion::release(6, 12, 0),
    summary: "Linux 6.12.0: deadline > real-time, fair server > fair (EEVDF, delayed \
              dequeue, custom slices)",
    source: "Linux 6.12.0, kernel/sched/{deadline,rt,fair,topology}.c",
    fair: Rules::LINUX_6_12_0,
    deadline: DlRules::LINUX_6_12,
    tunables: eevdf(rt::TUNABLES_6_12, features::EEVDF_6_12),
    ..LINUX_6_6
};

/// Linux 6.12, later releases.
const LINUX_6_12: Model = Model {
    version: KernelVersion::series(6, 12),
    since: KernelVersion::release(6, 12, 65),
    summary: "Linux 6.12 (later releases): deadline > real-time (FIFO, RR), fair server > fair \
              (EEVDF)",
    source: "Linux 6.12.63, kernel/sched/{deadline,rt,fair,topology}.c; NI_RANDOM of 6.12.65",
    fair: Rules::LINUX_6_12,
    defaults: &[("RT_PUSH_IPI", 0)],
    ..LINUX_6_12_0
};

/// Linux 6.18 up to 6.18.44. Changing weights of groups can starve other tasks.
const LINUX_6_18_44: Model = Model {
    version: KernelVersion::release(6, 18, 44),
    since: KernelVersion::release(6, 18, 5),
    summary: "Linux 6.18 up to 6.18.44: deadline > real-time, fair server > fair (EEVDF, shortest \
              slice protects; busy groups can starve other tasks)",
    source: "Linux 6.18.2, kernel/sched/{deadline,rt,fair,topology}.c",
    fair: Rules::LINUX_6_18_44,
    deadline: DlRules::LINUX_6_18,
    defaults: &[("RT_PUSH_IPI", 1)],
    ..LINUX_6_12
};

/// Linux 6.18, later releases.
const LINUX_6_18: Model = Model {
    version: KernelVersion::series(6, 18),
    since: KernelVersion::release(6, 18, 45),
    summary: "Linux 6.18 (6.18.45 and later): deadline > real-time, fair server > fair (EEVDF, \
              shortest slice protects)",
    source: "Linux 6.18.2, kernel/sched/{deadline,rt,fair,topology}.c; the change of weights is \
             that of 6.18.45, which reverts 6d71a9c61604",
    fair: Rules::LINUX_6_18,
    ..LINUX_6_18_44
};

/// Linux 7.1.
const LINUX_7_1: Model = Model {
    version: KernelVersion::series(7, 1),
    since: KernelVersion::release(7, 1, 0),
    summary: "Linux 7.1: deadline > real-time, fair server > fair (EEVDF, exact arithmetic, new \
              tasks do not preempt)",
    source: "Linux 7.1.5, kernel/sched/{deadline,rt,fair,topology}.c",
    fair: Rules::LINUX_7_1,
    deadline: DlRules::LINUX_7_1,
    defaults: &[("RT_PUSH_IPI", 0)],
    ..LINUX_6_18
};

/// Linux 7.2 on an architecture that rearms timers late: both high-resolution ticks are on.
const LINUX_7_2: Model = Model {
    version: KernelVersion::series(7, 2),
    since: KernelVersion::release(7, 2, 0),
    summary: "Linux 7.2 as on x86: deadline > real-time, fair server > fair (EEVDF, a timer ends \
              slices: HRTICK)",
    source: "Linux 7.2.9, kernel/sched/{core,fair,features.h}; deadline, rt, topology.c of 7.1.5; \
             which servers admission counts by the type information of 7.2.9, sched_rt_runtime_us \
             by 7.2.12",
    leaves_out: &[
        LEAVES_OUT,
        "the preference of a process's threads for one last-level cache (SCHED_CACHE)",
        "what a timer of HRTICK takes off the time slice of a SCHED_RR task",
    ],
    fair: Rules::LINUX_7_2,
    deadline: DlRules::LINUX_7_2,
    defaults: &[("HRTICK", 1), ("HRTICK_DL", 1), ("rt_runtime", NSEC_PER_SEC)],
    ..LINUX_7_1
};

/// Preemption model of this kernel.
pub(crate) fn preempt(version: KernelVersion) -> Preempt {
    let kernel = Kernel::find(version).expect("a modelled kernel is in the table");
    kernel.preempt.expect("a modelled kernel has a known preemption model")
}

/// Every model, oldest first.
pub const MODELS: [Model; 8] = [
    LINUX_6_1,
    LINUX_6_6,
    LINUX_6_12_0,
    LINUX_6_12,
    LINUX_6_18_44,
    LINUX_6_18,
    LINUX_7_1,
    LINUX_7_2,
];

impl Model {
    /// Finds the model of exactly this kernel.
    pub fn of(version: KernelVersion) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.version == version)
    }

    /// Finds the model whose rules the kernel `version` has: its own model, or that of a later
    /// release of its series with the same rules.
    pub fn with_rules_of(version: KernelVersion) -> Option<&'static Self> {
        let fits = |model: &&Self| {
            let is_of_series = model.version.series_number() == version.series_number();
            is_of_series && model.since <= version && version <= model.version
        };
        MODELS.iter().find(fits)
    }

    /// Tunables, with this version's defaults.
    pub fn tunables(&self) -> Vec<Tunable> {
        let more = [
            (self.fair.is_eevdf() && self.fair.pick_buddy, features::PICK_BUDDY),
            (self.fair.features.balance.ni_random, features::NI_RANDOM),
            (self.fair.features.balance.ni_rate, features::NI_RATE),
            (self.deadline.counts_ext_server, dl::EXT_SERVER),
        ];
        let mut tunables = self.tunables.concat();
        for (_, list) in more.iter().filter(|(is_there, _)| *is_there) {
            tunables.extend_from_slice(list);
        }
        let so_far = MODELS.iter().filter(|model| model.version <= self.version);
        for (name, default) in so_far.flat_map(|model| model.defaults) {
            let tunable = tunables.iter_mut().find(|tunable| tunable.name == *name);
            tunable.expect("a version gives defaults to tunables that it has").default = *default;
        }
        tunables
    }

    /// The classes of one run: deadline, real-time, fair. With `has_servers`, deadline servers keep
    /// real-time tasks from starving the others, if the version has them. The options are those of
    /// [`Model::tunables`].
    pub fn classes(
        &self,
        has_servers: bool,
        options: &Options,
        machine: &Machine,
        cgroups: &[CgroupSpec],
    ) -> [Box<dyn SchedClass>; 3] {
        let mut deadline = DlOptions::from_options(options, self.deadline);
        if !has_servers {
            (deadline.server, deadline.ext_server) = (None, None);
        }
        let rt = RtClass::new(&RtOptions::from_options(options), machine).following_tunables();
        let rt = if self.rt_forgets_timer { rt.with_forgotten_timer() } else { rt };
        [
            Box::new(DlClass::new(deadline, machine)),
            Box::new(rt),
            Box::new(FairClass::with_switches(self.fair, options, machine, cgroups)),
        ]
    }

    /// The scheduler, for the registry.
    pub fn scheduler(&self) -> Scheduler {
        let model = *self;
        Scheduler {
            name: format!("linux-{}", self.version).into(),
            summary: self.summary.into(),
            source: self.source.into(),
            leaves_out: self.leaves_out.join(", ").into(),
            claims: Claims {
                work_conserving: true,
                starvation_free: true,
                fair: true,
                needs_burst: false,
            },
            preempt: preempt(self.version),
            costs: Costs::DEFAULT,
            tunables: self.tunables(),
            digest: None,
            make: Make::new(move |options, machine, cgroups| {
                model.classes(true, options, machine, cgroups).into()
            }),
        }
    }
}
