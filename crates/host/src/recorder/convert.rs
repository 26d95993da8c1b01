// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts records and marks to the model's events, and adds up the run delay for a check.
//!
//! Pids become task numbers. A task's number is its slot in the run's memory; descendants of
//! commands have no slot and get the numbers after the copies. Time 0 is the release; earlier
//! events are not part of the run, except that wake-ups for the release which the launcher makes
//! shortly before it get time 0. The wake-up that ends the hold of a task is its release and
//! becomes a Fork event, so that the trace starts like the simulator's.
//!
//! Rules of the kernel (kernel/sched/stats.h): a wait starts when a task is put on a queue by a
//! wake-up, creation or preemption, and ends when it is switched in. A wake-up of a task that is
//! still queued or running starts no wait and is not an event.
//!
//! A switch that the kernel did not trace is *inferred* when its task leaves the CPU
//! ([`Recorded::Unseen`]). It gets the time of the scheduler's own accounts, is counted, and a
//! warning reports it. If the task was asleep before, it must have been woken: that wake-up gets
//! the same time. A task that left without a traced switch counts as preempted, unless its next
//! event is a wake-up: then it slept. If it has no later event and was reaped, it exited there.
//!
//! A task marks the object on which it is about to block. The event is right before the switch with
//! which it blocks. A mark that no sleep follows gives no event.

use super::merge::Item;
use super::pids::PidTable;
use super::reorder::Reorder;
use super::ring::{Record, Recorded};
use crate::memory::{Mark, RunMemory};
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The number for a pid without a task.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Held,
    Queued,
    Running,
    Sleeping,
    /// It left a CPU without a traced switch, and is assumed to be queued.
    Gone,
    Dead,
}

/// Sums of the trace for one task, for comparison with the kernel's own counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceAccount {
    state: State,
    since_ns: u64,
    /// CPU it last ran on.
    cpu: u32,
    is_yielding: bool,
    /// Object on which it is about to block. The next sleep is that wait.
    blocks_on: Option<ObjectId>,
    /// Time on a CPU.
    pub run_ns: Nanos,
    /// Time runnable but not running.
    pub run_delay_ns: Nanos,
    /// Waits that make up the run delay.
    pub nr_waits: u64,
    /// Whether the present wait began with a wake-up.
    was_woken: bool,
    /// The part of the run delay that the kernel counts as run time: [`Self::kernel_delay_ns`].
    unseen_ns: Nanos,
}

/// CPU time of a task outside of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OtherTime {
    /// Time on CPUs of the run (ns).
    pub cpu_ns: Nanos,
    /// How often it came to one.
    pub nr_turns: u64,
}

/// Longest wait (ns) that counts as "switched to at once" after a wake-up.
const AT_ONCE_NS: u64 = 50_000;

impl TraceAccount {
    const NEW: Self = Self {
        state: State::Held,
        since_ns: 0,
        cpu: 0,
        is_yielding: false,
        blocks_on: None,
        run_ns: 0,
        run_delay_ns: 0,
        nr_waits: 0,
        was_woken: false,
        unseen_ns: 0,
    };

    /// Run delay (ns) by the kernel's clock rule, for comparison with schedstat.
    ///
    /// When a wake-up preempts the running task (or ends idling), the kernel does not read the
    /// clock again for the switch (kernel/sched/core.c, `wakeup_preempt`: `rq_clock_skip_update`).
    /// That wait is then 0 in its accounts and counts as run time. The trace has the true length.
    pub fn kernel_delay_ns(&self) -> Nanos {
        self.run_delay_ns - self.unseen_ns
    }

    fn enter(&mut self, state: State, now_ns: u64) {
        let past = now_ns.saturating_sub(self.since_ns);
        match self.state {
            State::Queued | State::Gone => {
                self.run_delay_ns += past;
                self.nr_waits += 1;
            }
            State::Running => self.run_ns += past,
            _ => {}
        }
        self.was_woken = matches!(self.state, State::Held | State::Sleeping);
        self.state = state;
        self.since_ns = now_ns;
    }

