// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of plans: every point once, in order, counted before it is made, and mistakes with their
//! position.

use super::*;
use schedlab_model::{TaskSpec, program::ProgramBuilder};

fn hogs(name: &str, given: &BTreeMap<String, String>, _cpus: u32) -> Result<Built, String> {
    let mut task = TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build());
    task.instances = given.get("n").map_or(Ok(1), |n| n.parse()).map_err(|_| "n".to_string())?;
    Ok(Built { workload: Workload::new(name, vec![task]), parameters: given.clone() })
}

const STUDY: &str = "
    name = 'S9'
    title = 't'
    text = ''
    [[experiment]]
    name = 'S9-{cpus}'
    title = 'on {cpus}'
    text = ''
    workload = 'hogs'
    split = ['cpus']
    parameters.work = '1ms'
    axes.n = { to = '2*all+1', points_max = 9 }
    axes.cpus = [1, 'all', 3]
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['fcfs', 'linux-6.12:RR']
    [[experiment.runs]]
    lane = 'host'
    schedulers = ['OTHER']
    repetitions = 2
";

fn plan(host_cpus: u32) -> Plan {
    planned(STUDY, host_cpus, RUNS_MAX_DEFAULT).unwrap()
}

fn planned(text: &str, host_cpus: u32, runs_max: usize) -> Result<Plan, StudyError> {
    let input = PlanInput {
        host_cpus: CpuMask::first(host_cpus),
        seed: 7,
        lanes: Vec::new(),
        host_repetitions: None,
        runs_max,
        has_views: false,
    };
    let mut plan = Plan::default();
    let machine = |name: &str| schedlab_sim::machine::preset(name).ok_or(format!("no {name}"));
    let schedulers = &schedlab_sim::SimLane::default();
    let tasks = |name: &str, text: &str, nr_cpus: u32| {
        schedlab_workload::read_rtapp(name, text, nr_cpus)
            .map(|read| read.workload)
            .map_err(|e| e.to_string())
    };
    let make = Makers { workload: &hogs, tasks: &tasks, machine: &machine, schedulers };
    plan.add_study(&Study::parse(text)?, &input, make)
        .map_err(|error| crate::document::located(error, text))?;
    Ok(plan)
}

const SWEEP: &str = "name = 'x'
    [[experiment]]
    name = 'x'
    workload = ['hogs', 'hogs:n=3']
    seeds = { first = 40, count = 3 }
    until = '2s'
    by = ['scheduler']
    axes.cpus = [1, 2]
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['fcfs']
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['rr']
    set = { quantum = ['1ms', '2ms'] }
";

#[test]
fn a_sweep_is_every_combination_seeds_fastest() {
    let plan = planned(SWEEP, 4, 36).unwrap();
    assert_eq!(plan.runs.len(), 2 * 2 * 3 + 2 * 2 * 2 * 3);
    let seeds: Vec<u64> = plan.runs[..4].iter().map(|run| run.request.seed).collect();
    assert_eq!(seeds, [40, 41, 42, 40]);
    assert_eq!(plan.runs[0].request.until_ns, Some(2_000_000_000));
    let last = &plan.runs[35].request;
    assert_eq!(last.tunables, [("quantum".into(), "2ms".into())]);
    assert_eq!(last.parameters["set.quantum"], "2ms");
    assert_eq!(plan.experiments[0].view.as_ref().unwrap().by, ["scheduler"]);
    assert_eq!(self::plan(1).experiments[0].view, None, "a study without keys of a table");
}

#[test]
fn machines_are_a_dimension_of_models_alone() {
    let text = SWEEP
        .replace("axes.cpus = [1, 2]", "machine = ['laptop', 'pi']")
        .replace(
            "schedulers = ['rr']",
            "schedulers = ['rr']\n[[experiment.runs]]\n\
                  lane = 'host'\nschedulers = ['OTHER']\n#",
        )
        .replace("set = {", "# {");
    let plan = planned(&text, 2, 1000).unwrap();
    let of = |lane: LaneKind| plan.runs.iter().filter(move |run| run.lane == lane);
    assert_eq!((of(LaneKind::Sim).count(), of(LaneKind::Host).count()), (2 * 2 * 2 * 3, 2 * 3));
    assert!(of(LaneKind::Host).all(|run| run.request.machine.is_none()));
    let laptop = &plan.runs[0].request;
    assert_eq!(laptop.parameters["machine"], "laptop");
    let spec = laptop.machine.as_ref().unwrap();
    assert_eq!(laptop.cpus.weight(), spec.machine.nr_cpus(), "all of the machine's CPUs");
    let view = plan.experiments[0].view.as_ref().unwrap();
    assert_eq!(view.by, ["lane", "scheduler"], "as the file says, and the lane");
    let unknown = planned(&text.replace("'pi'", "'po'"), 2, 1000).unwrap_err();
    assert_eq!(unknown.position(&text).unwrap().0, 8);
}

