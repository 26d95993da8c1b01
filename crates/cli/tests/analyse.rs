// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab analyse` and `export` on traces of other tools, and on schedlab's own traces in every
//! format.

mod common;
use common::{command, done, ok, schedlab, schedlab_in};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// `sh` runs from before the trace; it forks a child at 20 us, which waits 8 us (30 - 22), runs
/// 40 us and exits. `worker 1` is woken at 12, waits 3 us, runs 25 us, then waits for a disk.
const FTRACE: &str = include_str!("../../trace/tests/samples/ftrace.txt");

/// What `perf script` prints for the trace in [`FTRACE`].
const PERF: &str = include_str!("../../trace/tests/samples/perf.txt");

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

/// A folder that contains the trace.
fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

fn task<'v>(run: &'v Value, name: &str) -> &'v Value {
    let tasks = run["measures"]["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no {name}: {run}"))
}

#[test]
fn measures_of_an_ftrace_text() {
    let folder = folder_with("t.txt", FTRACE);
    let done = schedlab_in(folder.path(), &["analyse", "t.txt", "--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run = json(&done.stdout);
    assert_eq!((&run["lane"], &run["source"]), (&"trace".into(), &"ftrace text".into()));
    assert_eq!(run["machine"]["nr_cpus"], 2);
    let worker = task(&run, "worker 1");
    assert_eq!((&worker["cpu_time_ns"], &worker["run_delay_ns"]), (&25_000.into(), &3_000.into()));
    assert_eq!(worker["blocked_io_ns"], 30_000);
    assert_eq!(worker["wakeup_latency"]["ns_max"], 3_000);
    assert_eq!(
        (&worker["response_ns"], &worker["is_release_unseen"]),
        (&Value::Null, &true.into())
    );
    let ls = task(&run, "ls");
    assert_eq!((&ls["response_ns"], &ls["turnaround_ns"]), (&8_000.into(), &48_000.into()));
    assert_eq!(ls["pid"], 300);
    let sh = task(&run, "sh");
    assert_eq!((&sh["cpu_time_ns"], &sh["sleep_ns"]), (&0.into(), &40_000.into()));
    assert_eq!(run["measures"]["totals"]["nr_inconsistent_events"], 0);
    assert!(done.stderr.contains("[trace-tasks-before]: 2 of 3 tasks"), "{}", done.stderr);
    assert!(!done.stderr.contains("missing"), "{}", done.stderr);
}

#[test]
fn tables_slices_and_report() {
    let folder = folder_with("t.txt", FTRACE);
    let text = schedlab_in(folder.path(), &["analyse", "t.txt"]).stdout;
    assert!(text.contains("\nt: ftrace text, 2 CPUs, 3 tasks"), "{text}");
    let mut rows = text.lines().skip(2);
    let ls = rows.find(|line| line.trim_start().starts_with("ls ")).expect("a row of ls");
    assert!(ls.contains("300") && ls.contains("40.00 us"), "{text}");
    let slices = schedlab_in(folder.path(), &["analyse", "t.txt", "--slices"]).stdout;
    let lines: Vec<Value> = slices.lines().map(json).collect();
    assert_eq!(lines.len(), 2, "{slices}");
    assert_eq!(lines[1]["name"], "ls", "the last name, not that of the fork");
    assert_eq!((&lines[1]["start_ns"], &lines[1]["end"]), (&20_000.into(), &"exited".into()));
    for wanted in ["200", "worker 1"] {
        let args = ["analyse", "t.txt", "--task", wanted, "--json", "--keep"];
        let run = json(&schedlab_in(folder.path(), &args).stdout);
        assert_eq!(run["measures"]["tasks"].as_array().unwrap().len(), 1);
        assert_eq!(run["slices"].as_array().unwrap().len(), 1);
    }
    let cpus = json(&schedlab_in(folder.path(), &["analyse", "t.txt", "--cpus", "--json"]).stdout);
    let times: Vec<[u64; 3]> = cpus
        .as_array()
        .unwrap()
        .iter()
        .map(|cpu| ["busy_ns", "idle_ns", "unknown_ns"].map(|key| cpu[key].as_u64().unwrap()))
        .collect();
    assert_eq!(times, [[25_000, 30_000, 5_000], [40_000, 0, 20_000]]);
    let table = schedlab_in(folder.path(), &["analyse", "t.txt", "--cpus"]).stdout;
    assert!(table.contains("45.5 %"), "{table}");
    let args = ["analyse", "t.txt", "--report", "r.html"];
    assert_eq!(schedlab_in(folder.path(), &args).code, 0);
    let page = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    let page = page.replace('\u{a0}', " ");
    assert!(page.contains("1 trace, recorded elsewhere") && page.contains("trace-tasks-before"));
    assert!(page.contains("worker 1") && page.contains("ftrace text"));
}

#[test]
fn perf_text_from_stdin_and_two_files_at_once() {
    let mut child = command()
        .args(["analyse", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(PERF.as_bytes()).unwrap();
    let done = done(&child.wait_with_output().unwrap());
    let run = json(&done.stdout);
    assert_eq!(run["source"], "perf script");
    assert_eq!(task(&run, "worker 1")["cpu_time_ns"], 25_000);
    assert!(done.stderr.contains("trace-other-lines"), "{}", done.stderr);
    let folder = folder_with("a.txt", FTRACE);
    std::fs::write(folder.path().join("b.txt"), PERF).unwrap();
    let both = schedlab_in(folder.path(), &["analyse", "a.txt", "b.txt", "--json"]);
    assert_eq!(json(&both.stdout).as_array().unwrap().len(), 2);
}

#[test]
fn bad_traces_are_refused_with_file_and_line() {
    let cases: [(&[u8], &str); 8] = [
        (b"", "it is empty"),
        (b"\x17\x08\x44tracing6\0", "trace-cmd report -t FILE"),
        (b"PERFILE2\0\0", "the file ends within the header"),
        (b"\x1f\x8b\x08\0", "zcat FILE"),
        (b"hello\n", "t.txt:1: no scheduling event in 1 lines"),
        (b"{\"measures\": 1}\n", "one JSON document, no trace"),
        (b"{\"kind\":\"task\",\"task\":3,\"name\":\"a\"}\n\n", "t.txt:1: task 3 is announced"),
        (b"\x89SLT\r\n\x1a\n\x09\0", "byte 0: the file ends inside a record"),
    ];
    for (text, wanted) in cases {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.txt"), text).unwrap();
        for args in [&["analyse", "t.txt"][..], &["export", "t.txt", "o.slt"]] {
            let done = schedlab_in(folder.path(), args);
            let flat = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
            let flat = flat.replace("\u{2502} ", "");
            if args[0] == "export" && wanted.contains("JSON document") {
                continue;
            }
            assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{wanted}");
            assert!(flat.contains(wanted), "{args:?}: {flat}");
            assert!(!folder.path().join("o.slt").exists());
        }
    }
    let folder = folder_with("t.txt", &FTRACE.replace("prev_state=S", "prev_state=Q"));
    let done = schedlab_in(folder.path(), &["analyse", "t.txt"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("t.txt:14: sched_switch"), "{}", done.stderr);
    let folder = folder_with("t.txt", FTRACE);
    let done = schedlab_in(folder.path(), &["analyse", "t.txt", "--task", "worker"]);
    assert!(done.code == 2 && done.stderr.contains("did you mean `worker 1`?"), "{}", done.stderr);
    assert_eq!(schedlab(&["analyse"]).code, 2);
    assert_eq!(schedlab_in(folder.path(), &["analyse", "t.txt", "--cpus", "--slices"]).code, 2);
}

/// What two runs must have in common. Leaves out what a text trace does not hold (the description
/// in the workload, a process id) and what only the simulator knows.
fn comparable(run: &Value) -> Value {
    let mut measures = run["measures"].clone();
    for task in measures["tasks"].as_array_mut().unwrap() {
        let fields = task.as_object_mut().unwrap();
        for key in ["pid", "spec", "is_launcher"] {
            fields.remove(key);
        }
    }
    measures["totals"].as_object_mut().unwrap().remove("nr_launchers");
    measures.as_object_mut().unwrap().remove("model");
    measures
}

/// The traces of a simulated run give the run's own measures in every format, read back.
#[test]
fn our_own_traces_read_back_to_the_same_measures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = ["sim", "interactive", "--cpus", "2", "--until", "300ms", "--seed", "7", "--json"];
    let trace = |name: &str| {
        let done = schedlab_in(folder.path(), &[&run[..], &["--trace", name]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        json(&done.stdout)
    };
    let want = comparable(&trace("run.slt"));
    for name in ["run.ftrace", "run.ndjson", "run.parquet"] {
        assert_eq!(comparable(&trace(name)), want);
    }
    let analysed = |name: &str| {
        let done = schedlab_in(folder.path(), &["analyse", name, "--json"]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        assert!(!done.stderr.contains("warning"), "{name}: {}", done.stderr);
        json(&done.stdout)
    };
    for name in ["run.slt", "run.ftrace", "run.ndjson", "run.parquet"] {
        let found = comparable(&analysed(name));
        assert!(found == want, "{name}: {found:#} instead of {want:#}");
        let bare = name.replace('.', "-") + "-back.slt";
        let done = schedlab_in(folder.path(), &["export", name, &bare]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        assert!(comparable(&analysed(&bare)) == want, "{bare}");
    }
    // From the log to the log: byte by byte.
    assert_eq!(
        std::fs::read(at("run.slt")).unwrap(),
        std::fs::read(at("run-slt-back.slt")).unwrap()
    );
}

/// Converting a foreign trace to schedlab's own formats keeps its measures, and the fact that it
/// began while tasks were running.
#[test]
fn foreign_traces_keep_their_measures_when_converted() {
    let folder = folder_with("t.txt", FTRACE);
    let measures = |name: &str| {
        let done = schedlab_in(folder.path(), &["analyse", name, "--json"]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        json(&done.stdout)["measures"].clone()
    };
    let want = measures("t.txt");
    for name in ["o.slt", "o.ndjson", "o.parquet", "o.ftrace"] {
        let done = schedlab_in(folder.path(), &["export", "t.txt", name]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        assert_eq!(measures(name), want, "{name}");
    }
    for name in ["o.pftrace", "o.csv"] {
        assert_eq!(schedlab_in(folder.path(), &["export", "t.txt", name]).code, 0, "{name}");
    }
    let table = std::fs::read_to_string(folder.path().join("o.csv")).unwrap();
    assert!(table.contains(",ls,20000,60000,exited"), "{table}");
}

/// Prints the kernel's trace of forty children that run one after the other, from an instance of
/// tracefs of its own. If tracefs is not mounted, the script mounts it for itself alone.
const RECORD: &str = r#"
tracing=/sys/kernel/tracing
[ -d $tracing/instances ] || mount -t tracefs tracefs $tracing
instance=$tracing/instances/schedlab-test-$$
mkdir $instance
trap 'rmdir $instance' EXIT
echo 0 >$instance/tracing_on
echo 8192 >$instance/buffer_size_kb
echo mono >$instance/trace_clock
for event in switch wakeup wakeup_new waking migrate_task process_fork process_exec process_exit; do
    echo 1 >$instance/events/sched/sched_$event/enable
done
echo 1 >$instance/tracing_on
for child in $(seq 40); do
    /bin/true
    sleep 0.005
done
echo 0 >$instance/tracing_on
cat $instance/trace
"#;

/// A trace that this kernel records now is read completely, and contains this test's children with
/// consistent figures.
#[test]
fn a_trace_of_this_kernel() {
    let recorded = Command::new("unshare").args(["--mount", "sh", "-ec", RECORD]).output();
    let text = match recorded {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        Ok(output) => return schedlab_testing::skip(String::from_utf8_lossy(&output.stderr)),
        Err(error) => return schedlab_testing::skip(format!("unshare: {error}")),
    };
    let folder = folder_with("t.txt", &text);
    let done = schedlab_in(folder.path(), &["analyse", "t.txt", "--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let run = json(&done.stdout);
    let tasks = run["measures"]["tasks"].as_array().unwrap();
    // Each child whose whole life is in the trace satisfies the identity of the measures. Some
    // kernels do not trace every switch; those tasks are marked uncertain.
    let whole: Vec<&Value> = tasks
        .iter()
        .filter(|task| task["name"] == "true" && task["turnaround_ns"].is_u64())
        .filter(|task| task["is_uncertain"] == false)
        .collect();
    assert!(whole.len() > 5, "{} children in {} tasks", whole.len(), tasks.len());
    for task in whole {
        let get = |key: &str| task[key].as_u64().unwrap();
        let parts = ["cpu_time_ns", "run_delay_ns", "sleep_ns", "blocked_io_ns", "unaccounted_ns"];
        assert_eq!(parts.map(get).iter().sum::<u64>(), get("turnaround_ns"), "{task}");
        assert!(get("cpu_time_ns") > 0, "{task}");
    }
    let skipped = done.stderr.contains("trace-other-lines");
    assert!(!skipped, "{}", done.stderr);
    let end_ns = run["measures"]["totals"]["end_ns"].as_u64().unwrap();
    assert!((150_000_000..20_000_000_000).contains(&end_ns), "{end_ns}");
}

/// `hog` and `mouse` share CPU 0: in each of these rounds of 1 ms mouse waits 100 us for hog, then
/// hog waits 300 us for mouse.
fn two_tasks(rounds: u64) -> String {
    let mut text = String::from("# tracer: nop\n#P:1\n");
    let mut line = |us: u64, who: &str, event: &str| {
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        text += &format!("  {who} [000] d..2. {s}.{us:06}: {event}\n");
    };
    let switch = |prev: &str, state: &str, next: &str| {
        let task = |name: &str| match name {
            "hog" => 10,
            _ => 20,
        };
        format!(
            "sched_switch: prev_comm={prev} prev_pid={} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={} next_prio=120",
            task(prev),
            task(next)
        )
    };
    line(0, "mouse-20", &switch("mouse", "S", "hog"));
    for round in 1..=rounds {
        let at = 1_000 * round;
        line(at, "hog-10", "sched_wakeup: comm=mouse pid=20 prio=120 target_cpu=000");
        line(at + 100, "hog-10", &switch("hog", "R", "mouse"));
        line(at + 400, "mouse-20", &switch("mouse", "S", "hog"));
    }
    text
}

/// The list has all waits of a task, even if other tasks wait longer.
#[test]
fn a_task_has_all_its_waits() {
    let folder = folder_with("t.txt", &two_tasks(150));
    let run = |args: &[&str]| {
        let done = schedlab_in(folder.path(), &[&["analyse", "t.txt"], args].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout
    };
    let rows = |text: &str| text.matches("same-class").count();
    let some = run(&["--task", "mouse"]);
    assert!(
        some.contains("waits: 150 waits for a CPU, 15.00 ms in all; the 100 longest"),
        "{some}"
    );
    assert_eq!(rows(&some), 100);
    assert!(some.contains("hog 10 100.0 us"), "{some}");
    for args in [&["--task", "20", "--all"][..], &["--task", "mouse", "--task", "20", "--all"]] {
        let all = run(args);
        assert!(all.contains("waits: 150 waits for a CPU, 15.00 ms in all\n"), "{all}");
        assert_eq!(rows(&all), 150);
    }
    let starved = ["--task", "mouse", "--analysis", "--starved-after", "100us", "--json"];
    let found = json(&run(&starved))["analysis"]["starved"].clone();
    assert_eq!((&found["count"], &found["ns"]), (&150.into(), &15_000_000.into()));
    assert!(found["longest"].as_array().unwrap().iter().all(|one| one["pid"] == 20), "{found}");
}

/// The first line is the answer, and the process that lost most comes first in the table.
#[test]
fn the_first_line_is_the_answer() {
    let folder = folder_with("t.txt", &two_tasks(10));
    let shown = schedlab_in(folder.path(), &["analyse", "t.txt"]).stdout;
    let mut lines = shown.lines();
    assert_eq!(
        lines.next(),
        Some(
            "hog 10 lost most time: it waited 3.000 ms for a CPU, 28.8 % of 10.40 ms; meanwhile \
             mouse 20 ran 3.000 ms"
        )
    );
    let place = |name: &str| shown.find(&format!("\n {name} ")).expect(&shown);
    assert!(place("hog") < place("mouse"), "{shown}");
}

/// An analysed part counts only its part of each wait, and shows the times of the whole trace.
#[test]
fn a_part_of_a_trace() {
    let folder = folder_with("t.txt", &two_tasks(10));
    let run = |args: &[&str]| schedlab_in(folder.path(), &[&["analyse", "t.txt"], args].concat());
    // From the middle of mouse's fifth wait to the middle of hog's sixth.
    let part = ["--from", "5050us", "--to", "6250us"];
    let found = json(&run(&[&part[..], &["--json", "--analysis"]].concat()).stdout);
    let times = |name: &str| {
        let task = task(&found, name);
        ["cpu_time_ns", "run_delay_ns", "sleep_ns"].map(|key| task[key].as_u64().unwrap() / 1_000)
    };
    assert_eq!(times("hog"), [50 + 700, 300 + 150, 0]);
    assert_eq!(times("mouse"), [300 + 150, 50 + 100, 600]);
    assert_eq!(task(&found, "mouse")["nr_wakeups"], 1);
    assert_eq!(found["measures"]["totals"]["end_ns"], 1_200_000);
    assert_eq!(found["measures"]["totals"]["nr_inconsistent_events"], 0);
    let slices = run(&[&part[..], &["--slices"]].concat()).stdout;
    let first = json(slices.lines().next().unwrap());
    assert_eq!((&first["start_ns"], &first["end_ns"]), (&5_050_000.into(), &5_100_000.into()));
    let waits = run(&[&part[..], &["--task", "mouse"]].concat()).stdout;
    assert!(waits.contains("0.005050 s") && waits.contains("of it 0.005050 s to"), "{waits}");
    for (args, word) in [
        (["--from", "2ms", "--to", "1ms"], "is not before --to"),
        (["--from", "5s", "--to", "6s"], "ends at 10.40 ms"),
        (["--from", "5", "--to", "6s"], "unit"),
    ] {
        let done = run(&args);
        assert!(done.code == 2 && done.stderr.contains(word), "{args:?}: {}", done.stderr);
    }
}

/// perf.data and trace.dat give the measures of the text that their tools print.
#[test]
fn binary_recordings_are_read_directly() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/samples");
    for (file, text, source) in [
        ("perf.data", "perf-data.txt", "perf.data"),
        ("perf-z.data", "perf-z.txt", "perf.data"),
        ("perf-pipe.data", "perf-pipe.txt", "perf.data"),
        ("trace-v6.dat", "trace-v6.txt", "trace.dat"),
        ("trace-v7.dat", "trace-v7.txt", "trace.dat"),
        ("trace-v7-zstd.dat", "trace-v7-zstd.txt", "trace.dat"),
    ] {
        let run = |name: &str| {
            let path = format!("{samples}/{name}");
            json(&ok(&["analyse", &path, "--json", "--analysis"]).stdout)
        };
        let (direct, printed) = (run(file), run(text));
        assert_eq!(direct["source"], source);
        // Readers may number the tasks differently.
        let tasks = |run: &Value| {
            let mut tasks = run["measures"]["tasks"].as_array().unwrap().clone();
            tasks.iter_mut().for_each(|task| drop(task.as_object_mut().unwrap().remove("id")));
            tasks.sort_by_key(|task| task["pid"].as_u64());
            tasks
        };
        assert_eq!(tasks(&direct), tasks(&printed), "{file}");
        assert_eq!(direct["measures"]["totals"], printed["measures"]["totals"], "{file}");
        assert_eq!(direct["analysis"]["depth"], printed["analysis"]["depth"], "{file}");
    }
    let pipe = std::fs::File::open(format!("{samples}/perf-pipe.data")).unwrap();
    let done = command().args(["analyse", "-"]).stdin(pipe).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn help_names_the_command() {
    let text = ok(&["analyse", "--help"]).stdout;
    assert!(text.contains("schedlab analyse perf.data") && text.contains("--cpus"), "{text}");
}
