// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every scheduler of the registry says why it chose, and what it says is so: the task that its
//! explanation names is the one that runs, and the rule that it states holds on the numbers that it
//! states.

use crate::common;

use common::workloads::{self, bursts, nice};
use common::{Case, MS, Run};
use schedlab_engine::{Cause, Decision, Observer, SimConfig, simulate};
use schedlab_model::trace::{MemorySink, ObjectInfo, TaskInfo};
use schedlab_model::{
    CgroupId, CgroupSpec, Costs, CpuId, Event, EventKind, Machine, Nanos, ObjectId, SchedAttr,
    TaskId, TaskSpec, TraceSink, Workload,
};
use schedlab_sched::Core;
use schedlab_sched::boundary::explain::{
    Candidate, Contest, Explanation, Rule, Value, Who, number_in,
};
use schedlab_sched::registry::SCHEDULERS;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Wants everything and checks it as it comes.
#[derive(Default)]
struct Judge {
    failures: Vec<String>,
    /// When it was last asked whether it wants an explanation.
    wanted_ns: Nanos,
    /// How often each kind of rule decided.
    rules: BTreeMap<&'static str, u64>,
    /// Preemptions by wake-up that were stated with numbers.
    nr_woken_facts: u64,
    nr_ticks: u64,
    /// What the sink was told: task and virtual runtime; shared with it.
    told: Rc<RefCell<Vec<(TaskId, i64)>>>,
    /// Virtual runtimes that were stated after a tick and told.
    nr_vruntimes: u64,
    switches: Vec<(Nanos, u32, Option<u32>, Option<u32>)>,
}

impl Observer for Judge {
    fn wants(&mut self, now: Nanos, _cpu: CpuId) -> Option<Explanation> {
        self.wanted_ns = now;
        Some(Explanation::new(10_000, None))
    }

    fn decided(&mut self, core: &Core, decision: Decision) {
        let (time, cpu) = (decision.time_ns, decision.cpu.0);
        assert_eq!(time, core.now);
        // Also where the clock of the pick is earlier.
        assert_eq!(time, self.wanted_ns);
        if decision.prev != decision.next {
            let id = |task: Option<schedlab_model::TaskId>| task.map(|task| task.0);
            self.switches.push((time, cpu, id(decision.prev), id(decision.next)));
        }
        match &decision.cause {
            Cause::Woken { facts, .. } => self.nr_woken_facts += u64::from(!facts.is_empty()),
            Cause::Tick { before, after } => {
                self.nr_ticks += u64::from(!before.is_empty() && !after.is_empty());
                let stated = decision.prev.zip(number_in(after, "vruntime"));
                if let Some((task, vruntime)) = stated {
                    let told = self.told.borrow();
                    // At the tick, and at the choice that follows it.
                    let mut last = told.iter().rev().filter(|one| one.0 == task).take(2);
                    assert!(last.any(|one| one.1 == vruntime), "{time}: {vruntime} was not told");
                    self.nr_vruntimes += 1;
                }
            }
            _ => {}
        }
        if let Err(text) = self.check(&decision) {
            self.failures.push(format!("at {time} ns on CPU {cpu}: {text}: {decision:#?}"));
        }
    }
}

/// A trace in memory that wants virtual runtimes.
struct Listener {
    trace: MemorySink,
    told: Rc<RefCell<Vec<(TaskId, i64)>>>,
}

impl TraceSink for Listener {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.trace.task(id, info);
    }
    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.trace.object(id, info);
    }
    fn event(&mut self, event: &Event) {
        self.trace.event(event);
    }
    fn wants_vruntime(&self) -> bool {
        true
    }
    fn vruntime(&mut self, _time_ns: Nanos, task: TaskId, value: i64) {
        self.told.borrow_mut().push((task, value));
    }
    fn end(&mut self, end_ns: Nanos) {
        self.trace.end(end_ns);
    }
}

impl Judge {
    fn check(&mut self, decision: &Decision) -> Result<(), String> {
        let explanation = decision.explanation.as_ref().ok_or("no explanation")?;
        let last = explanation.contests.last().ok_or("no contest")?;
        let chosen = match last.chosen().map(|candidate| candidate.who) {
            Some(Who::Task(task)) => Some(task),
            Some(Who::Group(group)) => return Err(format!("the last level chose {group:?}")),
            None => None,
        };
        if chosen != decision.next {
            return Err(format!("explains {chosen:?}, runs {:?}", decision.next));
        }
        for contest in &explanation.contests {
            *self.rules.entry(contest.rule.kind()).or_default() += 1;
            check_contest(contest).map_err(|text| format!("{}: {text}", contest.class))?;
        }
        Ok(())
    }
}

