// SPDX-License-Identifier: MIT OR Apache-2.0
//! Built-in workloads in the simulator, under linux-6.12: each does what it says, to the last
//! message, and its load shows where it must.

use schedlab_metrics::TaskMeasures;
use schedlab_model::{CpuMask, Workload, trace::NullSink};
use schedlab_run::{Lane, RunRequest, RunResult};
use schedlab_sim::SimLane;
use schedlab_workload::{builtin, read_rtapp};

fn play(workload: Workload, cpus: u32, scheduler: &str) -> RunResult {
    let request = RunRequest::new(workload, scheduler, CpuMask::first(cpus));
    SimLane::default().run(&request, &mut NullSink).unwrap_or_else(|error| panic!("{error}"))
}

fn run(name: &str, params: &[(&str, &str)], cpus: u32) -> RunResult {
    play(builtin(name, params).unwrap(), cpus, "linux-6.12")
}

fn tasks<'r>(result: &'r RunResult, prefix: &str) -> Vec<&'r TaskMeasures> {
    result.measures.tasks.iter().filter(|task| task.name.starts_with(prefix)).collect()
}

fn progress(result: &RunResult, prefix: &str) -> u64 {
    tasks(result, prefix).iter().map(|task| task.nr_progress).sum()
}

#[test]
fn hackbench_ends_when_every_message_was_read() {
    for ipc in ["socket", "pipe"] {
        let params = [("groups", "2"), ("fds", "4"), ("loops", "20"), ("ipc", ipc)];
        let result = run("hackbench", &params, 2);
        // Whoever waits for a message that never comes would live on.
        let live = result.measures.tasks.iter().filter(|task| task.exit_ns.is_none()).count();
        assert_eq!((result.measures.tasks.len(), live), (1 + 2 * 8, 0), "{ipc}");
        let parent = tasks(&result, "hackbench")[0];
        assert!(result.measures.tasks.iter().all(|task| task.exit_ns <= parent.exit_ns));
        // Receivers sleep until there is something.
        assert!(tasks(&result, "receiver").iter().all(|task| task.nr_wakeups > Some(0)));
    }
    // More messages cost more; how much more each depends on how full the channels run.
    let cpu = |loops| {
        let result = run("hackbench", &[("groups", "1"), ("fds", "4"), ("loops", loops)], 1);
        result.measures.totals.cpu_time_ns
    };
    let costs = ["100", "200", "300"].map(cpu);
    assert!(costs.is_sorted_by(|a, b| a < b), "{costs:?}");
}

#[test]
fn the_token_goes_round_as_often_as_asked() {
    let result = run("token_ring", &[("n", "5"), ("rounds", "300")], 1);
    assert_eq!(progress(&result, "ring0"), 300);
    let totals = &result.measures.totals;
    assert_eq!(totals.nr_exited, 5);
    // On one CPU every pass is a switch.
    assert!(totals.nr_switches >= 5 * 300, "{}", totals.nr_switches);
    let large = run("token_ring", &[("n", "5"), ("rounds", "300"), ("size", "64KiB")], 1);
    // 1,500 times 64 KiB, in the cache.
    let more = large.measures.totals.makespan_ns.unwrap() - totals.makespan_ns.unwrap();
    let read = 5 * 300 * 64 * schedlab_model::Memory::default().cache_kib_ns;
    assert!(more.abs_diff(read) < read / 100, "{more} ns more, to read takes {read} ns");
}

#[test]
fn clients_of_oltp_get_an_answer_each() {
    let result = run("oltp", &[("clients", "8"), ("until", "1s")], 2);
    let transactions = progress(&result, "client");
    // A client's round is 10 ms of thinking and at least 1 ms of service.
    assert!((300..=727).contains(&transactions), "{transactions}");
    assert!(tasks(&result, "server").iter().all(|task| task.blocked_io_ns > Some(0)));
    let crowded = run("oltp", &[("clients", "200"), ("until", "1s")], 1);
    let busy = crowded.measures.totals.utilisation.unwrap();
    assert!(progress(&crowded, "client") > transactions && busy > 0.5, "{busy}");
}

#[test]
fn hogs_cost_frames_unless_the_frames_come_first() {
    let frames = |nice, hogs: &str| {
        let params = [("until", "2s"), ("work", "10ms"), ("nice", nice), ("hogs", hogs)];
        progress(&run("frame_loop", &params, 1), "frames")
    };
    let alone = frames("0", "0");
    assert!((118..=121).contains(&alone), "60 frames a second: {alone}");
    let crowded = frames("0", "4");
    assert!(crowded < 60, "one of five gets a fifth of the CPU, a frame needs 10 of 16.7 ms");
    assert!(frames("-20", "4") > 110);
    let fifo = [("until", "2s"), ("policy", "FIFO"), ("hogs", "4")];
    assert!(progress(&run("frame_loop", &fifo, 1), "frames") >= 118);
}

#[test]
fn schbench_wakes_every_worker_in_turn() {
    let params = [("message_threads", "2"), ("threads", "3"), ("work", "1ms"), ("until", "1s")];
    let result = run("schbench", &params, 2);
    let workers = tasks(&result, "worker");
    assert_eq!(workers.len(), 6);
    let requests: Vec<u64> = workers.iter().map(|task| task.nr_progress).collect();
    // Two CPUs do at most 2,000 requests of 1 ms; nobody is left out.
    let sum: u64 = requests.iter().sum();
    assert!((1_400..=2_000).contains(&sum), "{requests:?}");
    assert!(requests.iter().all(|&one| one * 10 > sum), "{requests:?}");
    assert!(tasks(&result, "message").iter().all(|task| task.nr_wakeups > Some(0)));
}

#[test]
fn a_compilation_uses_as_many_cpus_as_it_has_jobs() {
    let makespan = |jobs: &str, cpus| {
        let params = [("files", "12"), ("jobs", jobs), ("work", "20ms")];
        let result = run("compile", &params, cpus);
        assert_eq!(progress(&result, "cc"), 12);
        assert_eq!(result.measures.totals.nr_exited, 1 + 12 * 3 + 1);
        result.measures.totals.makespan_ns.unwrap()
    };
    let (one, four) = (makespan("1", 4), makespan("4", 4));
    assert!(four * 2 < one, "4 jobs take {four} ns, one takes {one} ns");
    assert!(makespan("4", 1) > four * 2);
}

/// The files that the project ships, in the simulator.
#[test]
fn every_example_runs_and_meets_what_it_expects() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let workload =
            read_rtapp(&name, &text, 1).unwrap_or_else(|error| panic!("{error}")).workload;
        schedlab_run::expect::check(&workload).unwrap();
        let result = play(workload.clone(), 1, "linux-6.12");
        for expected in schedlab_run::expect::evaluate(&workload, &result.measures) {
            assert!(expected.holds, "{name}: {expected:?}");
        }
        count += 1;
    }
    assert!(count >= 9, "{count}");
}
