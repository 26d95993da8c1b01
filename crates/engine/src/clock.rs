// SPDX-License-Identifier: MIT OR Apache-2.0
//! Future times: a heap of events, the end of each CPU's burst, and the next tick.

use schedlab_model::{Arrival, CpuId, Nanos, TaskId};
use std::collections::BinaryHeap;

/// An event. At one instant events are handled in the order of these variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// The launcher releases arrival number n.
    Release(u32),
    /// The launcher wakes the next task of time 0.
    Launch,
    /// A sleeping or blocked task wakes.
    Wake(TaskId),
    /// A sleeping real-time task wakes, unless its CPU is idle, which takes longer.
    WakeOnBusy(TaskId),
    /// A timer of a class expires.
    ClassTimer {
        /// Index of the class.
        class: u8,
        /// The class's token.
        token: u64,
    },
    /// The task of a CPU reaches a point where the kernel may preempt it.
    ReturnToUser(CpuId),
    /// A CPU gets the lock of its run queue after waiting.
    LockTaken(CpuId),
    /// A CPU has searched for tasks before its own leaves.
    Searched(CpuId),
    /// A waker gets the lock of the run queue after waiting; the number of its wake-up.
    WakeTaken(u32),
}

impl Due {
    const fn phase(&self) -> u64 {
        match self {
            Self::Release(_) | Self::Launch => 0,
            Self::Wake(_) | Self::WakeOnBusy(_) | Self::WakeTaken(_) => 0,
            Self::ClassTimer { .. }
            | Self::ReturnToUser(_)
            | Self::LockTaken(_)
            | Self::Searched(_) => 1,
        }
    }
}

/// An event in the queue. Entries are ordered by `key` alone, greatest first, so the top of the
/// heap is the least key.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time, phase and number of insertion, from the highest bits down.
    key: u128,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

/// Most removed entries that a [`Line`] keeps, in addition to as many as it has others.
const GONE_MAX: usize = 64;

/// Events in order. They are added at the end and removed at the start.
///
/// Removed entries stay in the vector until the others are moved up. That is rare, so adding and
/// removing take a few steps, fewer than in a ring.
#[derive(Default, Debug)]
struct Line {
    entries: Vec<Entry>,
    /// Number of removed entries: fewer than there are entries, or 0.
    gone: usize,
}

impl Line {
    /// The entries that are not removed.
    #[inline]
    fn waiting(&self) -> &[Entry] {
        &self.entries[self.gone..]
    }

    #[inline]
    fn front(&self) -> Option<&Entry> {
        self.entries.get(self.gone)
    }

    #[inline]
    fn pop_front(&mut self) -> Option<Entry> {
        let first = self.front().copied();
        self.gone += 1;
        debug_assert!(self.gone <= self.entries.len(), "more events went than came");
        if self.gone >= self.entries.len() {
            self.entries.clear();
            self.gone = 0;
        } else if self.gone > GONE_MAX && 2 * self.gone > self.entries.len() {
            self.move_up();
        }
        first
    }

    #[inline(never)]
    fn move_up(&mut self) {
        self.entries.drain(..self.gone);
        self.gone = 0;
    }
}

/// Events ordered by time, phase, and order of insertion.
///
/// Sleeps of equal length end in the order in which they began. An event that is later than all
/// others is appended to the line, which takes a few steps. Other events go through the heap.
#[derive(Debug)]
pub struct EventQueue {
    line: Line,
    heap: BinaryHeap<Entry>,
    /// Key of the first event of both; the greatest number if there is none.
    first: u128,
    sequence: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        let (line, heap) = (Line::default(), BinaryHeap::new());
        Self { line, heap, first: u128::MAX, sequence: 0 }
    }
}

