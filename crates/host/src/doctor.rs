// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks what this machine supports, what is missing, and how to get it.

use crate::attr::{self, Abilities};
use crate::cgroup::CpuController;
use crate::machine::{self, read};
use crate::sys;
use schedlab_model::kernel::KernelBug;
use schedlab_model::{DeadlineParams, KernelVersion, Policy, SchedAttr};
use std::path::Path;

/// A property of the machine that a lane may need.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Check {
    /// Short name.
    pub name: &'static str,
    /// Whether the machine has it.
    pub is_ok: bool,
    /// What was found.
    pub found: String,
    /// What it is needed for.
    pub meaning: &'static str,
    /// How to get it; empty if the machine has it.
    pub remedy: &'static str,
}

fn check(
    name: &'static str,
    result: Result<String, String>,
    meaning: &'static str,
    remedy: &'static str,
) -> Check {
    let is_ok = result.is_ok();
    let found = result.unwrap_or_else(|found| found);
    Check { name, is_ok, found, meaning, remedy: if is_ok { "" } else { remedy } }
}

fn verdict(is_ok: bool, yes: impl Into<String>, no: impl Into<String>) -> Result<String, String> {
    if is_ok { Ok(yes.into()) } else { Err(no.into()) }
}

/// Checks everything. Changes nothing: attributes are tried in separate processes.
pub fn doctor() -> Vec<Check> {
    let abilities = Abilities::detect();
    let mut checks = rights();
    checks.push(known_bugs(abilities.kernel));
    checks.extend(policies(&abilities));
    checks.extend(tools());
    checks
}

fn rights() -> Vec<Check> {
    let is_root = sys::euid() == 0;
    let controller = CpuController::detect();
    vec![
        check(
            "root",
            verdict(is_root, "yes", "no"),
            "the BPF recorder, real-time policies, nice below 0, control groups",
            "run with sudo; tasks and commands still run as the user who called it",
        ),
        check(
            "BTF",
            verdict(Path::new("/sys/kernel/btf/vmlinux").exists(), "yes", "no"),
            "lets the recorder's programs fit any kernel",
            "use a kernel with CONFIG_DEBUG_INFO_BTF=y (every distribution's since about 2021)",
        ),
        check(
            "BPF recorder",
            bpf_loads(),
            "records every switch, wake-up, migration, fork and exit; without it only /proc speaks",
            "build with clang 14 or later installed, run as root",
        ),
        check(
            "cgroup cpu controller",
            controller.map_or(Err("no mounted hierarchy has it".into()), |found| {
                Ok(format!("{} at {}", found.version(), found.root().display()))
            }),
            "weights of control groups",
            "mount cgroup2 with the cpu controller, or cgroup v1 cpu",
        ),
    ]
}

/// Bugs of the scheduler that kernels of this version have.
fn known_bugs(version: Option<KernelVersion>) -> Check {
    let bugs: Vec<&KernelBug> = version.map_or(Vec::new(), KernelBug::of);
    let found = bugs.iter().map(|bug| bug.text).collect::<Vec<_>>().join("; ");
    check(
        "kernel bugs",
        verdict(bugs.is_empty(), "none known in this kernel's scheduler", found),
        "trust in latencies and shares measured here",
        bugs.first().map_or("", |bug| bug.remedy),
    )
}

