// SPDX-License-Identifier: MIT OR Apache-2.0
//! sched_rt_runtime_us and sched_rt_period_us, as the kernel checks writes of them.

use schedlab_model::Nanos;
use schedlab_model::program::SchedTunable;
use schedlab_sched::Options;

/// The values of both files (ns).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RtLimit {
    runtime: Nanos,
    period: Nanos,
}

impl RtLimit {
    /// The values at the start; without these tunables none is ever written.
    pub fn of(options: &Options) -> Self {
        let value = |name| options.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let [runtime, period] = [SchedTunable::RtRuntime, SchedTunable::RtPeriod]
            .map(|tunable| value(tunable.model_name()).unwrap_or(SchedTunable::NO_LIMIT));
        Self { runtime: runtime.min(period), period }
    }

    /// A file is written (`sched_rt_global_validate`).
    ///
    /// # Errors
    /// What the kernel refuses (EINVAL).
    pub fn set(&mut self, tunable: SchedTunable, value: u64) -> Result<(), String> {
        let mut next = *self;
        match tunable {
            SchedTunable::RtRuntime => next.runtime = value,
            SchedTunable::RtPeriod => next.period = value,
            _ => return Ok(()),
        }
        if next.runtime != SchedTunable::NO_LIMIT && next.runtime > next.period {
            return Err(format!(
                "it sets {}, which makes rt_runtime {} ns and rt_period {} ns: the kernel refuses \
                 a runtime above the period; set the smaller one first",
                tunable.name(),
                next.runtime,
                next.period
            ));
        }
        *self = next;
        Ok(())
    }
}
