// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unit tests of [`super::eevdf`]: states set by hand, results to the nanosecond.

use super::average::div_floor;
use super::rbtree::NIL;
use super::rules::Rules;
use super::testing::queued;
use super::weights::LoadWeight;
use super::{FairClass, Wake};
use crate::boundary::class::SchedClass;
use crate::boundary::core::Core;
use crate::boundary::flags::DequeueFlags;
use schedlab_model::{CpuId, SchedAttr, TaskId};

/// Gives a waiting entity these values.
fn put(class: &mut FairClass, e: u32, vruntime: u64, deadline: u64) {
    class.tree_remove(0, e);
    class.ent_mut(e).vruntime = vruntime;
    class.ent_mut(e).deadline = deadline;
    class.tree_insert(0, e);
}

#[test]
fn section_2_2_average_vruntime_and_eligibility() {
    let (mut class, _) = queued(Rules::LINUX_6_12, 8, &[0, 5]);
    put(&mut class, 0, 10_000_000, 20_000_000);
    put(&mut class, 1, 16_000_000, 20_000_000);
    assert_eq!(class.avg_vruntime(0), 11_479_028);
    assert!(class.entity_eligible(0, 0) && !class.entity_eligible(0, 1));
    assert_eq!(div_floor(-303, 100), -4);
    assert_eq!(div_floor(-(1i128 << 80), 1 << 40), -(1 << 40));
}

#[test]
fn section_2_2_lag_grows_on_placement_and_is_bounded() {
    let (mut class, mut core) = queued(Rules::LINUX_6_12, 8, &[0, 5]);
    class.dequeue_task(&mut core, CpuId(0), TaskId(1), DequeueFlags::SLEEP);
    put(&mut class, 0, 30_000_000, 40_000_000);
    class.ent_mut(1).vlag = 2_000_000;
    class.place_entity_eevdf(0, 1, false);
    assert_eq!(30_000_000 - class.ent(1).vruntime, 2_654_296);
    // Slice 3 ms: two of them are more than the tick of 4 ms.
    let (mut class, core) = queued(Rules::LINUX_6_12_0, 8, &[0, 0]);
    put(&mut class, 0, 0, 3_000_000);
    put(&mut class, 1, 100_000_000, 103_000_000);
    class.update_entity_lag(&core, 0, 0);
    class.update_entity_lag(&core, 0, 1);
    assert_eq!((class.ent(0).vlag, class.ent(1).vlag), (6_000_000, -6_000_000));
}

#[test]
fn section_2_3_reweight_scales_around_the_average() {
    let (mut class, mut core) = queued(Rules::LINUX_6_12_0, 8, &[0, 0]);
    put(&mut class, 0, 18_000_000, 21_000_000);
    put(&mut class, 1, 22_000_000, 25_000_000);
    assert_eq!(class.avg_vruntime(0), 20_000_000);
    let attr = SchedAttr { nice: 5, ..SchedAttr::default() };
    class.reweight_entity(&mut core, 0, LoadWeight::of_task(&attr));
    assert_eq!((class.ent(0).vruntime, class.ent(0).deadline), (13_886_568, 23_056_716));
}

/// Gives a task a slice of its own.
fn set_slice(class: &mut FairClass, e: u32, slice: u64) {
    class.tree_remove(0, e);
    (class.ent_mut(e).slice, class.ent_mut(e).custom_slice) = (slice, true);
    class.tree_insert(0, e);
}

/// Task 0 runs and all others wait, with these slices in ms.
fn running(rules: Rules, slices: &[u64]) -> (FairClass, Core) {
    let (mut class, mut core) = queued(rules, 8, &vec![0; slices.len()]);
    for (e, slice) in slices.iter().enumerate() {
        set_slice(&mut class, e as u32, slice * 1_000_000);
    }
    class.set_next_task(&mut core, CpuId(0), TaskId(0), true);
    core.rqs[0].curr = Some(TaskId(0));
    (class, core)
}