#[cfg(schedlab_bpf)]
fn bpf_loads() -> Result<String, String> {
    match crate::recorder::bpf::BpfRecorder::attach(None) {
        Ok(_) => Ok("loads and attaches".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(schedlab_bpf))]
fn bpf_loads() -> Result<String, String> {
    Err("this build has none: clang was missing when it was built".into())
}

/// Tries attributes in a child, which exits with 0 if they take effect.
fn holds(attr: &SchedAttr) -> Result<String, String> {
    let pid = match sys::fork() {
        Ok(Some(pid)) => pid,
        Ok(None) => {
            let code = match attr::apply(0, attr) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(125).min(125),
            };
            sys::exit_now(code)
        }
        Err(error) => return Err(format!("fork: {error}")),
    };
    match sys::reap(pid).map(|(status, _)| sys::exit_code(status)) {
        Ok(0) => Ok("permitted".into()),
        Ok(code) => Err(std::io::Error::from_raw_os_error(code).to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn policies(abilities: &Abilities) -> Vec<Check> {
    let fifo = SchedAttr { policy: Policy::Fifo, rt_priority: 1, ..SchedAttr::default() };
    let deadline = SchedAttr {
        policy: Policy::Deadline,
        deadline: DeadlineParams {
            runtime_ns: 1_000_000,
            deadline_ns: 100_000_000,
            period_ns: 100_000_000,
            reclaim: false,
        },
        ..SchedAttr::default()
    };
    let slice = SchedAttr { slice_ns: Some(1_000_000), ..SchedAttr::default() };
    let slice = if abilities.kernel >= Some(attr::CUSTOM_SLICES_SINCE) {
        holds(&slice).map(|_| "read back as set".into())
    } else {
        Err("this kernel has none".into())
    };
    vec![
        check(
            "real-time policies",
            holds(&fifo),
            "FIFO and RR",
            "run as root; in a container CAP_SYS_NICE is needed, and in a cgroup v1 group of a \
            kernel with RT_GROUP_SCHED also cpu.rt_runtime_us",
        ),
        check("DEADLINE", holds(&deadline), "SCHED_DEADLINE", "run as root, on all CPUs"),
        check("custom slice", slice, "a task's own slice under OTHER", "use kernel 6.12 or later"),
        check(
            "sched_ext",
            verdict(abilities.sched_ext, "yes", "not in this kernel"),
            "schedulers written in BPF on this machine",
            "use a kernel with CONFIG_SCHED_CLASS_EXT=y (6.12 or later), or a VM with one",
        ),
    ]
}

fn in_path(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let file = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    file.map(|file| file.display().to_string())
}

fn tools() -> Vec<Check> {
    let counters = Path::new("/sys/bus/event_source/devices/cpu/events/instructions").exists();
    let clang = ["clang-16", "clang", "clang-19", "clang-14"].into_iter().find_map(in_path);
    let qemu = in_path("qemu-system-x86_64").or_else(|| in_path("qemu-system-aarch64"));
    let config = read("/proc/sys/kernel/osrelease")
        .is_some_and(|release| Path::new(&format!("/boot/config-{release}")).exists())
        || Path::new("/proc/config.gz").exists();
    vec![
        check(
            "perf counters",
            verdict(counters, "yes", "no hardware counters (usual in a VM)"),
            "instructions and cycles of a run",
            "use a machine, or a VM, with a virtual PMU",
        ),
        check(
            "kernel configuration",
            verdict(config, "readable", "neither /proc/config.gz nor /boot/config"),
            "HZ and preemption model in the results",
            "install the kernel's configuration file in /boot",
        ),
        check(
            "QEMU",
            qemu.ok_or_else(|| "not installed".into()),
            "other kernels in a VM",
            "apt-get install qemu-system-x86",
        ),
        check(
            "KVM",
            verdict(Path::new("/dev/kvm").exists(), "/dev/kvm is there", "no /dev/kvm"),
            "speed of a VM; whether it works shows only when a VM boots",
            "enable virtualisation; without it VMs are emulated",
        ),
        check(
            "clang",
            clang.ok_or_else(|| "not installed".into()),
            "compiles the recorder and BPF schedulers",
            "apt-get install clang-16 libelf-dev zlib1g-dev pkg-config make gcc",
        ),
        check(
            "CPUs",
            Ok(format!("{} of {} online", machine::usable_cpus(), machine::online_cpus())),
            "those that runs may use",
            "",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_a_known_bug_is_named() {
        let check = known_bugs(Some(KernelVersion::release(6, 18, 44)));
        assert!(!check.is_ok && check.found.contains("starve"), "{check:?}");
        assert!(check.remedy.contains("6.18.45"), "{check:?}");
        for version in [None, Some(KernelVersion::release(6, 18, 45))] {
            assert!(known_bugs(version).is_ok, "{version:?}");
        }
    }

    #[test]
    fn every_check_says_what_it_found_and_what_to_do() {
        let checks = doctor();
        assert!(checks.len() >= 12);
        for check in &checks {
            assert!(!check.found.is_empty() && !check.meaning.is_empty(), "{check:?}");
            assert_eq!(check.remedy.is_empty(), check.is_ok, "{check:?}");
        }
        let root = checks.iter().find(|check| check.name == "root").unwrap();
        assert_eq!(root.is_ok, crate::lane::is_root());
    }
}