fn check_contest(contest: &Contest) -> Result<(), String> {
    if contest.nr_omitted > 0 {
        return Err("candidates are left out".into());
    }
    let chosen = contest.candidates.iter().filter(|candidate| candidate.chosen).count();
    let nobody = matches!(contest.rule, Rule::Empty | Rule::HeldBack(_));
    if chosen != usize::from(!nobody) {
        return Err(format!("{chosen} candidates are marked as chosen"));
    }
    check_eevdf(contest)?;
    let Some(chosen) = contest.chosen() else { return Ok(()) };
    let others = || contest.candidates.iter().filter(|candidate| !candidate.chosen);
    match contest.rule {
        Rule::Unstated => Err("the rule is not stated".into()),
        Rule::Alone if others().any(|other| other.considered) => Err("it is not alone".into()),
        Rule::Least { keys, .. } => check_least(chosen, others(), keys, 1),
        Rule::Greatest { keys, .. } => check_least(chosen, others(), keys, -1),
        Rule::Keeps(_) => check_keeps(chosen, others()),
        Rule::Drawn { ticket, total } => check_drawn(contest, chosen, ticket, total),
        Rule::Named(_) => check_named(contest, chosen),
        _ => Ok(()),
    }
}

fn check_least<'c>(
    chosen: &Candidate,
    others: impl Iterator<Item = &'c Candidate>,
    keys: &[&str],
    first_sign: i64,
) -> Result<(), String> {
    let values = |candidate: &Candidate| -> Option<Vec<i64>> {
        let mut values: Vec<i64> =
            keys.iter().map(|key| candidate.number(key)).collect::<Option<_>>()?;
        values[0] *= first_sign;
        Some(values)
    };
    let least = values(chosen).ok_or("the chosen lacks a key")?;
    if !chosen.considered {
        return Err("the chosen was not considered".into());
    }
    for other in others {
        let theirs = values(other).ok_or("a candidate lacks a key")?;
        if other.considered && theirs < least {
            return Err(format!("{theirs:?} is less than the chosen's {least:?}"));
        }
        // What runs and is not considered lost its CPU to somebody of better rank.
        if let (false, Some(mine), Some(rank)) =
            (other.considered, chosen.number("rank"), other.number("rank"))
            && rank <= mine
        {
            return Err(format!("rank {mine} took the CPU from rank {rank}"));
        }
    }
    Ok(())
}

fn check_keeps<'c>(
    chosen: &Candidate,
    others: impl Iterator<Item = &'c Candidate>,
) -> Result<(), String> {
    if !chosen.running {
        return Err("it does not run".into());
    }
    let protected = chosen.facts.iter().find(|fact| fact.name == "protected");
    if protected.is_some_and(|fact| fact.value != Value::Flag(true)) {
        return Err("it is not protected".into());
    }
    for other in others {
        if let (Some(mine), Some(theirs)) = (chosen.number("rank"), other.number("rank"))
            && theirs < mine
        {
            return Err(format!("rank {theirs} waits beside rank {mine}"));
        }
    }
    Ok(())
}

/// The ticket belongs to the chosen, and the ranges of all tile the tickets.
fn check_drawn(
    contest: &Contest,
    chosen: &Candidate,
    ticket: u64,
    total: u64,
) -> Result<(), String> {
    let mut ranges = Vec::new();
    for candidate in &contest.candidates {
        let range = candidate.number("first_ticket").zip(candidate.number("tickets"));
        let (first, tickets) = range.ok_or("a candidate has no tickets")?;
        if candidate.chosen && !(first..first + tickets).contains(&(ticket as i64)) {
            return Err(format!("ticket {ticket} is not of {first} + {tickets}"));
        }
        ranges.push((first, tickets));
    }
    ranges.sort_unstable();
    let end = ranges.iter().try_fold(0, |end, (first, tickets)| {
        if *first == end { Ok(end + tickets) } else { Err("tickets have a gap".to_string()) }
    })?;
    if end != total as i64 || !chosen.considered {
        return Err(format!("{end} tickets are told, {total} were drawn from"));
    }
    Ok(())
}

