// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks of run queues: how long wake-ups and picks hold them, and which CPUs wait meanwhile.
//!
//! The scheduler defines what a lock protects ([`schedlab_sched::LockDomain`]): the queue of one
//! CPU (`rq->lock`, from 2.5.2 on), or the queue of all CPUs (`runqueue_lock` of 2.4). An operation
//! holds it for `lock_hold_ns`, and for `pick_entry_ns` for each entry that it examines. Taking it
//! from another CPU first costs `lock_transfer_ns`. A CPU that needs a held lock spins. Spinning
//! and transfer are CPU time of the running task, like any cost. The hold is part of the cost of a
//! wake-up or a switch; a pick that keeps the running task costs only that.
//!
//! CPUs that need the lock at the same time get it in the engine's order (the head of `lib.rs`);
//! later ones in order of time. The lock is fair, as locks of later kernels are. In 2.4 a spinning
//! CPU could be overtaken, which moves the wait from one CPU to another.
//!
//! A CPU that spins before a pick picks when it has the lock, among the tasks that are runnable
//! then. Requests to reschedule that arrived meanwhile are done. Until then it runs the task that
//! it is about to take off; that task may be woken before it has left. How long a pick will hold
//! the lock is known only after its search. CPUs that wait for it assume as many entries as in the
//! pick before.
//!
//! With one lock for all CPUs a wake-up takes effect when its waker has the lock. With a lock per
//! CPU it takes effect at once, and the waker spins after that.
//!
//! Several operations of one CPU at one instant follow each other. The cost of a system call passes
//! after its effect, so on all CPUs operations are slightly early.
//!
//! Source: Linux 2.4.17 and 2.6.0, kernel/sched.c (try_to_wake_up, schedule, reschedule_idle,
//! schedule_tail). Left out: locks taken by balancing, ticks, changes of attributes, the launcher;
//! the second lock of a wake-up that moves a task; tasklist_lock and every other lock.

use crate::clock::Due;
use crate::engine::Engine;
use crate::exec::Waiting;
use schedlab_model::{Costs, CpuId, Nanos, TaskId, TraceSink};
use schedlab_sched::{LockDomain, TaskState};

/// One lock.
#[derive(Clone, Copy, Default, Debug)]
struct Lock {
    /// Until when it is held.
    free_at: Nanos,
    /// The CPU that held it last.
    holder: Option<CpuId>,
    /// Entries that the last pick under it examined: the estimate for the next one.
    entries: u32,
    /// CPUs that the last wake-up under it compared: the estimate for the next one.
    compared: u32,
}

/// A wake-up that waits for a lock.
#[derive(Clone, Copy, Debug)]
pub struct LateWake {
    /// The task that is woken.
    pub task: TaskId,
    /// The waker's CPU.
    pub this_cpu: CpuId,
    /// The waker, if it is a task.
    pub waker: Option<TaskId>,
    /// Whether the waker is about to sleep.
    pub sync: bool,
}

/// All locks of a run, if they cost time on this machine.
#[derive(Debug)]
pub struct Locks {
    hold_ns: Nanos,
    transfer_ns: Nanos,
    entry_ns: Nanos,
    /// One lock, or one for each CPU.
    locks: Vec<Lock>,
    /// Whether each CPU spins before a pick; and for those that have the lock, the time of its
    /// transfer.
    spins: Vec<bool>,
    granted: Vec<Option<Nanos>>,
    /// Wake-ups whose wakers spin; and the free places of this list.
    late: Vec<LateWake>,
    late_free: Vec<u32>,
    /// Whether the present wake-up has the lock.
    wake_has_it: bool,
    /// For each CPU that became idle: the end of its unsuccessful pick.
    idle_from: Vec<Nanos>,
    /// Time (ns) that the present pick waited, which the next task is charged for.
    owed: Nanos,
}

/// The time to get a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Waiting while another CPU held it (ns).
    pub wait_ns: Nanos,
    /// Transfer from the CPU that held it last (ns).
    pub transfer_ns: Nanos,
}

impl Taken {
    const fn total(self) -> Nanos {
        self.wait_ns.saturating_add(self.transfer_ns)
    }
}

impl Locks {
    /// The locks of a stack of classes on `nr_cpus` CPUs; `None` if they cost no time.
    pub fn new(costs: &Costs, nr_cpus: u32, domain: LockDomain) -> Option<Self> {
        // A kernel for one CPU has none of these locks.
        if !costs.has_locks() || nr_cpus == 1 {
            return None;
        }
        let nr_locks = if domain == LockDomain::Global { 1 } else { nr_cpus };
        Some(Self {
            hold_ns: costs.lock_hold_ns,
            transfer_ns: costs.lock_transfer_ns,
            entry_ns: costs.pick_entry_ns,
            locks: vec![Lock::default(); nr_locks as usize],
            spins: vec![false; nr_cpus as usize],
            granted: vec![None; nr_cpus as usize],
            idle_from: vec![0; nr_cpus as usize],
            owed: 0,
            late: Vec::new(),
            late_free: Vec::new(),
            wake_has_it: false,
        })
    }

