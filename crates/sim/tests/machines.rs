// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines: every preset is whole and has the domains of the real one; files that are wrong are
//! refused with what was found; the lane gives a run its part of the machine.

use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::NullSink;
use schedlab_model::{Amount, Costs, CpuId, CpuMask, LoopCount, Op, Preempt, TaskSpec, Workload};
use schedlab_run::{Boot, Keep, Lane, LaneError, MachineSpec, RunRequest};
use schedlab_sched::boundary::domains::{Domains, Level};
use schedlab_sched::registry::SCHEDULERS;
use schedlab_sim::SimLane;
use schedlab_sim::machine::{self, PRESETS};
use std::sync::Arc;

#[test]
fn every_preset_is_whole() {
    for (name, text) in PRESETS {
        let file = machine::read(text).unwrap();
        assert_eq!(file.name, name);
        assert!(!file.summary.is_empty() && !file.sources.is_empty(), "{name}");
        let spec = file.spec().unwrap();
        let json = serde_json::to_string(&file).unwrap();
        assert_eq!(machine::parse(&json).unwrap(), spec, "{name} as JSON");
        assert_eq!(machine::preset(&name.to_lowercase()), Some(spec), "{name}");
    }
    assert_eq!(machine::preset("laptops"), None);
}

/// Level, CPUs and groups of each domain of CPU 0, smallest first.
fn domains(name: &str) -> Vec<(Level, u32, usize)> {
    let spec = machine::preset(name).unwrap();
    let domains = Domains::new(&spec.machine.topology);
    domains.iter(CpuId(0)).map(|d| (d.level, d.weight, d.groups.len())).collect()
}

#[test]
fn presets_have_the_domains_of_the_real_machines() {
    use Level::{Mc, Numa, Pkg, Smt};
    assert_eq!(domains("laptop"), [(Smt, 2, 2), (Mc, 8, 4)]);
    assert_eq!(domains("server-2x32"), [(Smt, 2, 2), (Mc, 8, 4), (Pkg, 64, 8), (Numa, 128, 2)]);
    assert_eq!(domains("pi"), [(Mc, 4, 4)]);
    assert_eq!(domains("S0"), [(Mc, 4, 4)]);
    assert_eq!(domains("S2"), [(Smt, 2, 2), (Mc, 8, 4)]);
    assert_eq!(domains("S3-a"), []);
    assert_eq!(domains("S3-b"), [(Pkg, 2, 2)]);
    assert_eq!(domains("S3-c"), [(Pkg, 4, 4)]);
    assert_eq!(domains("S3-d"), [(Pkg, 8, 8)]);
}

/// What was measured again for one CPU must not be forgotten for several, as it once was.
#[test]
fn guests_of_one_and_of_several_cpus_have_equal_costs() {
    let [one, several] = ["guest-counted", "guest-counted-smp"].map(|name| {
        let mut spec = machine::preset(name).unwrap();
        let costs = spec.kernel_costs.iter_mut().map(|(_, costs)| costs);
        for costs in costs.chain([&mut spec.machine.costs]) {
            (costs.idle_tick_ns, costs.fork_ns, costs.exit_ns) = (0, 0, 0);
            (costs.release_ns, costs.newidle_ns, costs.newidle_cpu_ns) = (0, 0, 0);
        }
        // With one CPU the launcher wakes the first tasks before time 0. What its visits at exits
        // take was measured there alone.
        spec.machine.threads.retain(|thread| !thread.name.starts_with("schedlab-"));
        (spec.machine.costs, spec.kernel_costs, spec.machine.threads, spec.machine.set_up_ns)
    });
    assert_eq!(one, several);
}

#[test]
fn costs_may_differ_under_kernels_of_a_series() {
    let text = "name = 'x'\nclock_mhz = 1000\ncosts_clock_mhz = 2000\n[topology]\n\
                cores_per_llc = 1\n[costs]\ntick_ns = 100\nfork_ns = 200\n\
                [kernel_costs.'6.18']\nfork_ns = 300\n";
    let spec = machine::parse(text).unwrap();
    let costs = |version: &str| spec.costs_under(version.parse().unwrap());
    for version in ["6.18", "6.18.44", "linux-6.18.15"] {
        let own = costs(version).unwrap();
        assert_eq!((own.tick_ns, own.fork_ns), (200, 600), "{version}");
    }
    assert_eq!((costs("6.12"), spec.machine.costs.fork_ns), (None, 400));
    // A run has those of its scheduler's kernel.
    let program = ProgramBuilder::new().run(1_000).build();
    let workload = Workload::new("w", vec![TaskSpec::new("a", program)]);
    let lane = SimLane { machine: Some(Arc::new(spec)), ..SimLane::default() };
    for (scheduler, fork_ns) in [("linux-6.18.44", 600), ("linux-6.12", 400), ("rr", 400)] {
        let request = RunRequest::new(workload.clone(), scheduler, CpuMask::first(1));
        let machine = lane.machine_of(&request, machine_scheduler(scheduler)).unwrap();
        assert_eq!(machine.costs.fork_ns, fork_ns, "{scheduler}");
    }
}

