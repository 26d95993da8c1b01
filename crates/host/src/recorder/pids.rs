// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task numbers by pid.
//!
//! A run has few pids of the four million possible ones, mostly neighbours. So the table has pages
//! that are allocated when they are first needed. A plain table would be 16 MiB of zeroes in the
//! process from which the launcher is forked, and every fork of a task would copy their page
//! tables.

use super::ring::PIDS_MAX;

/// Pids of a page.
const PAGE: usize = 1 << 12;

/// The number of each pid. Unknown pids have none.
#[derive(Debug)]
pub struct PidTable {
    /// Numbers + 1, and 0 for none.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl Default for PidTable {
    /// An empty table.
    fn default() -> Self {
        Self { pages: (0..PIDS_MAX / PAGE).map(|_| None).collect() }
    }
}

impl PidTable {
    /// The number of `pid`.
    #[inline]
    pub fn get(&self, pid: u32) -> Option<u32> {
        let page = self.pages.get(pid as usize / PAGE)?.as_ref()?;
        page[pid as usize % PAGE].checked_sub(1)
    }

    /// Sets the number of `pid`. An impossible pid is ignored.
    pub fn insert(&mut self, pid: u32, number: u32) {
        if let Some(page) = self.pages.get_mut(pid as usize / PAGE) {
            page.get_or_insert_with(|| Box::new([0; PAGE]))[pid as usize % PAGE] = number + 1;
        }
    }

    /// Removes the number of `pid`.
    pub fn remove(&mut self, pid: u32) {
        if let Some(Some(page)) = self.pages.get_mut(pid as usize / PAGE) {
            page[pid as usize % PAGE] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pid_has_its_number_until_it_is_removed() {
        let mut table = PidTable::default();
        let pids = [1, 4_095, 4_096, 70_000, PIDS_MAX as u32 - 1];
        pids.iter().zip(0..).for_each(|(pid, number)| table.insert(*pid, number));
        let numbers: Vec<_> = pids.iter().map(|pid| table.get(*pid)).collect();
        assert_eq!(numbers, (0..5).map(Some).collect::<Vec<_>>());
        table.remove(4_096);
        table.remove(9_000);
        assert_eq!([0, 2, 4_096, 9_000].map(|pid| table.get(pid)), [None; 4]);
        assert_eq!(table.pages.iter().flatten().count(), 4, "pages that nobody needed");
    }

    #[test]
    fn what_no_kernel_gives_is_nobody() {
        let mut table = PidTable::default();
        table.insert(PIDS_MAX as u32, 7);
        table.remove(u32::MAX);
        assert_eq!([PIDS_MAX as u32, u32::MAX].map(|pid| table.get(pid)), [None; 2]);
    }
}
