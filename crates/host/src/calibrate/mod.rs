// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the costs of scheduling on this machine, for the simulator's cost model.
//!
//! One thread bound to a CPU, and processes that it forks, do all measurements; no setting of the
//! machine is changed. Every figure is measured in several repetitions, which alternate between the
//! figures, so that a drift of the machine affects all of them. A repetition gives the median of
//! its samples. The report has the median of the repetitions, an interval that contains the true
//! median with at least 95 %, and the spread of the repetitions. [`Method`] describes how each
//! figure is measured.

mod device;
mod file;
mod methods;
mod statistics;

pub use statistics::{Figure, Noise};

use crate::error::HostError;
use crate::machine;
use crate::sys;
use schedlab_model::machine::Device;
use schedlab_model::{Costs, CpuId, CpuMask, Topology};
use statistics::{Repeated, median};

/// Default number of repetitions: the least for which the 4th and the 12th bound an interval of at
/// least 95 % (96.5 %), while one on either side may be an outlier.
pub const REPETITIONS_DEFAULT: u32 = 15;

/// Most repetitions.
pub const REPETITIONS_MAX: u32 = 60;

/// How a figure is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Method {
    /// Name, as in [`Costs::NAMES`] or a field of [`Device`].
    pub name: &'static str,
    /// How it is measured, and what is subtracted.
    pub text: &'static str,
}

/// Every figure, in the order of the report.
pub const METHODS: [Method; 13] = [
    Method {
        name: "context_switch_ns",
        text: "two processes of one CPU that yield to each other, less a system call",
    },
    Method {
        name: "wakeup_ns",
        text: "a hop of a ping-pong over two pipes on one CPU, less a write, a read and a switch",
    },
    Method {
        name: "idle_exit_ns",
        text: "lateness of an absolute timer on an idle CPU, less a switch and a clock reading",
    },
    Method {
        name: "migration_ns",
        text: "a pass over 64 KiB after a move within the last-level cache, less a warm pass",
    },
    Method {
        name: "migration_llc_ns",
        text: "the same after a move to a CPU with another last-level cache",
    },
    Method { name: "tick_ns", text: "gaps that timer interrupts tear into a busy loop" },
    Method { name: "fork_ns", text: "CPU time of fork in the parent" },
    Method { name: "syscall_ns", text: "getppid in a loop" },
    Method {
        name: "pipe_ns",
        text: "half of a write and a read of one byte of a pipe nobody waits for",
    },
    Method { name: "socket_ns", text: "the same of a pair of stream sockets" },
    Method { name: "copy_kib_ns", text: "a write of 64 KiB into cached pages of a file, by 64" },
    Method { name: "read_latency_ns", text: "a read of 4 KiB past the page cache (O_DIRECT)" },
    Method { name: "write_latency_ns", text: "a write of 4 KiB that reaches the medium (O_SYNC)" },
];

/// The results of a calibration.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Costs: measured if possible, otherwise the default.
    pub costs: Costs,
    /// The device: measured if possible, otherwise the default.
    pub device: Device,
    /// The figures from which they come.
    pub figures: Vec<Figure>,
    /// What could not be measured, with the reason; and what is too noisy.
    pub notes: Vec<String>,
}

impl Calibration {
    /// The figure called `name`, if it was measured.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// Measures on the CPUs that this process may use, `repetitions` (1 to [`REPETITIONS_MAX`]) times.
/// One repetition takes about a third of a second.
pub fn calibrate(repetitions: u32) -> Result<Calibration, HostError> {
    let repetitions = repetitions.clamp(1, REPETITIONS_MAX);
    let cpus = machine::usable_cpus();
    let topology = crate::topology::this_machine().and_then(|file| file.spec());
    let topology = topology.map(|spec| spec.machine.topology).ok();
    let places = Places::new(&cpus, topology.as_ref());
    let worker = std::thread::Builder::new()
        .name("calibrate".into())
        .spawn(move || measure(&places, repetitions));
    worker
        .map_err(|error| HostError::system("starting the calibration", &error))?
        .join()
        .map_err(|_| HostError::System("the calibration broke off".into()))?
        .map_err(|error| HostError::system("calibrating", &error))
}

/// The CPUs of the measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Places {
    /// The CPU on which everything runs.
    home: CpuMask,
    /// Another core that shares the last-level cache with it, or else its hardware thread.
    near: Option<CpuMask>,
    /// A CPU with another last-level cache.
    far: Option<CpuMask>,
}

