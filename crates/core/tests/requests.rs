// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a request can say, and that each way of saying or running it gives the same outcome.

use schedlab_core::user::{TaskView, UserPolicy, Why, scheduler};
use schedlab_core::{
    Ask, Columns, END_NAMES, Error, Keep, Kind, Outcome, Request, explain_request, simulate,
    simulate_with, validate,
};
use schedlab_model::{CpuId, Nanos, TaskId};
use std::ops::ControlFlow;
use std::sync::Arc;

const MS: Nanos = 1_000_000;
const ALL: Keep = Keep {
    slices: true,
    states: true,
    queues: true,
    progress: true,
    analysis: false,
    digest: true,
    totals_only: false,
};

fn request(json: &str) -> Request {
    let request = Request::from_json(json).unwrap();
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(Request::from_json(&text).unwrap(), request, "a request reads back");
    request
}

fn outcome(json: &str) -> Outcome {
    simulate(&request(json)).unwrap()
}

fn refusal(json: &str) -> Error {
    let request = Request::from_json(json).unwrap();
    let error = simulate(&request).unwrap_err();
    assert_eq!(validate(&request).unwrap_err().text, error.text, "found without a run");
    error
}

#[test]
fn tunables_can_be_in_the_name_or_apart() {
    let named = outcome(r#"{"workload": "hogs:n=2", "scheduler": "linux-6.12:base_slice=3ms"}"#);
    let apart = outcome(
        r#"{"workload": "hogs", "params": {"n": "2"}, "scheduler": "6.12",
            "tunables": {"base_slice": "3ms"}}"#,
    );
    assert_eq!(named.result.measures, apart.result.measures);
    assert_eq!(named.result.machine, apart.result.machine);
    assert_eq!(apart.notes, ["note: 6.12 stands for linux-6.12"]);
    let policy = outcome(r#"{"workload": "hogs:n=2", "scheduler": "linux-6.12:FIFO"}"#);
    assert_eq!(policy.result.parameters["policy"], "FIFO");
    assert_ne!(policy.result.measures, named.result.measures);
}

#[test]
fn machines_and_costs_can_be_texts() {
    let text = "name = \"mine\"\n[topology]\ncores_per_llc = 3\n[costs]\ntick_ns = 7\n";
    let mut own = Request::new("hogs:n=4,work=20ms", "linux-7.1");
    own.machine = Some(text.into());
    let found = simulate(&own).unwrap().result;
    assert_eq!((found.machine.nr_cpus, found.machine.cpu_model.as_str()), (3, "modelled: mine"));
    assert_eq!(found.parameters["machine"], "mine");
    assert_eq!(found.machine.setting("costs.tick_ns"), Some("7"));
    own.costs = Some("tick_ns = 9 # mine\n".into());
    own.cpus = Some(2);
    let found = simulate(&own).unwrap().result;
    assert_eq!(found.machine.setting("costs.tick_ns"), Some("9"));
    assert_eq!(found.machine.nr_cpus, 2);
    own.cpus = Some(4);
    assert!(simulate(&own).unwrap_err().text.contains("machine \"mine\" has 3 CPUs"));
    own.machine = Some("name = 3\n".into());
    assert!(simulate(&own).unwrap_err().text.starts_with("machine file machine.toml: "));
}

#[test]
fn mistakes_name_what_is_allowed() {
    for (more, wanted) in [
        (r#""cpus": 0"#, "cpus is 0: allowed are 1 to 1024 CPUs"),
        (r#""hz": 99"#, "hz is 99: allowed are 100, 250, 300 and 1000"),
        (r#""nice": 20"#, "nice is 20: allowed are -20 to 19"),
        (r#""priority": 0"#, "priority is 0: allowed are 1 to 99"),
        (r#""policy": "FFO""#, "did you mean `FIFO`?"),
        (r#""policy": "DEADLINE""#, "--policy deadline needs a runtime"),
        (r#""costs": "free""#, "costs is \"free\", which is no costs file"),
        (r#""costs": "tik_ns = 1""#, "did you mean `tick_ns`?"),
        (r#""machine": "laptp""#, "did you mean `laptop`?"),
        (r#""preempt": "some""#, "allowed are none, voluntary, full, lazy"),
        (r#""until": "5""#, "until is 5: "),
        (r#""watchdog": "0s""#, "watchdog is 0s: it is 0"),
        (r#""tunables": {"slice": "1ms"}"#, "quantum"),
        (r#""params": {"work": "fast"}"#, "work"),
    ] {
        let error = refusal(&format!(r#"{{"workload": "hogs", "scheduler": "rr", {more}}}"#));
        assert!(error.text.contains(wanted), "{more}: {error}");
        assert_eq!(error.kind, Kind::Usage);
    }
    let file = refusal(r#"{"workload": "some/file.json", "scheduler": "rr"}"#);
    assert_eq!(file.text, "some/file.json is the path of a file");
}

#[test]
fn columns_agree_with_the_measures() {
    let mut asked = Request::new("compile", "linux-6.12");
    (asked.keep, asked.cpus) = (ALL, Some(2));
    let Outcome { result, columns, digest, .. } = simulate(&asked).unwrap();
    assert!(result.slices.is_empty() && digest.is_some(), "timelines are in the columns");
    let (slices, states) = (&columns.slices, &columns.states);
    for task in &result.measures.tasks {
        let own = |number: &u32| *number == task.id;
        let ran = (0..slices.task.len()).filter(|at| own(&slices.task[*at]));
        let ran: u64 = ran.map(|at| slices.end_ns[at] - slices.start_ns[at]).sum();
        assert_eq!(ran, task.cpu_time_ns, "{}", task.name);
        let waited = (0..states.task.len()).filter(|at| own(&states.task[*at]));
        let waited = waited.filter(|at| states.state[*at] == 0);
        let waited: u64 = waited.map(|at| states.end_ns[at] - states.start_ns[at]).sum();
        assert_eq!(waited, task.run_delay_ns, "{}", task.name);
        assert_eq!(columns.names[task.id as usize], task.name);
    }
    assert!(slices.start_ns.is_sorted() && columns.queues.time_ns.is_sorted());
    assert!(slices.end.iter().all(|end| usize::from(*end) < END_NAMES.len()));
    // All tasks have exited.
    for cpu in 0..2 {
        let queues = &columns.queues;
        let last = (0..queues.cpu.len()).rfind(|at| queues.cpu[*at] == cpu);
        assert_eq!(queues.nr_running[last.unwrap()], 0, "CPU {cpu}");
    }
}

#[test]
fn a_watched_run_is_the_same_and_can_be_cancelled() {
    let mut asked = Request::new("hogs:n=4,work=2s", "rr:quantum=200us");
    asked.keep.digest = true;
    let mut times = Vec::new();
    let watched = simulate_with(
        &asked,
        None,
        Some(&mut |now| {
            times.push(now);
            ControlFlow::Continue(())
        }),
    );
    assert_eq!(watched.unwrap(), simulate(&asked).unwrap());
    assert!(times.len() > 10 && times.is_sorted(), "{} times", times.len());
    let mut stop =
        |now| if now > 3 * MS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let error = simulate_with(&asked, None, Some(&mut stop)).unwrap_err();
    assert_eq!(error.kind, Kind::Cancelled);
    assert!(error.text.starts_with("the run was cancelled at "), "{error}");
}

#[test]
fn a_policy_of_the_caller_replaces_the_scheduler() {
    struct Last;
    impl UserPolicy for Last {
        fn enqueue(&mut self, _: Nanos, _: &TaskView, _: Why) -> Result<bool, String> {
            Ok(false)
        }
        fn pick(&mut self, _: Nanos, _: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
            waiting.last().copied().ok_or_else(|| "the list is empty".into())
        }
    }
    let mut asked = Request::new("hogs:n=3,work=5ms", "last-first");
    asked.keep.slices = true;
    let own = || Some(Arc::new(scheduler("last-first", || Ok(Last))));
    let outcome = simulate_with(&asked, own(), None).unwrap();
    assert_eq!(outcome.result.scheduler, "last-first");
    assert_eq!(outcome.columns.slices.task, [2, 1, 0]);
    assert_eq!(simulate(&asked).unwrap_err().kind, Kind::Usage, "no such name in the registry");
}

#[test]
fn a_run_can_be_asked_why() {
    let asked = Request::new("hogs:n=2,work=10ms", "rr:quantum=5ms");
    let ask = Ask { at_ns: Some(6 * MS), ..Ask::default() };
    let answer = explain_request(&asked, &ask).unwrap();
    assert_eq!(answer.decisions.len(), 1);
    assert_eq!(answer.decisions[0].time_ns, 5 * MS);
    let longest = explain_request(&asked, &serde_json::from_str("{}").unwrap()).unwrap();
    assert!(longest.wait.is_some());
    assert!(serde_json::from_str::<Ask>(r#"{"at": 5}"#).is_err());
}

#[test]
fn a_result_that_keeps_its_timeline_has_the_same_columns() {
    let text = r#"{"tasks": {"a": {"loop": 3, "run": "2ms", "progress": "", "sleep": "1ms"},
                   "b": {"loop": 2, "run": "3ms", "progress": ""}}}"#;
    let keep = Keep { slices: true, progress: true, ..Keep::default() };
    let request = Request { keep, ..Request::new(text, "rr:quantum=2ms") };
    let outcome = simulate(&request).unwrap();
    let mut result = outcome.result.clone();
    let columns = &outcome.columns;
    let slices = &columns.slices;
    result.slices = (0..slices.cpu.len())
        .map(|at| schedlab_run::Slice {
            cpu: slices.cpu[at],
            task: slices.task[at],
            start_ns: slices.start_ns[at],
            end_ns: slices.end_ns[at],
            end: END_NAMES[usize::from(slices.end[at])].into(),
        })
        .rev()
        .collect();
    let times = |task: u32| {
        let units = columns.progress.task.iter().zip(&columns.progress.time_ns);
        units.filter(|(one, _)| **one == task).map(|(_, time)| *time).collect::<Vec<_>>()
    };
    result.progress =
        [1, 0].map(|task| schedlab_run::ProgressCurve { task, times_ns: times(task) }).into();
    assert!(columns.slices.cpu.len() >= 5 && columns.progress.task.len() == 5);
    assert_eq!(Columns::of_result(&result), *columns);
    assert_eq!(Columns::of_result(&outcome.result).slices.cpu, [0; 0]);
}
