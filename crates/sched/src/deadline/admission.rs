// SPDX-License-Identifier: MIT OR Apache-2.0
//! Admission: whether another task fits, and the checks of sched_setattr(2).
//!
//! Source: Linux kernel/sched/deadline.c (sched_dl_overflow, __dl_overflow, __checkparam_dl) and
//! syscalls.c, 6.12.63; sched_init_dl_servers of 7.0 and 7.2. The whole machine is one root domain,
//! and every CPU has capacity 1024.
//!
//! The servers of all CPUs are admitted from the start. 7.0 and 7.1 admit two for each CPU, that of
//! fair and that of sched_ext tasks, even if no scheduler is ever loaded. 7.2 admits the latter
//! when a scheduler is loaded (no kernel before it has `dl_bw_attached`, by its type information).
//! It releases the former when that scheduler takes all fair tasks.

use super::{DlClass, DlOptions};
use crate::boundary::core::Core;
use schedlab_model::{Policy, SchedAttr, TaskId};

/// Shortest runtime: 2^DL_SCALE ns.
const RUNTIME_MIN: u64 = 1 << 10;

/// Bandwidth of the machine (`struct dl_bw`), in 2^-20 of a CPU.
#[derive(Debug)]
pub struct Admission {
    /// Bandwidth that all CPUs together may use; `None`: no limit.
    limit: Option<u64>,
    /// Bandwidth in use.
    total: u64,
}

impl Admission {
    /// Admission of the servers only.
    pub fn new(options: &DlOptions, nr_cpus: u32) -> Self {
        let cpus = u64::from(nr_cpus);
        Self {
            limit: options.bandwidth().map(|bandwidth| bandwidth * cpus),
            total: options.server_bandwidth() * cpus,
        }
    }

    /// Replaces `old` by `new`, if it fits.
    fn exchange(&mut self, old: u64, new: u64) -> bool {
        let total = self.total - old + new;
        let fits = self.limit.is_none_or(|limit| total <= limit);
        if fits {
            self.total = total;
        }
        fits
    }

    /// Releases `bandwidth`.
    pub fn release(&mut self, bandwidth: u64) {
        self.total -= bandwidth;
    }
}

impl DlClass {
    /// Checks that `task` may have `attr`, and reserves its share.
    pub(super) fn admit_task(
        &mut self,
        core: &Core,
        task: TaskId,
        attr: &SchedAttr,
    ) -> Result<(), String> {
        if attr.policy != Policy::Deadline {
            return Ok(());
        }
        self.check_params(attr)?;
        if attr.affinity.is_some_and(|mask| !core.cpus.and_not(&mask).is_empty()) {
            return Err(
                "a DEADLINE task must be allowed to use every CPU of the machine (EPERM): \
                        leave out its affinity"
                    .into(),
            );
        }
        let state = &mut self.tasks[task.index()];
        let mut entity = state.entity;
        entity.set_params(&attr.deadline);
        let new = entity.bandwidth();
        if !self.admission.exchange(state.admitted, new) {
            let in_use = self.admission.total - state.admitted;
            let limit = self.admission.limit.unwrap_or_default();
            return Err(format!(
                "its share of {} CPUs is not admitted beside the {} in use: DEADLINE tasks and \
                 servers may use {} (EBUSY); lower a runtime, or raise rt_runtime",
                share(new),
                share(in_use),
                share(limit)
            ));
        }
        let old = std::mem::replace(&mut state.admitted, new);
        state.departure += 1;
        self.grub.admitted(old, new);
        Ok(())
    }

    fn check_params(&self, attr: &SchedAttr) -> Result<(), String> {
        let params = &attr.deadline;
        let period = if params.period_ns == 0 { params.deadline_ns } else { params.period_ns };
        let (min, max) = (self.options.period_min, self.options.period_max);
        if params.runtime_ns < RUNTIME_MIN {
            return Err(format!(
                "its runtime is {} ns, the least is {RUNTIME_MIN} ns (EINVAL)",
                params.runtime_ns
            ));
        }
        if !(min..=max).contains(&period) {
            return Err(format!(
                "its period is {period} ns, allowed are {min} to {max} ns (EINVAL; dl_period_min, \
                 dl_period_max)"
            ));
        }
        Ok(())
    }
}

/// A bandwidth in CPUs, with three digits after the point.
fn share(bandwidth: u64) -> String {
    let thousandths = (bandwidth * 1_000) >> 20;
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::cbs::to_ratio;
    use crate::deadline::fair_server::StopRule;

    fn nr_admitted(server_ms: u64, nr_cpus: u32) -> u32 {
        nr_admitted_beside(server_ms, None, nr_cpus)
    }

    fn nr_admitted_beside(fair_ms: u64, ext_ms: Option<u64>, nr_cpus: u32) -> u32 {
        let server = Some((StopRule::LastLeaves, fair_ms, 1_000));
        let ext_server = ext_ms.map(|runtime| (runtime, 1_000));
        let options = DlOptions { server, ext_server, ..DlOptions::default() };
        let mut admission = Admission::new(&options, nr_cpus);
        let new = to_ratio(100, 10);
        (0..).take_while(|_| admission.exchange(0, new)).count() as u32
    }

    #[test]
    fn section_4_1_nine_tasks_fit_a_cpu() {
        assert_eq!(to_ratio(1_000, 950), 996_147);
        assert_eq!(nr_admitted(0, 1), 9);
        assert_eq!(nr_admitted(50, 1), 9);
        assert_eq!(nr_admitted(0, 2), 19);
    }

    #[test]
    fn section_4_1_the_ext_server_of_7_1_takes_the_ninth_place() {
        assert_eq!(nr_admitted_beside(50, Some(50), 1), 8);
        assert_eq!(nr_admitted_beside(50, Some(50), 2), 17);
        assert_eq!(nr_admitted_beside(50, None, 1), 9);
    }

    #[test]
    fn a_change_counts_the_difference() {
        let mut admission = Admission::new(&DlOptions::default(), 1);
        assert!(admission.exchange(0, 900_000));
        assert!(!admission.exchange(0, 100_000));
        assert!(admission.exchange(900_000, 996_147));
        admission.release(996_147);
        assert_eq!(admission.total, 0);
    }

    #[test]
    fn shares_are_said_in_cpus() {
        assert_eq!([share(1 << 20), share(996_147), share(0)], ["1.000", "0.949", "0.000"]);
    }
}