impl Places {
    /// The last CPU is `home`, because interrupts of devices tend to go to the first. `topology`
    /// numbers the CPUs of `cpus` from 0; without it, all are assumed to share a cache.
    fn new(cpus: &CpuMask, topology: Option<&Topology>) -> Self {
        let cpus: Vec<CpuId> = cpus.iter().collect();
        let only = |index: usize| cpus.get(index).copied().map(CpuMask::only);
        let last = cpus.len().saturating_sub(1);
        let flat = Topology::flat(cpus.len() as u32);
        let topology = topology.filter(|known| known.core.len() == cpus.len()).unwrap_or(&flat);
        let find = |wanted: &dyn Fn(usize) -> bool| (0..last).find(|other| wanted(*other));
        let shares = |level: &[u32], other: usize| level[other] == level[last];
        let core = find(&|cpu| shares(&topology.llc, cpu) && !shares(&topology.core, cpu));
        let thread = find(&|cpu| shares(&topology.core, cpu));
        let far = find(&|cpu| !shares(&topology.llc, cpu));
        Self {
            home: only(last).unwrap_or(CpuMask::only(CpuId(0))),
            near: core.or(thread).and_then(only),
            far: far.and_then(only),
        }
    }
}

fn measure(places: &Places, repetitions: u32) -> std::io::Result<Calibration> {
    sys::sched_setaffinity(0, &places.home)?;
    sys::set_timer_slack_ns(1)?;
    let mut found = Repeated::default();
    let mut notes = Vec::new();
    let mut disk = device::Disk::open().map_err(|why| notes.push(format!("device: {why}"))).ok();
    for _ in 0..repetitions {
        repetition(places, &mut found)?;
        if let Some(disk) = &mut disk {
            disk.measure(&mut found);
        }
    }
    Ok(summary(&found, repetitions, notes))
}

/// Measures everything but the device once.
fn repetition(places: &Places, found: &mut Repeated) -> std::io::Result<()> {
    let clock = median(methods::clock()).unwrap_or(0);
    let syscall = found.add("syscall_ns", methods::syscalls(), 0).unwrap_or(0);
    let switch = found.add("context_switch_ns", methods::yields()?, syscall);
    let pipe = found.add("pipe_ns", methods::own_pipe()?, 0).unwrap_or(0);
    found.add("socket_ns", methods::own_socket()?, 0);
    if let Some(switch) = switch {
        found.add("wakeup_ns", methods::ping_pong()?, 2 * pipe + switch);
    }
    found.add("idle_exit_ns", methods::timer_lateness(), switch.unwrap_or(0) + clock);
    found.add("tick_ns", methods::tick_gaps(), 0);
    found.add("fork_ns", methods::forks()?, 0);
    for (name, away) in [("migration_ns", &places.near), ("migration_llc_ns", &places.far)] {
        if let Some(away) = away {
            found.add(name, methods::migrations(&places.home, away)?, 0);
        }
    }
    Ok(())
}

