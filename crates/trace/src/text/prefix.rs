// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a line of text before the fields of an event.
//!
//! Three tools print it, with small differences:
//!
//! ```text
//! ftrace     bash-1977    ( 1977) [000] d..2.   17.284993: sched_switch: FIELDS
//! trace-cmd  bash-1977          [000] d..2.   17.284993: sched_switch:   FIELDS
//! perf       bash  1977/1977    [000]         17.284993:          1 sched:sched_switch: FIELDS
//! ```
//!
//! The thread group in parentheses, the flags, the first number of `1977/1977` and the sample
//! period may be absent. A comm may hold anything, brackets and spaces too; the line is taken apart
//! at the first `[cpu]` that is followed by a time and an event and preceded by a process id.
//! Sources: Linux kernel/trace/trace_output.c (`trace_print_context`, `trace_print_lat_fmt`) and
//! tools/perf/builtin-script.c (`perf_sample__fprintf_start`).

use crate::kernel::PID_MAX;
use schedlab_model::Nanos;
use schedlab_model::cpumask::NR_CPUS_MAX;

/// The part of a line before the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prefix<'a> {
    /// Name of the task that ran.
    pub comm: &'a [u8],
    /// Its process id; `None` if perf did not know it.
    pub pid: Option<u32>,
    /// The first thread of its process, where the line says it.
    pub tgid: Option<u32>,
    /// Whether the line is perf's: no `-` between name and process id.
    pub is_perf: bool,
    pub cpu: u32,
    /// Whether the flags show that an interrupt ran, not the task.
    pub in_irq: bool,
    pub time_ns: Nanos,
    /// Whether the time has a decimal point: it is in seconds, not in units of an unknown clock.
    pub is_seconds: bool,
    /// Name of the event, without the name of its group.
    pub event: &'a [u8],
    pub fields: &'a [u8],
}

/// Splits a line. `None`: it is not the line of an event.
pub(crate) fn parse(line: &[u8]) -> Option<Result<Prefix<'_>, String>> {
    let mut from = 0;
    while let Some(bracket) = memchr::memchr(b'[', &line[from..]) {
        let at = from + bracket;
        if let Some(found) = parse_at(line, at) {
            return Some(found);
        }
        from = at + 1;
    }
    None
}

/// Splits a line whose CPU is in the bracket at `at`.
fn parse_at(line: &[u8], at: usize) -> Option<Result<Prefix<'_>, String>> {
    let (cpu, rest) = digits(&line[at + 1..])?;
    // `trace-cmd report -R` of version 3.4 puts the offset in the ring after the bracket.
    let rest = rest.strip_prefix(b"]")?;
    let rest = if rest.starts_with(b"-0x") { &rest[token(rest).len()..] } else { rest };
    let mut rest = spaces(rest)?;
    let mut in_irq = false;
    let mut stamp = time(rest);
    if stamp.is_none() {
        let flags = token(rest);
        if !(3..=8).contains(&flags.len()) {
            return None;
        }
        // irqs-off, need-resched, hard or soft interrupt, then depths.
        in_irq = matches!(flags[2], b'h' | b'H' | b's' | b'z' | b'Z');
        rest = spaces(&rest[flags.len()..])?;
        stamp = time(rest);
    }
    let (stamp, rest) = stamp?;
    let (event, fields) = event(spaces(rest)?)?;
    let Running { comm, pid, tgid, is_perf } = who(&line[..at])?;
    let prefix = || {
        let pid = pid.map(|pid| number(pid, u64::from(PID_MAX), "process id")).transpose()?;
        Ok(Prefix {
            comm,
            pid: pid.map(|pid| pid as u32),
            tgid: tgid
                .and_then(|tgid| number(tgid, u64::from(PID_MAX), "process id").ok())
                .map(|t| t as u32),
            is_perf,
            cpu: number(cpu, NR_CPUS_MAX as u64 - 1, "CPU")? as u32,
            in_irq,
            time_ns: stamp.to_ns()?,
            is_seconds: stamp.fraction.is_some(),
            event,
            fields,
        })
    };
    Some(prefix())
}

/// A time as in the text.
#[derive(Clone, Copy)]
struct Stamp<'a> {
    whole: &'a [u8],
    fraction: Option<&'a [u8]>,
}

