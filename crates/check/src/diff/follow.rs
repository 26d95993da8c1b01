// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets one scheduler follow the decisions of another, and counts where it would decide otherwise.
//!
//! Both runs advance together. The second has guided classes ([`super::guide`]). Where the first
//! switches and the second did not ask for it, the second reschedules, too. After every time both
//! must have done the same, else the comparison stops there.
//!
//! Both runs use the machine of the first, without the costs that depend on a scheduler's queues:
//! with them, the same choice would take different times.

use super::guide::Counts;
use super::guide::{Guided, Order, SharedGuide, locked};
use super::log::{Log, Moment, Tap};
use super::{DiffError, Setting, Side};
use crate::play::panic_text;
use crate::subject::Family;
use schedlab_engine::{SimConfig, Simulation, grouped};
use schedlab_model::{CpuId, EventKind, Machine, Nanos, TaskId};
use schedlab_sched::{Make, SchedClass, Scheduler};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// Name of the class of sched_ext.
const EXT: &str = "ext";

/// How often one scheduler agrees with another whose decisions it follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The decisions, and those in which they disagree.
    pub counts: Counts,
    /// Up to when it was counted (ns).
    pub until_ns: Nanos,
    /// Why it was not counted up to the end of the run.
    pub stopped: Option<String>,
}

/// Lets side B follow side A.
///
/// # Errors
/// If B's own state cannot take the decisions of another scheduler, or a run fails.
pub fn follow(setting: &Setting<'_>, sides: &[Side<'_>; 2]) -> Result<Agreement, DiffError> {
    if let Some(text) = refusal(sides[1].scheduler, sides[0].machine.nr_cpus()) {
        return Err(DiffError { side: 1, text: text.into(), is_refusal: true });
    }
    // Assertions of a class find what its state cannot take.
    let guide = SharedGuide::default();
    let run = || followed(setting, sides, &guide);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(broken(&format!("the model found its own state broken: {}", panic_text(&*panic))))
    })
}

/// Models of kernels before 6.1 that change their queues in the pick itself: they cannot run
/// another task than the one that they picked.
const PICK_CHANGES: [&str; 4] = ["rsdl-0.31", "sd-0.48", "linux-2.6.24", "linux-2.6.32"];

/// Why `follower` cannot follow another scheduler.
fn refusal(follower: &Scheduler, nr_cpus: u32) -> Option<&'static str> {
    if Family::of(follower) != Family::Early {
        return None;
    }
    let name = follower.name.split('+').next().unwrap_or_default();
    if PICK_CHANGES.contains(&name) {
        return Some("its model changes its queues in the pick itself");
    }
    let averages = "models of kernels before 6.1 need averages that load balancing renews, which \
                    moves tasks on several CPUs; with one CPU they follow";
    (nr_cpus > 1).then_some(averages)
}

/// Side B cannot go on.
fn broken(why: &str) -> DiffError {
    let text = format!("its state cannot take A's decisions: {why}");
    DiffError { side: 1, text, is_refusal: false }
}

/// The machine without costs that depend on queues and locks of a scheduler.
fn plain(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    let costs = &mut machine.costs;
    for cost in [
        &mut costs.pick_entry_ns,
        &mut costs.lock_hold_ns,
        &mut costs.lock_transfer_ns,
        &mut costs.task_line_ns,
    ] {
        *cost = 0;
    }
    machine
}

/// `scheduler` with guided classes.
fn guided(scheduler: &Scheduler, guide: &SharedGuide) -> Scheduler {
    let (inner, guide) = (scheduler.clone(), Arc::clone(guide));
    let is_native = scheduler.scx_digest().is_some();
    let make = Make::fallible(move |options, machine, cgroups| {
        let wrap = |class: Box<dyn SchedClass>| -> Box<dyn SchedClass> {
            let dispatches = is_native && class.name() == EXT;
            Box::new(Guided { class, guide: Arc::clone(&guide), dispatches })
        };
        let stack = inner.stack(options, machine, cgroups)?;
        Ok(stack.into_iter().map(wrap).collect())
    });
    Scheduler { make, ..scheduler.clone() }
}

