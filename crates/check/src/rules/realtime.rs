// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCHED_FIFO and SCHED_RR.

use super::idle::Stays;
use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::{Queued, Seen, State, World};
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{
    CpuId, Event, EventKind, KernelVersion, Nanos, Policy, SchedAttr, SwitchOut, TaskId,
};

/// Slice of SCHED_RR (RR_TIMESLICE).
const RR_SLICE_NS: Nanos = 100 * MS;

fn has_rt_classes(context: &Context<'_>) -> bool {
    matches!(context.family, Family::Kernel(_) | Family::Native) && !context.lends_priority()
}

/// Whether the kernel prefers `a` to `b`, whatever their order in time. `None`: the idle task.
fn rank(attr: Option<&SchedAttr>) -> i32 {
    match attr {
        None => i32::MIN,
        Some(attr) if attr.policy.is_rt() || attr.policy == Policy::Deadline => -attr.kernel_prio(),
        // Nice values do not matter here.
        Some(_) => i32::MIN + 1,
    }
}

struct Strict<'c> {
    context: Context<'c>,
    /// Whether tasks on other CPUs' queues count.
    anywhere: bool,
    /// When a real-time or DEADLINE task last left each CPU (ns).
    left_at: Vec<Nanos>,
    stays: Stays<(CpuId, TaskId)>,
}

/// Priorities are strict.
pub(super) fn strict<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    if context.family == Family::Textbook || context.lends_priority() || is_early_fork(context) {
        return None;
    }
    let is_2_4 = context.subject.scheduler.name.starts_with("linux-2.4");
    if is_2_4 && context.nr_cpus() > 1 {
        return None;
    }
    let anywhere = matches!(context.family, Family::Kernel(_));
    let left_at = vec![0; context.nr_cpus() as usize];
    Some(Box::new(Strict { context: *context, anywhere, left_at, stays: Stays::default() }))
}

/// Whether an early kernel's task forks a real-time one. There a child has its parent's policy and
/// goes to the parent's place in the queue.
fn is_early_fork(context: &Context<'_>) -> bool {
    let is_forked = |task: &&schedlab_model::TaskSpec| task.instances == 0;
    let mut forked = context.workload().tasks.iter().filter(is_forked);
    context.family == Family::Early && forked.any(|task| task.attr.policy.is_rt())
}

impl Strict<'_> {
    /// Whether `cpu` or the task's own CPU had reason to move the task. A CPU pulls tasks as it
    /// switches from a more important task. A task that wakes is pushed if its CPU runs a more
    /// important one by then. If that one becomes runnable at the same instant, it is not.
    fn has_looked(&self, world: &World<'_>, task: &Seen<'_>, place: CpuId, cpu: CpuId) -> bool {
        let State::Waits { since, .. } = task.state else { return false };
        let is_later = self.left_at[cpu.index()] > since;
        place == cpu || is_later || world.switched_at[place.index()] < since
    }

    fn is_passed_over(&self, world: &World<'_>, task: &Seen<'_>, place: CpuId, cpu: CpuId) -> bool {
        let Some(attr) = task.attr.filter(|attr| attr.policy.is_rt()) else { return false };
        let is_there = place == cpu || (self.anywhere && task.allowed.contains(cpu));
        let running = match world.running[cpu.index()] {
            None => None,
            Some(running) => match world.task(running).attr {
                None => return false,
                attr => attr,
            },
        };
        is_there && rank(Some(attr)) > rank(running) && self.has_looked(world, task, place, cpu)
    }
}

