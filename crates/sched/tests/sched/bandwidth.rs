// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bandwidth control (cpu.max) of the fair class: exact times of throttling, several CPUs, nested
//! groups, slack, bursts, counters, and properties that hold for any workload.

use crate::fair_kernel;

use fair_kernel::{Kernel, MS, Setup, nice};
use proptest::prelude::*;
use schedlab_model::{CgroupId, CpuId, CpuMask, CpuMax, SchedAttr, TaskId, ids::ROOT_CGROUP};
use schedlab_sched::fair::rules::Rules;
use schedlab_sched::{BandwidthStats, Explain, SchedClass};

const ALL: [Rules; 6] = [
    Rules::LINUX_6_1,
    Rules::LINUX_6_6,
    Rules::LINUX_6_12_0,
    Rules::LINUX_6_12,
    Rules::LINUX_6_18,
    Rules::LINUX_7_1,
];

/// Those of [`ALL`] in which a queue has nothing when its limit is set, and asks the pool when a
/// task is queued. From 6.18 on it has 1 ns (tg_set_cfs_bandwidth), and asks when that is used.
const WITH_NOTHING: [Rules; 4] =
    [Rules::LINUX_6_1, Rules::LINUX_6_6, Rules::LINUX_6_12_0, Rules::LINUX_6_12];

/// The rules with periods at multiples of the period, as in 6.1.
fn aligned(rules: Rules) -> Rules {
    Rules { random_period_offset: false, ..rules }
}

/// `nr_cpus` CPUs at HZ=250 with one group of this limit in ms: quota, period, burst.
fn limited(rules: Rules, nr_cpus: u32, (quota, period, burst): (u64, u64, u64)) -> Setup {
    let mut setup = Setup::new(rules, 1, 250);
    setup.nr_cpus = nr_cpus;
    let group = setup.group(ROOT_CGROUP, 100);
    setup.groups[group.index()].cpu_max = Some(max(quota, period, burst));
    setup
}

fn max(quota: u64, period: u64, burst: u64) -> CpuMax {
    CpuMax { quota_ns: quota * MS, period_ns: period * MS, burst_ns: burst * MS }
}

const GROUP: CgroupId = CgroupId(1);

fn member(cgroup: CgroupId) -> SchedAttr {
    SchedAttr { cgroup, ..SchedAttr::default() }
}

fn on(cpu: u32, cgroup: CgroupId) -> SchedAttr {
    SchedAttr { affinity: Some(CpuMask::only(CpuId(cpu))), ..member(cgroup) }
}

/// The switches of one CPU, as [`Kernel::timeline`] writes them.
fn timeline_of(kernel: &mut Kernel, cpu: u32) -> String {
    let all = std::mem::take(&mut kernel.switches);
    kernel.switches = all.iter().copied().filter(|switch| switch.1 == cpu).collect();
    let text = kernel.timeline();
    kernel.switches = all;
    text
}

fn stats(kernel: &Kernel, group: CgroupId) -> BandwidthStats {
    kernel.class.bandwidth_stats(&kernel.core, group).expect("the group has a limit")
}

#[test]
fn section_1_17_a_hog_with_20_of_100_ms() {
    for rules in ALL {
        let mut kernel = limited(aligned(rules), 1, (20, 100, 0)).build();
        let hog = kernel.hog(member(GROUP));
        kernel.run_until(99 * MS);
        assert!(kernel.class.is_throttled(&kernel.core, hog) && kernel.core.idle_cpu(CpuId(0)));
        kernel.run_until(250 * MS);
        // A period that begins with the first tick has its quota beside the 4 ms before it.
        let (expected, throttled_ms) = match WITH_NOTHING.contains(&rules) {
            true => ("0A 20- 100A 120- 200A 220-", 190),
            false => ("0A 24- 100A 120- 200A 220-", 186),
        };
        assert_eq!(kernel.timeline(), expected, "{rules:?}");
        let throttled_ns = throttled_ms * MS;
        let expected = BandwidthStats { nr_periods: 2, nr_throttled: 2, throttled_ns, ..NONE };
        assert_eq!(stats(&kernel, GROUP), expected, "{rules:?}");
    }
}

const NONE: BandwidthStats =
    BandwidthStats { nr_periods: 0, nr_throttled: 0, throttled_ns: 0, nr_bursts: 0, burst_ns: 0 };

