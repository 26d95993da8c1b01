// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers for the analysis of hand-made traces.

use super::{Analyser, Analysis, Context};
use crate::testing::Script;
use schedlab_model::CpuMask;

/// A context of equal tasks on the first `nr_cpus` CPUs.
pub fn context(nr_cpus: u32) -> Context {
    Context { cpus: CpuMask::first(nr_cpus), is_whole: true, ..Context::default() }
}

/// The analysis of a script with this context.
pub fn analyse_with(context: Context, script: &Script) -> Analysis {
    let mut analyser = Analyser::new(context);
    script.play(&mut analyser);
    analyser.finish()
}

/// The analysis of a script of equal tasks.
pub fn analyse(nr_cpus: u32, script: &Script) -> Analysis {
    analyse_with(context(nr_cpus), script)
}
