// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scheduler printed, and its maps and variables at the end of a run.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../scx/tests/scx/support/mod.rs"]
mod support;

use schedlab_scx::inspect::{Inspected, MapState, State, Value, Wanted, WantedMaps};
use schedlab_scx_native::{CompileOptions, Inspector, NativeScheduler, find_clang};
use std::path::Path;
use std::sync::Arc;
use support::{Case, Ran, hog, nice};

fn compile() -> Option<NativeScheduler> {
    compile_with(&CompileOptions::default())
}

fn compile_with(options: &CompileOptions) -> Option<NativeScheduler> {
    find_clang().map_err(schedlab_testing::skip).ok()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/inspect.bpf.c");
    Some(NativeScheduler::compile(&path, options).unwrap())
}

fn all(lines: usize, elements: usize) -> Wanted {
    let maps = WantedMaps { names: Vec::new(), elements };
    Wanted { lines: Some(lines), maps: Some(maps), coverage: false }
}

/// Runs three hogs on two CPUs for 50 ms.
fn run(scheduler: &NativeScheduler, wanted: Wanted) -> (Ran, Inspected) {
    let inspector = Arc::new(Inspector::new(wanted));
    let ops = scheduler.inspected_by(&inspector).ops(2, 250).unwrap();
    let hogs = ["a", "b", "c"].map(|name| hog(name, nice(0)));
    let ran = Case::new(2, 50, hogs.into()).run_boxed(ops, Default::default());
    (ran, inspector.take())
}

fn map<'s>(state: &'s State, name: &str) -> &'s MapState {
    state.maps.iter().find(|map| map.name == name).unwrap()
}

fn word(text: &str) -> Value {
    Value::Word(text.into())
}

#[test]
fn lines_have_their_time_cpu_task_and_callback() {
    let Some(scheduler) = compile() else { return };
    let (ran, found) = run(&scheduler, all(3, 1));
    ran.outcome();
    let printk = found.printk.unwrap();
    let lines: Vec<String> = printk
        .lines
        .iter()
        .map(|line| {
            let (task, pid, text) = (&line.task, line.pid, &line.text);
            format!("{} {} {task}-{pid} {}: {text}", line.time_ns, line.cpu, line.callback)
        })
        .collect();
    let first = "0 0 swapper/0-0 ops.enqueue: enqueue c pid 1002 flags ";
    assert!(lines[0].starts_with(first) && lines[0].ends_with(" vtime 0"), "{}", lines[0]);
    let tick = |at: &str| {
        let start = format!("{at} ops.tick: \u{1b}[31mtick\n  fake-1 [000] line 00002");
        lines.iter().any(|line| line.starts_with(&start) && line.ends_with("     3|-4   |0xff"))
    };
    assert!(tick("4000000 0 a-1000") && tick("4000000 1 b-1001"), "{lines:?}");
    assert_eq!(lines.len(), 3);
    assert!(printk.nr_left_out > 5, "{}", printk.nr_left_out);
}

#[test]
fn maps_and_variables_are_decoded_by_their_types() {
    let Some(scheduler) = compile() else { return };
    let (_, found) = run(&scheduler, all(0, 10));
    let state = found.state.unwrap();
    let tasks = map(&state, "tasks");
    assert_eq!((tasks.kind.as_str(), tasks.nr_elements), ("TASK_STORAGE", 3));
    assert_eq!(tasks.elements[2].key, Some(word("c[1002]")));
    let Value::Members(members) = &tasks.elements[2].value else { panic!("{tasks:?}") };
    let inner = Value::Members(vec![
        ("low".into(), Value::Unsigned(5)),
        ("high".into(), Value::Unsigned(0x123)),
        ("seen".into(), Value::Flag(true)),
        ("mode".into(), word("FANCY")),
    ]);
    let member = |name: &str| members.iter().find(|member| member.0 == name).unwrap().1.clone();
    assert_eq!(member("in"), inner);
    assert_eq!(member("name"), Value::Text("c".into()));
    assert_eq!(member("self"), word("task c[1002]"));
    let runs = map(&state, "runs");
    assert_eq!(runs.elements.len(), 3);
    let key = [("pid", 1000), ("kind", 2), ("pad", 0)];
    let key = key.map(|(name, number)| (name.to_owned(), Value::Unsigned(number)));
    assert_eq!(runs.elements[0].key, Some(Value::Members(key.into())));
    let stats = map(&state, "stats");
    assert_eq!((stats.nr_elements, stats.nr_zero, stats.elements.len()), (4, 3, 1));
    assert!(matches!(&stats.elements[0].value, Value::List(cpus) if cpus.len() == 2));
    let counts = map(&state, "counts");
    assert_eq!((counts.nr_zero, &counts.elements[0].key), (99, &Some(Value::Unsigned(7))));
    assert!(matches!(counts.elements[0].value, Value::Signed(..0)));
    assert!(map(&state, "last").elements.iter().all(|element| element.key.is_none()));
    let variable = |name: &str| {
        let found = state.variables.iter().find(|variable| variable.name == name);
        found.map(|variable| (variable.is_option, variable.value.clone()))
    };
    assert_eq!(variable("slice_ns"), Some((true, Value::Unsigned(5_000_000))));
    assert_eq!(variable("title"), Some((false, Value::Text("ab\"c".into()))));
    assert_eq!(variable("nobody"), Some((false, word("NULL"))));
    assert_eq!(variable("now_mode"), Some((false, word("FANCY"))));
    let Some((_, Value::Unsigned(nr))) = variable("nr_enqueued") else { panic!("{state:?}") };
    assert_eq!(variable("balance"), Some((false, Value::Signed(-3 - nr as i64))));
    assert_eq!(variable("_license"), None);
}

