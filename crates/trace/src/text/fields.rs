// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of the kernel's scheduling events, in the two forms that tools print.
//!
//! The kernel's own form: `comm=X pid=1 prio=120 target_cpu=001`. The short form, from the plug-ins
//! of libtraceevent (trace-cmd, newer perf): `X:1 [120] CPU:001`, and for a switch `X:1 [120] S ==>
//! Y:2 [120]`. A comm may contain spaces, `=`, `:` and `==>`, so fields are read from the right.
//! Fields after the known ones (later kernels and vendors add some) are ignored. Sources: Linux
//! include/trace/events/sched.h, and plugins/plugin_sched_switch.c of libtraceevent.

use super::prefix::{number, shown};
use crate::kernel::{COMM_MAX, Kernel, PID_MAX, Wake, Who, switch_out_of_bits};
use schedlab_model::SwitchOut;
use schedlab_model::cpumask::NR_CPUS_MAX;

/// Takes the fields of `event` apart.
pub(crate) fn parse<'a>(event: &[u8], fields: &'a [u8]) -> Result<Kernel<'a>, String> {
    let wake = |wake| parse_wake(fields, wake);
    let parsed = match event {
        b"sched_switch" => parse_switch(fields),
        b"sched_wakeup" => wake(Wake::Wakeup),
        b"sched_wakeup_new" => wake(Wake::New),
        b"sched_waking" => wake(Wake::Waking),
        b"sched_migrate_task" => parse_migrate(fields),
        b"sched_process_fork" => parse_fork(fields),
        b"sched_process_exit" => parse_exit(fields),
        b"sched_process_exec" => parse_exec(fields),
        b"tracing_mark_write" => return Ok(Kernel::Mark { text: fields }),
        _ => return Ok(Kernel::Other),
    };
    parsed.map_err(|what| {
        let event = String::from_utf8_lossy(event);
        format!("{event} with the fields {:?}: {what}", shown(fields))
    })
}

/// Takes ` KEY=VALUE` off the end. The text after it, other fields, is dropped.
fn take_last<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (mut rest, mut fields_left) = (text, 16);
    loop {
        let equals = memchr::memrchr(b'=', rest)?;
        let value = rest[equals + 1..].trim_ascii_end();
        let space = memchr::memrchr(b' ', &rest[..equals]);
        let from = space.map_or(0, |space| space + 1);
        if &rest[from..equals] == key {
            return Some((&rest[..space.unwrap_or(0)], value));
        }
        rest = &rest[..space?];
        fields_left -= 1;
        if fields_left == 0 {
            return None;
        }
    }
}

fn field<'a>(text: &'a [u8], key: &str) -> Result<(&'a [u8], &'a [u8]), String> {
    take_last(text, key.as_bytes()).ok_or_else(|| format!("there is no field {key}"))
}

/// A number field at the end.
fn number_field<'a>(text: &'a [u8], key: &str, max: u64) -> Result<(&'a [u8], u32), String> {
    let (rest, value) = field(text, key)?;
    let value = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    Ok((rest, number(value, max, key)? as u32))
}

fn pid(digits: &[u8]) -> Result<u32, String> {
    Ok(number(digits, u64::from(PID_MAX), "process id")? as u32)
}

fn cpu(digits: &[u8]) -> Result<u32, String> {
    Ok(number(digits, NR_CPUS_MAX as u64 - 1, "CPU")? as u32)
}

fn named(comm: &[u8], pid: u32) -> Result<Who<'_>, String> {
    if comm.len() > COMM_MAX {
        let length = comm.len();
        return Err(format!("a task name of {length} bytes; at most {COMM_MAX} are allowed"));
    }
    Ok(Who { comm, pid })
}

/// `PREFIXcomm=NAME PREFIXpid=1` at the end of the text.
fn kernel_who<'a>(text: &'a [u8], comm: &str, pid_key: &str) -> Result<Who<'a>, String> {
    let (rest, pid) = number_field(text, pid_key, u64::from(PID_MAX))?;
    let name = rest
        .strip_prefix(comm.as_bytes())
        .ok_or_else(|| format!("it does not begin with {comm}"))?;
    named(name, pid)
}

