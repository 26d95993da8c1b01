// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees when a workload file is wrong.

use schedlab_workload::{WarningKind, read_rtapp};

/// The report of the error, as a terminal shows it without colour.
fn report(text: &str) -> String {
    let error = match read_rtapp("dir/w.json", text, 2) {
        Err(error) => error,
        Ok(read) => panic!("was accepted: {read:?}"),
    };
    let mut report = String::new();
    miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
        .with_width(90)
        .render_report(&mut report, &*error)
        .unwrap();
    report
}

/// The error of a file with one task `a` that has these members.
fn task(members: &str) -> String {
    report(&format!("{{ \"tasks\": {{ \"a\": {{\n  {members}\n}} }} }}"))
}

#[test]
fn an_unknown_key_names_the_nearest() {
    insta::assert_snapshot!(task(r#""run": 5, "instanec": 3"#), @r#"
     × dir/w.json:2:13: a task knows no key "instanec"
      ╭─[dir/w.json:2:13]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "instanec": 3
      ·             ─────┬────
      ·                  ╰── here
      ╰────
     help: did you mean `instance`? allowed are the properties instance, delay, loop,
           phases, interarrival, release, policy, priority, dl-runtime, dl-period, dl-
           deadline, cpus, taskgroup and the events run, runtime, sleep, timer, iorun,
           yield, fork, join, exit, progress, phase, repeat, sched
    "#);
    insta::assert_snapshot!(report("{ \"task\": {} }"), @r#"
     × dir/w.json:1:3: `the file` knows no key "task"
      ╭─[dir/w.json:1:3]
    1 │ { "task": {} }
      ·   ───┬──
      ·      ╰── here
      ╰────
     help: did you mean `tasks`? allowed are $schema, name, global, cgroups, tasks,
           resources
    "#);
    insta::assert_snapshot!(report("{ \"tasks\": {}, \"global\": { \"druation\": 2 } }"), @r#"
     × dir/w.json:1:28: `global` knows no key "druation"
      ╭─[dir/w.json:1:28]
    1 │ { "tasks": {}, "global": { "druation": 2 } }
      ·                            ─────┬────
      ·                                 ╰── here
      ╰────
     help: did you mean `duration`? allowed are duration, default_policy, calibration,
           pi_enabled, lock_pages, mem_buffer_size, frag, io_device, logdir, log_basename,
           log_size, ftrace, gnuplot, cumulative_slack
    "#);
}

#[test]
fn what_is_not_supported_yet_is_refused_by_name() {
    insta::assert_snapshot!(task(r#""run": 5, "lock0": "mutex""#), @r#"
     × dir/w.json:2:13: event `lock` is not supported yet
      ╭─[dir/w.json:2:13]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "lock0": "mutex"
      ·             ───┬───
      ·                ╰── here
      ╰────
     help: in rt-app it takes a mutex; no lane plays it, and leaving it out would change
           the workload. Remove it, or express it with run, runtime, sleep, timer, iorun,
           yield, fork, join, exit, progress, phase, repeat, sched
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "util_min": 512"#), @r#"
     × dir/w.json:2:13: `util_min` is not supported
      ╭─[dir/w.json:2:13]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "util_min": 512
      ·             ─────┬────
      ·                  ╰── here
      ╰────
     help: utilisation clamping is not supported yet: remove the key
    "#);
    insta::assert_snapshot!(task(r#""loop": 1, "phases": { "p": { "run": 5, "delay": 1 } }"#), @r#"
     × dir/w.json:2:43: `delay` does not belong to a phase
      ╭─[dir/w.json:2:43]
    1 │ { "tasks": { "a": {
    2 │   "loop": 1, "phases": { "p": { "run": 5, "delay": 1 } }
      ·                                           ───┬───
      ·                                              ╰── here
      ╰────
     help: it is a property of a task; properties allowed here: policy, priority, dl-
           runtime, dl-period, dl-deadline, cpus, taskgroup, loop
    "#);
    let timer = r#""instance": 2, "run": 5, "timer": { "ref": "tick", "period": 1000 }"#;
    insta::assert_snapshot!(task(timer), @r#"
     × dir/w.json:2:37: timer "tick" is shared by several tasks
      ╭─[dir/w.json:2:37]
    1 │ { "tasks": { "a": {
    2 │   "instance": 2, "run": 5, "timer": { "ref": "tick", "period": 1000 }
      ·                                     ────────────────┬────────────────
      ·                                                     ╰── here
      ╰────
     help: timers that tasks share are not supported yet: begin the `ref` with `unique`
           ("unique_tick") to give each task its own
    "#);
}

#[test]
fn every_event_that_rt_app_has_and_schedlab_not_is_refused() {
    let events = [
        "lock", "unlock", "wait", "signal", "broad", "sync", "barrier", "suspend", "resume", "mem",
        "memrun", "sem_wait", "sem_post",
    ];
    for event in events {
        let text = task(&format!("\"run\": 5, \"{event}7\": \"x\""));
        assert!(text.contains(&format!("event `{event}` is not supported yet")), "{text}");
        assert!(text.contains("w.json:2:13"), "{text}");
    }
    for key in ["util_min", "util_max", "nodes_membind", "dl-reclaim"] {
        let text = task(&format!("\"run\": 5, \"{key}\": 1"));
        assert!(text.contains(&format!("`{key}` is not supported")), "{text}");
    }
}

#[test]
fn durations_are_checked() {
    insta::assert_snapshot!(task(r#""run": -5"#), @r#"
     × dir/w.json:2:10: `run` is negative
      ╭─[dir/w.json:2:10]
    1 │ { "tasks": { "a": {
    2 │   "run": -5
      ·          ─┬
      ·           ╰── here
      ╰────
     help: a duration is 0 or more: write microseconds as a whole number, or a string with
           a unit such as "1500us", "1.5ms" or "250ns"
    "#);
    insta::assert_snapshot!(task(r#""run": 99999999999999999999"#), @r#"
     × dir/w.json:2:10: `run` is too long
      ╭─[dir/w.json:2:10]
    1 │ { "tasks": { "a": {
    2 │   "run": 99999999999999999999
      ·          ──────────┬─────────
      ·                    ╰── here
      ╰────
     help: a duration is at most 315360000000000 us (3650 days)
    "#);
    insta::assert_snapshot!(task(r#""run": 1.5"#), @r#"
     × dir/w.json:2:10: `run` is no whole number of microseconds
      ╭─[dir/w.json:2:10]
    1 │ { "tasks": { "a": {
    2 │   "run": 1.5
      ·          ─┬─
      ·           ╰── here
      ╰────
     help: write microseconds as a whole number, or a string with a unit such as "1500us",
           "1.5ms" or "250ns"
    "#);
    insta::assert_snapshot!(task(r#""run": "15""#), @r#"
     × dir/w.json:2:10: `run`: "15" has no unit: write 15ms, 15us, 15s or another unit (ns,
     │ min, h)
      ╭─[dir/w.json:2:10]
    1 │ { "tasks": { "a": {
    2 │   "run": "15"
      ·          ──┬─
      ·            ╰── here
      ╰────
     help: write microseconds as a whole number, or a string with a unit such as "1500us",
           "1.5ms" or "250ns"
    "#);
    let uniform = r#""sleep": { "distribution": "uniform", "low": 9, "high": 3 }"#;
    insta::assert_snapshot!(task(uniform), @r#"
     × dir/w.json:2:59: `high` is below `low`
      ╭─[dir/w.json:2:59]
    1 │ { "tasks": { "a": {
    2 │   "sleep": { "distribution": "uniform", "low": 9, "high": 3 }
      ·                                                           ┬
      ·                                                           ╰── here
      ╰────
     help: swap them: both ends belong to the range
    "#);
}

#[test]
fn priorities_and_policies_are_checked() {
    insta::assert_snapshot!(task(r#""run": 5, "timer": { "ref": "unique", "period": 0 }"#), @r#"
     × dir/w.json:2:51: `period` is 0, or can be
      ╭─[dir/w.json:2:51]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "timer": { "ref": "unique", "period": 0 }
      ·                                                   ┬
      ·                                                   ╰── here
      ╰────
     help: a period is more than 0: a timer that fires at once would never let time pass
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "priority": 20"#), @r#"
     × dir/w.json:2:25: `priority` 20 with policy SCHED_OTHER
      ╭─[dir/w.json:2:25]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "priority": 20
      ·                         ─┬
      ·                          ╰── here
      ╰────
     help: allowed are -20 to 19 (the nice value, -20 the most important)
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "policy": "SCHED_RR", "priority": 0"#), @r#"
     × dir/w.json:2:47: `priority` 0 with policy SCHED_RR
      ╭─[dir/w.json:2:47]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "policy": "SCHED_RR", "priority": 0
      ·                                               ┬
      ·                                               ╰── here
      ╰────
     help: allowed are 1 to 99 (the real-time priority, 99 the most important)
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "policy": "FIFO""#), @r#"
     × dir/w.json:2:23: policy "FIFO" is not known
      ╭─[dir/w.json:2:23]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "policy": "FIFO"
      ·                       ───┬──
      ·                          ╰── here
      ╰────
     help: allowed are SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR,
           SCHED_DEADLINE, SCHED_EXT
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "policy": "SCHED_DEADLINE""#), @r#"
     × dir/w.json:2:23: SCHED_DEADLINE with a budget of 0 ns
      ╭─[dir/w.json:2:23]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "policy": "SCHED_DEADLINE"
      ·                       ────────┬───────
      ·                               ╰── here
      ╰────
     help: give `dl-runtime`, the CPU time in each period: at least 1024 ns (the key
           `runtime` is an event)
    "#);
}

#[test]
fn cpus_groups_and_loops_are_checked() {
    insta::assert_snapshot!(task(r#""run": 5, "cpus": [2, 3]"#), @r#"
     × dir/w.json:2:21: no CPU of `cpus` (2-3) exists
      ╭─[dir/w.json:2:21]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "cpus": [2, 3]
      ·                     ───┬──
      ·                        ╰── here
      ╰────
     help: the machine has CPUs 0 to 1: name at least one of them
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "taskgroup": "/a/../../etc""#), @r#"
     × dir/w.json:2:26: group path "/a/../../etc": has a part that begins with a dot
      ╭─[dir/w.json:2:26]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "taskgroup": "/a/../../etc"
      ·                          ───────┬──────
      ·                                 ╰── here
      ╰────
     help: a path is like "/a/b": each part of letters, digits, `_`, `-`, `.` and `@`, not
           beginning with a dot or with the name of a controller and a dot (`cpu.`)
    "#);
    insta::assert_snapshot!(task(r#""run": 5, "loop": 2, "loop": 3"#), @r#"
     × dir/w.json:2:24: `loop` stands here for the second time
      ╭─[dir/w.json:2:24]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "loop": 2, "loop": 3
      ·                        ───┬──
      ·                           ╰── here
      ╰────
     help: only events may be repeated: keep one of the two
    "#);
}

/// Right in the first round, wrong in the second.
#[test]
fn later_rounds_of_phases_are_checked_too() {
    let phases = r#""phases": { "p": { "priority": -5, "run": 1 },
                  "q": { "policy": "SCHED_FIFO", "run": 2 } }"#;
    insta::assert_snapshot!(task(phases), @r#"
     × dir/w.json:2:34: `priority` -5 with policy SCHED_FIFO
      ╭─[dir/w.json:2:34]
    1 │ { "tasks": { "a": {
    2 │   "phases": { "p": { "priority": -5, "run": 1 },
      ·                                  ─┬
      ·                                   ╰── here
      ╰────
     help: allowed are 1 to 99 (the real-time priority, 99 the most important). This
           happens in the second round: attributes stay as the last phase left them until a
           phase names others
    "#);
    assert!(
        read_rtapp("w", &format!("{{ \"tasks\": {{ \"a\": {{ \"loop\": 1, {phases} }} }} }}"), 1)
            .is_ok()
    );
}

#[test]
fn forks_are_checked() {
    insta::assert_snapshot!(task(r#""run": 5, "fork": "b""#), @r#"
     × dir/w.json:2:21: `fork` names the task "b", which is not described
      ╭─[dir/w.json:2:21]
    1 │ { "tasks": { "a": {
    2 │   "run": 5, "fork": "b"
      ·                     ─┬─
      ·                      ╰── here
      ╰────
     help: described are a
    "#);
    let cycle = r#"{ "tasks": {
  "a": { "loop": 1, "run": 5, "fork": "b" },
  "b": { "loop": 1, "instance": 0, "run": 5, "fork": "c" },
  "c": { "loop": 1, "instance": 0, "run": 5, "fork": "a" }
} }"#;
    insta::assert_snapshot!(report(cycle), @r#"
     × dir/w.json:2:39: cycle of forks: a -> b -> c -> a
      ╭─[dir/w.json:2:39]
    1 │ { "tasks": {
    2 │   "a": { "loop": 1, "run": 5, "fork": "b" },
      ·                                       ─┬─
      ·                                        ╰── here
      ╰────
     help: a task may not fork, directly or through others, a task that forks it again: the
           number of tasks would grow without end
    "#);
    insta::assert_snapshot!(task(r#""instance": 5000000, "run": 5"#), @r#"
     × dir/w.json:2:15: `instance` is out of range
      ╭─[dir/w.json:2:15]
    1 │ { "tasks": { "a": {
    2 │   "instance": 5000000, "run": 5
      ·               ───┬───
      ·                  ╰── here
      ╰────
     help: `instance` takes a whole number from 0 to 4194304
    "#);
}

#[test]
fn loops_that_take_no_time_are_refused() {
    insta::assert_snapshot!(task(r#""progress": """#), @r#"
     × dir/w.json:1:19: this loops without end, or more than a million times, and nothing
     │ in it takes time
      ╭─[dir/w.json:1:19]
    1 │ { "tasks": { "a": {
      ·                   ┬
      ·                   ╰── here
      ╰────
     help: put a `run`, `sleep` or `timer` into it, or give "loop": 1 (a task's default is
           -1, without end)
    "#);
    insta::assert_snapshot!(task(r#""priority": 3"#), @r#"
     × dir/w.json:1:14: task "a" has no event and loops
      ╭─[dir/w.json:1:14]
    1 │ { "tasks": { "a": {
      ·              ─┬─
      ·               ╰── here
      ╰────
     help: give it an event such as "run": 1000 (microseconds)
    "#);
}

#[test]
fn a_file_that_is_no_json_is_refused_where_it_breaks() {
    insta::assert_snapshot!(report("{ \"tasks\": { \"a\": { \"run\": 5,"), @r#"
     × dir/w.json:1:19: unterminated object
      ╭─[dir/w.json:1:19]
    1 │ { "tasks": { "a": { "run": 5,
      ·                   ─────┬─────
      ·                        ╰── here
      ╰────
     help: the file ends too early: close what was opened, or check whether the file was
           cut off
    "#);
    insta::assert_snapshot!(report("{ \"tasks\": { \"a\": { \"run\": 5 \"sleep\": 3 } } }"), @r#"
     × dir/w.json:1:29: expected comma
      ╭─[dir/w.json:1:29]
    1 │ { "tasks": { "a": { "run": 5 "sleep": 3 } } }
      ·                             ▲
      ·                             ╰── here
      ╰────
     help: put a comma between two members
    "#);
    insta::assert_snapshot!(report(""), @r#"
    × dir/w.json:1:1: the file is empty
     ╭─[dir/w.json:1:1]
     ╰────
    help: write an object: { "tasks": { ... } }
    "#);
    insta::assert_snapshot!(report("[1]"), @"
     × dir/w.json:1:1: `the file` is an array
      ╭─[dir/w.json:1:1]
    1 │ [1]
      · ─┬─
      ·  ╰── here
      ╰────
     help: `the file` takes an object: { ... }
    ");
    let deep = format!("{{ \"tasks\": {}", "[".repeat(2000));
    assert!(report(&deep).contains("maximum nesting depth exceeded"));
}

#[test]
fn what_has_no_effect_is_warned_of() {
    let text = r#"{
  "global": { "calibration": "CPU0", "ftrace": "main", "io_device": "/dev/sda", "duration": 2 },
  "resources": { },
  "tasks": {
    "a": { "runtme": 5, "dl-runtime": 7, "dl-period": 9, "cpus": [0, 5], "fork": "b" },
    "b": { "loop": 1, "delay": 4, "run": 3 }
  }
}"#;
    let read = read_rtapp("w.json", text, 2).unwrap();
    let lines: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n").replace(" [", "\n  ["), @"
    2:15: `calibration` has no effect: every lane measures CPU time itself
      [calibration-ignored]
    2:38: `ftrace` has no effect: schedlab records a trace and draws from that
      [logging-ignored]
    2:56: `io_device` has no effect: the lane chooses the device or scratch file
      [io-device-ignored]
    3:3: `resources` has no effect: rt-app itself creates what events name
      [resources-ignored]
    5:12: `runtme` is read as event `run`, as rt-app does: is it a slip?
      [odd-suffix]
    5:39: slice of 7000 ns: the kernel keeps to 100us ... 100ms and makes it 100000 ns
      [slice-clamped]
    5:55: `dl-period` has no effect with policy SCHED_OTHER
      [policy-ignores-key]
    5:70: CPU 5 does not exist: the task uses the others that `cpus` names
      [cpus-absent]
    6:32: `delay` holds for instances that the launcher starts, not for forks
      [fork-ignores-delay]
    ");
    let first = &read.warnings[0];
    assert_eq!((first.kind, first.line, first.column), (WarningKind::Calibration, 2, 15));
}