#[test]
fn what_is_kept_has_a_bound_and_can_be_selected() {
    let Some(scheduler) = compile() else { return };
    let names = vec!["runs".to_owned(), "title".to_owned()];
    let maps = Some(WantedMaps { names, elements: 2 });
    let (_, found) = run(&scheduler, Wanted { lines: None, maps, coverage: false });
    let state = found.state.unwrap();
    assert_eq!((state.maps.len(), state.variables.len(), found.printk), (1, 1, None));
    let runs = &state.maps[0];
    assert_eq!((runs.elements.len(), runs.nr_left_out, runs.nr_elements), (2, 1, 3));
    let known = scheduler.state_names();
    assert!(["tasks", "last", "crash"].iter().all(|name| known.iter().any(|own| own == name)));
}

#[test]
fn a_crash_leaves_what_there_was_and_looking_changes_no_result() {
    let Some(scheduler) = compile() else { return };
    let crash = scheduler.with_options(&[("crash".into(), "true".into())]).unwrap();
    let (ran, found) = run(&crash, all(100, 10));
    assert!(ran.error().contains("ops.enqueue failed"), "{}", ran.error());
    let state = found.state.unwrap();
    assert_eq!(map(&state, "tasks").nr_elements, 3);
    assert!(found.printk.unwrap().lines.len() > 3);
    let [one, two] = [all(9, 9), Wanted::default()].map(|wanted| run(&scheduler, wanted).0);
    assert!(one.trace.events.len() > 10 && one.trace.events == two.trace.events);
}

/// Every call of a callback and every line is counted, with checks and without, over all runs.
#[test]
fn coverage_counts_the_calls_of_every_run() {
    for is_checked in [true, false] {
        let options = CompileOptions { is_checked, is_counted: true, ..Default::default() };
        let Some(scheduler) = compile_with(&options) else { return };
        let wanted = Wanted { coverage: true, lines: Some(10_000), maps: None };
        let inspector = Arc::new(Inspector::new(wanted));
        let scheduler = scheduler.inspected_by(&inspector);
        for _ in 0..2 {
            let hogs = ["a", "b", "c"].map(|name| hog(name, nice(0)));
            let ops = scheduler.ops(2, 250).unwrap();
            Case::new(2, 50, hogs.into()).run_boxed(ops, Default::default()).outcome();
        }
        let found = inspector.take();
        let ticks =
            found.printk.unwrap().lines.iter().filter(|of| of.callback == "ops.tick").count();
        let [file] = &found.coverage.unwrap().files[..] else { panic!("one file has code") };
        assert!(file.path.ends_with("inspect.bpf.c"), "{}", file.path);
        let tick = file.functions.iter().find(|of| of.name.ends_with("inspect_tick"));
        let tick = tick.unwrap_or_else(|| panic!("{:?}", file.functions));
        assert!(ticks > 20 && tick.calls >= ticks as u64, "{ticks} lines of {tick:?}");
        let first = file.lines.iter().find(|of| of.line == tick.line).unwrap();
        assert_eq!(first.count, tick.calls);
    }
}
