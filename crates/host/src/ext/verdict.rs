// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel's verifier says of a program, from its log.
//!
//! Source: kernel/bpf/verifier.c (`print_verification_stats`, `verbose_linfo`), kernel/bpf/log.c
//! (6.18, 7.2); tools/testing/selftests/bpf/veristat.c for what the figures mean.

use serde::{Deserialize, Serialize};

/// Lines of a log that a refusal keeps.
const LINES_KEPT: usize = 12;

/// The log of one program, as a kernel gave it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramLog {
    /// Name of the program: the C function.
    pub program: String,
    /// Section of the object, such as `struct_ops/rr_enqueue`.
    pub section: String,
    /// Why it was not loaded, in libbpf's words; `None`: it was loaded.
    pub error: Option<String>,
    /// The verifier's log, or its end. Empty if the verifier never saw the program.
    pub log: String,
}

/// The logs of an object's programs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ObjectLog {
    /// Name of the scheduler (`sched_ext_ops.name`).
    pub scheduler: String,
    /// Its programs, in the order of the object. Those that are loaded only on request
    /// (`SEC("?...")`) are left out.
    pub programs: Vec<ProgramLog>,
    /// Why the rest of the programs never reached the verifier: something that belongs to no
    /// program, such as a function that the kernel lacks.
    pub error: Option<String>,
}

/// A line of the scheduler's source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourceLine {
    /// File, as the compiler was given it, and line: `x.bpf.c:31`. Empty if the log lacks it.
    pub place: String,
    /// The code in that line.
    pub code: String,
}

/// Why a program was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// The verifier's reason; if it never saw the program, that of libbpf.
    pub reason: String,
    /// The line of the source that it had reached.
    pub at: Option<SourceLine>,
    /// The line that took a reference, if one was not given back.
    pub acquired_at: Option<SourceLine>,
    /// The end of the log.
    pub log: Vec<String>,
}

/// What the verifier says of one program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramVerdict {
    /// Name of the program: the C function.
    pub program: String,
    /// Section of the object.
    pub section: String,
    /// Why it was refused; `None`: it was accepted.
    pub refusal: Option<Refusal>,
    /// Instructions that the verifier followed, over all paths; the kernel's limit is a million.
    pub nr_insns: Option<u64>,
    /// States of registers and stack that it compared.
    pub nr_states: Option<u64>,
    /// Most states that it kept at a time.
    pub nr_states_peak: Option<u64>,
    /// Bytes of stack of the program and of its functions, summed; each may use 512.
    pub stack_bytes: Option<u64>,
    /// Time that the verifier took, in the time of its kernel.
    pub time_ns: Option<u64>,
}

impl ProgramVerdict {
    /// Reads a log.
    pub fn of(log: &ProgramLog) -> Self {
        let text = log.log.as_str();
        let last = |start: &str| {
            let lines = text.lines().rev().map(str::trim);
            lines.into_iter().find_map(|line| line.strip_prefix(start))
        };
        let processed = last("processed ").unwrap_or_default();
        let time = last("verification time ").and_then(first_number);
        let stack = last("stack depth ").map(|depths| depths.split('+').filter_map(first_number));
        Self {
            program: log.program.clone(),
            section: log.section.clone(),
            refusal: log.error.as_deref().map(|error| refusal(error, text)),
            nr_insns: first_number(processed),
            nr_states: number_after(processed, "total_states "),
            nr_states_peak: number_after(processed, "peak_states "),
            stack_bytes: stack.map(Iterator::sum),
            time_ns: time.map(|us| us.saturating_mul(1_000)),
        }
    }
}

fn first_number(text: &str) -> Option<u64> {
    let digits = text.trim().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    first_number(text.split_once(name)?.1)
}

/// Reads `t->left = 1; @ bad.bpf.c:31`.
fn source_line(text: &str) -> SourceLine {
    let (code, place) = text.rsplit_once(" @ ").unwrap_or((text, ""));
    SourceLine { place: place.trim().into(), code: code.trim().into() }
}

/// The last line of source before a line of the log.
fn source_before(lines: &[&str]) -> Option<SourceLine> {
    lines.iter().rev().find_map(|line| line.strip_prefix("; ")).map(source_line)
}

