// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the modelled sched_ext core.

use super::rules::{CORES, CoreRules};
use schedlab_model::Nanos;
use schedlab_model::time::NSEC_PER_SEC;
use schedlab_sched::boundary::options::{Options, SCX_CORE, Tunable, TunableKind, Words};

/// The effect of a scheduler's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnError {
    /// It ends the run with an error.
    #[default]
    Stop,
    /// As in the kernel: the tasks return to the fair class and continue.
    Fallback,
}

/// Settings of the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtOptions {
    /// The rules of the modelled kernel.
    pub core: CoreRules,
    /// What an error does.
    pub on_error: OnError,
    /// When the scheduler is loaded (ns); 0: before the first task.
    pub load_at: Nanos,
    /// When it is unloaded (ns); 0: at the end of the run.
    pub unload_at: Nanos,
}

const TIME_MAX: Nanos = 1_000_000 * NSEC_PER_SEC;

const SCX_ON_ERROR: Tunable = Tunable::new(
    "scx_on_error",
    TunableKind::words(&["stop", "fallback"]),
    0,
    "an error of the scheduler ends the run, or its tasks go back to the fair class",
);

const SCX_LOAD_AT: Tunable = Tunable::new(
    "scx_load_at",
    TunableKind::Time { min: 0, max: TIME_MAX },
    0,
    "when the scheduler is loaded; 0: before the first task",
);

const SCX_UNLOAD_AT: Tunable = Tunable::new(
    "scx_unload_at",
    TunableKind::Time { min: 0, max: TIME_MAX },
    0,
    "when the scheduler is unloaded; 0: at the end of the run",
);

/// Tunables of the core.
pub fn tunables() -> [Tunable; 4] {
    let kernels = CORES.map(|core| core.version.to_string()).to_vec();
    let core = Tunable {
        name: SCX_CORE.into(),
        kind: TunableKind::Choice(Words::Read(kernels)),
        default: 0,
        text: "kernel whose sched_ext core is modelled".into(),
    };
    [core, SCX_ON_ERROR, SCX_LOAD_AT, SCX_UNLOAD_AT]
}

impl ExtOptions {
    /// Reads the settings of a stack with these [`tunables`].
    pub fn from_options(options: &Options) -> Self {
        let on_error = match options.get(&SCX_ON_ERROR.name) {
            0 => OnError::Stop,
            _ => OnError::Fallback,
        };
        Self {
            core: CORES[options.get(SCX_CORE) as usize],
            on_error,
            load_at: options.get(&SCX_LOAD_AT.name),
            unload_at: options.get(&SCX_UNLOAD_AT.name),
        }
    }

    /// Whether the fair class is needed in addition to an ext class that has all tasks.
    pub fn needs_fair(&self) -> bool {
        self.on_error == OnError::Fallback || self.load_at > 0 || self.unload_at > 0
    }
}