impl EventQueue {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Nanos, due: Due) {
        debug_assert!(self.sequence < 1 << 62, "the number of an event reaches into its phase");
        // One number orders by phase first, then by insertion.
        let order = (due.phase() << 62) | self.sequence;
        self.sequence += 1;
        let entry = Entry { key: u128::from(at) << 64 | u128::from(order), due };
        match self.line.entries.last() {
            Some(last) if entry.key > last.key => self.line.entries.push(entry),
            _ => self.push_elsewhere(entry),
        }
    }

    /// Adds an event that is earlier than the last one of the line, or the first of the line. The
    /// later of this event and the last one goes to the heap, if the line stays in order. An event
    /// far in the future would otherwise keep the line from growing.
    #[inline(never)]
    fn push_elsewhere(&mut self, mut entry: Entry) {
        self.first = self.first.min(entry.key);
        let waiting = self.line.waiting();
        let before = waiting.len().checked_sub(2).map(|index| &waiting[index]);
        let fits = before.is_none_or(|before| before.key < entry.key);
        match self.line.entries.last_mut() {
            None => return self.line.entries.push(entry),
            Some(last) if fits => std::mem::swap(last, &mut entry),
            Some(_) => {}
        }
        self.heap.push(entry);
    }

    /// Time of the first event; `Nanos::MAX` if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        (self.first >> 64) as Nanos
    }

    fn all(&self) -> impl Iterator<Item = &Due> {
        self.line.waiting().iter().chain(&self.heap).map(|entry| &entry.due)
    }

    /// Whether an event will release or wake a task.
    pub fn wakes_somebody(&self) -> bool {
        let wakes = |due: &Due| {
            let wakes = matches!(due, Due::Wake(_) | Due::WakeOnBusy(_) | Due::WakeTaken(_));
            wakes || matches!(due, Due::Release(_) | Due::Launch)
        };
        self.all().any(wakes)
    }

    /// Whether the first event is a timer of a class.
    pub fn next_is_class_timer(&self) -> bool {
        let first = if self.is_in_line() { self.line.front() } else { self.heap.peek() };
        first.is_some_and(|entry| matches!(entry.due, Due::ClassTimer { .. }))
    }

    /// Whether the first of all events is in the line.
    #[inline]
    fn is_in_line(&self) -> bool {
        self.line.front().is_some_and(|entry| entry.key == self.first)
    }

    /// Removes and returns the first event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<Due> {
        if self.next_time() != now {
            return None;
        }
        let entry = if self.is_in_line() { self.line.pop_front() } else { self.heap.pop() };
        let next = |entry: Option<&Entry>| entry.map_or(u128::MAX, |entry| entry.key);
        let before = self.first;
        debug_assert_eq!(entry.map(|entry| entry.key), Some(before), "the first event is lost");
        self.first = next(self.line.front()).min(next(self.heap.peek()));
        debug_assert!(self.first > before, "events came out of order");
        entry.map(|entry| entry.due)
    }
}

/// Children of a node of [`BurstEnds`].
const FAN_OUT: usize = 8;

/// Times of a few CPUs, or the least times of a few nodes below.
#[derive(Clone, Copy, Debug)]
struct Node {
    times: [Nanos; FAN_OUT],
    least: Nanos,
    /// Index of the least time; the first of equal ones.
    first: u32,
}

impl Node {
    const NEVER: Self = Self { times: [Nanos::MAX; FAN_OUT], least: Nanos::MAX, first: 0 };

    /// Sets one time. Returns whether the least time changed.
    #[inline(always)]
    fn set(&mut self, slot: usize, at: Nanos) -> bool {
        let slot = slot % FAN_OUT;
        self.times[slot] = at;
        let before = self.least;
        if at < before {
            (self.least, self.first) = (at, slot as u32);
        } else if slot as u32 == self.first {
            if at > before {
                // CPUs that do the same in step end together: then it is the next one's turn.
                match self.times.get(slot + 1) {
                    Some(next) if *next == before => self.first += 1,
                    _ => self.search(),
                }
            }
        } else if at == before {
            self.first = self.first.min(slot as u32);
        }
        debug_assert_eq!(self.times[self.first as usize], self.least, "the least time is another");
        debug_assert!(
            self.times.iter().all(|time| *time >= self.least),
            "a lesser time was missed"
        );
        self.least != before
    }

