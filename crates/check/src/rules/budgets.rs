// SPDX-License-Identifier: MIT OR Apache-2.0
//! Budgets of CPU time: SCHED_DEADLINE and cpu.max.

use super::{Check, Context, Found};
use crate::subject::Family;
use crate::world::World;
use schedlab_model::program::SchedTunable;
use schedlab_model::time::NSEC_PER_MSEC as MS;
use schedlab_model::{CgroupId, Nanos, Policy, SchedAttr, TaskId};

/// What a CPU takes from the pool of a group at once (sched_cfs_bandwidth_slice).
const BANDWIDTH_SLICE_NS: Nanos = 5 * MS;

/// CPU time beyond a rate of `budget` in each `period`: a bucket that leaks at that rate. Its level
/// is the most that any span up to now got beyond its due, times `period`.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    budget: Nanos,
    period: Nanos,
    level: u128,
}

impl Bucket {
    const fn new(budget: Nanos, period: Nanos) -> Self {
        Self { budget, period, level: 0 }
    }

    /// `span` passes, in which `ran` of CPU time is used.
    fn pass(&mut self, span: Nanos, ran: Nanos) {
        let more = u128::from(ran) * u128::from(self.period);
        let less = u128::from(span) * u128::from(self.budget);
        self.level = (self.level + more).saturating_sub(less);
    }

    /// The level as a time.
    fn excess(&self) -> Nanos {
        (self.level / u128::from(self.period)) as Nanos
    }
}

struct Deadline<'c> {
    context: Context<'c>,
    buckets: Vec<Option<Bucket>>,
}

/// Runtimes of SCHED_DEADLINE.
pub(super) fn deadline<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let holds = matches!(context.family, Family::Kernel(_) | Family::Native);
    let is_used = context.workload().tasks.iter().any(|task| task.attr.policy == Policy::Deadline);
    let check = Deadline { context: *context, buckets: Vec::new() };
    (holds && is_used && !context.lends_priority()).then(|| Box::new(check) as Box<dyn Check + 'c>)
}

fn bucket_of(attr: &SchedAttr) -> Option<Bucket> {
    let dl = &attr.deadline;
    let is_bound = attr.policy == Policy::Deadline && !dl.reclaim;
    is_bound.then(|| Bucket::new(dl.runtime_ns, dl.period_ns))
}

impl Check for Deadline<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        self.buckets.resize(world.tasks.len(), None);
        let span = to - world.now;
        let slack = 2 * self.context.tick_ns + self.context.kernel_ns();
        for (id, task) in world.each() {
            let Some(attr) = task.attr else { continue };
            let slot = &mut self.buckets[id.index()];
            if slot.is_none() {
                *slot = bucket_of(attr);
            }
            let Some(bucket) = slot else { continue };
            let runs = is_running(world, id);
            bucket.pass(span, if runs { span } else { 0 });
            let most = 2 * bucket.budget + slack;
            if bucket.excess() > most {
                let text = format!(
                    "SCHED_DEADLINE task {:?} got {} ns beyond {} ns in each {} ns; allowed are \
                     {most} ns",
                    task.name,
                    bucket.excess(),
                    bucket.budget,
                    bucket.period
                );
                found.add(to, None, Some(&task.name), text);
            }
        }
    }
}

fn is_running(world: &World<'_>, id: TaskId) -> bool {
    matches!(world.task(id).state, crate::world::State::Runs { .. })
}

struct Quota<'c> {
    context: Context<'c>,
    buckets: Vec<(CgroupId, Bucket)>,
    /// A task left or joined a group at an unknown time.
    is_blind: bool,
}

/// Quotas of groups.
pub(super) fn quota<'c>(context: &Context<'c>) -> Option<Box<dyn Check + 'c>> {
    let groups = context.workload().cgroups.iter().enumerate();
    let buckets: Vec<(CgroupId, Bucket)> = groups
        .filter_map(|(id, group)| {
            let (limit, id) = (group.cpu_max?, CgroupId(id as u32));
            // Each change refills the pool.
            if context.changes_limit(id) {
                return None;
            }
            Some((id, Bucket::new(limit.quota_ns, limit.period_ns)))
        })
        .collect();
    let check = Quota { context: *context, buckets, is_blind: false };
    (!check.buckets.is_empty()).then(|| Box::new(check) as Box<dyn Check + 'c>)
}

impl Quota<'_> {
    /// Most time that a CPU takes at once.
    fn slice_ns(&self) -> Nanos {
        let tuned = self.context.tuned(SchedTunable::BandwidthSlice).max();
        tuned.unwrap_or(0).max(BANDWIDTH_SLICE_NS)
    }

    /// Whether `group` is `above` or below it.
    fn is_within(&self, mut group: CgroupId, above: CgroupId) -> bool {
        let groups = &self.context.workload().cgroups;
        while group != above && group.index() != 0 {
            group = groups[group.index()].parent;
        }
        group == above
    }
}

impl Check for Quota<'_> {
    fn pass(&mut self, world: &World<'_>, to: Nanos, found: &mut Found) {
        let span = to - world.now;
        let running: Vec<Option<&SchedAttr>> =
            world.running.iter().flatten().map(|id| world.task(*id).attr).collect();
        self.is_blind |= running.iter().any(Option::is_none);
        if self.is_blind {
            return;
        }
        let slack = u64::from(self.context.nr_cpus())
            * (self.slice_ns() + 2 * self.context.tick_ns + self.context.kernel_ns());
        for index in 0..self.buckets.len() {
            let (group, mut bucket) = self.buckets[index];
            let is_in =
                |attr: &&&SchedAttr| attr.policy.is_fair() && self.is_within(attr.cgroup, group);
            let count = running.iter().flatten().filter(is_in).count() as u64;
            bucket.pass(span, count * span);
            self.buckets[index].1 = bucket;
            let limit = &self.context.workload().cgroups[group.index()];
            let burst = limit.cpu_max.map_or(0, |limit| limit.burst_ns);
            let most = 2 * (bucket.budget + burst) + slack;
            if bucket.excess() > most {
                let text = format!(
                    "group {:?} got {} ns beyond its {} ns in each {} ns; allowed are {most} ns",
                    limit.path,
                    bucket.excess(),
                    bucket.budget,
                    bucket.period
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
    fn a_bucket_keeps_what_is_beyond_its_rate() {
        let mut bucket = Bucket::new(10, 100);
        bucket.pass(100, 10);
        assert_eq!(bucket.excess(), 0);
        bucket.pass(50, 50);
        assert_eq!(bucket.excess(), 45);
        bucket.pass(1_000, 0);
        assert_eq!(bucket.excess(), 0);
    }
}