/// A buddy is eligible (EEVDF), or within the wakeup granularity of the least one (CFS).
fn check_named(contest: &Contest, chosen: &Candidate) -> Result<(), String> {
    let Some(granularity) = number_in(&contest.facts, "wakeup_granularity") else {
        return if chosen.considered { Ok(()) } else { Err("a buddy is not eligible".into()) };
    };
    let vruntime = |candidate: &Candidate| candidate.number("vruntime").unwrap_or(i64::MAX);
    let least = contest.candidates.iter().min_by_key(|candidate| vruntime(candidate));
    let least = least.ok_or("nobody")?;
    let weight = least.number("weight").filter(|weight| *weight > 0).ok_or("no weight")?;
    // The granularity in virtual time of the least one, with room for the kernel's rounding.
    let allowed = granularity * 1024 / weight + 2;
    if vruntime(chosen) - vruntime(least) > allowed {
        return Err(format!("the buddy is more than {allowed} vns ahead"));
    }
    Ok(())
}

/// Under EEVDF the average is that of the candidates, and the eligible are those not beyond it.
fn check_eevdf(contest: &Contest) -> Result<(), String> {
    let Some(average) = number_in(&contest.facts, "avg_vruntime") else { return Ok(()) };
    let (mut sum, mut load) = (0i128, 0i128);
    for candidate in &contest.candidates {
        let number = |name| candidate.number(name).map(i128::from).ok_or("a number is missing");
        let (vruntime, weight) = (number("vruntime")?, number("weight")?);
        sum += vruntime * weight;
        load += weight;
        let eligible = candidate
            .facts
            .iter()
            .any(|fact| fact.name == "eligible" && fact.value == Value::Flag(true));
        if eligible != candidate.considered || eligible != (vruntime <= i128::from(average)) {
            return Err(format!("eligible: {eligible}, vruntime {vruntime}, average {average}"));
        }
    }
    if load > 0 && sum.div_euclid(load) != i128::from(average) {
        return Err(format!("the average is {}, not {average}", sum.div_euclid(load)));
    }
    Ok(())
}

/// Runs the case under observation.
fn judge(case: &Case<'_>) -> (Judge, Run) {
    let mut judge = Judge::default();
    let mut sink = Listener { trace: MemorySink::default(), told: Rc::clone(&judge.told) };
    let plain = case.run().expect("the case runs");
    let config = SimConfig {
        machine: &case.machine,
        scheduler: case.scheduler,
        options: &case.options,
        seed: case.seed,
        until_ns: case.until_ns,
        watchdog_ns: case.watchdog_ns,
    };
    let outcome = simulate(case.workload, &config, &mut sink, Some(&mut judge)).unwrap();
    let trace = sink.trace;
    assert_eq!(outcome, plain.outcome, "{}", case.describe());
    assert!(trace.events == plain.trace.events, "being watched changes {}", case.describe());
    (judge, Run { outcome, trace })
}

/// Groups in groups, with unequal weights.
fn groups() -> Workload {
    let group = |path: &str, parent, weight| CgroupSpec {
        path: path.into(),
        parent: CgroupId(parent),
        weight,
        ..CgroupSpec::root()
    };
    let member = |name: &str, cgroup, level| {
        let attr = SchedAttr { cgroup: CgroupId(cgroup), ..nice(level) };
        TaskSpec { instances: 2, attr, ..TaskSpec::new(name, bursts(15, 4 * MS, MS)) }
    };
    let tasks =
        vec![member("root", 0, 0), member("a", 1, 0), member("b", 2, 5), member("ab", 3, 0)];
    let mut workload = Workload::new("groups", tasks);
    workload.cgroups =
        vec![CgroupSpec::root(), group("/a", 0, 100), group("/b", 0, 300), group("/a/b", 1, 50)];
    workload
}

