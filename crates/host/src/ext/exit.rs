// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a scheduler ended: the data that it copies from `struct scx_exit_info` in ops.exit
//! (`UEI_RECORD`). Kinds are those of kernel/sched/ext_internal.h.

/// Unloaded by the program that loaded it.
pub const EXIT_UNREG: u32 = 64;
/// First kind that is an error.
pub const EXIT_ERROR: u32 = 1024;

/// Why a scheduler ended.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ExitInfo {
    /// SCX_EXIT_*. Kinds below [`EXIT_ERROR`] are not errors.
    pub kind: u32,
    /// The kernel's name of the kind, such as `runnable task stall`.
    pub reason: String,
    /// Details; may be empty.
    pub message: String,
    /// Code from the scheduler; or from the kernel if it asks for a restart.
    pub exit_code: i64,
}

impl ExitInfo {
    /// Whether the kernel ejected it, or it reported an error.
    pub fn is_error(&self) -> bool {
        self.kind >= EXIT_ERROR
    }
}

impl std::fmt::Display for ExitInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = if self.reason.is_empty() { kind_name(self.kind) } else { &self.reason };
        write!(f, "{reason}")?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if self.exit_code != 0 {
            write!(f, " (exit code {:#x})", self.exit_code)?;
        }
        Ok(())
    }
}

/// Name of a kind of exit.
pub const fn kind_name(kind: u32) -> &'static str {
    match kind {
        0 => "not ended",
        1 => "done",
        64 => "unregistered from user space",
        65 => "unregistered from BPF",
        66 => "unregistered from the main kernel",
        67 => "disabled by sysrq-S",
        68 => "its parent ended",
        1024 => "runtime error",
        1025 => "scx_bpf_error",
        1026 => "runnable task stall",
        _ => "a kind of exit that is not known",
    }
}

/// The content of a `struct user_exit_info`.
pub(super) struct ExitFields<'m> {
    /// Kind.
    pub kind: u32,
    /// Text of 0-terminated bytes.
    pub reason: &'m [u8],
    /// Text of 0-terminated bytes.
    pub message: &'m [u8],
    /// Code.
    pub exit_code: i64,
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().to_string()
}

impl ExitFields<'_> {
    /// The exit; `None` if there was none.
    pub fn read(&self) -> Option<ExitInfo> {
        (self.kind != 0).then(|| ExitInfo {
            kind: self.kind,
            reason: text(self.reason),
            message: text(self.message),
            exit_code: self.exit_code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_reason_message_and_code() {
        let fields = ExitFields {
            kind: 1026,
            reason: b"runnable task stall\0xyz",
            message: b"hog[12] failed to run for 5.001s\0",
            exit_code: 0,
        };
        let exit = fields.read().unwrap();
        assert!(exit.is_error());
        assert_eq!(exit.to_string(), "runnable task stall: hog[12] failed to run for 5.001s");
        let plain =
            ExitInfo { kind: 64, reason: String::new(), message: String::new(), exit_code: 16 };
        assert_eq!(plain.to_string(), "unregistered from user space (exit code 0x10)");
        assert!(!plain.is_error());
        assert!(ExitFields { kind: 0, ..fields }.read().is_none());
    }
}