fn refusal(error: &str, log: &str) -> Refusal {
    let lines: Vec<&str> = log.lines().map(str::trim_end).collect();
    let is_reason = |line: &&&str| !is_noise(line.trim()) && !line.starts_with("; ");
    let reason = lines.iter().rev().find(is_reason);
    let leaked = lines.iter().rev().find_map(|line| number_after(line, "alloc_insn="));
    let acquired_at = leaked.and_then(|insn| {
        let call = format!("{insn}: ");
        let at = lines.iter().rposition(|line| line.starts_with(&call))?;
        source_before(&lines[..at])
    });
    let kept: Vec<&&str> = lines.iter().filter(|line| !line.is_empty()).collect();
    Refusal {
        reason: reason.map_or(error, |reason| reason.trim()).into(),
        at: source_before(&lines),
        acquired_at,
        log: kept[kept.len().saturating_sub(LINES_KEPT)..].iter().map(|l| (**l).into()).collect(),
    }
}

/// Lines of a log that explain nothing.
pub(super) fn is_noise(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("processed ")
        || line.starts_with("verification time")
        || line.starts_with("stack depth")
        || line.starts_with("libbpf:")
        || line.starts_with("mark_precise")
        || line.starts_with("cur state:")
        || line.starts_with("old state:")
        // The instructions that the verifier followed, with their numbers.
        || line.split_once(':').is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(error: Option<&str>, log: &str) -> ProgramVerdict {
        ProgramVerdict::of(&ProgramLog {
            program: "x_enqueue".into(),
            section: "struct_ops/x_enqueue".into(),
            error: error.map(Into::into),
            log: log.into(),
        })
    }

    #[test]
    fn figures_are_those_of_the_last_lines() {
        let found = verdict(
            None,
            "Validating f() func#1...\nverification time 188 usec\nstack depth 16+8+0\n\
             processed 1234 insns (limit 1000000) max_states_per_insn 4 total_states 77 \
             peak_states 70 mark_read 12\n",
        );
        assert_eq!(found.refusal, None);
        assert_eq!((found.nr_insns, found.stack_bytes), (Some(1234), Some(24)));
        assert_eq!((found.nr_states, found.nr_states_peak), (Some(77), Some(70)));
        assert_eq!(found.time_ns, Some(188_000));
    }

    #[test]
    fn a_refusal_has_its_reason_and_both_lines_of_source() {
        let found = verdict(
            Some("Invalid argument"),
            "0: R1=ctx() R10=fp0\n\
             ; q = bpf_task_from_pid(1); @ x.bpf.c:20\n\
             7: (85) call bpf_task_from_pid#1234   ; R0=ptr_or_null_task_struct(id=2)\n\
             ; return; @ x.bpf.c:24\n\
             9: (95) exit\n\
             Unreleased reference id=2 alloc_insn=7\n\
             BPF_EXIT instruction in main prog would lead to reference leak\n\
             verification time 60 usec\nprocessed 10 insns (limit 1000000)\n",
        );
        let refusal = found.refusal.unwrap();
        assert!(refusal.reason.ends_with("would lead to reference leak"), "{refusal:?}");
        let place = |line: Option<SourceLine>| line.unwrap().place;
        assert_eq!(place(refusal.at), "x.bpf.c:24");
        assert_eq!(place(refusal.acquired_at), "x.bpf.c:20");
        assert_eq!(refusal.log.len(), 9);
        assert_eq!(found.nr_insns, Some(10));
    }

    #[test]
    fn without_a_log_libbpf_has_the_reason() {
        let error = "failed to find kernel BTF type ID of 'gone': -ESRCH";
        let found = verdict(Some(error), "");
        let refusal = found.refusal.unwrap();
        assert_eq!((refusal.reason.as_str(), refusal.at), (error, None));
        assert_eq!((found.nr_insns, found.stack_bytes, found.time_ns), (None, None, None));
    }

    #[test]
    fn damaged_logs_are_no_trouble() {
        for log in ["processed", "processed x insns", "; ", "stack depth +", "alloc_insn=", ";  @ "]
        {
            let _ = verdict(Some("e"), log);
            let _ = verdict(None, log);
        }
        let huge = verdict(None, "verification time 99999999999999999999 usec\n");
        assert_eq!(huge.time_ns, None);
    }
}
