// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ideal machine for measuring lag: its CPUs are infinitely divisible.
//!
//! Rule: at each moment the runnable tasks share the capacity of the CPUs in proportion to their
//! weights. No task gets more than one CPU; the others share what such a task leaves. With control
//! groups, the tasks and groups of the root share the capacity in that way, and then each group's
//! members share its part. A group gets at most as many CPUs as it has runnable tasks. A group
//! without a runnable task gets nothing.
//!
//! Source: one CPU: Generalised Processor Sharing (A. Parekh, R. Gallager, IEEE/ACM Transactions on
//! Networking 1993). Several: Generalised Multiprocessor Sharing (A. Chandra, M. Adler, P. Goyal,
//! P. Shenoy, Surplus Fair Scheduling, OSDI 2000, section 2). Groups: J. Bennett, H. Zhang,
//! Hierarchical packet fair queueing algorithms, SIGCOMM 1996.
//!
//! Arithmetic: integers. A rate is rounded down to 2^-48 CPU, so the error of a task's service is
//! less than 1 ns in three days. Tasks of the same group and weight have the same rate and form one
//! class. The cost of a change is proportional to the number of classes and groups.

use super::context::GroupFacts;
use schedlab_model::Nanos;
use std::collections::BTreeMap;

/// Binary places of a rate.
const PLACES: u32 = 48;
/// A whole CPU.
const ONE: u128 = 1 << PLACES;

/// Tasks of one group and weight.
#[derive(Clone, Debug)]
struct Class {
    weight: u64,
    nr_active: u64,
    /// Rate of each of its tasks, in 2^-48 CPU.
    rate: u128,
    /// Service of a task that is runnable from the beginning, in 2^-48 ns.
    served: u128,
}

#[derive(Clone, Debug)]
struct Group {
    parent: usize,
    weight: u64,
    /// Number of runnable tasks in the group and below.
    nr_active: u64,
    classes: Vec<usize>,
    children: Vec<usize>,
}

/// A sharer of a group's capacity.
#[derive(Clone, Copy, Debug)]
enum Who {
    Class(usize),
    Group(usize),
}

/// A share in a group's capacity.
#[derive(Clone, Copy, Debug)]
struct Share {
    who: Who,
    weight: u64,
    /// Number of sharers with this weight and cap.
    count: u64,
    /// Maximum rate of each of them.
    cap: u128,
}

/// The ideal machine.
#[derive(Clone, Debug)]
pub(crate) struct Fluid {
    capacity: u128,
    groups: Vec<Group>,
    classes: Vec<Class>,
    known: BTreeMap<(u32, u64), usize>,
    now: Nanos,
    /// Whether the rates are out of date.
    is_stale: bool,
}

impl Fluid {
    pub fn new(nr_cpus: u32, groups: &[GroupFacts]) -> Self {
        let mut own: Vec<Group> = groups
            .iter()
            .map(|facts| Group {
                parent: facts.parent as usize,
                weight: facts.weight.max(1),
                nr_active: 0,
                classes: Vec::new(),
                children: Vec::new(),
            })
            .collect();
        for group in 1..own.len() {
            let parent = own[group].parent.min(group - 1);
            own[group].parent = parent;
            own[parent].children.push(group);
        }
        Self {
            capacity: u128::from(nr_cpus) << PLACES,
            groups: own,
            classes: Vec::new(),
            known: BTreeMap::new(),
            now: 0,
            is_stale: false,
        }
    }

    /// The class of tasks with this group and weight.
    pub fn class(&mut self, group: u32, weight: u64) -> usize {
        let group = if (group as usize) < self.groups.len() { group } else { 0 };
        let next = self.classes.len();
        let class = *self.known.entry((group, weight)).or_insert(next);
        if class == next {
            self.groups[group as usize].classes.push(class);
            let weight = weight.max(1);
            self.classes.push(Class { weight, nr_active: 0, rate: 0, served: 0 });
        }
        class
    }

    /// Records that a task of the group and its class becomes runnable, or stops being so.
    pub fn set_active(&mut self, now: Nanos, group: u32, class: usize, is_active: bool) {
        self.advance(now);
        self.is_stale = true;
        let step = |count: u64| if is_active { count + 1 } else { count.saturating_sub(1) };
        self.classes[class].nr_active = step(self.classes[class].nr_active);
        let mut at = if (group as usize) < self.groups.len() { group as usize } else { 0 };
        loop {
            self.groups[at].nr_active = step(self.groups[at].nr_active);
            if at == 0 {
                break;
            }
            at = self.groups[at].parent;
        }
    }

    /// Service up to `now` of a task of the class that is always runnable, in 2^-48 ns. The
    /// difference of two values is the service of a task that is runnable in between.
    pub fn served(&mut self, now: Nanos, class: usize) -> u128 {
        self.advance(now);
        self.classes[class].served
    }

    /// Whole nanoseconds of an amount of service, rounded down.
    pub const fn whole_ns(service: u128) -> Nanos {
        (service >> PLACES) as Nanos
    }

    fn advance(&mut self, now: Nanos) {
        let past = now.saturating_sub(self.now);
        if past == 0 {
            return;
        }
        if std::mem::replace(&mut self.is_stale, false) {
            self.set_rates();
        }
        for class in self.classes.iter_mut().filter(|class| class.nr_active > 0) {
            class.served += class.rate * u128::from(past);
        }
        self.now = now;
    }