/// Ticks of 4 ms overrun the second slice by 2 ms, which the next period pays back. A guest of 6.18
/// and one of 7.2 make the turns of the second list.
#[test]
fn section_1_17_a_hog_with_10_of_100_ms() {
    for rules in ALL {
        let mut kernel = limited(aligned(rules), 1, (10, 100, 0)).build();
        kernel.hog(member(GROUP));
        kernel.run_until(350 * MS);
        let expected = match WITH_NOTHING.contains(&rules) {
            true => "0A 12- 100A 108- 200A 212- 300A 308-",
            false => "0A 12- 100A 112- 200A 208- 300A 312-",
        };
        assert_eq!(kernel.timeline(), expected, "{rules:?}");
    }
}

#[test]
fn section_1_17_the_slice_can_be_set() {
    for rules in WITH_NOTHING {
        // With the whole quota at once, 10 ms also end at the tick of 12 ms. With 1 ms the queue
        // asks the pool at each tick.
        for slice in [10_000, 1_000] {
            let mut setup = limited(aligned(rules), 2, (10, 100, 0));
            setup.set.push(("sched_cfs_bandwidth_slice_us", slice));
            let mut kernel = setup.build();
            kernel.hog(on(0, GROUP));
            kernel.hog(on(1, GROUP));
            kernel.run_until(90 * MS);
            let found = [timeline_of(&mut kernel, 0), timeline_of(&mut kernel, 1)];
            let expected = if slice == 10_000 {
                // The second CPU gets nothing.
                ["0A 12-", ""]
            } else {
                // At 4 ms each CPU takes 4 ms of the remaining 8; at 8 ms nothing is left.
                ["0A 8-", "0B 8-"]
            };
            assert_eq!(found, expected, "{rules:?} slice {slice} us");
        }
    }
}

#[test]
fn section_1_17_two_cpus_draw_on_one_pool() {
    for rules in WITH_NOTHING {
        let mut kernel = limited(aligned(rules), 2, (20, 100, 0)).build();
        kernel.hog(on(0, GROUP));
        kernel.hog(on(1, GROUP));
        kernel.run_until(130 * MS);
        // At 8 ms CPU 0 takes 8 of the last 10 ms, and CPU 1 the rest, which is 1 ms too little.
        // The refill pays back 1 ms for CPU 1 and 3 ms for CPU 0; 16 ms are left.
        assert_eq!(timeline_of(&mut kernel, 0), "0A 16- 100A 112-", "{rules:?}");
        assert_eq!(timeline_of(&mut kernel, 1), "0B 8- 100B 108-", "{rules:?}");
    }
}

/// The parent's limit decides; the group never reaches its own. A task outside gets the rest.
#[test]
fn section_1_17_the_limit_of_a_parent_binds_its_children() {
    for rules in ALL {
        let mut setup = limited(aligned(rules), 1, (20, 100, 0));
        let inner = setup.group(GROUP, 100);
        setup.groups[inner.index()].cpu_max = Some(max(50, 100, 0));
        let mut kernel = setup.build();
        let deep = kernel.hog(member(inner));
        let outside = kernel.hog(nice(0));
        kernel.run_until(1_000 * MS);
        let share = kernel.ran(deep);
        assert!((196 * MS..=204 * MS).contains(&share), "{rules:?}: {share} ns");
        assert_eq!(kernel.ran(outside), 1_000 * MS - share, "{rules:?}");
        assert_eq!(stats(&kernel, inner).nr_throttled, 0, "{rules:?}");
        assert!(stats(&kernel, GROUP).nr_throttled >= 9, "{rules:?}");
        kernel.run_until(1_090 * MS);
        assert!(kernel.class.is_throttled(&kernel.core, deep), "{rules:?}");
        assert!(!kernel.class.is_throttled(&kernel.core, outside), "{rules:?}");
    }
}

/// The child's limit decides if it is smaller.
#[test]
fn section_1_17_the_limit_of_a_child_leaves_the_rest_to_its_siblings() {
    for rules in ALL {
        let mut setup = limited(aligned(rules), 1, (60, 100, 0));
        let inner = setup.group(GROUP, 100);
        setup.groups[inner.index()].cpu_max = Some(max(20, 100, 0));
        let mut kernel = setup.build();
        let deep = kernel.hog(member(inner));
        let middle = kernel.hog(member(GROUP));
        kernel.run_until(2_000 * MS);
        let (deep, middle) = (kernel.ran(deep), kernel.ran(middle));
        assert!(deep.abs_diff(400 * MS) <= 9 * MS, "{rules:?}: {deep} ns");
        assert!((deep + middle).abs_diff(1_200 * MS) <= 9 * MS, "{rules:?}: {middle} ns");
    }
}