    /// Whether `cpu` spins before a pick.
    pub fn spins(&self, cpu: CpuId) -> bool {
        self.spins[cpu.index()]
    }

    /// Keeps `wake` until its waker has the lock. Returns its number.
    fn keep(&mut self, wake: LateWake) -> u32 {
        if let Some(number) = self.late_free.pop() {
            self.late[number as usize] = wake;
            return number;
        }
        self.late.push(wake);
        self.late.len() as u32 - 1
    }

    /// The lock of the run queue of `cpu`.
    fn of(&mut self, cpu: CpuId) -> &mut Lock {
        let index = if self.locks.len() == 1 { 0 } else { cpu.index() };
        &mut self.locks[index]
    }

    /// `cpu` needs the lock at `now` for a pick. If another CPU holds it, returns when `cpu` gets
    /// it, and the time that this takes.
    fn queue_up(&mut self, cpu: CpuId, now: Nanos) -> Option<(Nanos, Taken)> {
        let lock = self.of(cpu);
        if lock.free_at <= now || lock.holder.is_none_or(|holder| holder == cpu) {
            return None;
        }
        let (begin, entries) = (lock.free_at, lock.entries);
        Some((begin, self.take(cpu, cpu, now, entries)))
    }

    /// `cpu` takes the lock of `queue` at `now`, for an operation that examines `entries`.
    fn take(&mut self, queue: CpuId, cpu: CpuId, now: Nanos, entries: u32) -> Taken {
        let hold = Nanos::from(entries).saturating_mul(self.entry_ns).saturating_add(self.hold_ns);
        let transfer_ns = self.transfer_ns;
        let lock = self.of(queue);
        let begin = now.max(lock.free_at);
        let taken = match lock.holder.replace(cpu) {
            Some(other) if other != cpu => Taken { wait_ns: begin - now, transfer_ns },
            // Its own operation before this one: the time of that is charged already.
            _ => Taken::default(),
        };
        lock.free_at = begin.saturating_add(taken.transfer_ns).saturating_add(hold);
        taken
    }
}

