// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the events of several sources, each in order of time, into one order.
//!
//! A source is one CPU's ring or the marks of all tasks. An event is passed on when every source
//! has been read up to its time (the watermark). A later one (a task was preempted between reading
//! the clock and publishing its mark) gets the time of the last event and is counted.

use super::ring::Record;
use crate::memory::Mark;
use std::collections::VecDeque;

/// An item of the merged stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// A record of the kernel.
    Kernel(Record),
    /// A mark of task number `.0`.
    Own(u32, Mark),
}

/// Merges in order of time. At equal times kernel records are first, then lower CPUs.
#[derive(Debug, Default)]
pub struct Merge {
    queues: Vec<VecDeque<Record>>,
    marks: Vec<(u64, u32, Mark)>,
    last_ns: u64,
    /// Events that were too late for their place.
    pub nr_late: u64,
}

impl Merge {
    /// A merge for the rings of `nr_cpus` CPUs.
    pub fn new(nr_cpus: u32) -> Self {
        Self { queues: vec![VecDeque::new(); nr_cpus as usize], ..Self::default() }
    }

    /// Adds records of one CPU, in order of time.
    pub fn add_records(&mut self, cpu: u32, records: &[Record]) {
        self.queues[cpu as usize].extend(records);
    }

    /// Adds one mark.
    pub fn add_mark(&mut self, time_ns: u64, task: u32, mark: Mark) {
        self.marks.push((time_ns, task, mark));
    }

    /// Number of records and marks that wait.
    pub fn nr_waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum::<usize>() + self.marks.len()
    }

    /// Passes on everything up to `watermark_ns`.
    pub fn emit(&mut self, watermark_ns: u64, mut out: impl FnMut(u64, Item)) {
        // Stable: marks of one task stay in their order.
        self.marks.sort_by_key(|(time_ns, ..)| *time_ns);
        let ready = self.marks.partition_point(|(time_ns, ..)| *time_ns <= watermark_ns);
        let mut marks: VecDeque<_> = self.marks.drain(..ready).collect();
        loop {
            let heads = self.queues.iter().enumerate();
            let first = heads
                .filter_map(|(cpu, queue)| Some((queue.front()?.time_ns, cpu)))
                .filter(|(time_ns, _)| *time_ns <= watermark_ns)
                .min();
            let mark = marks.front().copied();
            match (first, mark) {
                (Some((time_ns, cpu)), mark) if mark.is_none_or(|(at, ..)| time_ns <= at) => {
                    self.emit_run(cpu, mark.map_or(watermark_ns, |(at, ..)| at), &mut out);
                }
                (_, Some((time_ns, task, mark))) => {
                    marks.pop_front();
                    out(self.in_order(time_ns), Item::Own(task, mark));
                }
                (None, None) => return,
                (Some(_), None) => unreachable!("a lone record is taken by the first arm"),
            }
        }
    }

    /// Passes on records of `cpu` until another source has an earlier one.
    fn emit_run(&mut self, cpu: usize, until_ns: u64, out: &mut impl FnMut(u64, Item)) {
        let others = self.queues.iter().enumerate().filter(|(other, _)| *other != cpu);
        let until_ns = others
            .filter_map(|(other, queue)| {
                // At equal times the lower CPU is first.
                let time_ns = queue.front()?.time_ns;
                Some(if other < cpu { time_ns.saturating_sub(1) } else { time_ns })
            })
            .min()
            .map_or(until_ns, |limit| limit.min(until_ns));
        while let Some(record) = self.queues[cpu].pop_front_if(|record| record.time_ns <= until_ns)
        {
            out(self.in_order(record.time_ns), Item::Kernel(record));
        }
    }

    fn in_order(&mut self, time_ns: u64) -> u64 {
        self.nr_late += u64::from(time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.last_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ns: u64) -> Record {
        Record { time_ns, word: 0 }
    }

    fn times(merge: &mut Merge, watermark_ns: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        merge.emit(watermark_ns, |time_ns, _| seen.push(time_ns));
        seen
    }

    #[test]
    fn sources_leave_in_order_and_only_up_to_the_watermark() {
        let mut merge = Merge::new(3);
        merge.add_records(0, &[record(1), record(4), record(9)]);
        merge.add_records(2, &[record(2), record(4), record(5)]);
        merge.add_mark(4, 0, Mark::Progress);
        merge.add_mark(3, 0, Mark::Progress);
        assert_eq!(times(&mut merge, 4), [1, 2, 3, 4, 4, 4]);
        assert_eq!(times(&mut merge, 100), [5, 9]);
        assert_eq!(merge.nr_late, 0);
    }

    #[test]
    fn equal_times_go_by_cpu_and_marks_last() {
        let mut merge = Merge::new(2);
        merge.add_records(1, &[record(7)]);
        merge.add_records(0, &[Record { time_ns: 7, word: 1 }]);
        merge.add_mark(7, 5, Mark::YieldEnd);
        let mut seen = Vec::new();
        merge.emit(7, |_, item| seen.push(item));
        assert_eq!(seen[0], Item::Kernel(Record { time_ns: 7, word: 1 }));
        assert_eq!(seen[2], Item::Own(5, Mark::YieldEnd));
    }

    #[test]
    fn a_late_event_keeps_the_order_and_is_counted() {
        let mut merge = Merge::new(1);
        merge.add_records(0, &[record(10)]);
        assert_eq!(times(&mut merge, 10), [10]);
        merge.add_mark(6, 0, Mark::Progress);
        assert_eq!(times(&mut merge, 20), [10]);
        assert_eq!(merge.nr_late, 1);
    }

    #[test]
    fn any_interleaving_comes_out_sorted_and_whole() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40
        };
        let mut merge = Merge::new(4);
        let mut count = 0;
        for cpu in 0..4 {
            let mut list: Vec<u64> = (0..500).map(|_| next() % 1000).collect();
            list.sort_unstable();
            count += list.len();
            merge.add_records(cpu, &list.into_iter().map(record).collect::<Vec<_>>());
        }
        let mut seen = times(&mut merge, 300);
        seen.extend(times(&mut merge, u64::MAX));
        assert_eq!(seen.len(), count);
        assert!(seen.is_sorted());
    }
}