/// CPU 0 is throttled at 8 ms, 3 ms in debt. CPUs 1 and 2 return 2.8 ms each at 8.2 ms. That is
/// more than a slice, so 5 ms later the debt is paid and 2.6 ms are left.
#[test]
fn section_1_17_slack_is_handed_out_after_5_ms() {
    for rules in WITH_NOTHING {
        let mut kernel = limited(aligned(rules), 3, (15, 100, 0)).build();
        kernel.hog(on(0, GROUP));
        for cpu in [1, 2] {
            kernel.sleeper(on(cpu, GROUP), &[7 * MS], 1_200_000);
        }
        kernel.run_until(90 * MS);
        let found = timeline_of(&mut kernel, 0);
        assert_eq!(found, "0A 8- 13.200000A 16-", "{rules:?}");
    }
}

/// The group is throttled 85 ms later. The refill follows within 7 ms, so nothing is distributed.
#[test]
fn section_1_17_slack_waits_for_a_refill_that_is_near() {
    for rules in WITH_NOTHING {
        let mut kernel = limited(aligned(rules), 3, (15, 100, 0)).build();
        kernel.sleeper(on(0, GROUP), &[84 * MS], 50 * MS);
        for cpu in [1, 2] {
            kernel.sleeper(on(cpu, GROUP), &[91 * MS], 2_100_000);
        }
        // A takes 5 ms at 84 ms, which starts the period timer: the refill is at 100 ms.
        kernel.run_until(110 * MS);
        let found = timeline_of(&mut kernel, 0);
        assert!(found.starts_with("84A 92- 100A"), "{rules:?}: {found}");
    }
}

/// The second period may use its burst in addition to the quota: the group has it from the start,
/// since cpu.max.burst is written after cpu.max, and each write refills. The queue kept 1 ms.
#[test]
fn section_1_17_bursts() {
    for (burst, end, counted) in [(10, 172, (1, 10 * MS)), (0, 164, (0, 0))] {
        for rules in WITH_NOTHING {
            let mut kernel = limited(aligned(rules), 1, (10, 100, burst)).build();
            kernel.sleeper(member(GROUP), &[0], MS);
            kernel.sleeper(member(GROUP), &[150 * MS], 40 * MS);
            kernel.run_until(199 * MS);
            let expected = format!("0A 1- 150B {end}-");
            assert_eq!(kernel.timeline(), expected, "{rules:?}");
            kernel.run_until(201 * MS);
            let found = stats(&kernel, GROUP);
            assert_eq!((found.nr_bursts, found.burst_ns), counted, "{rules:?}");
        }
    }
}

/// The timer stops after a whole period in which no queue took from the pool. It starts again at a
/// multiple of the period.
#[test]
fn section_1_17_the_period_timer_stops_when_the_group_is_idle() {
    for rules in ALL {
        let mut kernel = limited(aligned(rules), 1, (20, 100, 0)).build();
        kernel.sleeper(member(GROUP), &[10 * MS, 1_030 * MS], 2 * MS);
        kernel.run_until(1_000 * MS);
        assert_eq!(stats(&kernel, GROUP).nr_periods, 2, "{rules:?}");
        kernel.run_until(1_150 * MS);
        // The queue had kept 1 ms: it asks for more at the tick of 1,032 ms.
        assert_eq!(stats(&kernel, GROUP).nr_periods, 3, "{rules:?}");
    }
}

/// From 6.6 on the periods begin at a random time, which is equal for equal seeds.
#[test]
fn section_1_17_periods_begin_at_a_random_time() {
    for rules in ALL {
        let first_refill = || {
            let mut kernel = limited(rules, 1, (20, 100, 0)).build();
            kernel.hog(member(GROUP));
            kernel.run_until(60 * MS);
            kernel.run_until(119 * MS);
            let idle: Vec<_> = kernel.switches.iter().filter(|s| s.2.is_some()).collect();
            idle.iter().map(|switch| switch.0).collect::<Vec<_>>()
        };
        let starts = first_refill();
        assert_eq!(starts, first_refill(), "{rules:?}");
        let is_aligned = starts.contains(&(100 * MS));
        assert_eq!(is_aligned, rules == Rules::LINUX_6_1, "{rules:?}: {starts:?}");
    }
}