fn followed(
    setting: &Setting<'_>,
    sides: &[Side<'_>; 2],
    guide: &SharedGuide,
) -> Result<Agreement, DiffError> {
    let machine = plain(sides[0].machine);
    let follower = guided(sides[1].scheduler, guide);
    let configs = [
        SimConfig { machine: &machine, ..sides[0].config(setting) },
        SimConfig { machine: &machine, scheduler: &follower, ..sides[1].config(setting) },
    ];
    let nr_cpus = machine.nr_cpus();
    locked(guide).orders.resize_with(nr_cpus as usize, Default::default);
    let failed = |side: usize| move |error| DiffError::of(side, &error);
    let [one, two] = &configs;
    let workloads = [
        grouped(setting.workload, one).map_err(failed(0))?,
        grouped(setting.workload, two).map_err(failed(1))?,
    ];
    let logs = [0, 1].map(|_| Log::new(setting.workload, nr_cpus));
    let tap = |side: usize| Tap(Rc::clone(&logs[side]));
    let mut pair = Pair {
        first: Simulation::new(&workloads[0], one, tap(0), None).map_err(failed(0))?,
        second: Simulation::new(&workloads[1], two, tap(1), None).map_err(failed(1))?,
        logs: &logs,
        guide,
    };
    while pair.first.goes_on() && locked(guide).stopped.is_none() {
        let second = match pair.second.goes_on() {
            true => pair.second.next_time(),
            false => Nanos::MAX,
        };
        pair.pass(pair.first.next_time().min(second));
    }
    let stopped = locked(guide).stopped.clone();
    let (until_ns, counts) = (pair.first.now(), locked(guide).counts);
    let Pair { first, second, .. } = pair;
    let is_over = !second.goes_on();
    if stopped.is_none() {
        first.finish().map_err(failed(0))?;
    }
    // A follower that was stopped by the engine tells more than that it has stopped.
    if stopped.is_none() || is_over {
        second.finish().map_err(|error| broken(&error.to_string()))?;
    }
    Ok(Agreement { counts, until_ns, stopped })
}

/// Two runs of which the second follows the first.
struct Pair<'p> {
    first: Simulation<'p, Tap>,
    second: Simulation<'p, Tap>,
    logs: &'p [Rc<RefCell<Log>>; 2],
    guide: &'p SharedGuide,
}

impl Pair<'_> {
    /// Both do everything that is due at `time`.
    fn pass(&mut self, time: Nanos) {
        while self.first.goes_on() && self.first.next_time() <= time {
            self.first.advance();
        }
        self.command(time);
        if !self.is_following() {
            return;
        }
        while self.second.goes_on() && self.second.next_time() <= time {
            self.second.advance();
        }
        // Switches that the second did not ask for.
        while self.second.goes_on()
            && self.is_following()
            && let Some((cpu, nr_left)) = self.left_over()
        {
            locked(self.guide).is_unasked = true;
            self.second.reschedule_at(time, cpu);
            locked(self.guide).is_unasked = false;
            while self.second.goes_on() && self.second.next_time() <= time {
                self.second.advance();
            }
            if self.left_over() == Some((cpu, nr_left)) {
                break;
            }
        }
        self.compare(time);
    }

    fn is_following(&self) -> bool {
        locked(self.guide).stopped.is_none()
    }

    /// The lowest CPU with switches that the second has not made, and their number.
    fn left_over(&self) -> Option<(CpuId, usize)> {
        let guide = locked(self.guide);
        let index = guide.orders.iter().position(|orders| !orders.is_empty())?;
        Some((CpuId(index as u32), guide.orders[index].len()))
    }

    /// Tells the guide what the first does at `time`.
    fn command(&self, time: Nanos) {
        let log = self.logs[0].borrow();
        let mut guide = locked(self.guide);
        guide.places.clear();
        let moments = log.moments.iter().filter(|moment| moment.time_ns == time);
        let events = moments.flat_map(|moment| &moment.acts).map(|act| act.event);
        let mut moved: Vec<TaskId> = Vec::new();
        for event in events {
            match event.kind {
                EventKind::Switch { prev, next, out } => {
                    guide.orders[event.cpu.index()].push_back(Order { prev, next, out });
                }
                EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                    guide.places.insert(task, event.cpu);
                    moved.retain(|other| *other != task);
                }
                EventKind::Migrate { task, .. } => moved.push(task),
                _ => {}
            }
        }
        // A task that wakes on another CPU than before migrates first: that can be followed.
        if let Some(task) = moved.first() {
            let name = &log.names[task.index()];
            guide.stop(format!("A's load balancing moves {name}, which B cannot follow"));
        }
    }

    /// Stops if the two did not do the same at `time`.
    fn compare(&self, time: Nanos) {
        let take = |side: usize| self.logs[side].borrow_mut().take(time);
        let events = |moment: Option<Moment>| -> Vec<_> {
            moment.iter().flat_map(|moment| &moment.acts).map(|act| act.event).collect()
        };
        let mut guide = locked(self.guide);
        let is_done = guide.orders.iter().all(|orders| orders.is_empty());
        if events(take(0)) != events(take(1)) || !is_done {
            guide.stop("B's run no longer follows A's".into());
        }
    }
}
