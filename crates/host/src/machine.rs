// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine, and settings that influence a result. Values that cannot be read are left out.

use crate::cgroup::CpuController;
use crate::outcome::HostOutcome;
use crate::sys;
use schedlab_model::{CpuId, CpuMask};
use schedlab_run::{MachineInfo, Setting};
use std::fs;
use std::path::Path;

/// A file's text without its final newline.
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Reads CPUs in the kernel's list format, `0-3,8`. Unreadable parts are left out.
pub fn parse_cpu_list(text: &str) -> CpuMask {
    let mut mask = CpuMask::empty();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
        for cpu in first..=last.min(schedlab_model::cpumask::NR_CPUS_MAX as u32 - 1) {
            mask.set(CpuId(cpu));
        }
    }
    mask
}

/// CPUs that are online.
pub fn online_cpus() -> CpuMask {
    let list = read("/sys/devices/system/cpu/online").map(|text| parse_cpu_list(&text));
    list.filter(|mask| !mask.is_empty()).unwrap_or_else(|| CpuMask::first(sys::nr_cpus_online()))
}

/// CPUs that this process may use (its affinity and its cpuset).
pub fn usable_cpus() -> CpuMask {
    sys::sched_getaffinity(0).unwrap_or_else(|_| online_cpus())
}

/// `CONFIG_*` lines of the running kernel, from /proc/config.gz or /boot.
fn kernel_config(release: &str) -> Option<String> {
    if let Ok(file) = fs::File::open("/proc/config.gz") {
        let unpacked = std::process::Command::new("gzip").arg("-dc").stdin(file).output().ok()?;
        if unpacked.status.success() {
            return Some(String::from_utf8_lossy(&unpacked.stdout).into_owned());
        }
    }
    read(format!("/boot/config-{release}"))
}

fn config_value<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// Properties that do not change while the program runs, read once.
struct Fixed {
    cpu_model: String,
    release: String,
    hz: Option<u32>,
    settings: Vec<Setting>,
}

/// Settings of the kernel's build that influence scheduling.
const CONFIGS: [&str; 14] = [
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_NO_HZ_FULL",
    "CONFIG_SCHED_CLASS_EXT",
    "CONFIG_SCHED_CORE",
    "CONFIG_SCHED_AUTOGROUP",
    "CONFIG_RT_GROUP_SCHED",
    "CONFIG_UCLAMP_TASK",
    "CONFIG_SCHEDSTATS",
    "CONFIG_IRQ_TIME_ACCOUNTING",
];

fn fixed() -> &'static Fixed {
    static FIXED: std::sync::OnceLock<Fixed> = std::sync::OnceLock::new();
    FIXED.get_or_init(|| {
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let config = kernel_config(&release);
        let hz = config.as_deref().and_then(|text| config_value(text, "CONFIG_HZ")?.parse().ok());
        // A guest has no file with its kernel's configuration; the tick says the same.
        let tick_ns = sys::tick_ns();
        let hz = hz.or((tick_ns > 1).then(|| ((1_000_000_000 + tick_ns / 2) / tick_ns) as u32));
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let cpu_model = field("model name").or_else(|| field("CPU part")).unwrap_or_default();
        let mut settings = Vec::new();
        if let Some(config) = &config {
            for name in CONFIGS {
                let value = config_value(config, name).unwrap_or("n");
                settings.push(setting(name, value));
            }
        }
        let has_hypervisor = cpuinfo.lines().any(|line| {
            line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
        });
        settings.push(setting("virtualised", if has_hypervisor { "yes" } else { "no" }));
        Fixed { cpu_model, release, hz, settings }
    })
}

fn setting(name: &str, value: impl Into<String>) -> Setting {
    Setting { name: name.into(), value: value.into() }
}