/// A task that wakes in a throttled group waits for the refill and preempts no task. A task outside
/// the group is not affected.
#[test]
fn section_1_17_a_wakeup_in_a_throttled_group_waits() {
    for rules in ALL {
        let mut kernel = limited(aligned(rules), 1, (8, 100, 0)).build();
        kernel.hog(member(GROUP));
        let sleeper = kernel.sleeper(member(GROUP), &[30 * MS], MS);
        kernel.run_until(29 * MS);
        let expected = if WITH_NOTHING.contains(&rules) { "0A 8-" } else { "0A 12-" };
        assert_eq!(kernel.timeline(), expected, "{rules:?}");
        kernel.run_until(31 * MS);
        assert!(kernel.class.is_throttled(&kernel.core, sleeper), "{rules:?}");
        assert_eq!(kernel.core.rqs[0].nr_running, 0, "{rules:?}");
        let outside = kernel.hog(nice(0));
        kernel.settle();
        kernel.run_until(99 * MS);
        assert_eq!(kernel.ran(outside), 68 * MS, "{rules:?}");
        kernel.run_until(150 * MS);
        assert!(kernel.ran(sleeper) == MS, "{rules:?}");
    }
}

/// A throttled task can get another nice value, move to another group and back.
#[test]
fn section_1_17_a_throttled_task_may_change() {
    for rules in ALL {
        let mut setup = limited(aligned(rules), 1, (8, 100, 0));
        let free = setup.group(ROOT_CGROUP, 100);
        let mut kernel = setup.build();
        let tasks = [kernel.hog(member(GROUP)), kernel.hog(member(GROUP))];
        kernel.run_until(20 * MS);
        assert!(kernel.core.idle_cpu(CpuId(0)), "{rules:?}");
        kernel.set_attr(tasks[0], SchedAttr { nice: 5, ..member(GROUP) });
        assert!(kernel.class.is_throttled(&kernel.core, tasks[0]), "{rules:?}");
        assert!(kernel.core.idle_cpu(CpuId(0)), "{rules:?}");
        kernel.set_attr(tasks[0], member(free));
        assert!(!kernel.class.is_throttled(&kernel.core, tasks[0]), "{rules:?}");
        kernel.core.resched_curr(CpuId(0));
        let before = kernel.ran(tasks[0]);
        kernel.run_until(50 * MS);
        assert_eq!(kernel.core.rqs[0].nr_running, 1, "{rules:?}");
        assert_eq!(kernel.ran(tasks[0]) - before, 30 * MS, "{rules:?}");
        kernel.set_attr(tasks[0], member(GROUP));
        kernel.run_until(60 * MS);
        assert!(kernel.core.idle_cpu(CpuId(0)), "{rules:?}: {}", kernel.timeline());
        kernel.run_until(190 * MS);
        assert!(kernel.core.idle_cpu(CpuId(0)), "{rules:?}");
        let ran: u64 = tasks.iter().map(|task| kernel.ran(*task)).sum();
        assert!(ran.abs_diff(46 * MS) <= 8 * MS, "{rules:?}: {ran} ns");
    }
}

/// Load balancing does not move throttled tasks and does not fill a throttled CPU.
#[test]
fn section_5_6_throttled_tasks_are_not_balanced() {
    for rules in ALL {
        let mut kernel = limited(aligned(rules), 2, (8, 1_000, 0)).build();
        let tasks: Vec<TaskId> = (0..4).map(|_| kernel.hog(on(0, GROUP))).collect();
        kernel.run_until(20 * MS);
        for task in &tasks {
            kernel.set_attr(*task, member(GROUP));
        }
        kernel.hog(on(1, ROOT_CGROUP));
        kernel.hog(on(1, ROOT_CGROUP));
        kernel.run_until(900 * MS);
        for task in &tasks {
            assert_eq!(kernel.core.task(*task).cpu, CpuId(0), "{rules:?}");
        }
    }
}

/// One random group hierarchy: limits in ms, tasks by group and CPU.
#[derive(Clone, Debug)]
struct Life {
    rules: usize,
    nr_cpus: u32,
    hz: u32,
    /// Quota and period of group 1, and of groups 2 and 3, which are below it.
    limits: [Option<(u64, u64)>; 3],
    /// Group of each hog.
    hogs: Vec<u32>,
    /// Group of each sleeper, and how long (us) it runs every 7 ms.
    sleepers: Vec<(u32, u64)>,
    seed: u64,
}

