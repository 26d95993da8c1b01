// SPDX-License-Identifier: MIT OR Apache-2.0
//! The release of tasks at their times.
//!
//! Tasks with one release time sleep on one futex word, in the order of their numbers, so that one
//! call wakes them. A run begins with a tick, as in the simulator: whether a task wakes before
//! or after a tick decides which task gets the first slice, and with it the following rhythm.
//!
//! Waking takes time. A launcher that has the only CPU of the run, with a policy above the tasks',
//! wakes the first ones shortly before that tick and keeps the CPU until it. The run begins with
//! all of them runnable and its own work done. Tasks of SCHED_DEADLINE, which would take the CPU
//! from it, are woken after the tick.
//!
//! In a guest, time 0 is planned before the roll call, and tasks with a later release sleep until
//! it themselves. A launcher that woke them took a CPU of the run for 0.1 ms each time.

use super::{Launcher, Stop};
use crate::sys;
use schedlab_model::Policy;
use std::sync::atomic::Ordering;

/// Time before the tick at which the launcher begins to wake tasks: this much (ns), and this much
/// for each of them, at most half a tick.
const LEAD_NS: u64 = 200_000;
const LEAD_PER_TASK_NS: u64 = 15_000;

/// Time (ns) for the last preparations of each CPU before that.
const RENEWING_NS: u64 = 2_000_000;

/// When which tasks are released.
#[derive(Debug)]
pub(super) struct Release {
    /// Time of each task, in order.
    times_ns: Vec<u64>,
    /// Index of the task on whose word each task waits: the first with the same release time, and
    /// in the same class.
    words: Vec<u32>,
    /// The first task that is not released yet.
    next: usize,
}

impl Release {
    /// A release of tasks with these times (in order); the other half of each pair tells whether a
    /// task has the policy SCHED_DEADLINE.
    fn new(tasks: &[(u64, bool)]) -> Self {
        let mut words: Vec<u32> = Vec::with_capacity(tasks.len());
        // The last word of either class, with its time.
        let mut last: [Option<(u64, u32)>; 2] = [None; 2];
        for (index, (time_ns, is_deadline)) in tasks.iter().enumerate() {
            let last = &mut last[usize::from(*is_deadline)];
            let word = last.filter(|(of, _)| of == time_ns).map_or(index as u32, |(_, word)| word);
            *last = Some((*time_ns, word));
            words.push(word);
        }
        Self { times_ns: tasks.iter().map(|(time_ns, _)| *time_ns).collect(), words, next: 0 }
    }

    /// The task on whose word this one waits.
    pub fn word_of(&self, index: u32) -> u32 {
        self.words[index as usize]
    }

    /// Number of tasks.
    pub fn count(&self) -> u32 {
        self.words.len() as u32
    }

    /// Time of the last release after time 0 (ns).
    pub fn last_ns(&self) -> u64 {
        self.times_ns.last().copied().unwrap_or(0)
    }

    /// Leaves tasks that are not released yet to themselves.
    pub fn leave_rest(&mut self) {
        self.next = self.times_ns.len();
    }

    /// Time of the next release after time 0 (ns), if one is left.
    pub fn next_ns(&self) -> Option<u64> {
        self.times_ns.get(self.next).copied()
    }

    /// The tasks that wait on the word of task `word`.
    fn sharers(&self, word: u32) -> impl Iterator<Item = u32> {
        (word..self.count()).filter(move |index| self.words[*index as usize] == word)
    }

    /// The words of the tasks that are released next, which count as released from now on.
    fn take_next(&mut self) -> Vec<u32> {
        let first = self.next;
        let time_ns = self.times_ns[first];
        self.next += self.times_ns[first..].iter().take_while(|of| **of == time_ns).count();
        (first..self.next)
            .filter(|at| self.words[*at] as usize == *at)
            .map(|at| at as u32)
            .collect()
    }
}

