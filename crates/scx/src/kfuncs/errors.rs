// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors, exits and dumps; checks which callback may use which function.

use crate::consts::ExitKind;
use crate::kernel::Kernel;
use crate::ops::{Callback, ExitInfo};
use schedlab_model::{CpuId, TaskId};

/// Longest text of an exit (SCX_EXIT_MSG_LEN).
const EXIT_MSG_LEN: usize = 1_024;
/// Longest dump (SCX_EXIT_DUMP_DFL_LEN).
const EXIT_DUMP_DFL_LEN: usize = 32_768;

impl Kernel<'_> {
    /// `scx_bpf_error`: the scheduler reports an error and is ejected.
    pub fn error(&mut self, msg: impl Into<String>) {
        self.exit_with(ExitKind::ErrorBpf, 0, msg.into());
    }

    /// `scx_bpf_exit`: the scheduler asks to be unloaded.
    pub fn exit(&mut self, exit_code: i64, msg: impl Into<String>) {
        self.exit_with(ExitKind::UnregBpf, exit_code, msg.into());
    }

    /// `scx_bpf_dump`: adds text to the dump. Text that is too long is cut.
    pub fn dump(&mut self, text: &str) {
        let limit = match self.state.info.exit_dump_len as usize {
            0 => EXIT_DUMP_DFL_LEN,
            limit => limit,
        };
        let room = limit.saturating_sub(self.state.dump.len());
        self.state.dump.push_str(cut(text, room));
    }

    /// Records why the scheduler ends. Only the first reason counts.
    pub(crate) fn exit_with(&mut self, kind: ExitKind, exit_code: i64, msg: String) {
        if self.state.exit.is_none() {
            let msg = cut(&msg, EXIT_MSG_LEN).to_owned();
            let reason = kind.reason().to_owned();
            let place = self.place_of_call();
            self.state.exit =
                Some(ExitInfo { kind, exit_code, reason, msg, place, ..ExitInfo::default() });
        }
    }

    /// The callback and the line of the scheduler that has called a function of the core.
    fn place_of_call(&self) -> Option<String> {
        let place = self.state.locator.and_then(|locator| locator())?;
        let callback = self.state.context.callback?;
        Some(format!("ops.{}, {place}", callback.name()))
    }

    /// The scheduler broke a rule (`scx_error`).
    #[cold]
    pub fn scx_error(&mut self, msg: String) {
        self.exit_with(ExitKind::Error, 0, msg);
    }

    /// Checks that the running callback may use a function; otherwise it is an error.
    #[inline]
    pub(crate) fn allowed(&mut self, kfunc: &str, callbacks: &[Callback]) -> bool {
        match self.state.context.callback {
            Some(callback) if callbacks.contains(&callback) => true,
            callback => {
                self.not_allowed(kfunc, callback);
                false
            }
        }
    }

    #[cold]
    fn not_allowed(&mut self, kfunc: &str, callback: Option<Callback>) {
        let callback = callback.map_or("outside of callbacks", Callback::name);
        self.scx_error(format!("scx_bpf_{kfunc}() is not allowed in ops.{callback}"));
    }

    /// Whether the code runs outside of callbacks that hold a run queue: in timers, and in
    /// callbacks that may sleep.
    pub(crate) fn is_unlocked(&self) -> bool {
        matches!(
            self.state.context.callback,
            Some(
                Callback::Timer
                    | Callback::Init
                    | Callback::Exit
                    | Callback::InitTask
                    | Callback::CgroupInit
                    | Callback::CgroupExit
                    | Callback::CgroupPrepMove
            )
        )
    }

    /// The CPU with this number; an error if there is none.
    pub(crate) fn valid_cpu(&mut self, cpu: i32) -> Option<CpuId> {
        match u32::try_from(cpu) {
            Ok(number) if number < self.core.nr_cpus() => Some(CpuId(number)),
            _ => {
                self.scx_error(format!("invalid CPU {cpu}"));
                None
            }
        }
    }

    /// Names a task in messages, as the kernel does.
    pub(crate) fn named(&self, p: TaskId) -> String {
        format!("{}[{}]", self.comm(p), self.pid(p))
    }
}

/// The first `limit` bytes of `text`, cut at a whole character.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
