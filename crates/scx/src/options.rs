// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the modelled sched_ext core.

use super::consts::{self, EnqBits};
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_model::{KernelVersion, Nanos};
use schedlab_sched::boundary::options::{Options, Tunable, TunableKind};
use schedlab_sched::kernels::Model;

/// Whose rules the core follows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum CoreVersion {
    /// Linux 6.18: balancing before every pick.
    #[default]
    V6_18,
    /// Linux 7.1: balancing inside the pick of the class, custody, one queue of bypassed tasks a
    /// CPU.
    V7_1,
}

impl CoreVersion {
    /// Every version, in the order of the words of [`SCX_CORE`].
    pub const ALL: [Self; 2] = [Self::V6_18, Self::V7_1];

    /// The kernel.
    pub const fn kernel(self) -> KernelVersion {
        match self {
            Self::V6_18 => KernelVersion::series(6, 18),
            Self::V7_1 => KernelVersion::series(7, 1),
        }
    }

    /// The model of the classes beside ext.
    pub fn model(self) -> &'static Model {
        Model::of(self.kernel()).expect("the kernels of the core are modelled")
    }

    /// The version called `name`, such as `6.18`.
    pub fn by_name(name: &str) -> Option<Self> {
        let version = name.parse().ok()?;
        Self::ALL.into_iter().find(|core| core.kernel() == version)
    }
}

/// What an error of the scheduler does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnError {
    /// It is an error of the run.
    #[default]
    Stop,
    /// As in the kernel: the tasks go back to the fair class and run on.
    Fallback,
}

/// Settings of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtOptions {
    /// Rules.
    pub core: CoreVersion,
    /// What an error does.
    pub on_error: OnError,
    /// When the scheduler is loaded; 0: before the first task.
    pub load_at: Nanos,
    /// When it is unloaded; 0: at the end of the run.
    pub unload_at: Nanos,
}

const TIME_MAX: Nanos = 1_000_000 * NSEC_PER_SEC;

/// The kernel whose rules the core follows.
pub const SCX_CORE: Tunable = Tunable::new(
    "scx_core",
    TunableKind::words(&["6.18", "7.1"]),
    0,
    "kernel whose sched_ext core is modelled",
);

/// What an error of the scheduler does.
pub const SCX_ON_ERROR: Tunable = Tunable::new(
    "scx_on_error",
    TunableKind::words(&["stop", "fallback"]),
    0,
    "an error of the scheduler ends the run, or its tasks go back to the fair class",
);

/// When it is loaded.
pub const SCX_LOAD_AT: Tunable = Tunable::new(
    "scx_load_at",
    TunableKind::Time { min: 0, max: TIME_MAX },
    0,
    "when the scheduler is loaded; 0: before the first task",
);

/// When it is unloaded.
pub const SCX_UNLOAD_AT: Tunable = Tunable::new(
    "scx_unload_at",
    TunableKind::Time { min: 0, max: TIME_MAX },
    0,
    "when the scheduler is unloaded; 0: at the end of the run",
);

/// Tunables of the core.
pub const TUNABLES: &[Tunable] = &[SCX_CORE, SCX_ON_ERROR, SCX_LOAD_AT, SCX_UNLOAD_AT];

impl ExtOptions {
    /// The settings of a stack that declares [`TUNABLES`].
    pub fn from_options(options: &Options) -> Self {
        let core = CoreVersion::ALL[options.get(&SCX_CORE.name) as usize];
        let on_error = match options.get(&SCX_ON_ERROR.name) {
            0 => OnError::Stop,
            _ => OnError::Fallback,
        };
        Self {
            core,
            on_error,
            load_at: options.get(&SCX_LOAD_AT.name),
            unload_at: options.get(&SCX_UNLOAD_AT.name),
        }
    }

    /// Whether the fair class is needed beside an ext class that has all tasks.
    pub fn needs_fair(&self) -> bool {
        self.on_error == OnError::Fallback || self.load_at > 0 || self.unload_at > 0
    }

    /// The flags of this kernel.
    pub const fn bits(&self) -> EnqBits {
        consts::EnqBits::of(self.core)
    }
}