impl Launcher<'_> {
    /// The release of the run's tasks.
    pub(super) fn plan_release(&self) -> Release {
        let tasks: Vec<(u64, bool)> = (self.plan.released().iter())
            .map(|(spec, time_ns)| (*time_ns, self.is_deadline(*spec)))
            .collect();
        Release::new(&tasks)
    }

    fn is_deadline(&self, spec: u32) -> bool {
        self.plan.attr(spec).policy == Policy::Deadline
    }

    /// Moves the tasks with one word to it, in the order of their numbers. Before, each sleeps on
    /// its own word.
    pub(super) fn line_up(&self, release: &Release) {
        let leaves_rest = self.memory.header().planned_ns.load(Ordering::Relaxed) > 0;
        for (index, word) in (0..release.count()).map(|index| (index, release.word_of(index))) {
            let is_left = leaves_rest && release.times_ns[index as usize] > 0;
            if index != word && !is_left {
                let own = &self.memory.slot(index).go;
                sys::futex_requeue(own, &self.memory.slot(word).go);
            }
        }
    }

    /// Plans time 0, if the pace asks for calm before it: tasks with a later release see it when
    /// they are woken next. Returns whether it did.
    pub(super) fn plan_zero(&self) -> bool {
        let calm_ns = self.plan.pace.calm_ns;
        if calm_ns > 0 {
            // The first tick after an idle time may have come when the launcher was woken.
            next_tick();
            let (tick_ns, now_ns) = (sys::tick_ns(), next_tick());
            let calm_ns = match self.plan.pace.beat {
                None => calm_ns.next_multiple_of(tick_ns),
                // The tick next to the beat.
                Some(beat) => {
                    let rest_ns = beat.first_from(now_ns + calm_ns) - now_ns;
                    (rest_ns + tick_ns / 2) / tick_ns * tick_ns
                }
            };
            let zero_ns = now_ns + calm_ns;
            self.memory.header().planned_ns.store(zero_ns, Ordering::Release);
        }
        calm_ns > 0
    }

    /// Begins the run at a tick, and releases what is released at time 0. Returns time 0
    /// (CLOCK_MONOTONIC, ns).
    pub(super) fn release_first(&self, release: &mut Release) -> Result<u64, Stop> {
        let header = self.memory.header();
        let planned_ns = header.planned_ns.load(Ordering::Relaxed);
        let is_alone = self.plan.cpus.weight() == 1 && self.plan.cpus == self.plan.launcher_cpus;
        let comes_early = is_alone && self.outranks;
        let words = match release.next_ns() {
            Some(0) => release.take_next(),
            _ => Vec::new(),
        };
        let (early, later): (Vec<u32>, Vec<u32>) = (words.into_iter()).partition(|word| {
            let spec = self.memory.slot(*word).spec.load(Ordering::Relaxed);
            comes_early && !self.is_deadline(spec)
        });
        let nr = early.iter().map(|word| release.sharers(*word).count() as u64).sum::<u64>();
        let lead_ns = (LEAD_NS + nr * LEAD_PER_TASK_NS).min(sys::tick_ns() / 2);
        // Sleep until shortly before a later tick: a launcher that waits for it without sleeping
        // uses up time that real-time tasks may have in a second.
        let tick_ns = if planned_ns > 0 { planned_ns } else { next_tick() + sys::tick_ns() };
        self.calm_down(tick_ns - lead_ns)?;
        // From here on a task that wakes belongs to the run.
        header.early_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        for word in &early {
            self.wake_sharers(release, *word);
        }
        let zero_ns = if planned_ns > 0 { spin_until(planned_ns) } else { next_tick() };
        header.zero_ns.store(zero_ns, Ordering::Relaxed);
        for word in early {
            self.note_release(release, word, zero_ns);
        }
        for word in later {
            self.note_release(release, word, zero_ns);
            self.wake_sharers(release, word);
        }
        Ok(zero_ns)
    }

    /// Sleeps until a time, and lets nothing remain of the setup, if the pace asks for calm.
    fn calm_down(&self, until_ns: u64) -> Result<(), Stop> {
        let sleep_until = |ns: u64| match ns.saturating_sub(sys::monotonic_ns()) {
            0 => Ok(()),
            rest => self.pause(rest),
        };
        // Kernels with CFS have no servers. To look for one there would leave RCU a name to free,
        // whose thread then preempts the first tasks.
        let may_have_servers = self.outranks && !self.outruns && !self.lends_policy;
        let nr_cpus = u64::from(self.plan.cpus.weight());
        if self.plan.pace.calm_ns > 0 && (may_have_servers || nr_cpus > 1) {
            sleep_until(until_ns.saturating_sub(nr_cpus * RENEWING_NS))?;
            if may_have_servers {
                self.renew_servers()?;
            }
            if nr_cpus > 1 {
                self.end_turns();
            }
        }
        sleep_until(until_ns)
    }

    /// Releases the tasks with the next release time.
    pub(super) fn release_next(&self, release: &mut Release) {
        for word in release.take_next() {
            self.note_release(release, word, sys::monotonic_ns());
            self.wake_sharers(release, word);
        }
    }

    fn note_release(&self, release: &Release, word: u32, at_ns: u64) {
        for index in release.sharers(word) {
            self.memory.slot(index).released_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    fn wake_sharers(&self, release: &Release, word: u32) {
        let go = &self.memory.slot(word).go;
        go.store(1, Ordering::Release);
        if (sys::futex_wake_all(go) as usize) < release.sharers(word).count() {
            // A task was stopped and continued meanwhile, and sleeps on its own word again.
            for index in release.sharers(word) {
                let own = &self.memory.slot(index).go;
                own.store(1, Ordering::Release);
                sys::futex_wake_all(own);
            }
        }
    }
}

/// Waits for a time (CLOCK_MONOTONIC, ns) and returns it.
fn spin_until(at_ns: u64) -> u64 {
    while sys::monotonic_ns() < at_ns {
        std::hint::spin_loop();
    }
    at_ns
}

/// Time (ns) after the last reading of the clock before a tick at which a run begins: timers of
/// whole ticks after that come after their tick.
const AFTER_TICK_NS: u64 = 2_000;

/// Waits for a tick and returns its time, or little more: the tick itself takes a kernel some
/// microseconds. Continues without a tick after twice its length.
fn next_tick() -> u64 {
    let (before, start) = (sys::last_tick_ns(), sys::monotonic_ns());
    let longest = 2 * sys::tick_ns();
    // A reading of the clock after which the tick had not come: the tick itself takes 20 us of a
    // guest, so a reading that it may have interrupted does not tell when it was.
    let mut last = start;
    loop {
        let now = sys::monotonic_ns();
        if sys::last_tick_ns() != before || now - start > longest {
            // The clock again: the first reading may be from before the tick.
            return sys::monotonic_ns().min(last + AFTER_TICK_NS);
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_with_a_tick() {
        // The coarse clock changes at a tick, but not to its time, so compare the times with each
        // other. Six in a row by chance are as likely as one in 100,000. Other load may come
        // between them.
        let tick = sys::tick_ns();
        let off = |pair: &[u64]| (pair[1] - pair[0]) % tick;
        let are_ticks = |_| {
            let times: Vec<u64> = (0..6).map(|_| next_tick()).collect();
            times.windows(2).all(|pair| off(pair).min(tick - off(pair)) < tick / 20)
        };
        assert!((0..100).any(are_ticks));
        assert!(next_tick() < sys::monotonic_ns() + 1);
    }

    #[test]
    fn tasks_with_one_release_time_and_class_share_one_word() {
        let fair = |time_ns| (time_ns, false);
        let mut release = Release::new(&[fair(0), fair(0), fair(5), fair(5), fair(9)]);
        assert_eq!(release.words, [0, 0, 2, 2, 4]);
        assert_eq!((release.take_next(), release.next_ns()), (vec![0], Some(5)));
        assert_eq!((release.take_next(), release.next_ns()), (vec![2], Some(9)));
        assert_eq!((release.take_next(), release.next_ns()), (vec![4], None));
        let deadline = |time_ns| (time_ns, true);
        let tasks = [fair(0), deadline(0), fair(0), deadline(0), fair(3), deadline(3)];
        let mut release = Release::new(&tasks);
        assert_eq!(release.words, [0, 1, 0, 1, 4, 5]);
        assert_eq!(release.take_next(), [0, 1]);
        assert_eq!(release.sharers(1).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(release.take_next(), [4, 5]);
    }
}