    /// Finds the least time.
    #[inline(never)]
    fn search(&mut self) {
        let (mut least, mut first) = (self.times[0], 0);
        for slot in 1..FAN_OUT {
            if self.times[slot] < least {
                (least, first) = (self.times[slot], slot as u32);
            }
        }
        (self.least, self.first) = (least, first);
    }
}

/// The least of one time per CPU. Of equal times the lower CPU is first.
///
/// It is a tree. Each node knows the least time of its children, so a change takes at most one step
/// per level; eight CPUs are one node. A tick takes the same time from every busy CPU. Ends are
/// relative to a common `moved`, so this is one addition.
#[derive(Debug)]
pub struct BurstEnds {
    /// Times of the CPUs, minus `moved`.
    leaves: Vec<Node>,
    /// Least times of the nodes below, level by level up to a single node; empty if there is one
    /// leaf.
    above: Vec<Vec<Node>>,
    /// The least time of all.
    least: Nanos,
    /// The time by which all ends were moved.
    moved: Nanos,
}

impl BurstEnds {
    /// No CPU has an end yet.
    pub fn new(nr_cpus: u32) -> Self {
        let mut width = (nr_cpus as usize).div_ceil(FAN_OUT).max(1);
        let leaves = vec![Node::NEVER; width];
        let mut above = Vec::new();
        while width > 1 {
            width = width.div_ceil(FAN_OUT);
            above.push(vec![Node::NEVER; width]);
        }
        Self { leaves, above, least: Nanos::MAX, moved: 0 }
    }

    /// The end of `cpu`'s burst.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Nanos {
        let node = &self.leaves[cpu.index() / FAN_OUT];
        // An end that never happens does not move.
        node.times[cpu.index() % FAN_OUT].saturating_add(self.moved)
    }

    /// Sets the end of `cpu`'s burst.
    #[inline(always)]
    pub fn set(&mut self, cpu: CpuId, at: Nanos) {
        debug_assert!(
            at >= self.moved,
            "the burst of CPU {cpu} ends before ticks that it has taken"
        );
        let at = if at == Nanos::MAX { at } else { at - self.moved };
        let index = cpu.index();
        let node = &mut self.leaves[index / FAN_OUT];
        if node.set(index, at) {
            let least = node.least;
            if self.above.is_empty() {
                self.least = least;
            } else {
                self.set_above(index / FAN_OUT, least);
            }
        }
    }

    /// Updates the nodes above after the least time of leaf `index` changed.
    #[inline(never)]
    fn set_above(&mut self, mut index: usize, mut least: Nanos) {
        for level in &mut self.above {
            let node = &mut level[index / FAN_OUT];
            if !node.set(index, least) {
                return;
            }
            least = node.least;
            index /= FAN_OUT;
        }
        self.least = least;
    }

    /// Moves all ends by `ns`.
    #[inline]
    pub fn move_all(&mut self, ns: Nanos) {
        self.moved += ns;
    }

    /// When the first burst ends.
    #[inline]
    pub fn first_time(&self) -> Nanos {
        self.least.saturating_add(self.moved)
    }

    /// The CPU whose burst ends first.
    #[inline]
    pub fn first_cpu(&self) -> CpuId {
        let down = |index: usize, level: &Vec<Node>| index * FAN_OUT + level[index].first as usize;
        let leaf = self.above.iter().rev().fold(0, down);
        CpuId(down(leaf, &self.leaves) as u32)
    }
}

/// All future times except interrupts.
#[derive(Debug)]
pub struct Clock {
    pub events: EventQueue,
    pub burst_ends: BurstEnds,
    /// The next tick. It is not taken while no CPU is busy.
    next_tick: Nanos,
    /// CPUs that do not run their idle task.
    nr_busy: u32,
}

