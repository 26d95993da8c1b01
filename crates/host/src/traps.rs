// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conditions that distort results: detected around every run, each with a warning.

use crate::machine::{self, read};
use crate::outcome::HostOutcome;
use crate::procfs::{self, CpuTimes};
use crate::sys;
use schedlab_model::CpuMask;
use schedlab_run::Warning;

/// Percentage of the run's CPU time that other processes may use, or the hypervisor may steal,
/// without a warning.
const FOREIGN_PERCENT_MAX: u64 = 2;
const STEAL_PERCENT_MAX: u64 = 1;

/// Observes the machine during a run.
#[derive(Debug)]
pub struct Watch {
    cpus: CpuMask,
    start: CpuTimes,
    start_ns: u64,
}

impl Watch {
    /// Starts before the run.
    pub fn start(cpus: &CpuMask) -> Self {
        Self { cpus: *cpus, start: times(cpus), start_ns: sys::monotonic_ns() }
    }

    /// Warnings after the run. `uses_rt`: tasks had a real-time policy.
    pub fn finish(&self, uses_rt: bool, outcome: &HostOutcome) -> Vec<Warning> {
        let end = times(&self.cpus);
        let span_ns = sys::monotonic_ns().saturating_sub(self.start_ns);
        let tick_ns = 1_000_000_000 / sys::user_hz();
        let used: u64 = outcome.tasks.iter().map(|task| task.run_ns).sum();
        let used = used.max(outcome.descendants_cpu_ns);
        let busy_ns = end.busy.saturating_sub(self.start.busy) * tick_ns;
        let steal_ns = end.steal.saturating_sub(self.start.steal) * tick_ns;
        let capacity_ns = (span_ns * u64::from(self.cpus.weight())).max(1);
        let mut warnings = load_warnings(
            busy_ns.saturating_sub(used + outcome.recorder_cpu_ns),
            steal_ns,
            capacity_ns,
            tick_ns,
        );
        warnings.extend(setting_warnings(uses_rt, &self.cpus));
        warnings
    }
}

fn times(cpus: &CpuMask) -> CpuTimes {
    procfs::cpu_times(|cpu| cpus.contains(schedlab_model::CpuId(cpu)))
}

/// Warnings about other load and stolen time. /proc/stat counts ticks, so a few of them do not
/// matter.
fn load_warnings(foreign_ns: u64, steal_ns: u64, capacity_ns: u64, tick_ns: u64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let percent = |ns: u64| ns * 100 / capacity_ns;
    if percent(foreign_ns) >= FOREIGN_PERCENT_MAX && foreign_ns > 3 * tick_ns {
        warnings.push(Warning::other_load(percent(foreign_ns), foreign_ns / 1_000_000));
    }
    if percent(steal_ns) >= STEAL_PERCENT_MAX && steal_ns > 3 * tick_ns {
        warnings.push(Warning::steal(percent(steal_ns), steal_ns / 1_000_000));
    }
    warnings
}

/// Warnings about settings that change the meaning of a policy or a nice value.
fn setting_warnings(uses_rt: bool, cpus: &CpuMask) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if read("/proc/sys/kernel/sched_autogroup_enabled").as_deref() == Some("1") {
        warnings.push(Warning::autogroup());
    }
    let number = |path| read(path).and_then(|text| text.parse::<i64>().ok());
    let runtime = number("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or(-1);
    let period = number("/proc/sys/kernel/sched_rt_period_us").unwrap_or(1_000_000);
    if uses_rt && runtime >= 0 && runtime < period {
        warnings.push(Warning::rt_throttling(runtime, period));
    }
    if let Some(governor) = machine::governor(cpus).filter(|name| name != "performance") {
        warnings.push(Warning::frequency_scaling(&governor));
    }
    if read("/sys/devices/system/cpu/smt/active").as_deref() == Some("1") && shares_cores(cpus) {
        warnings.push(Warning::smt());
    }
    if let Some(name) = machine::sched_ext_scheduler() {
        warnings.push(Warning::sched_ext(&name));
    }
    if !crate::lane::is_root() && sys::timer_slack_ns() > 1 {
        warnings.push(Warning::timer_slack(sys::timer_slack_ns()));
    }
    warnings
}

/// Whether a CPU of the run has a hyperthread sibling.
fn shares_cores(cpus: &CpuMask) -> bool {
    cpus.iter().any(|cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        read(path).is_some_and(|list| machine::parse_cpu_list(&list).weight() > 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_run::Code;

    #[test]
    fn load_and_steal_are_named_with_their_size() {
        let tick = 10_000_000;
        let quiet = load_warnings(10_000_000, 0, 1_000_000_000, tick);
        assert!(quiet.is_empty());
        let loud = load_warnings(300_000_000, 50_000_000, 1_000_000_000, tick);
        assert_eq!(loud, [Warning::other_load(30, 300), Warning::steal(5, 50)]);
    }

    #[test]
    fn throttling_is_named_only_for_real_time_tasks() {
        let cpus = machine::usable_cpus();
        let of = |uses_rt| {
            setting_warnings(uses_rt, &cpus).iter().any(|one| one.code == Code::RtThrottling)
        };
        assert!(!of(false));
        let runtime = read("/proc/sys/kernel/sched_rt_runtime_us");
        let is_on = runtime.and_then(|text| text.parse::<i64>().ok()).is_some_and(|us| us >= 0);
        assert_eq!(of(true), is_on);
    }
}