    /// Handles the task being switched in on `cpu`. `preempts`: it replaces a task that was still
    /// runnable, or idle.
    fn switch_in(&mut self, now_ns: u64, cpu: u32, preempts: bool) {
        let wait_ns = now_ns.saturating_sub(self.since_ns);
        if self.state == State::Queued && self.was_woken && preempts && wait_ns < AT_ONCE_NS {
            self.unseen_ns += wait_ns;
        }
        self.enter(State::Running, now_ns);
        self.cpu = cpu;
    }
}

/// The names of tasks.
pub trait Names {
    /// Name and description of the task in slot `index`; `nth` counts the tasks of its description
    /// that were forked.
    fn task(&self, index: u32, spec: u32, nth: u32) -> TaskInfo;
    /// Objects that tasks may block on, by number.
    fn objects(&self) -> Vec<ObjectInfo> {
        Vec::new()
    }
    /// Name of a task without a slot.
    fn stranger(&self, pid: u32, parent: Option<&str>) -> TaskInfo;
}

/// The converter of one run.
pub struct Converter<'a> {
    memory: &'a RunMemory,
    names: &'a dyn Names,
    sink: Reorder<'a>,
    /// Task number by pid.
    numbers: PidTable,
    announced: Vec<String>,
    /// Slots, from `nr_launched` on, whose creation was seen in the trace.
    is_created: Vec<bool>,
    nr_launched: u32,
    has_slots: bool,
    zero_ns: u64,
    /// From this time on, tasks are woken for the release at time 0.
    early_ns: u64,
    /// After this time (CLOCK_MONOTONIC) events only count for the sums.
    pub end_ns: u64,
    /// Sums by task number. They continue until the task is dead, beyond the end of the run.
    pub accounts: Vec<TraceAccount>,
    /// Events passed on.
    pub nr_events: u64,
    /// Events lost.
    pub nr_lost: u64,
    /// Switches and wake-ups that the kernel did not trace and that were inferred.
    pub nr_inferred: u64,
    /// Time of tasks outside of the run on CPUs of the run, by pid.
    pub others: BTreeMap<u32, OtherTime>,
    /// Tasks that run without a traced switch, until the record tells since when: CPU, task number,
    /// and the task that was assumed to run.
    unseen: Vec<(u32, u32, u32)>,
}

impl<'a> Converter<'a> {
    /// A converter for a run whose launcher starts `nr_launched` tasks. `has_slots`: forked tasks
    /// have slots too (a workload). Otherwise they have none (a command).
    pub fn new(
        memory: &'a RunMemory,
        names: &'a dyn Names,
        sink: &'a mut dyn TraceSink,
        nr_launched: u32,
        has_slots: bool,
    ) -> Self {
        Self {
            memory,
            names,
            sink: Reorder::new(sink),
            numbers: PidTable::default(),
            announced: Vec::new(),
            is_created: Vec::new(),
            nr_launched,
            has_slots,
            zero_ns: 0,
            early_ns: 0,
            end_ns: u64::MAX,
            accounts: Vec::new(),
            nr_events: 0,
            nr_lost: 0,
            nr_inferred: 0,
            others: BTreeMap::new(),
            unseen: Vec::new(),
        }
    }

    /// Handles time 0 being known: reads the pids of the held tasks and announces them. `early_ns`:
    /// when their release began, if before time 0.
    pub fn begin(&mut self, zero_ns: u64, early_ns: Option<u64>) {
        self.zero_ns = zero_ns;
        self.early_ns = early_ns.unwrap_or(zero_ns);
        for (number, info) in self.names.objects().iter().enumerate() {
            self.sink.object(ObjectId(number as u32), info);
        }
        for index in 0..self.nr_launched {
            let pid = self.memory.slot(index).pid.load(Ordering::Acquire);
            self.announce_up_to(index);
            self.numbers.insert(pid, index);
        }
    }

    #[inline]
    fn number(&self, pid: u32) -> u32 {
        self.numbers.get(pid).unwrap_or(NONE)
    }

