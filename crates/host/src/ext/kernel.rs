// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's state of sched_ext, from /sys/kernel/sched_ext
//! (Documentation/scheduler/sched-ext.rst).

use crate::error::HostError;
use std::path::Path;

const DIR: &str = "/sys/kernel/sched_ext";

/// The state of the kernel's extensible scheduling class.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct KernelState {
    /// `disabled`, `enabling`, `enabled` or `disabling`.
    pub state: String,
    /// Name of the loaded scheduler; empty if none is loaded.
    pub ops: String,
    /// How often a scheduler was loaded since boot.
    pub enable_seq: u64,
    /// Tasks that the scheduler refused.
    pub nr_rejected: u64,
    /// Whether the scheduler has all tasks, not only those of SCHED_EXT.
    pub switch_all: bool,
}

impl KernelState {
    /// Whether no scheduler is loaded, being loaded or being unloaded.
    pub fn is_free(&self) -> bool {
        self.state == "disabled"
    }

    fn read(dir: &Path) -> Option<Self> {
        let text = |name: &str| {
            std::fs::read_to_string(dir.join(name)).map(|text| text.trim().to_string()).ok()
        };
        let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Some(Self {
            state: text("state")?,
            ops: text("root/ops").unwrap_or_default(),
            enable_seq: number("enable_seq"),
            nr_rejected: number("nr_rejected"),
            switch_all: number("switch_all") != 0,
        })
    }
}

/// The present state; `None`: this kernel has no sched_ext.
pub fn kernel_state() -> Option<KernelState> {
    KernelState::read(Path::new(DIR))
}

/// Release of the running kernel.
fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|text| text.trim().to_string())
        .unwrap_or_else(|_| "unknown".into())
}

/// Checks that a scheduler can be loaded now.
///
/// # Errors
/// The kernel has no sched_ext, this process may not use it, or another scheduler is loaded.
pub fn check_kernel() -> Result<KernelState, HostError> {
    let Some(state) = kernel_state() else {
        return Err(HostError::Unavailable(format!(
            "this kernel ({}) has no sched_ext: /sys/kernel/sched_ext is missing. It takes Linux \
             6.12 or later built with CONFIG_SCHED_CLASS_EXT, and the schedulers of schedlab take \
             6.16; `schedlab vm` boots such a kernel",
            release()
        )));
    };
    if crate::sys::euid() != 0 {
        return Err(HostError::Unavailable(
            "loading a scheduler takes root (CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN): run with sudo"
                .into(),
        ));
    }
    if !state.is_free() {
        return Err(HostError::Unavailable(format!(
            "the kernel has a sched_ext scheduler already: {} ({}); only one can be loaded, so end \
             the program that loaded it first",
            if state.ops.is_empty() { "its name is not known yet" } else { &state.ops },
            state.state
        )));
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_only_that() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(KernelState::read(dir.path()), None);
        std::fs::write(dir.path().join("state"), "enabled\n").unwrap();
        std::fs::write(dir.path().join("enable_seq"), "3\n").unwrap();
        let state = KernelState::read(dir.path()).unwrap();
        assert_eq!((state.state.as_str(), state.ops.as_str()), ("enabled", ""));
        assert_eq!((state.enable_seq, state.nr_rejected), (3, 0));
        assert!(!state.is_free());
        std::fs::create_dir(dir.path().join("root")).unwrap();
        std::fs::write(dir.path().join("root/ops"), "wrr\n").unwrap();
        assert_eq!(KernelState::read(dir.path()).unwrap().ops, "wrr");
    }

    #[test]
    fn a_kernel_without_it_is_refused_by_name() {
        if kernel_state().is_none() {
            let error = check_kernel().unwrap_err();
            assert!(matches!(&error, HostError::Unavailable(_)));
            assert!(error.to_string().contains("CONFIG_SCHED_CLASS_EXT"), "{error}");
            assert!(error.to_string().contains(&release()), "{error}");
        }
    }
}
