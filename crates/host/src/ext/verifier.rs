// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortens the messages of libbpf and the verifier when they refuse a scheduler.

use super::verdict::is_noise;
use libbpf_rs::PrintLevel;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages of libbpf since the last [`Messages::collect`]. One scheduler is loaded at a time.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Held while messages are collected.
static TURN: Mutex<()> = Mutex::new(());

fn hear(_level: PrintLevel, message: String) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push(message);
}

/// The function that gets libbpf's messages, from this level on.
type Listener = (PrintLevel, fn(PrintLevel, String));

/// Collects the messages of libbpf until it is dropped.
pub(super) struct Messages {
    before: Option<Listener>,
    _turn: MutexGuard<'static, ()>,
}

impl Messages {
    pub fn collect() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Self { before: libbpf_rs::set_print(Some((PrintLevel::Info, hear))), _turn: turn }
    }

    /// All messages.
    pub fn text(&self) -> String {
        SAID.lock().unwrap_or_else(PoisonError::into_inner).concat()
    }

    /// The last message, after a colon; empty if there is none.
    pub fn tail(&self) -> String {
        let text = self.text();
        text.lines().last().map(|line| format!(" ({})", bare(line))).unwrap_or_default()
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        libbpf_rs::set_print(self.before.take());
    }
}

fn bare(line: &str) -> &str {
    line.trim().trim_start_matches("libbpf: ")
}

const LOG_BEGINS: &str = "-- BEGIN PROG LOAD LOG --";
const LOG_ENDS: &str = "-- END PROG LOAD LOG --";

/// The refused callback, the reason, and the line of source. Without a callback, the last message
/// of libbpf.
pub(super) fn condense(text: &str) -> String {
    let hint = if text.contains("scx_bpf_create_dsq") && text.contains("incompatible")
        || text.contains("scx_bpf_create_dsq_impl")
    {
        "; this kernel's BTF is broken (built with a pahole that loses the kfuncs' implicit \
         arguments, as some 7.1 and 7.2 builds were): take another build of the kernel"
    } else {
        ""
    };
    let Some((before, rest)) = text.split_once(LOG_BEGINS) else {
        let last = text.lines().map(bare).rfind(|line| !line.is_empty() && !is_sequel(line));
        return format!("{}{hint}", last.unwrap_or("libbpf gave no reason"));
    };
    let log = rest.split_once(LOG_ENDS).map_or(rest, |(log, _)| log);
    let callback = before.rsplit("prog '").next().and_then(|name| name.split('\'').next());
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !is_noise(line)).collect();
    let reason = lines.last().copied().unwrap_or("no reason given");
    let source = lines
        .iter()
        .rev()
        .find_map(|line| line.strip_prefix("; "))
        .map(|line| format!("; at: {}", line.trim()));
    format!(
        "callback {}: {reason}{}{hint}",
        callback.unwrap_or("unknown"),
        source.unwrap_or_default()
    )
}

/// Whether the line only follows from an earlier error.
fn is_sequel(line: &str) -> bool {
    line.starts_with("failed to load object") || line.starts_with("failed to load BPF skeleton")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "libbpf: prog 'bad_enqueue': BPF program load failed: -EACCES\n\
        libbpf: prog 'bad_enqueue': -- BEGIN PROG LOAD LOG --\n\
        0: R1=ctx() R10=fp0\n\
        ; t->left = 1; @ bad.bpf.c:31\n\
        12: (7b) *(u64 *)(r0 +0) = r1\n\
        R0 invalid mem access 'map_value_or_null'\n\
        verification time 188 usec\n\
        processed 13 insns (limit 1000000)\n\
        -- END PROG LOAD LOG --\n\
        libbpf: prog 'bad_enqueue': failed to load: -EACCES\n\
        libbpf: failed to load object 'x'\n";

    #[test]
    fn a_log_becomes_one_line() {
        assert_eq!(
            condense(LOG),
            "callback bad_enqueue: R0 invalid mem access 'map_value_or_null'; at: t->left = 1; @ \
             bad.bpf.c:31"
        );
    }

    #[test]
    fn states_and_instructions_are_no_reasons() {
        let log = "libbpf: prog 'loop': -- BEGIN PROG LOAD LOG --\n\
            ; while (1) @ loop.bpf.c:14\n\
            4: (79) r3 = *(u64 *)(r2 +0)\n\
            infinite loop detected at insn 4\n\
            cur state: R1=ctx()\n\
            old state: R1=ctx()\n\
            -- END PROG LOAD LOG --\n";
        let wanted =
            "callback loop: infinite loop detected at insn 4; at: while (1) @ loop.bpf.c:14";
        assert_eq!(condense(log), wanted);
    }

    #[test]
    fn without_a_log_the_last_word_counts() {
        let text = "libbpf: extern (func ksym) 'scx_bpf_nonsense': not found in kernel BTF\n\
                    libbpf: failed to load object 'x'\n";
        assert_eq!(
            condense(text),
            "extern (func ksym) 'scx_bpf_nonsense': not found in kernel BTF"
        );
        assert_eq!(condense(""), "libbpf gave no reason");
    }

    #[test]
    fn broken_builds_are_named() {
        let text = "libbpf: extern (func ksym) 'scx_bpf_create_dsq': func_proto [7] incompatible \
                    with vmlinux [9]\n";
        assert!(condense(text).contains("pahole"), "{}", condense(text));
    }

    #[test]
    fn a_log_cut_off_is_no_trouble() {
        assert!(condense("-- BEGIN PROG LOAD LOG --").contains("no reason given"));
        assert!(condense("prog '-- BEGIN PROG LOAD LOG --\n; x").contains("; x"));
    }
}