    /// Announces every task up to slot `index`, in order.
    fn announce_up_to(&mut self, index: u32) {
        while self.announced.len() as u32 <= index {
            let number = self.announced.len() as u32;
            let slot = self.memory.slot(number);
            let spec = slot.spec.load(Ordering::Relaxed);
            let nth = slot.nth.load(Ordering::Relaxed);
            let mut info = self.names.task(number, spec, nth);
            info.pid = slot.pid.load(Ordering::Acquire);
            self.add(info);
        }
    }

    fn add(&mut self, info: TaskInfo) {
        self.sink.task(TaskId(self.announced.len() as u32), &info);
        self.announced.push(info.name);
        self.accounts.push(TraceAccount::NEW);
    }

    /// Number of a new task.
    fn newcomer(&mut self, pid: u32, parent: u32) -> u32 {
        let number = if self.has_slots {
            let Some(index) = self.slot_of(pid, parent) else { return NONE };
            self.announce_up_to(index);
            index
        } else {
            let parent_name = self.announced.get(parent as usize).cloned();
            let info = self.names.stranger(pid, parent_name.as_deref());
            self.add(info);
            self.announced.len() as u32 - 1
        };
        self.numbers.insert(pid, number);
        number
    }

    /// The slot of a new task. Its parent took the slot before it forked and stores the pid after.
    /// The slot is the one with this pid; or, if it is not stored yet, the parent's first one
    /// without a pid.
    fn slot_of(&mut self, pid: u32, parent: u32) -> Option<u32> {
        let open = (self.memory.nr_slots().saturating_sub(self.nr_launched)) as usize;
        self.is_created.resize(open.max(self.is_created.len()), false);
        let free = || (0..open).filter(|&at| !self.is_created[at]);
        let slot = |at: usize| self.memory.slot(self.nr_launched + at as u32);
        let at = free().find(|&at| slot(at).pid.load(Ordering::Acquire) == pid).or_else(|| {
            free().find(|&at| {
                slot(at).pid.load(Ordering::Acquire) == 0
                    && slot(at).parent.load(Ordering::Relaxed) == parent
            })
        })?;
        self.is_created[at] = true;
        Some(self.nr_launched + at as u32)
    }

    /// Converts one item of the merged stream.
    pub fn item(&mut self, time_ns: u64, item: Item) {
        if time_ns < self.early_ns {
            return;
        }
        match item {
            Item::Kernel(record) => self.record(time_ns, &record),
            Item::Own(task, mark) => self.mark(time_ns, task, mark),
        }
    }

    fn event(&mut self, time_ns: u64, cpu: u32, kind: EventKind) {
        if time_ns <= self.end_ns {
            self.nr_events += 1;
            let time_ns = time_ns.saturating_sub(self.zero_ns);
            self.sink.event(Event { time_ns, cpu: CpuId(cpu), kind });
        }
    }

    fn record(&mut self, time_ns: u64, record: &Record) {
        let cpu = record.cpu();
        match record.decode() {
            Some(Recorded::Switch { prev, next, out }) => {
                self.switch(time_ns, cpu, prev, next, out);
            }
            Some(Recorded::Wakeup { pid, waker }) => self.wakeup(time_ns, cpu, pid, waker),
            Some(Recorded::New { pid, parent }) => self.new_task(time_ns, cpu, pid, parent),
            Some(Recorded::Migrate { pid, from }) => {
                let task = self.number(pid);
                if self.is_released(task) {
                    let kind = EventKind::Migrate { task: TaskId(task), from: CpuId(from) };
                    self.event(time_ns, cpu, kind);
                }
            }
            Some(Recorded::Unseen { pid, instead }) => {
                self.unseen.push((cpu, self.number(pid), self.number(instead)));
            }
            Some(Recorded::Ago { ago_ns }) => {
                if let Some(at) = self.unseen.iter().position(|(on, ..)| *on == cpu) {
                    let (_, task, instead) = self.unseen.swap_remove(at);
                    self.infer(time_ns, time_ns.saturating_sub(ago_ns), cpu, task, instead);
                }
            }
            Some(Recorded::Lost { count }) => {
                self.nr_lost += u64::from(count);
                self.event(time_ns, cpu, EventKind::Lost { count });
            }
            Some(Recorded::Other { pid, ran_ns }) => self.other(time_ns, pid, ran_ns),
            None => {}
        }
    }