/// `NAME:PID [PRIO]` at the end; NAME may contain anything. The rest is the start of the name.
fn short_who(text: &[u8]) -> Result<Who<'_>, String> {
    let wrong = || String::from("expected NAME:PID [PRIORITY]");
    let text = text.trim_ascii_end();
    let prio = text.strip_suffix(b"]").ok_or_else(wrong)?;
    let open = memchr::memrchr(b'[', prio).ok_or_else(wrong)?;
    let before = prio[..open].trim_ascii_end();
    let colon = memchr::memrchr(b':', before).ok_or_else(wrong)?;
    named(&before[..colon], pid(&before[colon + 1..])?)
}

/// Why the task left its CPU, from the letters of its state. `R` does not mean sched_yield: a task
/// that is preempted on its way back to user space leaves as `R`, one in the kernel as `R+`.
fn switch_out(state: &[u8]) -> Result<SwitchOut, String> {
    let wrong = || {
        format!(
            "the state {:?} is not known: allowed are R S D T t X Z P I K W N x, joined by |, and \
             + at the end",
            shown(state)
        )
    };
    let letters = state.strip_suffix(b"+").unwrap_or(state);
    let (mut is_dead, mut is_uninterruptible, mut is_runnable) = (false, false, false);
    if letters.first().is_some_and(u8::is_ascii_digit) {
        return switch_out_of_digits(letters).ok_or_else(wrong);
    }
    for part in letters.split(|byte| *byte == b'|') {
        match part {
            b"R" => is_runnable = true,
            b"D" => is_uninterruptible = true,
            b"X" | b"Z" | b"x" => is_dead = true,
            b"S" | b"T" | b"t" | b"P" | b"I" | b"K" | b"W" | b"N" => {}
            _ => return Err(wrong()),
        }
    }
    Ok(if state.ends_with(b"+") || (is_runnable && !is_dead) {
        SwitchOut::Preempted
    } else if is_dead {
        SwitchOut::Dead
    } else if is_uninterruptible {
        SwitchOut::BlockedIo
    } else {
        SwitchOut::Sleeping
    })
}

/// The same from the kernel's number (`trace-cmd report -R`), decimal or 0x.
fn switch_out_of_digits(digits: &[u8]) -> Option<SwitchOut> {
    let text = std::str::from_utf8(digits).ok()?;
    let bits = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(switch_out_of_bits(bits))
}

fn parse_switch(fields: &[u8]) -> Result<Kernel<'_>, String> {
    if !fields.starts_with(b"prev_comm=") {
        return parse_short_switch(fields);
    }
    let (rest, next_pid) = number_field(fields, "next_pid", u64::from(PID_MAX))?;
    let separator: &[u8] = b" ==> next_comm=";
    let at = memchr::memmem::find(rest, separator)
        .ok_or("there is no ==> between the task that leaves and the one that comes")?;
    let next = named(&rest[at + separator.len()..], next_pid)?;
    let (left, state) = field(&rest[..at], "prev_state")?;
    let prev = kernel_who(left, "prev_comm=", "prev_pid")?;
    Ok(Kernel::Switch { prev, out: switch_out(state)?, next })
}

fn parse_short_switch(fields: &[u8]) -> Result<Kernel<'_>, String> {
    let arrow = b" ==> ";
    let mut error = String::from("there is no ==> between the task that leaves and the next");
    for at in memchr::memmem::find_iter(fields, arrow) {
        let halves = (&fields[..at], &fields[at + arrow.len()..]);
        match short_halves(halves.0, halves.1) {
            Ok(switch) => return Ok(switch),
            Err(wrong) => error = wrong,
        }
    }
    Err(error)
}

fn short_halves<'a>(left: &'a [u8], right: &'a [u8]) -> Result<Kernel<'a>, String> {
    let space = memchr::memrchr(b' ', left).ok_or("expected NAME:PID [PRIORITY] STATE")?;
    let out = switch_out(&left[space + 1..])?;
    let prev = short_who(&left[..space])?;
    Ok(Kernel::Switch { prev, out, next: short_who(right)? })
}