impl<S: TraceSink> Engine<'_, S> {
    /// Takes the lock of `queue` on `cpu` and counts the time. Returns the cost for `cpu`.
    fn take_lock(&mut self, queue: CpuId, cpu: CpuId, entries: u32) -> Nanos {
        let now = self.core.now;
        let Some(locks) = &mut self.locks else { return 0 };
        let taken = locks.take(queue, cpu, now, entries);
        self.count_lock(taken);
        taken.total()
    }

    fn count_lock(&mut self, taken: Taken) {
        self.outcome.nr_lock_waits += u64::from(taken.wait_ns > 0);
        self.outcome.lock_wait_ns += taken.wait_ns;
        self.outcome.lock_transfer_ns += taken.transfer_ns;
    }

    /// Whether `cpu` keeps a task that is about to leave: it spins for the lock of its run queue,
    /// or searches for tasks.
    #[inline]
    pub(crate) fn keeps_task(&self, cpu: CpuId) -> bool {
        self.locks.as_ref().is_some_and(|locks| locks.spins(cpu))
            || self.searches.as_ref().is_some_and(|searches| searches.runs(cpu))
    }

    /// Whether `cpu` must spin before its pick. If so, it spins while it runs its task, and picks
    /// when it has the lock. The exit of a task does not wait.
    #[inline(never)]
    pub(crate) fn must_spin(&mut self, cpu: CpuId) -> bool {
        let now = self.core.now;
        let prev = self.core.rq(cpu).curr;
        let is_dead = prev.is_some_and(|prev| self.core.task(prev).state == TaskState::Dead);
        let Some(locks) = &mut self.locks else { return false };
        if locks.spins[cpu.index()] {
            return true;
        }
        if is_dead || locks.granted[cpu.index()].is_some() {
            return false;
        }
        let Some((begin, taken)) = locks.queue_up(cpu, now) else { return false };
        debug_assert!(begin > now, "CPU {cpu} spins at {now} for a lock that is free at {begin}");
        locks.spins[cpu.index()] = true;
        locks.granted[cpu.index()] = Some(taken.transfer_ns);
        self.count_lock(taken);
        self.core.park_resched(cpu);
        self.clock.events.push(begin, Due::LockTaken(cpu));
        if let Some(prev) = prev {
            self.keep_rest(cpu, prev);
            self.clock.burst_ends.set(cpu, Nanos::MAX);
        }
        true
    }

    /// `cpu` got the lock that it waited for, and picks now.
    pub(crate) fn lock_taken(&mut self, cpu: CpuId) {
        if let Some(locks) = &mut self.locks {
            let spun = std::mem::take(&mut locks.spins[cpu.index()]);
            assert!(spun, "CPU {cpu} gets a lock for which it does not spin");
            assert!(locks.granted[cpu.index()].is_some(), "CPU {cpu} got no lock");
        }
        self.restart_kept(cpu);
        self.schedule(cpu);
    }

    /// `cpu` is done with what it kept its task for, and the task has its burst again.
    pub(crate) fn restart_kept(&mut self, cpu: CpuId) {
        if let Some(prev) = self.core.rq(cpu).curr {
            let rest = self.tasks[prev].remaining;
            self.start_owed_burst(cpu, prev, 0, rest);
        }
    }

    /// Whether `task` is woken while its CPU keeps it to take it off. It is then still running.
    pub(crate) fn wakes_kept(
        &mut self,
        task: TaskId,
        this_cpu: CpuId,
        waker: Option<TaskId>,
    ) -> bool {
        if !self.core.is_running(task) {
            return false;
        }
        self.core.tasks[task.index()].state = TaskState::Running;
        self.tasks[task].waiting = Waiting::No;
        self.lock_wakeup(self.core.task(task).cpu, this_cpu, waker);
        true
    }

    /// `waker`, which runs on `this_cpu`, put a task on the runqueue of `queue`. Without a waker an
    /// interrupt did, and the running task loses the time.
    #[inline(never)]
    pub(crate) fn lock_wakeup(&mut self, queue: CpuId, this_cpu: CpuId, waker: Option<TaskId>) {
        let entries = std::mem::take(&mut self.core.work.cpus_compared);
        let looks = Nanos::from(entries).saturating_mul(self.costs.pick_entry_ns);
        let has_it = self.locks.as_ref().is_some_and(|locks| locks.wake_has_it);
        let pay = if has_it { 0 } else { self.take_lock(queue, this_cpu, entries) };
        if let Some(locks) = &mut self.locks {
            locks.of(queue).compared = entries;
        }
        self.pay_for_wakeup(this_cpu, waker, pay.saturating_add(looks));
    }

    fn pay_for_wakeup(&mut self, this_cpu: CpuId, waker: Option<TaskId>, ns: Nanos) {
        match waker {
            Some(waker) => self.charge(waker, ns),
            None => self.lose(this_cpu, ns),
        }
    }

    /// A wake-up begins. Returns whether it takes effect later, because its CPU spins for the only
    /// lock.
    #[inline(never)]
    pub(crate) fn wakes_later(&mut self, wake: LateWake) -> bool {
        let now = self.core.now;
        let Some(locks) = &mut self.locks else { return false };
        let lock = *locks.of(wake.this_cpu);
        let is_free = lock.free_at <= now || lock.holder.is_none_or(|cpu| cpu == wake.this_cpu);
        if locks.locks.len() > 1 || is_free {
            return false;
        }
        let taken = locks.take(wake.this_cpu, wake.this_cpu, now, lock.compared);
        let begin = now.saturating_add(taken.total());
        self.clock.events.push(begin, Due::WakeTaken(locks.keep(wake)));
        self.count_lock(taken);
        self.pay_for_wakeup(wake.this_cpu, wake.waker, taken.total());
        true
    }

    /// The waker of late wake-up `number` got the lock that it waited for.
    pub(crate) fn wake_taken(&mut self, number: u32) {
        let Some(locks) = &mut self.locks else { return };
        debug_assert!(!locks.late_free.contains(&number), "late wake-up {number} came twice");
        locks.late_free.push(number);
        let LateWake { task, this_cpu, waker, sync } = locks.late[number as usize];
        self.set_wake_has_it(true);
        self.wake_now(task, this_cpu, waker, sync);
        self.set_wake_has_it(false);
        self.interrupt_returns(this_cpu);
    }

    fn set_wake_has_it(&mut self, has_it: bool) {
        if let Some(locks) = &mut self.locks {
            assert_ne!(locks.wake_has_it, has_it, "a late wake-up within another");
            locks.wake_has_it = has_it;
        }
    }

    /// `cpu` picked `next` after `prev`. The next task is charged for the pick, except for the
    /// entries.
    #[inline(never)]
    pub(crate) fn lock_choice(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let work = self.core.work;
        let unlocked = std::mem::take(&mut self.core.work.entries_unlocked);
        let spun = self.locks.as_ref().is_some_and(|locks| locks.granted[cpu.index()].is_some());
        if prev.is_none() && next.is_none() && work.entries_scanned == 0 && !spun {
            return;
        }
        let entries = work.entries_scanned.saturating_sub(unlocked);
        let granted = self.locks.as_mut().and_then(|locks| locks.granted[cpu.index()].take());
        let pay = granted.unwrap_or_else(|| self.take_lock(cpu, cpu, entries));
        let hold_ns = self.costs.lock_hold_ns;
        let (now, idles) = (self.core.now, next.is_none());
        let Some(locks) = &mut self.locks else { return };
        locks.of(cpu).entries = entries;
        if idles {
            // An idle task pays for nothing: it is idle later.
            let looks = Nanos::from(work.entries_scanned).saturating_mul(locks.entry_ns);
            let end = now.saturating_add(pay).saturating_add(hold_ns).saturating_add(looks);
            locks.idle_from[cpu.index()] = end;
            debug_assert_eq!(locks.owed, 0, "CPU {cpu} idles, and nobody pays for its choice");
        } else if prev == next {
            // No switch pays for the hold.
            self.lose(cpu, pay.saturating_add(hold_ns));
        } else {
            debug_assert_eq!(locks.owed, 0, "nobody has paid for the choice before");
            locks.owed = pay;
        }
    }

    /// After the switch, `cpu` searched another CPU for the task that left it.
    #[inline(never)]
    pub(crate) fn lock_callbacks(&mut self, cpu: CpuId) {
        let entries = std::mem::take(&mut self.core.work.cpus_compared);
        if entries > 0 {
            let looks = Nanos::from(entries).saturating_mul(self.costs.pick_entry_ns);
            let pay = self.take_lock(cpu, cpu, entries).saturating_add(looks);
            self.lose(cpu, pay);
        }
    }

    /// Time (ns) of the lock that the task that `cpu` switches to is charged for. After idle, also
    /// the rest of the unsuccessful pick.
    #[inline(never)]
    pub(crate) fn lock_debt(&mut self, cpu: CpuId, from_idle: bool) -> Nanos {
        let now = self.core.now;
        let Some(locks) = &mut self.locks else { return 0 };
        let rest = locks.idle_from[cpu.index()].saturating_sub(now);
        std::mem::take(&mut locks.owed).saturating_add(if from_idle { rest } else { 0 })
    }

    /// The running task of `cpu`, if there is one, loses `ns`.
    pub(crate) fn lose(&mut self, cpu: CpuId, ns: Nanos) {
        if ns > 0 && self.core.rq(cpu).curr.is_some() {
            self.extend_burst(cpu, ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locks(nr_locks: usize) -> Locks {
        Locks {
            hold_ns: 100,
            transfer_ns: 30,
            entry_ns: 7,
            locks: vec![Lock::default(); nr_locks],
            spins: vec![false; 4],
            granted: vec![None; 4],
            idle_from: vec![0; 4],
            owed: 0,
            late: Vec::new(),
            late_free: Vec::new(),
            wake_has_it: false,
        }
    }

    const fn taken(wait_ns: Nanos, transfer_ns: Nanos) -> Taken {
        Taken { wait_ns, transfer_ns }
    }

    #[test]
    fn cpus_that_come_together_wait_for_all_before_them() {
        let mut one = locks(1);
        let waits = [0, 1, 2, 3].map(|cpu| one.take(CpuId(cpu), CpuId(cpu), 50, 0));
        // The n-th waits for n holds and for the transfers of all but the first.
        assert_eq!(waits, [taken(0, 0), taken(100, 30), taken(230, 30), taken(360, 30)]);
        // 590 = 50 + 4 x 100 + 3 x 30 + 50 of a late comer that waits for nobody.
        assert_eq!(one.take(CpuId(0), CpuId(0), 640, 10), taken(0, 30));
        assert_eq!(one.take(CpuId(1), CpuId(1), 641, 0), taken(30 + 100 + 70 - 1, 30));
    }

    #[test]
    fn a_cpu_does_not_wait_for_itself_but_others_do() {
        let mut one = locks(1);
        assert_eq!([0; 3].map(|at| one.take(CpuId(2), CpuId(2), at, 0)), [taken(0, 0); 3]);
        assert_eq!(one.take(CpuId(2), CpuId(1), 0, 0), taken(300, 30));
    }

    #[test]
    fn locks_of_different_cpus_have_nothing_to_do_with_each_other() {
        let mut each = locks(4);
        let waits = [0, 1, 2, 3].map(|cpu| each.take(CpuId(cpu), CpuId(cpu), 50, 9));
        assert_eq!(waits, [taken(0, 0); 4]);
        // A wake-up takes the lock of the CPU that gets the task.
        assert_eq!(each.take(CpuId(3), CpuId(0), 60, 0), taken(153, 30));
    }
}
