// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time that a task or group must get while it asks for it: the runtime of SCHED_DEADLINE, and
//! the quota of cpu.max.

use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::{State, World};
use schedlab_model::{CgroupId, Nanos, Op, Policy, TaskId};

/// CPU time that is missing: `budget` is due in each `period`. Its level is the most that any span
/// up to now lacks, times `period`.
#[derive(Clone, Copy, Debug)]
struct Debt {
    budget: Nanos,
    period: Nanos,
    level: u128,
}

impl Debt {
    const fn new(budget: Nanos, period: Nanos) -> Self {
        Self { budget, period, level: 0 }
    }

    /// `span` passes, in which the time is due and `ran` of it is given.
    fn pass(&mut self, span: Nanos, ran: Nanos) {
        let more = u128::from(span) * u128::from(self.budget);
        let less = u128::from(ran) * u128::from(self.period);
        self.level = (self.level + more).saturating_sub(less);
    }

    /// The level as a time.
    fn missing(&self) -> Nanos {
        (self.level / u128::from(self.period)) as Nanos
    }
}

/// Most of the CPU that SCHED_DEADLINE tasks may ask for (percent), if interrupts and switches cost
/// time: what is left pays for these.
const ASKED_PERCENT: u64 = 75;

struct Served<'c> {
    context: Context<'c>,
    nr_deadline: u64,
    debts: Vec<Option<Debt>>,
}

/// The runtime of SCHED_DEADLINE tasks, on one CPU. There the earliest deadline first gives it, if
/// deadlines are as long as periods.
pub(super) fn served<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let workload = context.workload();
    let asked: Vec<_> = workload
        .tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| is_deadline(task.attr.policy))
        .collect();
    let is_plain = asked.iter().all(|(spec, task)| {
        let dl = &task.attr.deadline;
        let leaves = |op: &Op| matches!(op, Op::Yield | Op::SetAttr(_));
        dl.deadline_ns == dl.period_ns && task.instances == 1 && !context.has_op(*spec, leaves)
    });
    let percent: u64 = asked
        .iter()
        .map(|(_, task)| task.attr.deadline.runtime_ns * 100 / task.attr.deadline.period_ns.max(1))
        .sum();
    let changes = context.attrs().filter(|attr| is_deadline(attr.policy)).count() > asked.len();
    let holds = matches!(context.family, Family::Kernel(_))
        && context.nr_cpus() == 1
        && context.subject.outside_ns == 0
        && !context.lends_priority();
    let nr_deadline = asked.len() as u64;
    let may = holds && is_plain && !changes && nr_deadline > 0 && percent <= ASKED_PERCENT;
    let check = Served { context: *context, nr_deadline, debts: Vec::new() };
    may.then(|| Box::new(check) as Box<dyn Check + 'c>)
}

fn is_deadline(policy: Policy) -> bool {
    policy == Policy::Deadline
}

impl Served<'_> {
    /// Periods may begin just before the span, and end just after it. Tasks run up to a tick more
    /// than their runtime, and pay it back.
    fn most(&self, debt: &Debt) -> Nanos {
        let ticks = (self.nr_deadline + 2) * self.context.tick_ns;
        3 * debt.budget + ticks + self.context.kernel_ns()
    }
}

impl Check for Served<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        self.debts.resize(world.tasks.len(), None);
        let span = to - world.now;
        for (id, task) in world.each() {
            let Some(attr) = task.attr.filter(|attr| is_deadline(attr.policy)) else { continue };
            if !task.is_runnable() {
                self.debts[id.index()] = None;
                continue;
            }
            let dl = &attr.deadline;
            let mut debt = self.debts[id.index()].unwrap_or(Debt::new(dl.runtime_ns, dl.period_ns));
            let ran = if matches!(task.state, State::Runs { .. }) { span } else { 0 };
            debt.pass(span, ran);
            self.debts[id.index()] = Some(debt);
            let most = self.most(&debt);
            if debt.missing() > most {
                let text = format!(
                    "SCHED_DEADLINE task {:?} lacks {} ns of its {} ns in each {} ns, although it \
                     is runnable; allowed are {most} ns",
                    task.name,
                    debt.missing(),
                    debt.budget,
                    debt.period
                );
                found.add(to, None, Some(&task.name), text);
            }
        }
    }
}

struct Given<'c> {
    context: Context<'c>,
    debts: Vec<(CgroupId, Debt)>,
}

/// The quota of groups, on one CPU that nobody else wants.
pub(super) fn given<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let groups = &context.workload().cgroups;
    let debts: Vec<(CgroupId, Debt)> = groups
        .iter()
        .enumerate()
        .filter_map(|(id, group)| {
            let (limit, id) = (group.cpu_max?, CgroupId(id as u32));
            // A CPU asks for more at ticks, and what was refilled in between is lost.
            if limit.period_ns < 2 * context.tick_ns {
                return None;
            }
            let budget = limit.quota_ns.min(limit.period_ns);
            Some((id, Debt::new(budget, limit.period_ns)))
        })
        .collect();
    let changes = (1..groups.len() as u32).any(|id| context.changes_limit(CgroupId(id)));
    let holds = matches!(context.family, Family::Kernel(_))
        && context.nr_cpus() == 1
        && context.subject.outside_ns == 0
        && !changes
        && context.attrs().all(|attr| attr.policy.is_fair());
    let nr_limits = groups.iter().filter(|group| group.cpu_max.is_some()).count();
    let check = Given { context: *context, debts };
    // Of several limits the least one counts, which may be above or below.
    (holds && nr_limits == 1 && !check.debts.is_empty())
        .then(|| Box::new(check) as Box<dyn Check + 'c>)
}

impl Given<'_> {
    fn is_within(&self, mut group: CgroupId, above: CgroupId) -> bool {
        let groups = &self.context.workload().cgroups;
        while group != above && group.index() != 0 {
            group = groups[group.index()].parent;
        }
        group == above
    }

    /// Whether tasks of `group` are runnable, and no others. `None`: the group of one is unknown.
    fn is_alone(&self, world: &World<'_>, group: CgroupId) -> Option<bool> {
        let mut wants = false;
        for (_, task) in world.each().filter(|(_, task)| task.is_runnable()) {
            if !self.is_within(task.attr?.cgroup, group) {
                return Some(false);
            }
            wants = true;
        }
        Some(wants)
    }
}

impl Check for Given<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        let span = to - world.now;
        let running: Option<TaskId> = world.running[0];
        let slack = 2 * self.context.tick_ns + self.context.kernel_ns();
        for index in 0..self.debts.len() {
            let (group, mut debt) = self.debts[index];
            match self.is_alone(world, group) {
                Some(true) => debt.pass(span, if running.is_some() { span } else { 0 }),
                _ => debt.level = 0,
            }
            self.debts[index].1 = debt;
            let most = 2 * debt.budget + slack;
            if debt.missing() > most {
                let text = format!(
                    "group {:?} lacks {} ns of its {} ns in each {} ns, although nobody else wants \
                     the CPU; allowed are {most} ns",
                    self.context.workload().cgroups[group.index()].path,
                    debt.missing(),
                    debt.budget,
                    debt.period
                );
                found.add(to, None, None, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_grows_until_it_is_paid() {
        let mut debt = Debt::new(10, 100);
        debt.pass(100, 0);
        assert_eq!(debt.missing(), 10);
        debt.pass(100, 15);
        assert_eq!(debt.missing(), 5);
        debt.pass(100, 100);
        assert_eq!(debt.missing(), 0);
    }
}