fn parse_wake(fields: &[u8], wake: Wake) -> Result<Kernel<'_>, String> {
    if fields.starts_with(b"comm=") && memchr::memmem::find(fields, b" pid=").is_some() {
        let who = kernel_who(fields, "comm=", "pid")?;
        let target = take_last(fields, b"target_cpu").map(|(_, digits)| cpu(digits));
        return Ok(Kernel::Wake { who, cpu: target.transpose()?, wake });
    }
    // `NAME:1 [120]`, then perhaps `success=1`, `<CANT FIND FIELD success>` and `CPU:001`.
    let target = memchr::memmem::rfind(fields, b" CPU:");
    let digits = target.map(|at| cpu(fields[at + 5..].trim_ascii()));
    let text = &fields[..target.unwrap_or(fields.len())];
    let close = memchr::memrchr(b']', text).ok_or("expected NAME:PID [PRIORITY]")?;
    let who = short_who(&text[..=close])?;
    Ok(Kernel::Wake { who, cpu: digits.transpose()?, wake })
}

fn parse_migrate(fields: &[u8]) -> Result<Kernel<'_>, String> {
    let cpus_max = NR_CPUS_MAX as u64 - 1;
    let (rest, to) = number_field(fields, "dest_cpu", cpus_max)?;
    let (rest, from) = number_field(rest, "orig_cpu", cpus_max)?;
    Ok(Kernel::Migrate { who: kernel_who(rest, "comm=", "pid")?, from, to })
}

fn parse_fork(fields: &[u8]) -> Result<Kernel<'_>, String> {
    let (rest, child_pid) = number_field(fields, "child_pid", u64::from(PID_MAX))?;
    let key: &[u8] = b" child_comm=";
    let at = memchr::memmem::find(rest, key).ok_or("there is no field child_comm")?;
    let child = named(&rest[at + key.len()..], child_pid)?;
    Ok(Kernel::Fork { parent: kernel_who(&rest[..at], "comm=", "pid")?, child })
}

fn parse_exit(fields: &[u8]) -> Result<Kernel<'_>, String> {
    Ok(Kernel::Exit { who: kernel_who(fields, "comm=", "pid")? })
}

