// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how much to move between two groups of CPUs.
//!
//! The amount raises the lower group to the average and keeps the higher group at or above it. If
//! the difference is less than a task, one task moves if both groups together then get more work
//! done. From 2.6.23 on, it also moves if a difference of 1024 more (the weight of a task of nice
//! 0) would justify it.
//!
//! Source: Linux 2.6.11, 2.6.22.19, 2.6.23.17 and 2.6.24, kernel/sched.c (`find_busiest_group`),
//! and 2.6.32.67 (`find_busiest_group`, `calculate_imbalance`, `fix_small_imbalance`).

use super::Idle;
use super::versions::Version;

/// Sums over a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub group: usize,
    /// Sum of the loads, then this sum for each CPU's worth of power.
    pub group_load: u64,
    pub load: u64,
    pub power: u64,
    pub nr_running: u64,
    /// Sum of the present weights.
    pub weight: u64,
    /// Number of tasks for which the group has power.
    pub capacity: u64,
    /// Whether the loads of its CPUs differ much.
    pub is_uneven: bool,
    pub idle_cpus: u64,
    pub nr_cpus: u64,
    /// Power of one CPU.
    scale: u64,
}

impl Sum {
    /// The sum of a group before any of its CPUs is added.
    pub fn empty(version: &Version, group: usize, power: u64, nr_cpus: u32) -> Self {
        let scale = version.scale;
        let rounding = if version.counts_capacity { scale / 2 } else { 0 };
        Self {
            group,
            group_load: 0,
            load: 0,
            power,
            nr_running: 0,
            weight: 0,
            capacity: (power + rounding) / scale,
            is_uneven: false,
            idle_cpus: 0,
            nr_cpus: u64::from(nr_cpus),
            scale,
        }
    }

    /// Whether it has power for another task.
    pub const fn has_capacity(&self) -> bool {
        self.capacity > self.nr_running
    }

    /// `load` for each CPU's worth of power.
    pub const fn for_power(&self, load: u64, is_32_bit: bool) -> u64 {
        let scaled = load * self.scale;
        (if is_32_bit { scaled as u32 as u64 } else { scaled }) / self.power
    }

    const fn scaled(&self, load: u64) -> u64 {
        self.for_power(load, false)
    }

    /// How much of `load` the group gets done: no more than its power.
    fn work(&self, load: u64, per_task: u64) -> u64 {
        self.power * load.min(per_task)
    }
}

/// Whether the loads differ enough to move anything.
const fn differs(here: &Sum, busiest: &Sum, average: u64, pct: u64) -> bool {
    here.load < busiest.load && here.load < average && 100 * busiest.load > pct * here.load
}

/// Whether moving load `per_task` from the busiest group increases throughput by at least `least`.
fn gains(here: &Sum, busiest: &Sum, [per_task, own_task]: [u64; 2], least: u64) -> bool {
    let scale = here.scale;
    let now = busiest.work(busiest.load, per_task) + here.work(here.load, own_task);
    let taken = busiest.scaled(per_task);
    let left = match busiest.load > taken {
        true => busiest.work(busiest.load - taken, per_task),
        false => 0,
    };
    let added = match busiest.load * busiest.power < per_task * scale {
        true => busiest.load * busiest.power / here.power,
        false => here.scaled(per_task),
    };
    let then = left + here.work(here.load + added, own_task);
    then / scale >= now / scale + least
}

/// Number of tasks to move (2.6.11).
pub(super) fn tasks(here: &Sum, busiest: &Sum, average: u64, pct: u64, idle: Idle) -> Option<u64> {
    let scale = here.scale;
    // A CPU that would run nothing takes a task even if the loads differ too little.
    let anyway = idle == Idle::Newly || (idle == Idle::AtTick && busiest.load > scale);
    let anyway = anyway.then_some(1);
    if !differs(here, busiest, average, pct) {
        return anyway;
    }
    let gap = (busiest.load - average).min(average - here.load);
    let load = gap * busiest.power.min(here.power) / scale;
    if load >= scale - 1 {
        return Some((load + 1) / scale);
    }
    let is_more = busiest.load - here.load >= 2 * scale;
    if is_more || gains(here, busiest, [scale; 2], scale / 8) { Some(1) } else { anyway }
}