impl Stamp<'_> {
    fn to_ns(self) -> Result<Nanos, String> {
        let whole = number(self.whole, u64::MAX, "time")?;
        let Some(fraction) = self.fraction else { return Ok(whole) };
        let mut nanos = 0;
        for place in 0..9 {
            nanos = 10 * nanos + fraction.get(place).map_or(0, |digit| u64::from(digit - b'0'));
        }
        whole
            .checked_mul(1_000_000_000)
            .and_then(|ns| ns.checked_add(nanos))
            .ok_or_else(|| format!("the time of {whole} s is beyond 64 bits of nanoseconds"))
    }
}

/// `17.284993:`; or `17284993:` with a clock that does not count seconds.
fn time(text: &[u8]) -> Option<(Stamp<'_>, &[u8])> {
    let (whole, rest) = digits(text)?;
    if let Some(rest) = rest.strip_prefix(b":") {
        return Some((Stamp { whole, fraction: None }, rest));
    }
    let (fraction, rest) = digits(rest.strip_prefix(b".")?)?;
    let rest = rest.strip_prefix(b":")?;
    (fraction.len() <= 9).then_some((Stamp { whole, fraction: Some(fraction) }, rest))
}

/// `sched_switch: FIELDS` or `1 sched:sched_switch: FIELDS`.
fn event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = match digits(text).and_then(|(_, rest)| spaces(rest)) {
        Some(after_period) => after_period,
        None => text,
    };
    let word = token(text);
    let name = word.strip_suffix(b":")?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:-./".contains(byte);
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    let own = memchr::memrchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
    Some((own, text[word.len()..].trim_ascii()))
}

/// Who ran.
struct Running<'a> {
    comm: &'a [u8],
    /// Digits of the process id.
    pid: Option<&'a [u8]>,
    /// Digits of the first thread's.
    tgid: Option<&'a [u8]>,
    is_perf: bool,
}

/// `bash-1977`, `bash-1977 ( 1977)`, `bash 1977` or `bash 1977/1978`.
fn who(text: &[u8]) -> Option<Running<'_>> {
    let mut text = text.trim_ascii_end();
    let mut tgid = None;
    if let Some(inside) = text.strip_suffix(b")") {
        let open = memchr::memrchr(b'(', text)?;
        tgid = last_digits(inside).map(|(_, digits)| digits);
        text = text[..open].trim_ascii_end();
    }
    let (before, digits) = last_digits(text)?;
    let pid = Some(digits);
    match before.last()? {
        b'/' => {
            let (before, first) = last_digits(&before[..before.len() - 1])?;
            let comm = before.trim_ascii();
            let is_space = before.last()?.is_ascii_whitespace();
            is_space.then_some(Running { comm, pid, tgid: Some(first), is_perf: true })
        }
        b'-' => {
            let name = &before[..before.len() - 1];
            let is_perfs_unknown =
                digits == b"1" && name.last().is_none_or(u8::is_ascii_whitespace);
            if is_perfs_unknown {
                let comm = name.trim_ascii();
                return Some(Running { comm, pid: None, tgid: None, is_perf: true });
            }
            Some(Running { comm: name.trim_ascii_start(), pid, tgid, is_perf: false })
        }
        byte if byte.is_ascii_whitespace() => {
            Some(Running { comm: before.trim_ascii(), pid, tgid, is_perf: true })
        }
        _ => None,
    }
}

/// The digits at the start, at least one, and the rest.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(count))
}

/// The digits at the end, at least one, and the text before them.
fn last_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| text.split_at(text.len() - count))
}

/// The text after the spaces at the start; there must be at least one.
fn spaces(text: &[u8]) -> Option<&[u8]> {
    text.first()?.is_ascii_whitespace().then(|| text.trim_ascii_start())
}

/// The text up to the first space.
fn token(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    &text[..end]
}

/// A decimal number of at most `max`.
pub(crate) fn number(digits: &[u8], max: u64, what: &str) -> Result<u64, String> {
    let mut value = 0u64;
    for &digit in digits {
        let next = digit.is_ascii_digit().then(|| value.checked_mul(10)).flatten();
        let next = next.and_then(|value| value.checked_add(u64::from(digit.wrapping_sub(b'0'))));
        value =
            next.filter(|value| *value <= max).ok_or_else(|| out_of_range(digits, max, what))?;
    }
    if digits.is_empty() { Err(out_of_range(digits, max, what)) } else { Ok(value) }
}