fn parse_exec(fields: &[u8]) -> Result<Kernel<'_>, String> {
    let (rest, old_pid) = number_field(fields, "old_pid", u64::from(PID_MAX))?;
    let (_, pid) = number_field(rest, "pid", u64::from(PID_MAX))?;
    Ok(Kernel::Exec { pid, old_pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(comm: &str, pid: u32) -> Who<'_> {
        Who { comm: comm.as_bytes(), pid }
    }

    fn ok<'a>(event: &str, fields: &'a str) -> Kernel<'a> {
        parse(event.as_bytes(), fields.as_bytes()).expect(fields)
    }

    #[test]
    fn switches_in_both_shapes() {
        let switch = |prev, out, next| Kernel::Switch { prev, out, next };
        for (fields, want) in [
            (
                "prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh \
                 next_pid=27617 next_prio=120",
                switch(who("swapper/1", 0), SwitchOut::Preempted, who("sh", 27617)),
            ),
            (
                "prev_comm=a b=c ==> d prev_pid=5 prev_prio=-1 prev_state=D|K ==> next_comm= x \
                 next_pid=6 next_prio=120 expeller_type=0",
                switch(who("a b=c ==> d", 5), SwitchOut::BlockedIo, who(" x", 6)),
            ),
            (
                "prev_comm= prev_pid=5 prev_prio=0 prev_state=I ==> next_comm= next_pid=6 \
                 next_prio=1",
                switch(who("", 5), SwitchOut::Sleeping, who("", 6)),
            ),
            (
                "sh:27617 [120] R+ ==> kworker/0:1:28225 [120]",
                switch(who("sh", 27617), SwitchOut::Preempted, who("kworker/0:1", 28225)),
            ),
            (
                "a ==> b:5 [9] Z ==> Web [0] x:6 [120]",
                switch(who("a ==> b", 5), SwitchOut::Dead, who("Web [0] x", 6)),
            ),
        ] {
            assert_eq!(ok("sched_switch", fields), want);
        }
    }

    #[test]
    fn states_are_the_kernels() {
        use SwitchOut::{BlockedIo, Dead, Preempted, Sleeping};
        for (state, out) in [
            ("R", Preempted),
            ("R+", Preempted),
            ("S", Sleeping),
            ("S+", Preempted),
            ("D", BlockedIo),
            ("D|W", BlockedIo),
            ("S|D", BlockedIo),
            ("T", Sleeping),
            ("t", Sleeping),
            ("P", Sleeping),
            ("I", Sleeping),
            ("X", Dead),
            ("Z", Dead),
            ("x", Dead),
            ("Z|X", Dead),
            ("R|Z", Dead),
            ("0", Preempted),
            ("1", Sleeping),
            ("2", BlockedIo),
            ("0x82", BlockedIo),
            ("16", Dead),
            ("256", Preempted),
        ] {
            assert_eq!(switch_out(state.as_bytes()), Ok(out), "{state}");
        }
        for state in ["", "Q", "S|", "|S", "SS", "1x", "0x", "99999999999999999999"] {
            let error = switch_out(state.as_bytes()).unwrap_err();
            assert!(error.contains("allowed are R S D"), "{error}");
        }
    }

    #[test]
    fn wakeups_in_every_shape() {
        let wake = |wake, who, cpu| Kernel::Wake { who, cpu, wake };
        for (event, fields, want) in [
            (
                "sched_wakeup",
                "comm=rcu_preempt pid=15 prio=120 target_cpu=000",
                wake(Wake::Wakeup, who("rcu_preempt", 15), Some(0)),
            ),
            (
                "sched_waking",
                "comm=a pid=1 pid=2 prio=98 success=1 target_cpu=1023",
                wake(Wake::Waking, who("a pid=1", 2), Some(1023)),
            ),
            ("sched_wakeup_new", "rcu:29 [120] CPU:001", wake(Wake::New, who("rcu", 29), Some(1))),
            (
                "sched_wakeup",
                "comm= x:29 [120] success=1 CPU:012",
                wake(Wake::Wakeup, who("comm= x", 29), Some(12)),
            ),
            ("sched_wakeup", "a:b:29 [0]", wake(Wake::Wakeup, who("a:b", 29), None)),
        ] {
            assert_eq!(ok(event, fields), want);
        }
    }

    #[test]
    fn the_other_events() {
        assert_eq!(
            ok("sched_migrate_task", "comm=x y pid=7 prio=120 orig_cpu=1 dest_cpu=12"),
            Kernel::Migrate { who: who("x y", 7), from: 1, to: 12 }
        );
        assert_eq!(
            ok("sched_process_fork", "comm=a pid=1 child_comm=b c child_pid=4711"),
            Kernel::Fork { parent: who("a", 1), child: who("b c", 4711) }
        );
        assert_eq!(
            ok("sched_process_exit", "comm=a pid=1 prio=120 group_dead=true"),
            Kernel::Exit { who: who("a", 1) }
        );
        assert_eq!(
            ok("sched_process_exec", "filename=/bin/a b=c pid=9 old_pid=8"),
            Kernel::Exec { pid: 9, old_pid: 8 }
        );
        assert_eq!(ok("sched_stat_runtime", "comm=a"), Kernel::Other);
    }

    #[test]
    fn damaged_fields_are_errors_that_say_what() {
        let long = format!("comm={} pid=1 prio=1 target_cpu=0", "x".repeat(4097));
        for (event, fields, word) in [
            ("sched_switch", "prev_comm=a prev_pid=1", "no field next_pid"),
            ("sched_switch", "a:1 [120] S", "no ==>"),
            ("sched_switch", "a:1 [120] Q ==> b:2 [120]", "state \"Q\""),
            ("sched_switch", "", "no ==>"),
            ("sched_wakeup", "comm=a pid=4194305 prio=1 target_cpu=0", "0 to 4194304"),
            ("sched_wakeup", "comm=a pid=1 prio=1 target_cpu=1024", "0 to 1023"),
            ("sched_wakeup", "a:-1 [120]", "process id"),
            ("sched_wakeup", &long, "4097 bytes"),
            ("sched_migrate_task", "comm=a pid=1 prio=1 orig_cpu=x dest_cpu=1", "orig_cpu \"x\""),
            ("sched_process_fork", "comm=a pid=1 child_pid=2", "child_comm"),
        ] {
            let error = parse(event.as_bytes(), fields.as_bytes()).unwrap_err();
            assert!(error.contains(word) && error.starts_with(event), "{error}");
        }
    }
}