    fn set_rates(&mut self) {
        let mut left = vec![(0, self.capacity)];
        while let Some((group, capacity)) = left.pop() {
            for (who, rate) in divide(self.shares(group), capacity) {
                match who {
                    Who::Class(class) => self.classes[class].rate = rate,
                    Who::Group(child) => left.push((child, rate)),
                }
            }
        }
    }

    /// The present sharers of a group's capacity.
    fn shares(&self, group: usize) -> Vec<Share> {
        let group = &self.groups[group];
        let classes = group.classes.iter().map(|&index| {
            let class = &self.classes[index];
            let who = Who::Class(index);
            Share { who, weight: class.weight, count: class.nr_active, cap: ONE }
        });
        let children = group.children.iter().map(|&index| {
            let child = &self.groups[index];
            let cap = u128::from(child.nr_active) << PLACES;
            let count = u64::from(child.nr_active > 0);
            Share { who: Who::Group(index), weight: child.weight, count, cap }
        });
        classes.chain(children).filter(|share| share.count > 0).collect()
    }
}

/// Divides a capacity by weight; no sharer gets more than its cap. Sharers with the smallest cap
/// for their weight come first: once one of them stays below its cap, all after it do.
fn divide(mut shares: Vec<Share>, mut capacity: u128) -> Vec<(Who, u128)> {
    shares.sort_by(|a, b| (a.cap * u128::from(b.weight)).cmp(&(b.cap * u128::from(a.weight))));
    let weigh = |share: &Share| u128::from(share.weight) * u128::from(share.count);
    let mut weight: u128 = shares.iter().map(weigh).sum();
    let grant = |share: Share| {
        let part = capacity * u128::from(share.weight) / weight.max(1);
        if part < share.cap {
            return (share.who, part);
        }
        capacity = capacity.saturating_sub(share.cap * u128::from(share.count));
        weight -= weigh(&share);
        (share.who, share.cap)
    };
    shares.into_iter().map(grant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose tasks, given as group and weight, are all runnable from 0 on. Returns the
    /// service of each at 1,200 ns.
    fn shared(nr_cpus: u32, groups: &[GroupFacts], tasks: &[(u32, u64)]) -> Vec<Nanos> {
        let mut fluid = Fluid::new(nr_cpus, groups);
        let classes: Vec<usize> = tasks.iter().map(|task| fluid.class(task.0, task.1)).collect();
        for (task, class) in tasks.iter().zip(&classes) {
            fluid.set_active(0, task.0, *class, true);
        }
        // Rounding down may lose the last nanosecond.
        let whole = |class: &usize| Fluid::whole_ns(fluid.served(1_200, *class) + (1 << 40));
        classes.iter().map(whole).collect()
    }

    const ROOT: [GroupFacts; 1] = [GroupFacts::ROOT];

    #[test]
    fn one_cpu_is_shared_by_weight() {
        assert_eq!(shared(1, &ROOT, &[(0, 1024), (0, 1024), (0, 2048)]), [300, 300, 600]);
    }

    /// The weight of the heavy task is worth 2 x 10/12 CPUs, but it can use only one; the others
    /// share the rest (the example of Surplus Fair Scheduling, section 1.2, with one more task).
    #[test]
    fn no_task_gets_more_than_a_cpu() {
        assert_eq!(shared(2, &ROOT, &[(0, 10), (0, 1), (0, 1)]), [1_200, 600, 600]);
        assert_eq!(shared(4, &ROOT, &[(0, 5), (0, 1)]), [1_200, 1_200]);
    }

    /// Two groups of equal weight with three tasks and one: the single task gets half, each of the
    /// three a sixth. With four CPUs the single task can use only one, and the others have one
    /// each.
    #[test]
    fn groups_share_first() {
        let group = GroupFacts { parent: 0, weight: 1024, is_limited: false };
        let groups = [GroupFacts::ROOT, group, group];
        let tasks = [(1, 1024), (1, 1024), (1, 1024), (2, 15)];
        assert_eq!(shared(1, &groups, &tasks), [200, 200, 200, 600]);
        assert_eq!(shared(4, &groups, &tasks), [1_200; 4]);
        assert_eq!(shared(2, &groups, &tasks), [400, 400, 400, 1_200]);
    }

    /// A group within a group, and a task next to it: 1/2 for the task, 1/4 for each of the others.
    #[test]
    fn groups_nest() {
        let inner = GroupFacts { parent: 1, weight: 1024, is_limited: false };
        let groups = [GroupFacts::ROOT, GroupFacts { parent: 0, ..inner }, inner];
        assert_eq!(shared(1, &groups, &[(0, 1024), (1, 1024), (2, 1024)]), [600, 300, 300]);
    }

    /// A sleeping task gets nothing, and the others take its share at once.
    #[test]
    fn shares_follow_who_is_runnable() {
        let mut fluid = Fluid::new(1, &ROOT);
        let class = fluid.class(0, 1024);
        fluid.set_active(0, 0, class, true);
        fluid.set_active(100, 0, class, true);
        fluid.set_active(300, 0, class, false);
        assert_eq!(Fluid::whole_ns(fluid.served(350, class)), 100 + 100 + 50);
    }
}