impl Clock {
    /// All of `nr_cpus` CPUs are idle. The first tick is at `next_tick`.
    pub fn new(nr_cpus: u32, next_tick: Nanos) -> Self {
        let (events, burst_ends) = (EventQueue::default(), BurstEnds::new(nr_cpus));
        Self { events, burst_ends, next_tick, nr_busy: 0 }
    }

    /// All arrivals are released at their times. A release after time 0 is the end of a sleep, and
    /// comes as much later as `delay_ns` says.
    pub fn expect(&mut self, arrivals: &[Arrival], delay_ns: impl Fn(&Arrival) -> Nanos) {
        for (index, arrival) in arrivals.iter().enumerate() {
            let delay_ns = if arrival.release_ns > 0 { delay_ns(arrival) } else { 0 };
            let at = arrival.release_ns.saturating_add(delay_ns);
            self.events.push(at, Due::Release(index as u32));
        }
    }

    /// Time of the next event, tick or end of a burst; `Nanos::MAX` if there is none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        let tick = if self.nr_busy > 0 { self.next_tick } else { Nanos::MAX };
        self.events.next_time().min(tick).min(self.burst_ends.first_time())
    }

    /// Whether busy CPUs take a tick at `now`.
    #[inline]
    pub fn ticks_at(&self, now: Nanos) -> bool {
        self.next_tick == now && self.nr_busy > 0
    }

    /// `nr` ticks of length `tick_nsec` were taken.
    #[inline]
    pub fn ticked(&mut self, nr: u64, tick_nsec: Nanos) {
        debug_assert!(self.nr_busy > 0, "no CPU is there to take the tick");
        self.next_tick += nr * tick_nsec;
    }

    /// Whether all CPUs are idle.
    pub fn is_idle(&self) -> bool {
        self.nr_busy == 0
    }

    /// An idle CPU runs a task from `now` on. If it is the first busy CPU, the tick of `tick_nsec`
    /// restarts, and is `late` later.
    #[inline]
    pub fn cpu_busy(&mut self, now: Nanos, tick_nsec: Nanos, late: Nanos) {
        if self.nr_busy == 0 {
            self.next_tick = (now.saturating_sub(late) / tick_nsec + 1) * tick_nsec + late;
        }
        debug_assert!(self.next_tick >= now, "the tick of a busy CPU is overdue");
        self.nr_busy += 1;
    }

    /// CPUs that do not run their idle task.
    pub fn nr_busy(&self) -> u32 {
        self.nr_busy
    }

    /// `cpu` becomes idle: it has no burst.
    #[inline]
    pub fn cpu_idle(&mut self, cpu: CpuId) {
        debug_assert!(self.nr_busy > 0, "CPU {cpu} becomes idle though none is busy");
        self.nr_busy -= 1;
        self.burst_ends.set(cpu, Nanos::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::random::{Purpose, Stream};

    #[test]
    fn events_come_by_time_then_phase_then_insertion() {
        let mut queue = EventQueue::default();
        queue.push(5, Due::ClassTimer { class: 0, token: 1 });
        queue.push(5, Due::Wake(TaskId(9)));
        queue.push(5, Due::Release(3));
        queue.push(4, Due::Release(7));
        let mut order = Vec::new();
        while queue.next_time() != Nanos::MAX {
            order.push(queue.pop_at(queue.next_time()).unwrap());
        }
        let last = Due::ClassTimer { class: 0, token: 1 };
        assert_eq!(order, [Due::Release(7), Due::Wake(TaskId(9)), Due::Release(3), last]);
        assert_eq!(queue.pop_at(5), None);
    }

    /// Against a sorted list.
    #[test]
    fn the_queue_is_a_sorted_list() {
        let mut random = Stream::new(4, Purpose::Scheduler, 0);
        let (mut queue, mut list) = (EventQueue::default(), Vec::new());
        for round in 0..20_000u32 {
            let grows = random.below(100) < if round / 2_000 % 2 == 0 { 60 } else { 40 };
            if grows {
                let at = random.below(50);
                queue.push(at, Due::Wake(TaskId(round)));
                list.push((at, round));
            } else if let Some(first) = list.iter().copied().min() {
                list.retain(|entry| *entry != first);
                assert_eq!(queue.next_time(), first.0);
                assert_eq!(queue.pop_at(first.0 + 1), None);
                assert_eq!(queue.pop_at(first.0), Some(Due::Wake(TaskId(first.1))));
            } else {
                assert_eq!(queue.next_time(), Nanos::MAX);
            }
        }
    }

    /// As sleeps of equal length come: in order, with many gone before the others move up.
    #[test]
    fn what_comes_in_order_goes_in_order() {
        let mut queue = EventQueue::default();
        let (mut pushed, mut popped) = (0u32, 0u32);
        for nr_waiting in [1u32, 3, 64, 65, 200, 0, 7] {
            for _ in 0..500 {
                while pushed - popped < nr_waiting {
                    queue.push(u64::from(pushed / 3), Due::Wake(TaskId(pushed)));
                    pushed += 1;
                }
                let at = u64::from(popped / 3);
                assert_eq!(queue.next_time(), if pushed == popped { Nanos::MAX } else { at });
                let due = queue.pop_at(at);
                assert_eq!(due, (popped < pushed).then_some(Due::Wake(TaskId(popped))));
                popped += u32::from(due.is_some());
            }
            assert_eq!(queue.line.entries.len(), queue.line.gone + (pushed - popped) as usize);
            assert!(queue.line.gone <= GONE_MAX.max(queue.line.waiting().len() + 1));
        }
        assert!(queue.heap.is_empty());
    }

    #[test]
    fn the_first_burst_end_wins_and_ties_go_to_the_lower_cpu() {
        for nr_cpus in [1, 2, 3, 8, 13, 16, 17, 1024] {
            let mut ends = BurstEnds::new(nr_cpus);
            assert_eq!(ends.first_time(), Nanos::MAX);
            for cpu in 0..nr_cpus {
                ends.set(CpuId(cpu), 100);
            }
            assert_eq!((ends.first_cpu(), ends.first_time()), (CpuId(0), 100));
            ends.set(CpuId(nr_cpus - 1), 50);
            assert_eq!((ends.first_cpu(), ends.first_time()), (CpuId(nr_cpus - 1), 50));
            ends.set(CpuId(nr_cpus - 1), 100);
            assert_eq!((ends.first_cpu(), ends.first_time()), (CpuId(0), 100));
        }
    }

    /// Against a plain search, whatever changes between two questions.
    #[test]
    fn the_first_burst_end_is_that_of_a_plain_search() {
        let mut random = Stream::new(3, Purpose::Scheduler, 0);
        for nr_cpus in [1u32, 2, 5, 16, 40, 200] {
            let mut ends = BurstEnds::new(nr_cpus);
            let mut plain = vec![Nanos::MAX; nr_cpus as usize];
            let mut moved = 0;
            for _ in 0..2_000 {
                for _ in 0..random.below(4) {
                    let cpu = random.below(u64::from(nr_cpus)) as u32;
                    let at = if random.below(8) == 0 { Nanos::MAX } else { random.below(20) };
                    ends.set(CpuId(cpu), if at == Nanos::MAX { at } else { at + moved });
                    plain[cpu as usize] = if at == Nanos::MAX { at } else { at + moved };
                }
                if random.below(5) == 0 {
                    let by = random.below(7);
                    moved += by;
                    ends.move_all(by);
                    plain.iter_mut().for_each(|at| *at = at.saturating_add(by));
                }
                let (at, cpu) = plain.iter().zip(0u32..).map(|(at, cpu)| (*at, cpu)).min().unwrap();
                assert_eq!(ends.first_time(), at);
                assert_eq!(ends.get(CpuId(nr_cpus - 1)), plain[nr_cpus as usize - 1]);
                if at != Nanos::MAX {
                    assert_eq!(ends.first_cpu(), CpuId(cpu));
                }
            }
        }
    }
}