/// Weight to move (2.6.22 to 2.6.24).
pub(super) fn weight(
    version: &Version,
    here: &Sum,
    busiest: &Sum,
    average: u64,
    pct: u64,
) -> Option<u64> {
    if !differs(here, busiest, average, pct) {
        return None;
    }
    let per_task = busiest.weight / busiest.nr_running;
    let per_task = if busiest.is_uneven { per_task.min(average) } else { per_task };
    if busiest.load <= per_task {
        return None;
    }
    // Groups within their power do not count as busiest, so the busiest one may be below the
    // average.
    let imbalance = busiest.load.checked_sub(average).map_or(0, |above| {
        let pull = above.min(busiest.load - per_task);
        (pull * busiest.power).min((average - here.load) * here.power) / version.scale
    });
    if imbalance >= per_task {
        return Some(imbalance);
    }
    let tasks = [per_task, version.scale];
    match small_imbalance(here, busiest, tasks, [per_task, version.fuzz]) {
        0 if version.drops_small_imbalance => None,
        small => Some(imbalance.max(small)),
    }
}

/// The CPU that searches.
#[derive(Clone, Copy)]
pub(super) struct Looking {
    pub idle: Idle,
    pub runs_nothing: bool,
    /// Average weight of its tasks.
    pub load_per_task: u64,
}

/// Weight to move (2.6.32).
pub(super) fn weight_by_capacity(
    here: &Sum,
    busiest: &Sum,
    average: u64,
    pct: u64,
    looking: Looking,
) -> Option<u64> {
    let is_newly = looking.idle == Idle::Newly;
    let forced = is_newly && here.has_capacity() && !busiest.has_capacity();
    if !forced {
        if here.load >= busiest.load || here.load >= average {
            return None;
        }
        if is_newly || !looking.runs_nothing {
            if 100 * busiest.load <= pct * here.load {
                return None;
            }
        } else if here.idle_cpus <= busiest.idle_cpus + 1 && busiest.nr_running <= busiest.nr_cpus {
            return None;
        }
    }
    // A forced search has not computed the average, so it is 0.
    let average = if forced { 0 } else { average };
    let per_task = busiest.weight / busiest.nr_running;
    let per_task = if busiest.is_uneven { per_task.min(average) } else { per_task };
    let small = || {
        let scaled = busiest.scaled(per_task);
        small_imbalance(here, busiest, [per_task, looking.load_per_task], [scaled, scaled])
    };
    if busiest.load < average {
        return Some(small());
    }
    let above_capacity = match busiest.is_uneven {
        true => u64::MAX,
        false => {
            let excess = busiest.nr_running.saturating_sub(busiest.capacity);
            excess * here.scale * here.scale / busiest.power
        }
    };
    let pull = (busiest.load - average).min(above_capacity);
    let room = average.wrapping_sub(here.load).saturating_mul(here.power);
    let imbalance = pull.saturating_mul(busiest.power).min(room) / here.scale;
    Some(if imbalance < per_task { imbalance.max(small()) } else { imbalance })
}