/// A study with its workload in the file, whose runs are repeated with shifted starts.
const SHIFTED: &str = r#"
    name = 'x'
    [[experiment]]
    name = 'x'
    axes.n = [1, 2]
    seeds = [1, 2]
tasks = '{"tasks": {"a": {"instance": {n}, "loop": 1, "run": 5}, "b": {"delay": "1ms", "run": 5}}}'
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['fcfs']
    shift = { from = '20us', to = '80us', count = 3 }
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['linux-6.12', 'rr']
    hz = 100
    [[experiment.runs]]
    lane = 'sim'
    schedulers = ['linux-6.12']
    hz = 1000
"#;

#[test]
fn a_shifted_start_moves_all_tasks_by_one_time_that_the_seed_draws() {
    let plan = planned(SHIFTED, 1, 28).unwrap();
    assert_eq!(plan.runs.len(), 2 * 2 * (1 + 3) + 2 * 2 * 3);
    let releases = |run: &PlannedRun| -> Vec<u64> {
        let tasks = run.request.workload.tasks.iter();
        tasks
            .map(|task| match task.release_ns {
                Amount::Constant(at) => at,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let runs = &plan.runs[..8];
    let mut shifts = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let [a, b] = releases(run)[..] else { panic!("{run:?}") };
        assert_eq!((b - a, run.request.workload.tasks[0].instances), (1_000_000, 1));
        let number = run.request.parameters.get(SHIFT).map(String::as_str);
        assert_eq!(number, [None, Some("1"), Some("2"), Some("3")][index / 2]);
        assert_eq!(run.request.seed, index as u64 % 2 + 1);
        assert_eq!(number.is_none(), a == 0);
        shifts.push(a);
    }
    assert!(shifts[2..].iter().all(|by| (20_000..=80_000).contains(by)), "{shifts:?}");
    shifts.sort_unstable();
    shifts.dedup();
    assert_eq!(shifts.len(), 1 + 6, "each has its own");
    assert_eq!(planned(SHIFTED, 1, 28).unwrap(), plan, "the seed draws it");
    let error = planned(SHIFTED, 1, 27).unwrap_err().to_string();
    assert!(error.contains("there are 28 runs"), "{error}");
    let drawn = SHIFTED
        .replace(r#""delay": "1ms""#, r#""delay": {"distribution": "exponential", "mean": "1ms"}"#);
    let error = planned(&drawn, 1, 28).unwrap_err();
    assert!(error.to_string().contains("drawn exponentially"), "{error}");
    assert_eq!(error.position(&drawn).unwrap().0, 11);
}

#[test]
fn shifted_runs_may_have_boots_of_their_own() {
    let text = SHIFTED.replace("count = 3", "count = 3, other_boots = true");
    let plan = planned(&text, 1, 28).unwrap();
    let of_first = plan.runs.iter().filter(|run| run.request.seed == 1).take(4);
    assert_eq!(of_first.map(|run| run.request.boot.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let on_host = text.replace("lane = 'sim'", "lane = 'host'").replace("['fcfs']", "['OTHER']");
    let error = planned(&on_host, 1, 28).unwrap_err().to_string();
    assert!(error.contains("`other_boots` with lane host"), "{error}");
}

#[test]
fn the_last_half_of_shifted_runs_may_have_longer_switches() {
    let text = |lane: &str, jitter: &str| {
        let shift = format!("count = 4, switch_jitter = '{jitter}'");
        let study = SHIFTED.replace("lane = 'sim'\n    schedulers = ['fcfs']", lane);
        study.replace("count = 3", &shift)
    };
    let in_guests = text("lane = 'vm'\n    schedulers = ['6.12']", "2us");
    let plan = planned(&in_guests, 1, 100).unwrap();
    let of_first = plan.runs.iter().filter(|run| run.request.seed == 1).take(5);
    let jitters: Vec<(u64, Option<&str>)> = of_first
        .map(|run| {
            let told = run.request.parameters.get(SWITCH_JITTER).map(String::as_str);
            (run.request.switch_jitter_ns, told)
        })
        .collect();
    let longer = (2_000, Some("2000ns"));
    assert_eq!(jitters, [(0, None), (0, None), (0, None), longer, longer]);
    let refused = |text: &str, word: &str| {
        let error = planned(text, 1, 100).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.position(text).unwrap().0, 11, "{error}");
    };
    refused(&in_guests.replace("2us", "21us"), "allowed are 1ns to 20us");
    let simulated = planned(&text("lane = 'sim'\n    schedulers = ['fcfs']", "2us"), 1, 100);
    let longest = |plan: &Plan| plan.runs.iter().map(|run| run.request.switch_jitter_ns).max();
    assert_eq!(longest(&simulated.unwrap()), Some(2_000));
    refused(&text("lane = 'host'\n    schedulers = ['OTHER']", "2us"), "lane host");
}

#[test]
fn a_workload_in_the_file_gets_parameters_and_hz_is_a_dimension_where_it_varies() {
    let plan = planned(SHIFTED, 1, 28).unwrap();
    let of = |n: &str| plan.runs.iter().find(|run| run.request.parameters["n"] == n).unwrap();
    assert_eq!(of("2").request.workload.tasks[0].instances, 2);
    assert_eq!(of("2").request.workload.name, "x");
    let hz = |scheduler: &str| -> Vec<Option<&str>> {
        let runs = plan.runs.iter().filter(|run| run.request.scheduler == scheduler);
        let mut hz: Vec<_> =
            runs.map(|run| run.request.parameters.get("hz").map(String::as_str)).collect();
        hz.dedup();
        hz
    };
    assert_eq!((hz("linux-6.12"), hz("rr")), (vec![Some("100"), Some("1000")], vec![None]));
    let wrong = SHIFTED.replace("\"run\": 5}, ", "\"rum\": 5}, ");
    let error = planned(&wrong, 1, 28).unwrap_err();
    assert_eq!(error.position(&wrong).unwrap().0, 7, "{error}");
}

#[test]
fn too_many_runs_are_counted_not_made() {
    let error = planned(SWEEP, 4, 35).unwrap_err();
    assert!(error.to_string().contains("there are 36 runs: most are 35"), "{error}");
    assert_eq!(error.position(SWEEP).unwrap().0, 3);
    let axis = format!("[{}]", (0..9999).map(|n| n.to_string() + ",").collect::<String>());
    let axes: String = ["a", "b", "c", "d", "e"].map(|n| format!("axes.{n}={axis}\n")).concat();
    let text = SWEEP.replace("axes.cpus = [1, 2]", &axes);
    let error = planned(&text, 4, 1000).unwrap_err().to_string();
    assert!(error.contains("more than can be counted"), "{error}");
}

#[test]
fn mistakes_that_only_a_plan_shows_have_a_place_too() {
    for (from, to, line, wanted) in [
        ("[1, 2]", "[1, 4096]", 8, "allowed are 1 to 1024"),
        ("'2s'", "'2'", 6, "no unit"),
        ("'fcfs'", "'fcfs:FIFOO'", 11, "did you mean `FIFO`?"),
        ("'fcfs'", "'fcsf'", 11, "did you mean `fcfs`?"),
        ("quantum =", "quantmu =", 15, "quantum"),
        ("'2ms'", "'2'", 15, "no unit"),
        ("axes.cpus", "axes.n", 0, ""),
    ] {
        let text = SWEEP.replace(from, to);
        match planned(&text, 4, 1000) {
            Ok(_) => assert_eq!(line, 0, "{to}"),
            Err(error) => {
                assert_eq!(error.position(&text).unwrap().0, line, "{to}: {error}");
                assert!(error.to_string().contains(wanted), "{to}: {error}");
            }
        }
    }
}

#[test]
fn titles_say_the_values_and_their_words() {
    let at = |n: &str| BTreeMap::from([("n".to_string(), n.to_string())]);
    assert_eq!(fill("S-{n}", &at("4")), "S-4");
    assert_eq!(fill("{n:task|tasks} of {n}", &at("1")), "1 task of 1");
    assert_eq!(fill("{n:task|tasks}", &at("4")), "4 tasks");
    for untouched in ["{m}", "{n", "{m:a|b} }{", ""] {
        assert_eq!(fill(untouched, &at("4")), untouched);
    }
}

#[test]
fn every_point_is_planned_once_a_scheduler_and_repetition() {
    let plan = plan(2);
    let names: Vec<&str> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["S9-1", "S9-2", "S9-3"]);
    // 3 experiments x 5 values of n x 2 schedulers, and 2 x 5 x 2 repetitions on the host.
    assert_eq!(plan.runs.len(), 30 + 20);
    let notes: Vec<String> = plan.notes.iter().map(Note::to_string).collect();
    assert_eq!(notes, ["S9-3 is not measured: it needs 3 CPUs, here are 2"]);
    let rr = &plan.runs[1].request;
    assert_eq!((rr.scheduler.as_str(), rr.parameters["policy"].as_str()), ("linux-6.12", "RR"));
    assert_eq!(rr.workload.tasks[0].attr.policy, Policy::Rr);
    assert_eq!(rr.workload.tasks[0].attr.rt_priority, RT_PRIORITY_DEFAULT);
    assert_eq!(rr.parameters["work"], "1ms");
    let host: Vec<&PlannedRun> =
        plan.runs.iter().filter(|run| run.lane == LaneKind::Host).collect();
    assert_eq!((host[0].request.seed, host[1].request.seed), (7, 8));
    assert!(!host[0].request.parameters.contains_key("policy"));
}

#[test]
fn the_hosts_order_is_a_permutation_that_the_seed_decides() {
    let plan = plan(2);
    let order = plan.host_order(1, |lane| lane == LaneKind::Host);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let host: Vec<usize> = (0..50).filter(|&run| plan.runs[run].lane == LaneKind::Host).collect();
    assert_eq!(sorted, host);
    assert_ne!(order, host);
    assert_eq!(order, plan.host_order(1, |lane| lane == LaneKind::Host));
    assert_ne!(order, plan.host_order(2, |lane| lane == LaneKind::Host));
}