    /// Only the part within the run counts.
    fn other(&mut self, time_ns: u64, pid: u32, ran_ns: u32) {
        let came_ns = time_ns.saturating_sub(ran_ns.into()).max(self.zero_ns);
        let ran_ns = time_ns.min(self.end_ns).saturating_sub(came_ns);
        if ran_ns > 0 {
            let time = self.others.entry(pid).or_default();
            time.cpu_ns += ran_ns;
            time.nr_turns += 1;
        }
    }

    fn is_released(&self, task: u32) -> bool {
        self.accounts.get(task as usize).is_some_and(|account| account.state != State::Held)
    }

    fn switch(&mut self, time_ns: u64, cpu: u32, prev: u32, next: u32, out: SwitchOut) {
        let (prev_pid, mut out) = (prev, out);
        let [prev, next] = [prev, next].map(|pid| self.number(pid));
        let prev = Some(prev).filter(|task| self.is_released(*task));
        let next = Some(next).filter(|task| self.is_released(*task));
        if prev.is_none() && next.is_none() {
            return;
        }
        if let Some(task) = next {
            self.wake_unseen(time_ns, cpu, task);
        }
        match prev {
            None => out = SwitchOut::Idle,
            Some(task) => {
                let account = &mut self.accounts[task as usize];
                if out == SwitchOut::Preempted && account.is_yielding {
                    out = SwitchOut::Yielded;
                }
                let sleeps = matches!(out, SwitchOut::Sleeping | SwitchOut::BlockedIo);
                let blocks_on = account.blocks_on.take_if(|_| sleeps);
                account.enter(
                    match out {
                        SwitchOut::Preempted | SwitchOut::Yielded => State::Queued,
                        SwitchOut::Dead => State::Dead,
                        _ => State::Sleeping,
                    },
                    time_ns,
                );
                if let Some(object) = blocks_on {
                    self.event(time_ns, cpu, EventKind::Block { task: TaskId(task), object });
                }
                if out == SwitchOut::Dead {
                    self.numbers.remove(prev_pid);
                    self.event(time_ns, cpu, EventKind::Exit { task: TaskId(task) });
                }
            }
        }
        if let Some(task) = next {
            let preempts =
                !matches!(out, SwitchOut::Sleeping | SwitchOut::BlockedIo | SwitchOut::Dead);
            self.accounts[task as usize].switch_in(time_ns, cpu, preempts);
        }
        let kind = EventKind::Switch { prev: prev.map(TaskId), next: next.map(TaskId), out };
        self.event(time_ns, cpu, kind);
    }

    /// Infers switches: `task` (or none of the run) ran on `cpu` up to now, without a traced switch
    /// since `came_ns`; `instead` (or none) was assumed to run there.
    fn infer(&mut self, now_ns: u64, came_ns: u64, cpu: u32, task: u32, instead: u32) {
        let account = |number: u32| self.accounts.get(number as usize);
        let prev = account(instead).filter(|a| a.state == State::Running && a.cpu == cpu);
        let next = account(task)
            .filter(|a| matches!(a.state, State::Queued | State::Gone | State::Sleeping));
        // Not before the last event of either: the clocks of scheduler and trace differ slightly.
        let known_ns = prev.iter().chain(&next).map(|a| a.since_ns).max();
        let (Some(known_ns), prev, next) = (known_ns, prev.is_some(), next.is_some()) else {
            return;
        };
        let at_ns = came_ns.clamp(known_ns, now_ns.max(known_ns));
        let mut out = SwitchOut::Idle;
        if prev {
            out = SwitchOut::Preempted;
            self.accounts[instead as usize].enter(State::Gone, at_ns);
        }
        if next {
            self.wake_unseen(at_ns, cpu, task);
            let account = &mut self.accounts[task as usize];
            account.enter(State::Running, at_ns);
            account.cpu = cpu;
        }
        self.nr_inferred += 1;
        let named = |is: bool, number| is.then_some(TaskId(number));
        let (prev, next) = (named(prev, instead), named(next, task));
        self.late_event(at_ns, cpu, EventKind::Switch { prev, next, out });
    }