/// Files with one value each: (name in results, path).
const FILES: [(&str, &str); 18] = [
    ("kernel.version", "/proc/sys/kernel/version"),
    ("kernel.sched_rt_period_us", "/proc/sys/kernel/sched_rt_period_us"),
    ("kernel.sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
    ("kernel.sched_rr_timeslice_ms", "/proc/sys/kernel/sched_rr_timeslice_ms"),
    ("kernel.sched_autogroup_enabled", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("kernel.sched_cfs_bandwidth_slice_us", "/proc/sys/kernel/sched_cfs_bandwidth_slice_us"),
    ("kernel.sched_child_runs_first", "/proc/sys/kernel/sched_child_runs_first"),
    ("kernel.sched_schedstats", "/proc/sys/kernel/sched_schedstats"),
    ("kernel.sched_energy_aware", "/proc/sys/kernel/sched_energy_aware"),
    ("kernel.sched_itmt_enabled", "/proc/sys/kernel/sched_itmt_enabled"),
    ("debug.sched.preempt", "/sys/kernel/debug/sched/preempt"),
    ("debug.sched.features", "/sys/kernel/debug/sched/features"),
    ("debug.sched.base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns"),
    ("debug.sched.latency_ns", "/sys/kernel/debug/sched/latency_ns"),
    ("debug.sched.min_granularity_ns", "/sys/kernel/debug/sched/min_granularity_ns"),
    ("debug.sched.migration_cost_ns", "/sys/kernel/debug/sched/migration_cost_ns"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("smt.active", "/sys/devices/system/cpu/smt/active"),
];

/// The machine in its present state, for a run on `cpus`.
pub fn info(cpus: &CpuMask) -> MachineInfo {
    let fixed = fixed();
    let mut settings = fixed.settings.clone();
    settings.extend(FILES.iter().filter_map(|(name, path)| Some(setting(name, read(path)?))));
    settings.push(setting("cpus", cpus.to_string()));
    settings.push(setting("cpus.online", online_cpus().to_string()));
    if let Some(governor) = governor(cpus) {
        settings.push(setting("cpufreq.governor", governor));
    }
    let group = CpuController::detect();
    let version = group.as_ref().map_or("none", CpuController::version);
    settings.push(setting("cgroup.cpu_controller", version));
    if let Some(own) = read("/proc/self/cgroup") {
        settings.push(setting("cgroup.own", own.replace('\n', " ")));
    }
    if let Some(state) = sched_ext_scheduler() {
        settings.push(setting("sched_ext.scheduler", state));
    }
    MachineInfo {
        cpu_model: fixed.cpu_model.clone(),
        nr_cpus: cpus.weight(),
        hz: fixed.hz,
        kernel: fixed.release.clone(),
        settings,
    }
}

/// Frequency governors of `cpus`, each named once.
pub fn governor(cpus: &CpuMask) -> Option<String> {
    let mut seen: Vec<String> = Vec::new();
    for cpu in cpus.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if let Some(name) = read(path).filter(|name| !seen.contains(name)) {
            seen.push(name);
        }
    }
    (!seen.is_empty()).then(|| seen.join(","))
}

/// Name of the loaded sched_ext scheduler, if any.
pub fn sched_ext_scheduler() -> Option<String> {
    let dir = Path::new("/sys/kernel/sched_ext");
    let state = read(dir.join("state"))?;
    (state == "enabled").then(|| read(dir.join("root").join("ops")).unwrap_or(state))
}

/// Adds the figures of the run's self-check and of its recorder to the settings.
pub fn add_run_settings(outcome: &mut HostOutcome) {
    let check = outcome.check;
    let mut add = |name: &str, value: Option<String>| {
        outcome.machine.settings.extend(value.map(|value| setting(name, value)));
    };
    let text = |value: Option<u64>| value.map(|value| value.to_string());
    let signed = |value: Option<i64>| value.map(|value| value.to_string());
    add("calibration_error_ppm", text(check.calibration_error_ppm));
    add("cpu_time_overhead_ppm", signed(check.overhead_ppm));
    add("trace_run_delay_error_ppm", text(check.run_delay_error_ppm));
    add("trace_run_delay_error_ns_per_wait", text(check.run_delay_error_ns_per_wait));
    add("trace_waits_off", text(check.nr_waits_off));
    add("trace_cpu_time_error_ppm", signed(check.run_error_ppm));
    if outcome.source == crate::session::SOURCE_BPF {
        add("recorder_events", Some(outcome.nr_events.to_string()));
        add("recorder_lost_events", Some(outcome.nr_lost_events.to_string()));
        add("recorder_inferred_events", Some(outcome.nr_inferred_events.to_string()));
        add("recorder_late_events", Some(outcome.nr_late_events.to_string()));
        add("recorder_cpu_ns", Some(outcome.recorder_cpu_ns.to_string()));
        let others: Vec<String> = outcome
            .others
            .iter()
            .map(|(name, time)| format!("{name}: {} ns, {} turns", time.cpu_ns, time.nr_turns))
            .collect();
        add("other_tasks", (!others.is_empty()).then(|| others.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-2,5\n").to_string(), "0-2,5");
        assert_eq!(parse_cpu_list("").to_string(), "");
        assert_eq!(parse_cpu_list("x,3,9-,1-4000000").to_string().split(',').count(), 1);
    }

    #[test]
    fn this_machine_describes_itself() {
        let info = info(&usable_cpus());
        assert!(info.nr_cpus >= 1 && !info.kernel.is_empty());
        assert!(info.settings.iter().any(|setting| setting.name == "cpus.online"));
        let mut names: Vec<&str> = info.settings.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a setting stands twice");
    }
}