fn machine_scheduler(name: &str) -> &'static schedlab_sched::Scheduler {
    schedlab_sched::registry::find(name).unwrap()
}

#[test]
fn wrong_files_are_refused_with_what_was_found() {
    let cases = [
        ("name = 'x'\n[topology]\ncores = 4\n", "unknown field `cores`"),
        ("name = 'x'\n[topology]\nnodes = 2\n", "needs `cores_per_llc`"),
        (
            "name = 'x'\n[topology]\ncores_per_llc = 1\n[kernel_costs.new]\n",
            "the name is no series of kernels",
        ),
        (
            "name = 'x'\n[topology]\ncores_per_llc = 1\n[kernel_costs.'6.1']\nticks_ns = 1\n",
            "no cost is called \"ticks_ns\": did you mean",
        ),
        ("name = ''\n[topology]\ncores_per_llc = 1\n", "`name` is empty"),
        ("name = 'x'\n[topology]\ncores_per_llc = 2000\n", "allowed are 1 to 1024"),
        ("name = 'x'\n[topology]\nnodes = 4294967295\ncores_per_llc = 2\n", "1 to 1024"),
        ("name = 'x'\n[topology]\ncores_per_llc = 0\n", "allowed are 1 to 1024"),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\ncore = [0]\n", "keep one of them"),
        ("name = 'x'\n[topology]\ncore = [0, 0]\nllc = [0, 1]\n", "share core 0"),
        ("name = 'x'\n[topology]\ncore = [0, 1]\nnode = [0]\n", "one entry a CPU"),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\nsiblings = 'near'\n", "apart and adjacent"),
        ("name = 'x'\nhz = 50\n[topology]\ncores_per_llc = 1\n", "100, 250, 300 and 1000"),
        ("name = 'x'\npreempt = 'rt'\n[topology]\ncores_per_llc = 1\n", "none, voluntary, full"),
        ("name = 'x'\nsmt_speed = [0]\n[topology]\ncores_per_llc = 1\n", "1 to 1000"),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\n[costs]\ntik_ns = 1\n", "\"tik_ns\""),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\n[costs]\ntick_ns = -1\n", "-1"),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\n[caches]\nllc_bytes_per_sec = 0\n", "is 0"),
        ("name = 'x'\n[topology]\ncores_per_llc = 1\n[device]\nqueue_depth = 0\n", "is 0"),
        (
            "name = 'x'\n[topology]\ncores_per_llc = 1\n\
             [[interrupt]]\nname = 'nic'\nper_second = 0\ncost_ns = 1\n",
            "`per_second` is 0",
        ),
        (
            "name = 'x'\n[topology]\ncores_per_llc = 1\n\
             [[interrupt]]\nname = 'nic'\nper_second = 1000\ncost_ns = 1000000\n",
            "no time would be left",
        ),
        (
            "name = 'x'\n[topology]\ncores_per_llc = 1\n\
             [[interrupt]]\nname = 'nic'\nper_second = 10\ncost_ns = 1\ncpus = '3-'\n",
            "expected CPUs",
        ),
        (
            "name = 'x'\ncosts_clock_mhz = 1000\n[topology]\ncores_per_llc = 1\n",
            "but not `clock_mhz`",
        ),
        (
            "name = 'x'\ncosts_clock_mhz = 1000\nclock_mhz = 0\n[topology]\ncores_per_llc = 1\n",
            "`clock_mhz` is 0, allowed are 1 to 100000",
        ),
        ("{\"name\": \"x\"}", "missing field `topology`"),
    ];
    for (text, expected) in cases {
        let error = machine::parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn costs_of_another_clock_are_scaled_but_for_those_of_memory() {
    let text = "name = 'x'\nclock_mhz = 700\ncosts_clock_mhz = 1000\n[topology]\n\
                cores_per_llc = 1\n[costs]\nsocket_ns = 2100\npick_entry_ns = 150\n";
    let costs = machine::parse(text).unwrap().machine.costs;
    assert_eq!((costs.socket_ns, costs.pick_entry_ns), (3_000, 150));
    // The default of what is not named is at the other clock too.
    assert_eq!(costs.wakeup_ns, 1_286);
    let own = text.replace("costs_clock_mhz = 1000\n", "");
    assert_eq!(machine::parse(&own).unwrap().machine.costs.socket_ns, 2_100);
}

fn request(nr_cpus: u32, scheduler: &str) -> RunRequest {
    let task = TaskSpec {
        instances: nr_cpus,
        ..TaskSpec::new("hog", ProgramBuilder::new().run(65_000_000).build())
    };
    RunRequest::new(Workload::new("hogs", vec![task]), scheduler, CpuMask::first(nr_cpus))
}

fn setting<'r>(run: &'r schedlab_run::RunResult, name: &str) -> &'r str {
    run.machine.setting(name).unwrap()
}