    /// A sleeping task that runs on a CPU was woken without a traced wake-up, so the wake-up gets
    /// this time.
    fn wake_unseen(&mut self, at_ns: u64, cpu: u32, task: u32) {
        let account = &mut self.accounts[task as usize];
        if account.state == State::Sleeping {
            account.enter(State::Queued, at_ns);
            self.nr_inferred += 1;
            self.late_event(at_ns, cpu, EventKind::Wakeup { task: TaskId(task), waker: None });
        }
    }

    fn late_event(&mut self, time_ns: u64, cpu: u32, kind: EventKind) {
        if time_ns <= self.end_ns {
            self.nr_events += 1;
            let time_ns = time_ns.saturating_sub(self.zero_ns);
            self.sink.late_event(Event { time_ns, cpu: CpuId(cpu), kind });
        }
    }

    fn wakeup(&mut self, time_ns: u64, cpu: u32, pid: u32, waker: u32) {
        let task = self.number(pid);
        let Some(account) = self.accounts.get_mut(task as usize) else { return };
        match account.state {
            State::Held => {
                account.enter(State::Queued, time_ns);
                self.event(time_ns, cpu, EventKind::Fork { task: TaskId(task), parent: None });
            }
            State::Sleeping | State::Gone => {
                if account.state == State::Gone {
                    // So it slept, and did not wait.
                    account.state = State::Sleeping;
                    self.sink.amend_out(TaskId(task), SwitchOut::Sleeping);
                }
                account.enter(State::Queued, time_ns);
                let waker = Some(self.number(waker)).filter(|task| *task != NONE).map(TaskId);
                self.event(time_ns, cpu, EventKind::Wakeup { task: TaskId(task), waker });
            }
            State::Queued | State::Running | State::Dead => {}
        }
    }

    fn new_task(&mut self, time_ns: u64, cpu: u32, pid: u32, parent: u32) {
        let parent = self.number(parent);
        let task = self.newcomer(pid, parent);
        if let Some(account) = self.accounts.get_mut(task as usize) {
            account.enter(State::Queued, time_ns);
            let parent = Some(parent).filter(|task| *task != NONE).map(TaskId);
            self.event(time_ns, cpu, EventKind::Fork { task: TaskId(task), parent });
        }
    }

    fn mark(&mut self, time_ns: u64, task: u32, mark: Mark) {
        if self.announced.len() as u32 <= task {
            self.announce_up_to(task);
        }
        let id = TaskId(task);
        let cpu = self.accounts[task as usize].cpu;
        match mark {
            Mark::Progress => self.event(time_ns, cpu, EventKind::Progress { task: id }),
            Mark::Phase(phase) => self.event(time_ns, cpu, EventKind::Phase { task: id, phase }),
            Mark::YieldBegin => self.accounts[task as usize].is_yielding = true,
            Mark::YieldEnd => self.accounts[task as usize].is_yielding = false,
            Mark::Began => {
                let parent = self.memory.slot(task).parent.load(Ordering::Relaxed);
                let parent = (parent != NONE).then_some(TaskId(parent));
                self.event(time_ns, 0, EventKind::Fork { task: id, parent });
            }
            Mark::Block(object) => {
                self.accounts[task as usize].blocks_on = Some(ObjectId(object));
            }
            Mark::Unblock => self.accounts[task as usize].blocks_on = None,
            Mark::Ended => self.event(time_ns, 0, EventKind::Exit { task: id }),
        }
    }

    /// Handles the end of all events: tasks that left a CPU without a traced switch, never returned
    /// and were reaped have exited.
    pub fn infer_exits(&mut self) {
        for task in 0..(self.accounts.len() as u32).min(self.memory.nr_slots()) {
            let is_reaped = self.memory.slot(task).is_reaped.load(Ordering::Acquire) == 1;
            let account = &mut self.accounts[task as usize];
            if account.state == State::Gone && is_reaped && self.sink.exited(TaskId(task)) {
                // This switch was inferred before, and its wait does not count.
                account.state = State::Dead;
                self.nr_events += 1;
            }
        }
    }

