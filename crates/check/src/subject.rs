// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is checked: a scheduler, and what rules may rely on.

use crate::generate::{Feature, Features, Shape, Tunes};
use schedlab_model::{KernelVersion, Nanos};
use schedlab_sched::{Options, Scheduler};
use std::sync::Arc;

/// Where a scheduler comes from: it decides which rules hold for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// A textbook scheduler, or one of a research paper. It ignores policies.
    Textbook,
    /// A model of a kernel before 6.1, or of a patch to one.
    Early,
    /// A model of this kernel, 6.1 or later.
    Kernel(KernelVersion),
    /// A sched_ext scheduler, compiled for the simulator.
    Native,
}

/// The first kernel of the family [`Family::Kernel`].
const FIRST_KERNEL: KernelVersion = KernelVersion::release(6, 1, 0);

/// Names of models of patches to early kernels.
const PATCHES: [&str; 3] = ["cfs-v19", "rsdl-0.31", "sd-0.48"];

impl Family {
    /// The family of `scheduler`.
    pub fn of(scheduler: &Scheduler) -> Self {
        if scheduler.scx_digest().is_some() {
            return Self::Native;
        }
        // A kernel's model with a known bug has the kernel's rules.
        let kernel = scheduler.name.split('+').next().unwrap_or_default();
        match kernel.parse::<KernelVersion>() {
            Ok(version) if version >= FIRST_KERNEL => Self::Kernel(version),
            Ok(_) => Self::Early,
            Err(_) if PATCHES.contains(&scheduler.name.as_ref()) => Self::Early,
            Err(_) => Self::Textbook,
        }
    }

    /// Whether the family has EEVDF.
    pub fn is_eevdf(self) -> bool {
        matches!(self, Self::Kernel(version) if version >= KernelVersion::release(6, 6, 0))
    }
}

/// A scheduler with its options.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The scheduler.
    pub scheduler: Arc<Scheduler>,
    /// Values of its tunables.
    pub options: Options,
    /// Whether known limits ([`crate::LIMITS`]) count as breaches.
    pub judges_limits: bool,
    /// Rules that are not judged.
    pub skipped: Vec<&'static str>,
    /// CPU time (ns) that threads outside of the workload may take at once, as those of the kernel
    /// and the recorder do in a guest. None do in the simulator.
    pub outside_ns: Nanos,
}

impl Subject {
    /// A scheduler with the defaults of its tunables.
    pub fn new(scheduler: Arc<Scheduler>) -> Self {
        let options = Options::defaults(&scheduler.tunables);
        Self { scheduler, options, judges_limits: false, skipped: Vec::new(), outside_ns: 0 }
    }

    /// What generated cases may have: nothing that the scheduler would refuse.
    pub fn shape(&self) -> Shape {
        let features = match self.family() {
            Family::Textbook | Family::Early => {
                Features::ALL.without(Feature::Deadline).without(Feature::Quota)
            }
            Family::Kernel(_) | Family::Native => Features::ALL,
        };
        let tunes = match self.family() {
            Family::Kernel(_) => Tunes::of(&self.scheduler),
            _ => Tunes::NONE,
        };
        let has_equals = !matches!(self.family(), Family::Kernel(_));
        Shape { features, tunes, has_equals, ..Shape::default() }
    }

    /// Its family.
    pub fn family(&self) -> Family {
        Family::of(&self.scheduler)
    }
}