#[test]
fn section_2_2_the_bound_of_lag_in_7_1_is_the_longest_slice_and_a_tick() {
    for (slices, bound) in [([3, 3], 7), ([3, 20], 24), ([20, 3], 24)] {
        let (mut class, core) = running(Rules::LINUX_7_1, &slices);
        put(&mut class, 1, 200_000_000, 203_000_000);
        class.update_entity_lag(&core, 0, 0);
        class.update_entity_lag(&core, 0, 1);
        let bound = bound * 1_000_000;
        assert_eq!((class.ent(0).vlag, class.ent(1).vlag), (bound, -bound), "{slices:?}");
    }
}

#[test]
fn section_2_8_a_failed_preemption_shortens_the_protection() {
    // 6.18 does it only if the woken one has the shorter slice.
    for (rules, end) in [(Rules::LINUX_6_18, 7), (Rules::LINUX_7_1, 3)] {
        let (mut class, mut core) = running(rules, &[7, 7, 3]);
        put(&mut class, 1, 10_000_000, 17_000_000);
        put(&mut class, 2, 10_000_000, 13_000_000);
        class.ent_mut(0).vruntime = 0;
        (class.ent_mut(0).deadline, class.ent_mut(0).vprot) = (7_000_000, 7_000_000);
        class.check_preempt(&mut core, CpuId(0), TaskId(1), TaskId(0), Wake::default());
        assert!(!core.rqs[0].need_resched);
        assert_eq!(class.ent(0).vprot, end * 1_000_000, "{rules:?}");
    }
}

#[test]
fn section_2_8_the_buddy_comes_before_the_protected_but_not_without_protection() {
    let (mut class, _) = running(Rules::LINUX_7_1, &[3, 3, 3]);
    put(&mut class, 1, 0, 9_000_000);
    put(&mut class, 2, 0, 5_000_000);
    class.ent_mut(0).vruntime = 0;
    (class.ent_mut(0).deadline, class.ent_mut(0).vprot) = (7_000_000, 7_000_000);
    class.rq_mut(0).next = 1;
    assert!(class.entity_eligible(0, 1) && class.is_protected(0));
    assert_eq!((class.pick_eevdf(0, true), class.pick_eevdf(0, false)), (1, 2));
    class.rq_mut(0).next = NIL;
    assert_eq!(class.pick_eevdf(0, true), 0);
}

#[test]
fn section_2_9_a_wakeup_completes_delayed_dequeues() {
    for (rules, stays) in [(Rules::LINUX_6_18, true), (Rules::LINUX_7_1, false)] {
        let (mut class, mut core) = running(rules, &[3, 3, 3]);
        class.ent_mut(0).vruntime = 30_000_000;
        put(&mut class, 1, 0, 1_000_000);
        put(&mut class, 2, 0, 2_000_000);
        class.set_delayed(1);
        core.tasks[1].sched_delayed = true;
        class.check_preempt(&mut core, CpuId(0), TaskId(2), TaskId(0), Wake::default());
        assert_eq!(core.tasks[1].on_rq, stays, "{rules:?}");
        assert_eq!(core.rqs[0].nr_running, 2 + u32::from(stays), "{rules:?}");
        // 6.18 tests which task it would pick, and that is the sleeper.
        assert_eq!(core.rqs[0].need_resched, !stays, "{rules:?}");
    }
}

#[test]
fn section_2_5_a_delayed_sleeper_that_wakes_has_at_least_the_lag_with_which_it_slept() {
    for (rules, v) in [(Rules::LINUX_6_18, 16_000_000), (Rules::LINUX_7_1, 10_000_000)] {
        let (mut class, mut core) = running(rules, &[3, 3]);
        class.ent_mut(0).vruntime = 0;
        put(&mut class, 1, 16_000_000, 20_000_000);
        class.set_delayed(1);
        class.ent_mut(1).vlag = -5_000_000;
        class.requeue_delayed_entity(&mut core, 1);
        assert_eq!(class.ent(1).vruntime, v, "{rules:?}");
        assert!(!class.ent(1).delayed);
    }
    // In 7.2 the running task counts up to now: the average is 10 ms, not 6, and the sleeper is
    // behind it. Before, it seems to be as far ahead as it was.
    for (rules, v) in [(Rules::LINUX_7_1, 12_000_000), (Rules::LINUX_7_2, 20_000_000)] {
        let (mut class, mut core) = running(rules, &[30, 30]);
        class.ent_mut(0).vruntime = 0;
        put(&mut class, 1, 12_000_000, 42_000_000);
        class.set_delayed(1);
        class.ent_mut(1).vlag = -6_000_000;
        core.now += 20_000_000;
        class.requeue_delayed_entity(&mut core, 1);
        assert_eq!(class.ent(1).vruntime, v, "{rules:?}");
    }
    // The lag when it fell asleep is noted.
    let (mut class, mut core) = running(Rules::LINUX_7_1, &[3, 3]);
    class.ent_mut(0).vruntime = 6_000_000;
    put(&mut class, 1, 0, 3_000_000);
    assert!(!class.dequeue_task(&mut core, CpuId(0), TaskId(0), DequeueFlags::SLEEP));
    assert_eq!(class.ent(0).vlag, -3_000_000);
}