/// Computes costs and device from the repetitions.
fn summary(found: &Repeated, repetitions: u32, notes: Vec<String>) -> Calibration {
    let mut out =
        Calibration { costs: Costs::DEFAULT, device: Device::default(), figures: vec![], notes };
    for method in METHODS {
        let Some(figure) = found.figure(method) else { continue };
        if let Some(cost) = out.costs.field_mut(figure.name) {
            *cost = figure.median_ns;
        }
        if let Some(field) = device::field_mut(&mut out.device, figure.name) {
            *field = figure.median_ns;
        }
        if figure.noise == Noise::Unreliable && repetitions > 1 {
            out.notes.push(format!(
                "{}: repetitions differ by {:.0} % of the median; repeat on a quieter machine",
                figure.name, figure.spread_percent
            ));
        }
        out.figures.push(figure);
    }
    for name in Costs::NAMES {
        if out.figure(name).is_none() {
            out.notes.push(format!("{name}: {}, the default stays", why_missing(name)));
        }
    }
    // A default below the measured cost of a shorter path cannot be right.
    out.costs.migration_llc_ns = out.costs.migration_llc_ns.max(out.costs.migration_ns);
    out
}

/// Costs of interrupts, and of ways to a switch.
const PARTS_OF_INTERRUPTS: [&str; 26] = [
    "timer_wakeup_ns",
    "timer_next_ns",
    "timer_rt_ns",
    "start_delay_ns",
    "start_entity_ns",
    "start_rt_ns",
    "timer_fair_ns",
    "timer_absolute_ns",
    "interrupt_entry_ns",
    "preempt_check_ns",
    "class_timer_ns",
    "class_timer_early_ns",
    "switch_closed_ns",
    "timer_wakeup_rt_ns",
    "timer_fair_preempt_ns",
    "inactive_timer_ns",
    "wakeup_switch_ns",
    "put_fair_ns",
    "put_group_ns",
    "idle_rt_ns",
    "block_ns",
    "block_fair_ns",
    "block_deadline_ns",
    "pick_fair_ns",
    "block_switch_ns",
    "preempt_switch_ns",
];

/// Costs of starts, forks and exits that are memory.
const PARTS_OF_FORKS_AND_EXITS: [&str; 21] = [
    "first_fork_ns",
    "fork_after_ns",
    "fork_copy_ns",
    "fork_switch_ns",
    "fork_groups_ns",
    "child_groups_ns",
    "fork_heap_ns",
    "task_start_ns",
    "child_start_ns",
    "child_alone_ns",
    "fork_task_ns",
    "child_sleep_ns",
    "exit_ns",
    "first_exit_ns",
    "exit_shared_ns",
    "exit_queue_ns",
    "exit_groups_ns",
    "exit_launched_ns",
    "exit_task_ns",
    "exit_marks_ns",
    "exit_after_ns",
];