impl Check for Strict<'_> {
    fn event(&mut self, world: &World<'_>, event: &Event, _found: &mut Found) {
        let EventKind::Switch { prev: Some(prev), .. } = event.kind else { return };
        let is_high = |attr: &SchedAttr| attr.policy.is_rt() || attr.policy == Policy::Deadline;
        if world.task(prev).attr.is_some_and(is_high) {
            self.left_at[event.cpu.index()] = world.now;
        }
    }

    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        if to > self.context.rt_free_ns() {
            return;
        }
        let waiting = world.waiting();
        let rt = waiting.filter(|(_, task, _)| task.attr.is_some_and(|a| a.policy.is_rt()));
        let pairs: Vec<(CpuId, TaskId)> = rt
            .flat_map(|(id, task, place)| {
                let cpus = world.cpus.iter();
                cpus.filter(|cpu| self.is_passed_over(world, task, place, *cpu))
                    .map(|cpu| (cpu, id))
                    .collect::<Vec<_>>()
            })
            .collect();
        let (kernel, tick) = (self.context.kernel_ns(), self.context.tick_ns);
        let most = |(cpu, id): (CpuId, TaskId)| match world.task(id).state {
            State::Waits { cpu: place, .. } if place == cpu => kernel,
            _ => kernel + tick,
        };
        let stay = self.stays.update(pairs.into_iter(), (world.now, to), most);
        if let Some(((cpu, id), length)) = stay {
            let task = world.task(id);
            let runs = match world.running[cpu.index()] {
                Some(running) => format!("ran task {:?}", world.task(running).name),
                None => "idled".into(),
            };
            let text = format!(
                "CPU {cpu} {runs} for {length} ns while real-time task {:?} waited; allowed are \
                 {} ns",
                task.name,
                most((cpu, id))
            );
            found.add(to, Some(cpu), Some(&task.name), text);
        }
    }
}

/// Places in the lists of real-time tasks.
struct Order {
    /// The key of each waiting task: the least is first. `None`: unknown.
    keys: Vec<Option<i64>>,
    next_tail: i64,
    next_head: i64,
    /// Whether an exiting task moves to the tail of its list.
    exits_move: bool,
    /// Tasks that gave way to equal ones, and may have done so because they exit.
    suspects: Vec<Suspect>,
    rt_free_ns: Nanos,
}

/// A task that gave way to an equal one.
struct Suspect {
    task: TaskId,
    time_ns: Nanos,
    cpu: CpuId,
    /// Its CPU time then.
    ran_ns: Nanos,
}

/// First kernel whose exiting tasks are moved within their group, and so to the tail of their list
/// (`sched_autogroup_exit_task`).
const EXITS_MOVE: KernelVersion = KernelVersion::release(6, 15, 0);

/// CPU time after which a task that gave way does not exit.
const EXIT_NS: Nanos = 2 * MS;

/// Order among equal priorities.
pub(super) fn order<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let is_new = matches!(context.family, Family::Kernel(version) if version >= EXITS_MOVE);
    let order = Order {
        keys: Vec::new(),
        next_tail: 0,
        next_head: -1,
        // The models leave autogroups of exiting tasks out.
        exits_move: is_new && context.subject.outside_ns > 0,
        suspects: Vec::new(),
        rt_free_ns: context.rt_free_ns(),
    };
    // A task that cannot leave goes before an equal one that can, so that the latter is pushed.
    let is_pinned = |attr: &SchedAttr| attr.affinity.is_some_and(|mask| mask.weight() == 1);
    let mut rt = context.attrs().filter(|attr| attr.policy.is_rt());
    let may = context.nr_cpus() == 1 || rt.all(is_pinned);
    (may && has_rt_classes(context)).then(|| Box::new(order) as Box<dyn Check + 'c>)
}

impl Order {
    fn tail(&mut self, task: TaskId) {
        self.keys[task.index()] = Some(self.next_tail);
        self.next_tail += 1;
    }

    fn head(&mut self, task: TaskId) {
        self.keys[task.index()] = Some(self.next_head);
        self.next_head -= 1;
    }

    /// Notes where `prev` goes that gave way to `next`.
    fn left(&mut self, world: &World<'_>, prev: TaskId, next: Option<TaskId>) {
        let (State::Waits { how, .. }, Some(attr)) =
            (world.task(prev).state, world.task(prev).attr)
        else {
            self.keys[prev.index()] = None;
            return;
        };
        let over = next.and_then(|next| world.task(next).attr);
        let is_equal = rank(over) == rank(Some(attr));
        match (how, attr.policy) {
            (Queued::Yielded, _) => self.tail(prev),
            (Queued::Preempted, Policy::Fifo) => self.head(prev),
            (Queued::Preempted, _) if is_equal => self.tail(prev),
            _ => self.keys[prev.index()] = None,
        }
    }