/// The weight of a task, if a difference of less than a task is a reason to move one; otherwise 0.
/// `[of_task, fuzz]`: the loads must differ by this many tasks, after adding the second number to
/// the difference; 2.6.32 scales both by power. `idle_task` is the weight assumed for a task if
/// none runs.
fn small_imbalance(
    here: &Sum,
    busiest: &Sum,
    [per_task, idle_task]: [u64; 2],
    [of_task, fuzz]: [u64; 2],
) -> u64 {
    let own_task = here.weight.checked_div(here.nr_running);
    let tasks = if own_task.is_some_and(|own| per_task > own) { 1 } else { 2 };
    let own_task = own_task.unwrap_or(idle_task);
    let is_more =
        busiest.load.wrapping_sub(here.load).wrapping_add(fuzz) >= of_task.wrapping_mul(tasks);
    if is_more || gains(here, busiest, [per_task, own_task], 1) { per_task } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::versions::*;
    use super::*;

    /// A group of one CPU of this load, in tasks of nice 0.
    fn sum(version: &Version, load: u64, nr_running: u64) -> Sum {
        let scale = version.scale;
        let load = load * scale;
        let empty = Sum::empty(version, 0, scale, 1);
        Sum { group_load: load, load, nr_running, weight: load, ..empty }
    }

    #[test]
    fn section_3_11_tasks_to_move_of_2_6_11() {
        let tasks = |here: u64, there: u64, idle| {
            let (here, there) = (sum(&LINUX_2_6_11, here, here), sum(&LINUX_2_6_11, there, there));
            tasks(&here, &there, (here.load + there.load) / 2, 125, idle)
        };
        assert_eq!(tasks(1, 3, Idle::Not), Some(1));
        assert_eq!(tasks(1, 7, Idle::Not), Some(3));
        assert_eq!(tasks(4, 5, Idle::Not), None, "500 is not more than 125 * 4");
        assert_eq!(tasks(1, 2, Idle::Not), None, "half a task, and no power is gained");
        assert_eq!(tasks(0, 2, Idle::AtTick), Some(1));
        assert_eq!(tasks(1, 2, Idle::Newly), Some(1), "anyway");
        assert_eq!(tasks(0, 1, Idle::AtTick), None, "it runs already");
    }

    /// The weight to move with these numbers of nice-0 tasks on two CPUs.
    fn weight_of(version: &Version, here: u64, there: u64) -> Option<u64> {
        let (here, there) = (sum(version, here, here), sum(version, there, there));
        weight(version, &here, &there, (here.load + there.load) / 2, 125)
    }

    #[test]
    fn section_5_3_weight_to_move() {
        for version in [LINUX_2_6_23, LINUX_2_6_24] {
            let weight = |here, there| weight_of(&version, here, there);
            assert_eq!(weight(1, 3), Some(1024));
            assert_eq!(weight(1, 7), Some(3 * 1024));
            assert_eq!(weight(0, 2), Some(1024));
            assert_eq!(weight(4, 5), None, "500 is not more than 125 * 4");
            // 2.6.22 would not move it: a difference of one task counts as two with the fuzz.
            assert_eq!(weight(1, 2), Some(1024));
            assert_eq!(weight(0, 1), None, "it runs already");
        }
    }

    #[test]
    fn section_3_11_weight_to_move_of_2_6_22() {
        let version = &LINUX_2_6_22;
        let of = |here, there| weight_of(version, here, there);
        assert_eq!(of(1, 3), Some(128));
        assert_eq!(of(1, 7), Some(3 * 128));
        assert_eq!(of(4, 5), None);
        assert_eq!(of(1, 2), None);
        assert_eq!(of(0, 1), None);
        // One task of nice -20 weighs more than its CPU must give away.
        let (none, heavy) = (sum(version, 0, 0), sum(version, 8, 1));
        assert_eq!(weight(version, &none, &heavy, 512, 125), None);
        // Groups within their power do not count as busiest, so the busiest one may be below the
        // average. With two tasks of nice 0 there and none here, one moves; with one of nice -9 and
        // one of nice 0, none moves.
        let two = sum(version, 2, 2);
        assert_eq!(weight(version, &none, &two, 3 * 128, 125), Some(128));
        assert_eq!(weight(version, &sum(version, 1, 1), &two, 3 * 128, 125), None);
    }

    #[test]
    fn a_heavy_task_stays() {
        let heavy = Sum { load: 88_761, weight: 88_761, ..sum(&LINUX_2_6_24, 0, 1) };
        let none = sum(&LINUX_2_6_24, 0, 0);
        assert_eq!(weight(&LINUX_2_6_24, &none, &heavy, 44_380, 125), None);
    }

    #[test]
    fn loads_are_reckoned_in_32_bits() {
        for version in [LINUX_2_6_22, LINUX_2_6_23, LINUX_2_6_24, LINUX_2_6_32] {
            let one = sum(&version, 1, 1);
            let load = |tasks: u64| one.for_power(tasks * version.scale, version.is_32_bit);
            assert_eq!(load(3), 3 * version.scale);
            // This many tasks of nice 0 overflow to 0, except under 2.6.32.
            let tasks = (1 << 32) / (version.scale * version.scale);
            assert_eq!(load(tasks) == 0, version != LINUX_2_6_32);
        }
    }
}