#[test]
fn section_2_9_reweight_scales_lag_deadline_and_protection() {
    let (mut class, mut core) = running(Rules::LINUX_7_1, &[3, 3]);
    class.ent_mut(0).vruntime = 18_000_000;
    (class.ent_mut(0).deadline, class.ent_mut(0).vprot) = (21_000_000, 20_500_000);
    put(&mut class, 1, 22_000_000, 25_000_000);
    let attr = SchedAttr { nice: 5, ..SchedAttr::default() };
    class.reweight_entity(&mut core, 0, LoadWeight::of_task(&attr).exact());
    let se = class.ent(0);
    assert_eq!((se.vruntime, se.deadline), (13_886_568, 23_056_716));
    assert_eq!(se.vprot, 20_000_000 + 500_000 * 1024 / 335);
    // After its protection nothing is kept.
    let (mut class, mut core) = running(Rules::LINUX_7_1, &[3, 3]);
    class.ent_mut(0).vruntime = 18_000_000;
    (class.ent_mut(0).deadline, class.ent_mut(0).vprot) = (21_000_000, 17_000_000);
    class.reweight_entity(&mut core, 0, LoadWeight::of_task(&attr).exact());
    assert_eq!(class.ent(0).vprot, 17_000_000);
}

/// Two group entities whose weights differ by less than 1,024.
#[test]
fn section_2_2_averages_in_7_1_are_of_undiminished_weights() {
    let average = |rules: Rules| {
        let (mut class, _) = running(rules, &[3, 3, 3]);
        for (e, weight, v) in [(1, 10_300, 0), (2, 10_900, 1_000_000)] {
            class.tree_remove(0, e);
            class.ent_mut(e).load = rules.weight_of(LoadWeight::of_load(weight));
            class.ent_mut(e).vruntime = v;
            class.tree_insert(0, e);
        }
        class.rq_mut(0).curr = NIL;
        class.avg_vruntime(0)
    };
    assert_eq!(average(Rules::LINUX_6_18), 500_000);
    assert_eq!(average(Rules::LINUX_7_1), 1_000_000 * 10_900 / 21_200);
}

#[test]
fn section_2_11_rr_interval() {
    let (class, mut core) = queued(Rules::LINUX_6_12, 8, &[0]);
    assert_eq!(class.get_rr_interval(&core, TaskId(0)), 0);
    core.tick_nsec = 1_000_000;
    assert_eq!(class.get_rr_interval(&core, TaskId(0)), 2_000_000);
    let (class, mut core) = queued(Rules::LINUX_6_12_0, 8, &[0]);
    core.tick_nsec = 1_000_000;
    assert_eq!(class.get_rr_interval(&core, TaskId(0)), 3_000_000);
}

#[test]
fn a_new_weight_ends_the_protection_up_to_6_18_44() {
    for (rules, stays) in [(Rules::LINUX_6_18_44, false), (Rules::LINUX_6_18, true)] {
        let (mut class, mut core) = running(rules, &[7, 7]);
        put(&mut class, 1, 10_000_000, 17_000_000);
        class.ent_mut(0).vruntime = 1_000_000;
        (class.ent_mut(0).deadline, class.ent_mut(0).vprot) = (7_000_000, 7_000_000);
        assert!(class.is_protected(0));
        class.reweight_entity(
            &mut core,
            0,
            LoadWeight::of_task(&SchedAttr { nice: 5, ..SchedAttr::default() }),
        );
        assert_eq!(class.is_protected(0), stays, "{rules:?}");
    }
}