    fn check_in(&self, world: &World<'_>, cpu: CpuId, next: TaskId, found: &mut Found) {
        let (Some(key), Some(attr)) = (self.keys[next.index()], world.task(next).attr) else {
            return;
        };
        if !attr.policy.is_rt() || world.now > self.rt_free_ns {
            return;
        }
        let earlier = world.waiting().find(|(id, task, place)| {
            *place == cpu
                && task.attr.is_some_and(|other| rank(Some(other)) == rank(Some(attr)))
                && self.keys[id.index()].is_some_and(|other| other < key)
        });
        if let Some((_, other, _)) = earlier {
            let name = &world.task(next).name;
            let text = format!(
                "real-time task {name:?} runs before {:?}, which has the same priority and is \
                 before it in the queue",
                other.name
            );
            found.add(world.now, Some(cpu), Some(name), text);
        }
    }

    /// `prev` is preempted by `next`.
    fn check_out(
        &mut self,
        world: &World<'_>,
        cpu: CpuId,
        prev: TaskId,
        next: Option<TaskId>,
        found: &mut Found,
    ) {
        let seen = world.task(prev);
        let is_fifo = seen.attr.is_some_and(|attr| attr.policy == Policy::Fifo);
        let over = next.and_then(|next| world.task(next).attr);
        let is_equal = over.is_some() && rank(over) == rank(seen.attr);
        if !is_fifo || !is_equal || world.now > self.rt_free_ns {
            return;
        }
        let suspect = Suspect { task: prev, time_ns: world.now, cpu, ran_ns: seen.ran_ns };
        if self.exits_move {
            self.tail(prev);
            self.suspects.push(suspect);
        } else {
            suspect.accuse(world, found);
        }
    }

    /// A task leaves its CPU: if it exits, nothing that it did before counts against it. If it goes
    /// on with its program, all does.
    fn clear(&mut self, world: &World<'_>, task: TaskId, out: SwitchOut, found: &mut Found) {
        let mut own: Vec<Suspect> = self.suspects.extract_if(.., |one| one.task == task).collect();
        let goes_on = |suspect: &Suspect| {
            let ran_ns = world.task(task).ran_ns - suspect.ran_ns;
            out != SwitchOut::Preempted || ran_ns > EXIT_NS
        };
        if out == SwitchOut::Dead {
            return;
        }
        for suspect in own.extract_if(.., |suspect| goes_on(suspect)) {
            suspect.accuse(world, found);
        }
        self.suspects.extend(own);
    }
}

impl Suspect {
    fn accuse(&self, world: &World<'_>, found: &mut Found) {
        let name = &world.task(self.task).name;
        let text = format!("SCHED_FIFO task {name:?} is preempted by a task of the same priority");
        found.add(self.time_ns, Some(self.cpu), Some(name), text);
    }
}

impl Check for Order {
    fn event(&mut self, world: &World<'_>, event: &Event, found: &mut Found) {
        self.keys.resize(world.tasks.len(), None);
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                if let Some(prev) = prev {
                    self.clear(world, prev, out, found);
                    self.left(world, prev, next);
                    if out == SwitchOut::Preempted {
                        self.check_out(world, event.cpu, prev, next, found);
                    }
                }
                if let Some(next) = next {
                    self.check_in(world, event.cpu, next, found);
                }
            }
            EventKind::Wakeup { task, .. } | EventKind::Fork { task, .. } => {
                let state = world.task(task).state;
                let is_new = |since| since == world.now;
                if matches!(state, State::Waits { since, .. } if is_new(since)) {
                    self.tail(task);
                }
            }
            EventKind::Migrate { task, .. } => self.tail(task),
            EventKind::Phase { task, .. } => self.keys[task.index()] = None,
            _ => {}
        }
    }
}