fn life() -> impl Strategy<Value = Life> {
    let limit = prop::option::weighted(0.7, (1u64..60, prop::sample::select(vec![20u64, 50, 100])));
    (
        0usize..ALL.len(),
        1u32..5,
        prop::sample::select(vec![250u32, 1000]),
        [limit.clone(), limit.clone(), limit],
        prop::collection::vec(0u32..4, 0..7),
        prop::collection::vec((0u32..4, 50u64..6_000), 0..4),
        any::<u64>(),
    )
        .prop_map(|(rules, nr_cpus, hz, limits, hogs, sleepers, seed)| Life {
            rules,
            nr_cpus,
            hz,
            limits,
            hogs,
            sleepers,
            seed,
        })
}

fn start(life: &Life, end: u64) -> Kernel {
    let mut setup = Setup::new(ALL[life.rules], 1, life.hz);
    setup.nr_cpus = life.nr_cpus;
    let top = setup.group(ROOT_CGROUP, 100);
    setup.group(top, 200);
    setup.group(top, 50);
    for (group, limit) in (1..).zip(life.limits) {
        setup.groups[group].cpu_max = limit.map(|(quota, period)| max(quota, period, 0));
    }
    let mut kernel = setup.build();
    kernel.record = false;
    kernel.core.random = schedlab_model::random::Stream::new(
        life.seed,
        schedlab_model::random::Purpose::Scheduler,
        0,
    );
    for group in &life.hogs {
        kernel.hog(member(CgroupId(*group)));
    }
    for (group, us) in &life.sleepers {
        let times: Vec<u64> = (0..end / (7 * MS)).map(|n| n * 7 * MS).collect();
        kernel.sleeper(member(CgroupId(*group)), &times, us * 1_000);
    }
    kernel
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Over N periods a group uses at most N + 1 quotas and the overruns of its CPUs in a tick.
    /// With a hog for each CPU and no other limit it uses N quotas, minus at most a slice for each
    /// CPU.
    #[test]
    fn no_group_exceeds_its_limit_and_demand_gets_it(life in life()) {
        let end = 1_000 * MS;
        let mut kernel = start(&life, end);
        let tick = kernel.core.tick_nsec;
        for ms in (10..=1_000).step_by(10) {
            kernel.run_until(ms * MS);
            // Custody: the count of a CPU is the number of runnable tasks that are not throttled.
            // From 6.18 on a task of a throttled group counts until its turn.
            for cpu in (0..life.nr_cpus).map(CpuId) {
                let tasks = kernel.core.tasks.iter().zip((0..).map(TaskId));
                let on_cpu = tasks.filter(|(task, _)| task.on_rq && task.cpu == cpu);
                let (held, free): (Vec<TaskId>, Vec<TaskId>) = on_cpu
                    .map(|(_, id)| id)
                    .partition(|id| kernel.class.is_throttled(&kernel.core, *id));
                let least = free.len() as u32;
                let most = if life.rules < 4 { least } else { least + held.len() as u32 };
                let counted = kernel.core.rq(cpu).nr_running;
                let is_right = (least..=most).contains(&counted);
                prop_assert!(is_right, "at {} ms CPU {}: {}", ms, cpu, counted);
                let curr = kernel.core.rq(cpu).curr;
                prop_assert!(curr.is_none_or(|curr| !held.contains(&curr)), "at {} ms", ms);
            }
        }
        let used = |groups: &[u32]| -> u64 {
            let tasks = kernel.core.tasks.iter().zip((0..).map(TaskId));
            tasks
                .filter(|(task, _)| groups.contains(&task.attr.cgroup.0))
                .map(|(_, id)| kernel.ran(id))
                .sum()
        };
        for (group, limit) in (1u32..).zip(life.limits) {
            let Some((quota, period)) = limit else { continue };
            let used = if group == 1 { used(&[1, 2, 3]) } else { used(&[group]) };
            let periods = 1_000 / period;
            let most = (periods + 1) * quota * MS + u64::from(life.nr_cpus) * tick;
            prop_assert!(used <= most, "group {}: {} of {}", group, used, most);
        }
        // Enough demand: only the top group is limited, and it has a hog for each CPU.
        if let [Some((quota, period)), None, None] = life.limits
            && life.hogs.iter().filter(|group| **group > 0).count() >= life.nr_cpus as usize
            && !life.hogs.contains(&0)
            && life.sleepers.is_empty()
        {
            let possible = (quota * MS).min(u64::from(life.nr_cpus) * period * MS);
            let slices = u64::from(life.nr_cpus) * (5 * MS + tick);
            let least = (1_000 / period * possible).saturating_sub(slices);
            prop_assert!(used(&[1, 2, 3]) >= least, "{} of {}", used(&[1, 2, 3]), least);
        }
    }
}
