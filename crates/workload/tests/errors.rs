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
           phases, interarrival, release, process, working_set, session, period, deadline,
           policy, priority, dl-runtime, dl-period, dl-deadline, dl-reclaim, util_min,
           util_max, cpus, nodes_membind, taskgroup and the events run, runtime, sleep,
           timer, lock, unlock, wait, signal, broad, sync, barrier, sem_wait, sem_post,
           suspend, resume, mem, memrun, iorun, yield, fork, send, receive, wait_any, join,
           exit, progress, phase, repeat, sched, change, tune
    "#);
    insta::assert_snapshot!(report("{ \"task\": {} }"), @r#"
     × dir/w.json:1:3: the file knows no key "task"
      ╭─[dir/w.json:1:3]
    1 │ { "task": {} }
      ·   ───┬──
      ·      ╰── here
      ╰────
     help: did you mean `tasks`? allowed are $schema, name, global, cgroups, sessions,
           objects, tasks, expect, resources
    "#);
    insta::assert_snapshot!(report("{ \"tasks\": {}, \"global\": { \"druation\": 2 } }"), @r#"
     × dir/w.json:1:28: `global` knows no key "druation"
      ╭─[dir/w.json:1:28]
    1 │ { "tasks": {}, "global": { "druation": 2 } }
      ·                            ─────┬────
      ·                                 ╰── here
      ╰────
     help: did you mean `duration`? allowed are duration, default_policy, calibration,
           pi_enabled, mem_buffer_size, lock_pages, frag, io_device, logdir, log_basename,
           log_size, ftrace, gnuplot, cumulative_slack
    "#);
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    insta::assert_snapshot!(task(r#""loop": 1, "phases": { "p": { "run": 5, "delay": 1 } }"#), @r#"
     × dir/w.json:2:43: `delay` does not belong to a phase
      ╭─[dir/w.json:2:43]
    1 │ { "tasks": { "a": {
    2 │   "loop": 1, "phases": { "p": { "run": 5, "delay": 1 } }
      ·                                           ───┬───
      ·                                              ╰── here
      ╰────
     help: it is a property of a task; properties allowed here: policy, priority, dl-
           runtime, dl-period, dl-deadline, dl-reclaim, util_min, util_max, cpus,
           nodes_membind, taskgroup, loop
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
     help: no lane has timers that tasks share: begin the `ref` with `unique`
           ("unique_tick") to give each task its own
    "#);
    for (key, why) in [
        ("external_workload0", "runs no code of other programs"),
        ("exec", "rt-app before events"),
        ("lock_order", "rt-app before events"),
        ("use_runtime", "write `runtime`"),
        ("nice", "called `priority`"),
    ] {
        // Before anything else that is wrong.
        let text = task(&format!("\"policy\": \"SCHED_DEADLINE\", \"{key}\": 1"));
        assert!(
            text.contains(&format!("`{key}` is not supported")) && text.contains(why),
            "{text}"
        );
    }
}

/// A file with these objects and one task with these members.
fn with_objects(objects: &str, members: &str) -> String {
    report(&format!(
        "{{ \"objects\": {{ {objects} }},\n  \"tasks\": {{ \"a\": {{ {members} }} }} }}"
    ))
}

#[test]
fn objects_are_checked() {
    let pipe = r#""jobs": { "kind": "pipe" }"#;
    insta::assert_snapshot!(
        with_objects(pipe, r#""run": 5, "send": { "channel": "job", "bytes": 8 }"#),
        @r#"
     × dir/w.json:2:52: "job" is no pipe or socketpair
      ╭─[dir/w.json:2:52]
    1 │ { "objects": { "jobs": { "kind": "pipe" } },
    2 │   "tasks": { "a": { "run": 5, "send": { "channel": "job", "bytes": 8 } } } }
      ·                                                    ──┬──
      ·                                                      ╰── here
      ╰────
     help: did you mean `jobs`? describe it: "objects": { "job": { "kind": "pipe" } };
           there are jobs
    "#);
    insta::assert_snapshot!(with_objects(pipe, r#""run": 5, "lock": "jobs""#), @r#"
     × dir/w.json:2:39: "jobs" is a pipe
      ╭─[dir/w.json:2:39]
    1 │ { "objects": { "jobs": { "kind": "pipe" } },
    2 │   "tasks": { "a": { "run": 5, "lock": "jobs" } } }
      ·                                       ───┬──
      ·                                          ╰── here
      ╰────
     help: this event takes a mutex: name another object, or change the kind in `objects`
    "#);
    for (objects, found, help) in [
        (r#""m": { "kind": "mutx" }"#, "kind \"mutx\" is not known", "did you mean `mutex`?"),
        (r#""m": { "protocol": "none" }"#, "object \"m\" has no `kind`", "allowed are mutex"),
        (r#""m": { "kind": "mutex", "capacity": 5 }"#, "knows no key \"capacity\"", "protocol"),
        (r#""m": { "kind": "mutex", "protocol": "ceiling" }"#, "without `priority`", "1 to 99"),
        (
            r#""m": { "kind": "mutex", "protocol": "inherit", "priority": 5 }"#,
            "`priority` of a mutex without a ceiling",
            "leave it out",
        ),
        (r#""m": { "kind": "pipe", "capacity": 0 }"#, "`capacity` is 0 bytes", "allowed are 1 to"),
        (r#""m": { "kind": "semaphore", "initial": -1 }"#, "`initial` is out of range", "from 0"),
        (r#""m": { "kind": "barrier" }"#, "barrier \"m\" has 0 users", "\"parties\": 2"),
        (
            r#""m": { "kind": "event" }, "m": { "kind": "event" }"#,
            "two objects are called \"m\"",
            "a name of its own",
        ),
    ] {
        let text = with_objects(objects, r#""run": 5"#);
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(found) && flat.contains(help), "{objects}:\n{text}");
    }
}

#[test]
fn events_with_objects_are_checked() {
    for (members, found) in [
        (r#""run": 5, "lock": 5"#, "`lock` is a number"),
        (r#""run": 5, "wait": "c""#, "`wait` is a string"),
        (r#""run": 5, "wait": { "cond": "c" }"#, "knows no key \"cond\""),
        (r#""run": 5, "sem_post": """#, "name is empty"),
        (r#""run": 5, "resume": """#, "`resume` names nothing"),
        (r#""run": 5, "send": { "bytes": 5 }"#, "`send` has no `channel`"),
        (r#""run": 5, "receive": { "channel": "p" }"#, "\"p\" is no pipe or socketpair"),
        (r#""run": 5, "wait_any": []"#, "`wait_any` names nothing"),
        (r#""run": 5, "wait_any": ["s"]"#, "\"s\" is no pipe, socketpair or semaphore"),
        (r#""sem_wait": "s", "wait_any": ["s", "s"]"#, "names the same object twice"),
        (r#""instance": 0, "run": 5, "barrier": "b""#, "barrier \"b\" has 0 users"),
        (r#""memrun": { "type": "raed", "count": 5 }"#, "type \"raed\" is not known"),
        (r#""memrun": { "type": "read" }"#, "`memrun` has no `count`"),
        (r#""memrun": { "type": "read", "count": 5, "size": 0 }"#, "`size` is 0"),
        (r#""run": 5, "join": "b""#, "`join` names the task \"b\", which is not described"),
        (r#""run": 5, "process": "yes""#, "`process` is a string"),
        (r#""run": 5, "util_min": 600, "util_max": 500"#, "`util_min` is 600 and `util_max` 500"),
        (r#""run": 5, "util_min": 1025"#, "`util_min` is out of range"),
        (r#""run": 5, "nodes_membind": 0"#, "`nodes_membind` is a number"),
        (r#""run", "sleep": 5"#, "`run` is null"),
    ] {
        let text = task(members);
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(found), "{members}:\n{text}");
    }
}

#[test]
fn expectations_are_checked() {
    let expect = |list: &str| {
        report(&format!("{{ \"tasks\": {{ \"a\": {{ \"run\": 5 }} }}, \"expect\": {list} }}"))
    };
    for (list, found, help) in [
        ("{}", "`expect` is an object", "an array"),
        ("[{}]", "an expectation without `measure`", "turnaround_ns_mean"),
        (r#"[{ "measure": "Jain", "equal": 1 }]"#, "no name of a measure", "lower-case"),
        (r#"[{ "measure": "jain_index" }]"#, "nothing is expected", "at_most"),
        (r#"[{ "measure": "jain_index", "at_lest": 1 }]"#, "\"at_lest\"", "did you mean"),
        (r#"[{ "measure": "jain_index", "above": "5" }]"#, "\"5\" has no unit", "0.95"),
        (r#"[{ "measure": "jain_index", "above": 1e3 }]"#, "no number that can", "6 decimal"),
        (r#"[{ "measure": "jain_index", "above": 0.12345678 }]"#, "no number that", "6 decimal"),
        (r#"[{ "measure": "cpu_share", "task": "b", "equal": 1 }]"#, "\"b\" is not", "are a;"),
        (r#"[{ "measure": "cpu_share", "task": "a-1", "equal": 1 }]"#, "\"a-1\" is", "are a;"),
    ] {
        let text = expect(list);
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(found) && flat.contains(help), "{list}:\n{text}");
    }
    let many = format!("[{}]", r#"{ "measure": "m", "equal": 1 },"#.repeat(1001));
    assert!(expect(&many).contains("`expect` has 1001 entries"));
}

#[test]
fn resources_of_older_files_are_checked() {
    let with = |resources: &str| {
        format!("{{ \"resources\": {resources}, \"tasks\": {{ \"a\": {{ \"run\": 5 }} }} }}")
    };
    for good in ["0", "{}", r#"{ "m": { "type": "mutex" }, "w": { "type": "wait" }, "x": {} }"#] {
        assert!(read_rtapp("w.json", &with(good), 2).is_ok(), "{good}");
    }
    let target = report(&with(r#"{ "t": { "type": "signal", "target": "w" } }"#));
    assert!(target.contains("resource \"t\" has a `target`"), "{target}");
    let kind = report(&with(r#"{ "t": { "type": "mutx" } }"#));
    assert!(kind.contains("did you mean `mutex`?"), "{kind}");
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
     help: give `dl-runtime`, the CPU time in each period: at least 1024 ns
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
     × dir/w.json:1:1: the file is an array
      ╭─[dir/w.json:1:1]
    1 │ [1]
      · ─┬─
      ·  ╰── here
      ╰────
     help: the file takes an object: { ... }
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