#[cold]
fn out_of_range(digits: &[u8], max: u64, what: &str) -> String {
    format!("{what} {:?} is not allowed: allowed are 0 to {max}", shown(digits))
}

/// At most the first 80 bytes of a text, for an error.
pub(crate) fn shown(text: &[u8]) -> String {
    let mut out = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
    if text.len() > 80 {
        out.push('\u{2026}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Prefix<'_> {
        parse(line.as_bytes()).expect(line).expect(line)
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    /// Name, process id, CPU, time, event, and whether perf wrote it and an interrupt ran.
    type Wanted = (&'static str, Option<u32>, u32, u64, bool, bool);

    const LINES: [(&str, Wanted); 9] = [
        (
            "       hackbench-10919   [000] d..2.  8317.072645: sched_switch: x",
            ("hackbench", Some(10919), 0, 8_317_072_645_000, false, false),
        ),
        (
            "          <idle>-0       [013] dNh4.  8317.072013123: sched_switch: x",
            ("<idle>", Some(0), 13, 8_317_072_013_123, false, true),
        ),
        (
            "   my - task 2-77      (     12) [1] d.s.  1.5: sched_switch: x",
            ("my - task 2", Some(77), 1, 1_500_000_000, false, true),
        ),
        (" a-5 (-------) [001] 17: sched_switch: x", ("a", Some(5), 1, 17, false, false)),
        (
            "            bash-1977  [000]   17.284993: sched_switch:         x",
            ("bash", Some(1977), 0, 17_284_993_000, false, false),
        ),
        (
            "<idle>-0     [001]-0x35  3.000001: sched_switch: x",
            ("<idle>", Some(0), 1, 3_000_001_000, false, false),
        ),
        (
            "           perf 27616 [001] 12345.678901:  sched:sched_switch: x",
            ("perf", Some(27616), 1, 12_345_678_901_000, true, false),
        ),
        (
            " Web Content-2  100/27616 [001] 12345.678901234:  1  sched:sched_switch: x",
            ("Web Content-2", Some(27616), 1, 12_345_678_901_234, true, false),
        ),
        (
            " :-1    -1 [001] 5.000000: sched:sched_switch: x",
            (":-1", None, 1, 5_000_000_000, true, false),
        ),
    ];

    #[test]
    fn the_three_tools_lines() {
        for (line, want) in LINES {
            let it = of(line);
            let found = (text(it.comm), it.pid, it.cpu, it.time_ns, it.is_perf, it.in_irq);
            assert_eq!(found, want, "{line}");
            assert_eq!((text(it.event), text(it.fields)), ("sched_switch", "x"), "{line}");
        }
    }

    /// A name may look like the rest of the line, up to a point.
    #[test]
    fn brackets_in_a_name() {
        let found = of("     ev [003] 1-42      [000] .....     1.000000: sched_switch: y");
        assert_eq!((text(found.comm), found.pid, found.cpu), ("ev [003] 1", Some(42), 0));
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in [
            "",
            "# tracer: nop",
            "cpus=2",
            "CPU:1 [LOST 5 EVENTS]",
            "     7fff8100 schedule+0x5 ([kernel.kallsyms])",
            "bash-1 [000] d..2. nonsense: sched_switch: x",
            "bash-1 [000] d..2. 1.0000000001: sched_switch: x",
            "bash-1 [000] 1.0: sched_switch",
            "bash [000] 1.0: sched_switch: x",
            "    bash-1977    0d..2.  123us : sched_switch: x",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        for (line, word) in [
            ("a-1 [1024] 1.0: sched_switch: x", "CPU \"1024\""),
            ("a-4194305 [0] 1.0: sched_switch: x", "process id \"4194305\""),
            ("a-1 [0] 99999999999999999999.0: sched_switch: x", "time"),
            ("a-1 [0] 99999999999.0: sched_switch: x", "64 bits"),
        ] {
            let error = parse(line.as_bytes()).unwrap().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