/// Why there is no figure for `name`.
fn why_missing(name: &str) -> &'static str {
    match name {
        "timer_delay_ns" | "idle_tick_ns" => {
            "`idle_exit_ns` has it: what a timer finds idle waits for both"
        }
        name if PARTS_OF_INTERRUPTS.contains(&name) => {
            "the parts of an interrupt cannot be timed from outside"
        }
        "pick_entry_ns" | "repick_ns" | "block_entity_ns" | "pick_entity_ns" | "pick_shared_ns"
        | "dequeue_entity_ns" | "delay_dequeue_ns" | "dequeue_delayed_ns" | "queue_entity_ns"
        | "nohz_kick_ns" | "newidle_ns" | "newidle_cpu_ns" | "hrtick_ns" | "hrtick_end_ns"
        | "wakeup_fair_ns" | "hrtick_stray_ns" | "hrtick_resched_ns" | "load_period_ns"
        | "throttle_ns" | "unthrottle_ns" | "unthrottle_task_ns" => {
            "no program can tell it from the rest of a switch"
        }
        "bpf_kinsn_ns" => "only root may load a program and read its time",
        "lock_hold_ns" | "lock_transfer_ns" => "a kernel lock cannot be timed from outside",
        "server_lead_ns" | "server_lead_fair_ns" | "server_lead_rt_ns" | "server_idle_ns" => {
            "only a launcher that has the CPU wakes tasks before time 0"
        }
        "release_ns" | "release_deadline_ns" | "launch_task_ns" => "it depends on the launcher",
        "first_fair_ns" => "no program can tell it from the rest of a wake-up",
        "tick_entity_ns" | "tick_rt_ns" | "server_refill_ns" => {
            "no program can tell it from the rest of a tick"
        }
        "tick_resched_ns"
        | "clock_lead_ns"
        | "tick_lead_ns"
        | "tick_pick_fair_ns"
        | "tick_budget_lead_ns" => {
            "no program is there between a tick and the switch that it asks for"
        }
        "fork_stack_ns" => "no program can tell which stacks its kernel keeps",
        "fork_held_ns" | "exit_held_ns" | "exit_freed_ns" => {
            "no program can tell where its kernel may not preempt"
        }
        "exit_rcu_ns" | "rcu_wakeup_ns" | "rcu_free_ns" => "no program can tell what RCU does",
        "join_ns" | "reap_ns" | "reap_last_ns" | "join_child_ns" => {
            "it depends on how the program waits"
        }
        name if PARTS_OF_FORKS_AND_EXITS.contains(&name) => {
            "it depends on how much memory the program touches"
        }
        "futex_ns" | "mutex_ns" | "semaphore_ns" => "it depends on the C library",
        "phase_ns" => "it depends on how the program records phases",
        "run_step_ns" => "the runs of its programs contain it",
        "pi_wait_ns" | "pi_acquire_ns" | "pi_unlock_ns" => {
            "no program can tell it from the rest of a wait for a mutex"
        }
        "set_attr_ns"
        | "set_attr_after_ns"
        | "group_move_ns"
        | "group_lock_ns"
        | "group_first_ns"
        | "group_fair_ns"
        | "group_move_after_ns"
        | "group_change_ns"
        | "cpu_max_ns"
        | "cpu_max_switch_ns" => "a program makes such a call too rarely",
        "task_line_ns" => "only kernels of old have lists that it is for",
        "channel_transfer_ns" => "not told from the wake-up between two CPUs",
        "migration_ns" => "no two CPUs that may be used share a last-level cache",
        "migration_llc_ns" => "no two CPUs that may be used have different last-level caches",
        "context_switch_ns" | "wakeup_ns" => {
            "yielding did not switch each time; measuring it wants CAP_SYS_NICE or a quiet CPU"
        }
        _ => "not measurable here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_costs_something() {
        let found = calibrate(2).unwrap();
        assert!((20..1_000_000).contains(&found.costs.syscall_ns), "{found:?}");
        assert!((100..5_000_000).contains(&found.costs.context_switch_ns), "{found:?}");
        assert!((1_000..100_000_000).contains(&found.costs.fork_ns), "{found:?}");
        // A transfer is a system call that does something.
        assert!(found.costs.pipe_ns > found.costs.syscall_ns, "{found:?}");
        assert!((20..1_000_000).contains(&found.costs.socket_ns), "{found:?}");
        let pipe = found.figure("pipe_ns").unwrap();
        assert_eq!((pipe.nr_repetitions, pipe.ci95_ns), (2, None));
        for figure in &found.figures {
            println!("{figure:?}");
        }
    }

    #[test]
    fn migrations_are_measured_within_a_cache_and_across() {
        let cpus: CpuMask = [2, 3, 6, 7].map(CpuId).into_iter().collect();
        let only = |cpu| Some(CpuMask::only(CpuId(cpu)));
        let topology =
            Topology { core: vec![0, 1, 2, 2], llc: vec![0, 1, 1, 1], node: vec![0, 0, 0, 0] };
        let places = Places::new(&cpus, Some(&topology));
        // The sibling of 7 comes after the core of 3.
        assert_eq!((Some(places.home), places.near, places.far), (only(7), only(3), only(2)));
        let places = Places::new(&cpus, None);
        assert_eq!((places.near, places.far), (only(2), None));
        let siblings =
            Topology { core: vec![0, 1, 2, 2], llc: vec![0, 1, 2, 2], node: vec![0, 0, 0, 0] };
        assert_eq!(Places::new(&cpus, Some(&siblings)).near, only(6));
        let places = Places::new(&CpuMask::only(CpuId(5)), None);
        assert_eq!((Some(places.home), places.near, places.far), (only(5), None, None));
    }

    /// In addition to [`PARTS_OF_FORKS_AND_EXITS`].
    const NEVER_MEASURED: [&str; 99] = [
        "start_delay_ns",
        "start_entity_ns",
        "start_rt_ns",
        "block_fair_ns",
        "delay_dequeue_ns",
        "launch_task_ns",
        "nohz_kick_ns",
        "newidle_ns",
        "newidle_cpu_ns",
        "timer_next_ns",
        "timer_rt_ns",
        "timer_absolute_ns",
        "interrupt_entry_ns",
        "switch_closed_ns",
        "timer_fair_ns",
        "timer_fair_preempt_ns",
        "timer_wakeup_rt_ns",
        "preempt_check_ns",
        "class_timer_ns",
        "class_timer_early_ns",
        "inactive_timer_ns",
        "put_fair_ns",
        "put_group_ns",
        "idle_rt_ns",
        "queue_entity_ns",
        "block_deadline_ns",
        "pick_entity_ns",
        "pick_shared_ns",
        "release_ns",
        "release_deadline_ns",
        "bpf_kinsn_ns",
        "preempt_switch_ns",
        "tick_entity_ns",
        "tick_rt_ns",
        "first_fair_ns",
        "server_refill_ns",
        "server_lead_ns",
        "server_lead_fair_ns",
        "server_lead_rt_ns",
        "server_idle_ns",
        "hrtick_ns",
        "hrtick_end_ns",
        "wakeup_fair_ns",
        "hrtick_resched_ns",
        "hrtick_stray_ns",
        "load_period_ns",
        "throttle_ns",
        "unthrottle_ns",
        "unthrottle_task_ns",
        "fork_stack_ns",
        "run_step_ns",
        "phase_ns",
        "mutex_ns",
        "semaphore_ns",
        "fork_held_ns",
        "exit_held_ns",
        "exit_freed_ns",
        "exit_rcu_ns",
        "rcu_wakeup_ns",
        "rcu_free_ns",
        "reap_ns",
        "reap_last_ns",
        "join_child_ns",
        "futex_ns",
        "pi_wait_ns",
        "pi_acquire_ns",
        "pi_unlock_ns",
        "timer_delay_ns",
        "timer_wakeup_ns",
        "wakeup_switch_ns",
        "block_ns",
        "block_switch_ns",
        "dequeue_entity_ns",
        "dequeue_delayed_ns",
        "join_ns",
        "pick_entry_ns",
        "tick_resched_ns",
        "clock_lead_ns",
        "tick_lead_ns",
        "tick_budget_lead_ns",
        "pick_fair_ns",
        "tick_pick_fair_ns",
        "set_attr_ns",
        "set_attr_after_ns",
        "group_move_ns",
        "group_lock_ns",
        "group_first_ns",
        "group_fair_ns",
        "group_move_after_ns",
        "group_change_ns",
        "cpu_max_ns",
        "cpu_max_switch_ns",
        "repick_ns",
        "block_entity_ns",
        "idle_tick_ns",
        "lock_hold_ns",
        "lock_transfer_ns",
        "channel_transfer_ns",
        "task_line_ns",
    ];

    #[test]
    fn every_cost_has_a_method_or_a_reason() {
        for name in Costs::NAMES {
            let has_method = METHODS.iter().any(|method| method.name == name);
            let is_memory = PARTS_OF_FORKS_AND_EXITS.contains(&name);
            let is_measured = !is_memory && !NEVER_MEASURED.contains(&name);
            assert_eq!(has_method, is_measured, "{name}");
            assert!(has_method || why_missing(name) != why_missing("fork_ns"), "{name}");
        }
        let mut device = Device::default();
        for method in METHODS {
            let is_device = device::field_mut(&mut device, method.name).is_some();
            assert_ne!(is_device, Costs::NAMES.contains(&method.name), "{}", method.name);
        }
    }
}