#[test]
fn a_run_gets_the_first_cpus_of_its_machine() {
    let laptop = Arc::new(machine::preset("laptop").unwrap());
    let lane =
        SimLane { machine: Some(laptop.clone()), costs: Some(Costs::ZERO), ..SimLane::default() };
    let run = lane.run(&request(4, "fcfs"), &mut NullSink).unwrap();
    assert_eq!(run.measures.totals.makespan_ns, Some(65_000_000));
    assert_eq!((run.machine.cpu_model.as_str(), run.machine.nr_cpus), ("modelled: laptop", 4));
    // With all eight threads busy each works at 0.62.
    let run = lane.run(&request(8, "fcfs"), &mut NullSink).unwrap();
    assert_eq!(run.measures.totals.makespan_ns, Some(65_000_000_u64 * 1000 / 620 + 1));
    let error = lane.run(&request(9, "fcfs"), &mut NullSink).unwrap_err();
    assert!(matches!(&error, LaneError::Input(text) if text.contains("has 8 CPUs")), "{error}");
    // A request's machine goes before the lane's.
    let own = RunRequest { machine: machine::preset("S3-d").map(Arc::new), ..request(8, "fcfs") };
    let run = lane.run(&own, &mut NullSink).unwrap();
    assert_eq!((run.machine.cpu_model.as_str(), run.machine.hz), ("modelled: S3-d", Some(100)));
}

/// Since NI_RANDOM (7.0) a CPU that becomes idle draws whether it looks for tasks. Another boot
/// draws other numbers, but the workload's random amounts stay.
#[test]
fn another_boot_has_other_random_numbers_of_the_scheduler_only() {
    let lane = SimLane { costs: Some(Costs::ZERO), ..SimLane::default() };
    let found = |scheduler: &str, boot: u32| {
        let drawn = Amount::Uniform { low: 500_000, high: 5_000_000 };
        let mut program = ProgramBuilder::new();
        program.begin_loop(LoopCount::Times(40)).op(Op::Run(drawn)).sleep(700_000).end_loop();
        let task = TaskSpec { instances: 5, ..TaskSpec::new("a", program.build()) };
        let workload = Workload::new("drawn", vec![task]);
        let keep = Keep { slices: true, ..Keep::NOTHING };
        let request = RunRequest::new(workload, scheduler, CpuMask::first(2));
        let request = RunRequest { boot: Boot(boot), keep, ..request };
        let run = lane.run(&request, &mut NullSink).unwrap();
        let work_ns: u64 = run.slices.iter().map(|slice| slice.end_ns - slice.start_ns).sum();
        (run.slices, work_ns)
    };
    let [first, other] = [0, 1].map(|boot| found("linux-7.2", boot));
    assert_ne!(first.0, other.0);
    assert_eq!(first.1, other.1);
    assert_eq!(found("linux-6.6", 0), found("linux-6.6", 1), "it draws nothing");
}

#[test]
fn the_preemption_model_is_the_options_then_the_machines_then_the_kernels() {
    let model = |lane: &SimLane, scheduler: &str| {
        let run = lane.run(&request(1, scheduler), &mut NullSink).unwrap();
        setting(&run, "machine.preempt").to_owned()
    };
    let flat = SimLane::default();
    assert_eq!(model(&flat, "linux-6.12"), "voluntary");
    assert_eq!(model(&flat, "linux-6.1"), "voluntary");
    assert_eq!(model(&flat, "linux-6.18"), "lazy");
    assert_eq!(model(&flat, "linux-7.1"), "lazy");
    assert_eq!(model(&flat, "rr"), "full");
    let old = SimLane { machine: machine::preset("S3-a").map(Arc::new), ..flat.clone() };
    assert_eq!(model(&old, "rr"), "none");
    let told = SimLane { preempt: Some(Preempt::Lazy), ..old };
    assert_eq!(model(&told, "rr"), "lazy");
    // Neither a kernel nor a patch to one is a textbook scheduler.
    let is_kernel = |name: &str| name.starts_with("linux-") || name == "cfs-v19";
    for info in SCHEDULERS.iter().filter(|info| is_kernel(&info.name)) {
        assert_ne!(model(&flat, &info.name), "full", "{}", info.name);
    }
    assert_eq!([model(&flat, "linux-2.6.23"), model(&flat, "cfs-v19")], ["none", "none"]);
}

#[test]
fn interrupts_show_in_the_totals() {
    let text = "name = 'busy'\n[topology]\ncores_per_llc = 2\n\
                [[interrupt]]\nname = 'nic'\nper_second = 1000\ncost_ns = 20000\ncpus = '0'\n";
    let spec: MachineSpec = machine::parse(text).unwrap();
    let lane =
        SimLane { machine: Some(Arc::new(spec)), costs: Some(Costs::ZERO), ..SimLane::default() };
    let run = lane.run(&request(2, "fcfs"), &mut NullSink).unwrap();
    let counters = run.measures.model.unwrap();
    // At 1, 2, ... 66 ms: the last three come while the ones before are made up for.
    assert_eq!((counters.nr_interrupts, counters.interrupt_ns), (66, 66 * 20_000));
    assert_eq!(run.measures.totals.cpu_time_ns, 2 * 65_000_000 + counters.interrupt_ns);
}
