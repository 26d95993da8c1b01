// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables of the kernel's own schedulers in a guest, with the names that models use. Each is a
//! file that is written before the run.
//!
//! Source: kernel/sched/core.c, rt.c, deadline.c and debug.c (6.1, 6.18);
//! Documentation/scheduler/sched-rt-group.rst. Left out: what a workload sets itself (nice values,
//! weights of groups).

use crate::VmError;
use schedlab_workload::units;

/// A file, and the unit of its number.
struct File {
    /// Name of the tunable in models.
    name: &'static str,
    /// Path of the file.
    path: &'static str,
    /// Unit of its number, ns.
    unit_ns: u64,
}

const fn file(name: &'static str, path: &'static str, unit_ns: u64) -> File {
    File { name, path, unit_ns }
}

const FILES: &[File] = &[
    file("rt_runtime", "/proc/sys/kernel/sched_rt_runtime_us", 1_000),
    file("rt_period", "/proc/sys/kernel/sched_rt_period_us", 1_000),
    file("rr_timeslice", "/proc/sys/kernel/sched_rr_timeslice_ms", 1_000_000),
    file("base_slice", "/sys/kernel/debug/sched/base_slice_ns", 1),
    file("latency", "/sys/kernel/debug/sched/latency_ns", 1),
    file("min_granularity", "/sys/kernel/debug/sched/min_granularity_ns", 1),
    file("wakeup_granularity", "/sys/kernel/debug/sched/wakeup_granularity_ns", 1),
    file("migration_cost", "/sys/kernel/debug/sched/migration_cost_ns", 1),
];

/// File and text that set a tunable: `rt_runtime` = `800ms`; or a file of the kernel by its own
/// name (`kernel.sched_rt_runtime_us`, `/sys/...`) with the text unchanged.
pub fn write(name: &str, value: &str) -> Result<(String, String), VmError> {
    if name.starts_with('/') {
        return Ok((name.into(), value.into()));
    }
    if name.contains('.') {
        return Ok((format!("/proc/sys/{}", name.replace('.', "/")), value.into()));
    }
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        let names: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        return Err(VmError::Input(format!(
            "tunable {name:?}: the kernel's own scheduler has none here that is called so: allowed \
             are {}, and files by their names (kernel.sched_rt_runtime_us, /sys/...)",
            names.join(", ")
        )));
    };
    let wrong = |text: String| VmError::Input(format!("tunable {name}={value}: {text}"));
    let ns = units::parse_duration(value).map_err(|error| wrong(error.to_string()))?;
    if ns % file.unit_ns != 0 {
        let unit = units::format_duration(file.unit_ns);
        return Err(wrong(format!("the kernel takes whole multiples of {unit} for it")));
    }
    Ok((file.path.into(), (ns / file.unit_ns).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_is_a_file_and_its_number() {
        let of = |name, value| write(name, value).unwrap();
        let path = "/proc/sys/kernel/sched_rt_runtime_us".to_owned();
        assert_eq!(of("rt_runtime", "800ms"), (path.clone(), "800000".into()));
        assert_eq!(of("kernel.sched_rt_runtime_us", "-1"), (path, "-1".into()));
        let path = "/sys/kernel/debug/sched/base_slice_ns".to_owned();
        assert_eq!(of("base_slice", "3ms"), (path, "3000000".into()));
        assert_eq!(of("/a.b/c", "x=y"), ("/a.b/c".into(), "x=y".into()));
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        let refused = |name, value| write(name, value).unwrap_err().to_string();
        assert!(refused("slice", "1ms").contains("allowed are rt_runtime"));
        assert!(refused("rt_runtime", "1ns").contains("whole multiples of 1"));
        assert!(refused("rt_runtime", "soon").contains("rt_runtime=soon"));
    }
}