struct RrSlice<'c> {
    context: Context<'c>,
    stays: Stays<(CpuId, TaskId)>,
}

/// Round robin ends slices.
pub(super) fn rr_slice<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let check = RrSlice { context: *context, stays: Stays::default() };
    has_rt_classes(context).then(|| Box::new(check) as Box<dyn Check + 'c>)
}

impl Check for RrSlice<'_> {
    /// A task may give way and run again at the same instant: an equal one only yields.
    fn event(&mut self, _world: &World<'_>, event: &Event, _found: &mut Found) {
        if matches!(event.kind, EventKind::Switch { .. }) {
            self.stays.end(|(cpu, _)| cpu == event.cpu);
        }
    }

    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        // The pairs are of a CPU whose running RR task has an equal rival, and of that task.
        let running = world.cpus.iter().filter_map(|cpu| {
            let id = world.running[cpu.index()]?;
            let attr = world.task(id).attr.filter(|attr| attr.policy == Policy::Rr)?;
            let mut waiting = world.waiting();
            let has_rival = waiting.any(|(_, task, place)| {
                place == cpu && task.attr.is_some_and(|other| rank(Some(other)) == rank(Some(attr)))
            });
            has_rival.then_some((cpu, id))
        });
        let pairs: Vec<_> = running.collect();
        let most = RR_SLICE_NS + 2 * self.context.tick_ns + self.context.kernel_ns();
        if let Some(((cpu, id), length)) =
            self.stays.update(pairs.into_iter(), (world.now, to), |_| most)
        {
            let name = &world.task(id).name;
            let text = format!(
                "SCHED_RR task {name:?} has run for {length} ns while an equal task waited; \
                 allowed are {most} ns"
            );
            found.add(to, Some(cpu), Some(name), text);
        }
    }
}

/// Real-time tasks may keep a CPU from fair ones for a period of 1 s, less what they must leave.
const RT_PERIOD_NS: Nanos = 1_000 * MS;

/// The time of real-time tasks in two periods: an earlier task may have started the first period,
/// so that they use the end of one and the whole of the next (`do_sched_rt_period_timer`).
const RT_TWICE_NS: Nanos = 1_900 * MS;

struct Limit<'c> {
    context: Context<'c>,
    stays: Stays<CpuId>,
    most_ns: Nanos,
}

/// Real-time tasks leave fair ones some time.
pub(super) fn limit<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let has_server = matches!(context.family, Family::Kernel(version)
        if version >= KernelVersion::release(6, 12, 0));
    let most_ns = if has_server { RT_PERIOD_NS } else { RT_TWICE_NS };
    let check = Limit { context: *context, stays: Stays::default(), most_ns };
    let is_fixed = !context.lends_priority() && !context.changes_rt_limit();
    let holds = matches!(context.family, Family::Kernel(_)) && is_fixed;
    holds.then(|| Box::new(check) as Box<dyn Check + 'c>)
}

impl Limit<'_> {
    /// Whether a real-time task runs on `cpu` and a fair one waits on its queue.
    fn keeps_out(&self, world: &World<'_>, cpu: CpuId) -> bool {
        let running = world.running[cpu.index()].and_then(|id| world.task(id).attr);
        running.is_some_and(|attr| attr.policy.is_rt())
            && world.waiting().any(|(_, task, place)| {
                let attr = task.attr.filter(|attr| attr.policy.is_fair());
                place == cpu && attr.is_some_and(|attr| !self.context.is_limited(attr.cgroup))
            })
    }
}

impl Check for Limit<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        let kept: Vec<CpuId> =
            world.cpus.iter().filter(|cpu| self.keeps_out(world, *cpu)).collect();
        let most = self.most_ns + 2 * self.context.tick_ns + self.context.kernel_ns();
        let stay = self.stays.update(kept.into_iter(), (world.now, to), |_| most);
        if let Some((cpu, length)) = stay {
            let text = format!(
                "CPU {cpu} has run real-time tasks for {length} ns while fair tasks waited there; \
                 allowed are {most} ns"
            );
            found.add(to, Some(cpu), None, text);
        }
    }
}