#[test]
fn what_is_explained_is_what_runs_and_the_rules_hold() {
    let mut failures = Vec::new();
    let mut rules: BTreeMap<&str, u64> = BTreeMap::new();
    let mut nr_vruntimes = 0;
    for nr_cpus in [1, 2] {
        let mut cases = workloads::all(nr_cpus);
        cases.push(groups());
        for scheduler in SCHEDULERS.iter() {
            let mut nr_judged = 0;
            for workload in &cases {
                let mut case = Case::new(workload, scheduler, nr_cpus);
                case.machine = Machine { costs: Costs::DEFAULT, ..case.machine };
                let (judge, run) = judge(&case);
                let switches = run.trace.events.iter().filter_map(|event| match event.kind {
                    EventKind::Switch { prev, next, .. } => {
                        let id = |task: Option<schedlab_model::TaskId>| task.map(|task| task.0);
                        Some((event.time_ns, event.cpu.0, id(prev), id(next)))
                    }
                    _ => None,
                });
                assert!(switches.eq(judge.switches), "{}: other switches", case.describe());
                nr_vruntimes += judge.nr_vruntimes;
                for (rule, count) in judge.rules {
                    nr_judged += count;
                    *rules.entry(rule).or_default() += count;
                }
                failures.extend(
                    judge.failures.into_iter().map(|text| format!("{}: {text}", case.describe())),
                );
            }
            assert!(nr_judged > 100, "{}: {nr_judged} choices", scheduler.name);
        }
    }
    let shown = failures.iter().take(2).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures: {shown}", failures.len());
    assert!(nr_vruntimes > 1000, "{nr_vruntimes} virtual runtimes");
    // Every rule was met, so that the checks above had something to refuse.
    for rule in ["alone", "least", "keeps", "named", "drawn", "empty"] {
        assert!(rules.get(rule).is_some_and(|count| *count > 20), "{rule}: {rules:?}");
    }
}

/// The rule's check refuses a choice that is not the least.
#[test]
fn a_wrong_statement_is_refused() {
    let workload = workloads::endless_hogs(3);
    let scheduler = schedlab_sched::registry::find("linux-6.12").unwrap();
    struct First(Option<Decision>);
    impl Observer for First {
        fn wants(&mut self, _: Nanos, _: CpuId) -> Option<Explanation> {
            Some(Explanation::new(100, None))
        }
        fn decided(&mut self, _: &Core, decision: Decision) {
            if decision.time_ns > 50 * MS && decision.prev != decision.next {
                self.0.get_or_insert(decision);
            }
        }
    }
    let case = Case { until_ns: Some(100 * MS), ..Case::new(&workload, scheduler, 1) };
    let config = SimConfig {
        machine: &case.machine,
        scheduler,
        options: &case.options,
        seed: 1,
        until_ns: case.until_ns,
        watchdog_ns: None,
    };
    let mut first = First(None);
    simulate(&workload, &config, &mut MemorySink::default(), Some(&mut first)).unwrap();
    let decision = first.0.expect("the hogs take turns");
    let mut contest = decision.explanation.unwrap().contests.pop().unwrap();
    assert_eq!(contest.rule.kind(), "least");
    assert_eq!(check_contest(&contest), Ok(()));
    assert!(contest.candidates.len() == 3);
    for candidate in &mut contest.candidates {
        candidate.chosen = false;
    }
    let worst = contest.candidates.iter_mut().max_by_key(|c| c.number("deadline")).unwrap();
    worst.chosen = true;
    assert!(check_contest(&contest).is_err());
}

/// A wake-up preemption and a tick come with the numbers that were compared.
#[test]
fn causes_have_their_numbers() {
    let hog = TaskSpec::new("hog", workloads::burst(300 * MS));
    let waker = TaskSpec::new("waker", bursts(40, MS / 2, 5 * MS));
    let workload = Workload::new("preempt", vec![hog.clone(), hog, waker]);
    let linux = ["linux-6.1", "linux-6.6", "linux-6.12", "linux-6.18", "linux-7.1"];
    for name in linux.into_iter().chain(["srtf", "priority-rr"]) {
        let scheduler = schedlab_sched::registry::find(name).unwrap();
        let (judge, _) = judge(&Case::new(&workload, scheduler, 1));
        assert!(judge.failures.is_empty(), "{name}: {}", judge.failures[0]);
        if name != "priority-rr" {
            assert!(judge.nr_woken_facts > 10, "{name}: {}", judge.nr_woken_facts);
        }
        if name.starts_with("linux") {
            assert!(judge.nr_ticks > 10, "{name}: {}", judge.nr_ticks);
        }
    }
}