    /// Ends the conversion of the run.
    pub fn finish(self) -> (Vec<TraceAccount>, Vec<String>) {
        let end_ns = if self.end_ns == u64::MAX { self.zero_ns } else { self.end_ns };
        self.sink.end(end_ns.saturating_sub(self.zero_ns));
        (self.accounts, self.announced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::MemorySink;

    struct Numbered;

    impl Names for Numbered {
        fn task(&self, index: u32, _: u32, _: u32) -> TaskInfo {
            TaskInfo { name: format!("t{index}"), ..TaskInfo::default() }
        }
        fn stranger(&self, pid: u32, _: Option<&str>) -> TaskInfo {
            TaskInfo { name: format!("p{pid}"), ..TaskInfo::default() }
        }
    }

    const SWITCH: u64 = 1;
    const WAKEUP: u64 = 2;
    const UNSEEN: u64 = 6;
    const AGO: u64 = 7;
    const OTHER: u64 = 8;

    fn record(time_ns: u64, kind: u64, first: u64, second: u64, out: SwitchOut) -> Item {
        let out = SwitchOut::ALL.iter().position(|of| *of == out).unwrap() as u64;
        Item::Kernel(Record { time_ns, word: kind << 58 | out << 54 | second << 22 | first })
    }

    /// Two tasks with pids 100 and 101, woken at 1000 and 1001; then `items`.
    fn convert(items: &[(u64, Item)]) -> (MemorySink, Vec<TraceAccount>, u64) {
        convert_reaped(items, &[])
    }

    /// Converts the items of a run at whose end tasks were reaped.
    fn convert_reaped(
        items: &[(u64, Item)],
        reaped: &[u32],
    ) -> (MemorySink, Vec<TraceAccount>, u64) {
        let memory = RunMemory::new(2, 1).unwrap();
        for task in 0..2 {
            memory.allocate(0, u32::MAX).unwrap();
            memory.slot(task).pid.store(100 + task, Ordering::Release);
        }
        let mut sink = MemorySink::default();
        let mut converter = Converter::new(&memory, &Numbered, &mut sink, 2, true);
        converter.begin(1000, None);
        for task in 0..2 {
            let at = 1000 + task;
            converter.item(at, record(at, WAKEUP, 100 + task, 0, SwitchOut::Idle));
        }
        items.iter().for_each(|(time_ns, item)| converter.item(*time_ns, *item));
        reaped.iter().for_each(|task| memory.slot(*task).is_reaped.store(1, Ordering::Release));
        converter.infer_exits();
        let nr_inferred = converter.nr_inferred;
        let (accounts, _) = converter.finish();
        (sink, accounts, nr_inferred)
    }

    #[test]
    fn who_left_unseen_and_was_reaped_exited_there() {
        let ago = |now: u64, ago: u64| Record { time_ns: now, word: AGO << 58 | ago };
        let items = [
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            // 100 was replaced by a task outside of the run, which came 1000 before its own end.
            (5000, record(5000, UNSEEN, 0, 100, SwitchOut::Idle)),
            (5000, Item::Kernel(ago(5000, 1000))),
            (5000, record(5000, SWITCH, 0, 101, SwitchOut::Idle)),
            (6000, record(6000, SWITCH, 101, 0, SwitchOut::Dead)),
        ];
        let exits = |sink: &MemorySink| {
            let is_exit = |event: &&Event| matches!(event.kind, EventKind::Exit { .. });
            sink.events.iter().filter(is_exit).map(|event| event.time_ns).collect::<Vec<_>>()
        };
        let (sink, accounts, _) = convert(&items);
        assert_eq!((exits(&sink), accounts[0].state), (vec![5000], State::Gone));
        let (sink, accounts, nr_inferred) = convert_reaped(&items, &[0, 1]);
        assert_eq!((exits(&sink), accounts[0].state), (vec![3000, 5000], State::Dead));
        assert_eq!((nr_inferred, accounts[0].run_delay_ns, accounts[0].nr_waits), (1, 1000, 1));
        let at = sink.events.iter().position(|event| event.time_ns == 3000).unwrap();
        let (prev, next) = (Some(TaskId(0)), None);
        let left = EventKind::Switch { prev, next, out: SwitchOut::Dead };
        assert_eq!(sink.events[at].kind, EventKind::Exit { task: TaskId(0) });
        assert_eq!(sink.events[at + 1].kind, left);
    }

    #[test]
    fn other_tasks_count_within_the_run_only() {
        let memory = RunMemory::new(2, 1).unwrap();
        let mut sink = MemorySink::default();
        let mut converter = Converter::new(&memory, &Numbered, &mut sink, 0, true);
        converter.begin(1_000, None);
        converter.end_ns = 9_000;
        for (at, pid, ran_ns) in [(900, 7, 500), (1_200, 7, 500), (5_000, 8, 100), (9_400, 7, 600)]
        {
            let word = OTHER << 58 | ran_ns << 22 | pid;
            converter.item(at, Item::Kernel(Record { time_ns: at, word }));
        }
        let time = |cpu_ns, nr_turns| OtherTime { cpu_ns, nr_turns };
        let found = [(7, time(200 + 200, 2)), (8, time(100, 1))];
        assert_eq!(converter.others, BTreeMap::from(found));
    }

    fn switches(sink: &MemorySink) -> Vec<(u64, Option<u32>, Option<u32>)> {
        let of = |event: &Event| match event.kind {
            EventKind::Switch { prev, next, .. } => {
                Some((event.time_ns, prev.map(|t| t.0), next.map(|t| t.0)))
            }
            _ => None,
        };
        sink.events.iter().filter_map(of).collect()
    }

    #[test]
    fn a_switch_that_the_kernel_did_not_trace_is_put_where_its_books_say() {
        let ago = |now: u64, ago: u64| Record { time_ns: now, word: AGO << 58 | ago };
        let (sink, accounts, nr_inferred) = convert(&[
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            (3000, record(3000, SWITCH, 100, 0, SwitchOut::Preempted)),
            // 101 leaves at 9000 and came 4000 before that; no switch to it was traced.
            (9000, record(9000, UNSEEN, 101, 0, SwitchOut::Idle)),
            (9000, Item::Kernel(ago(9000, 4000))),
            (9000, record(9000, SWITCH, 101, 100, SwitchOut::Preempted)),
        ]);
        assert_eq!(
            switches(&sink),
            [
                (1000, None, Some(0)),
                (2000, Some(0), None),
                (4000, None, Some(1)),
                (8000, Some(1), Some(0)),
            ]
        );
        assert_eq!(nr_inferred, 1);
        assert_eq!((accounts[1].run_ns, accounts[1].run_delay_ns), (4000, 3999));
        assert_eq!(accounts[1].nr_waits, 1);
    }

    #[test]
    fn one_that_left_unseen_leaves_when_the_other_came_and_never_before_it_came_itself() {
        let ago = |now: u64, ago: u64| Record { time_ns: now, word: AGO << 58 | ago };
        let (sink, accounts, nr_inferred) = convert(&[
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            // A task outside of the run leaves at 5000 for 101, and has run for 1000: 100 had left
            // before.
            (5000, record(5000, UNSEEN, 0, 100, SwitchOut::Idle)),
            (5000, Item::Kernel(ago(5000, 1000))),
            (5000, record(5000, SWITCH, 0, 101, SwitchOut::Idle)),
            // 100 leaves at 6000 and reports that it came before 101 did, which is impossible.
            (6000, record(6000, UNSEEN, 100, 101, SwitchOut::Idle)),
            (6000, Item::Kernel(ago(6000, 5500))),
            (6000, record(6000, SWITCH, 100, 0, SwitchOut::Dead)),
        ]);
        assert_eq!(
            switches(&sink),
            [
                (1000, None, Some(0)),
                (3000, Some(0), None),
                (4000, None, Some(1)),
                (4000, Some(1), Some(0)),
                (5000, Some(0), None),
            ]
        );
        assert_eq!(nr_inferred, 2);
        assert_eq!((accounts[0].run_ns, accounts[0].nr_waits), (3000, 2));
        assert!(sink.events.is_sorted_by_key(|event| event.time_ns));
    }

    #[test]
    fn what_is_seen_next_tells_how_a_task_left_and_that_it_was_woken() {
        let ago = |now: u64, ago: u64| Record { time_ns: now, word: AGO << 58 | ago };
        let (sink, accounts, nr_inferred) = convert(&[
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            (3000, record(3000, UNSEEN, 0, 100, SwitchOut::Idle)),
            (3000, Item::Kernel(ago(3000, 500))),
            (3500, record(3500, WAKEUP, 100, 0, SwitchOut::Idle)),
            (4000, record(4000, SWITCH, 0, 100, SwitchOut::Idle)),
            (5000, record(5000, SWITCH, 100, 0, SwitchOut::Sleeping)),
            // Neither its wake-up nor the switch to it was traced.
            (7000, record(7000, UNSEEN, 100, 0, SwitchOut::Idle)),
            (7000, Item::Kernel(ago(7000, 400))),
            (7000, record(7000, SWITCH, 100, 0, SwitchOut::Dead)),
        ]);
        let left = |at: u64| {
            let of = |event: &&Event| event.time_ns == at;
            sink.events.iter().find(of).map(|event| event.kind)
        };
        let (prev, next) = (Some(TaskId(0)), None);
        let slept = EventKind::Switch { prev, next, out: SwitchOut::Sleeping };
        assert_eq!(left(1500), Some(slept));
        assert_eq!(left(5600), Some(EventKind::Wakeup { task: TaskId(0), waker: None }));
        assert_eq!(nr_inferred, 3);
        // Waits: 1000 after its release, 500 after its wake-up, and no third one.
        assert_eq!((accounts[0].run_delay_ns, accounts[0].nr_waits), (1500, 3));
        assert_eq!(accounts[0].run_ns, 500 + 1000 + 400);
    }

    #[test]
    fn the_sleep_after_a_mark_is_that_wait_and_no_other_is() {
        let own = |mark| Item::Own(0, mark);
        let (sink, ..) = convert(&[
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            (2100, own(Mark::Block(3))),
            // It was preempted before the wait, which is still to come.
            (2200, record(2200, SWITCH, 100, 0, SwitchOut::Preempted)),
            (2300, record(2300, SWITCH, 0, 100, SwitchOut::Idle)),
            (2400, record(2400, SWITCH, 100, 0, SwitchOut::Sleeping)),
            (2500, record(2500, WAKEUP, 100, 0, SwitchOut::Idle)),
            (2600, record(2600, SWITCH, 0, 100, SwitchOut::Idle)),
            (2700, record(2700, SWITCH, 100, 0, SwitchOut::Sleeping)),
            (2800, record(2800, WAKEUP, 100, 0, SwitchOut::Idle)),
            (2900, record(2900, SWITCH, 0, 100, SwitchOut::Idle)),
            // There is nothing to wait for; then it sleeps for another reason.
            (3000, own(Mark::Block(4))),
            (3100, own(Mark::Unblock)),
            (3200, record(3200, SWITCH, 100, 0, SwitchOut::Sleeping)),
        ]);
        let blocks = sink.events.iter().enumerate().filter_map(|(at, event)| match event.kind {
            EventKind::Block { task, object } => Some((at, event.time_ns, task.0, object.0)),
            _ => None,
        });
        let blocks: Vec<_> = blocks.collect();
        assert_eq!(blocks.len(), 1, "{blocks:?}");
        let (at, time_ns, task, object) = blocks[0];
        assert_eq!((time_ns, task, object), (1400, 0, 3));
        let next = sink.events[at + 1].kind;
        assert!(matches!(next, EventKind::Switch { out: SwitchOut::Sleeping, .. }), "{next:?}");
    }

    #[test]
    fn what_cannot_be_told_is_left_out() {
        let (sink, _, nr_inferred) = convert(&[
            // 100 has never left the CPU in the trace; a pid of another run; an `ago` without
            // `unseen`.
            (2000, record(2000, SWITCH, 0, 100, SwitchOut::Idle)),
            (3000, record(3000, UNSEEN, 100, 77, SwitchOut::Idle)),
            (3000, Item::Kernel(Record { time_ns: 3000, word: AGO << 58 })),
            (3000, Item::Kernel(Record { time_ns: 3000, word: AGO << 58 | 99 })),
        ]);
        assert_eq!((switches(&sink).len(), nr_inferred), (1, 0));
    }
}
