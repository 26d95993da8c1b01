// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a task at the same addresses in every run.
//!
//! A fork shares all pages with the child, and who writes one first copies it, 60 to 100 us in a
//! guest. How many pages a task and its children write depends on where their memory is: in the
//! heap that the launcher has left, a workload with another name took 0.1 ms more for each child.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of the arena (bytes). What does not fit comes from the system's heap.
const ARENA_LEN: usize = 256 << 10;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; ARENA_LEN]>);

// SAFETY: `AT` gives each byte of it to one owner.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ARENA_LEN]));
/// Bytes of the arena in use; more than it has: it is not in use.
static AT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's heap, and from [`begin_task`] on one that begins on a page of its own. It is the
/// allocator of programs that run only one launcher and its tasks; a process has one thread when it
/// calls `begin_task` and from then on.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskHeap;

/// From now on this process takes memory from the arena, which must be unused until here. Nothing
/// changes in a program whose allocator is not [`TaskHeap`].
pub fn begin_task() {
    AT.store(0, Ordering::Relaxed);
}

/// Writes to every page of the arena that is in use, and to the one behind it.
pub fn touch_task() {
    let used = AT.load(Ordering::Relaxed);
    let end = used.saturating_add(align_of::<Arena>()).min(ARENA_LEN);
    if used > ARENA_LEN {
        return;
    }
    for at in (0..end).step_by(align_of::<Arena>()) {
        // SAFETY: within the arena, which only this thread uses; the byte keeps its value.
        unsafe {
            let byte = ARENA.0.get().cast::<u8>().add(at);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

impl TaskHeap {
    /// The place of `layout` in the arena, from `at` on, and the first byte behind it.
    fn place(at: usize, layout: Layout) -> Option<(usize, usize)> {
        let start = at.checked_next_multiple_of(layout.align())?;
        let end = start.checked_add(layout.size())?;
        (end <= ARENA_LEN && layout.align() <= align_of::<Arena>()).then_some((start, end))
    }

    /// Where `pointer` is in the arena.
    fn offset(pointer: *mut u8) -> Option<usize> {
        let offset = (pointer as usize).checked_sub(ARENA.0.get() as usize)?;
        (offset < ARENA_LEN).then_some(offset)
    }
}

// SAFETY: a place in the arena is given out once, is aligned (the arena is a page's multiple) and
// lasts as long as the process; all else is the system's.
unsafe impl GlobalAlloc for TaskHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Self::place(AT.load(Ordering::Relaxed), layout) {
            Some((start, end)) => {
                AT.store(end, Ordering::Relaxed);
                // SAFETY: within the arena.
                unsafe { ARENA.0.get().cast::<u8>().add(start) }
            }
            // SAFETY: the caller's layout.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match Self::offset(pointer) {
            // Only what was taken last can be taken again.
            Some(start) if start + layout.size() == AT.load(Ordering::Relaxed) => {
                AT.store(start, Ordering::Relaxed);
            }
            Some(_) => {}
            // SAFETY: it is the system's, with this layout.
            None => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::offset(pointer).is_none() {
            // SAFETY: it is the system's, with this layout.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: the caller gives a size that is not 0 and fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both are valid for the lesser size, and distinct.
            unsafe { moved.copy_from_nonoverlapping(pointer, layout.size().min(size)) };
            // SAFETY: the caller gives up the old one.
            unsafe { self.dealloc(pointer, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn places_are_aligned_and_within_the_arena() {
        assert_eq!(TaskHeap::place(0, layout(10, 8)), Some((0, 10)));
        assert_eq!(TaskHeap::place(10, layout(4, 8)), Some((16, 20)));
        assert_eq!(TaskHeap::place(ARENA_LEN - 8, layout(8, 8)), Some((ARENA_LEN - 8, ARENA_LEN)));
        assert_eq!(TaskHeap::place(ARENA_LEN - 8, layout(9, 8)), None);
        assert_eq!(TaskHeap::place(0, layout(8, 8192)), None);
        assert_eq!(TaskHeap::place(usize::MAX, layout(1, 1)), None);
    }

    /// In a process of its own, because it is one thread's. Rust's own allocator stays as it is.
    #[test]
    fn a_task_gets_what_lies_behind_and_gives_back_what_it_took_last() {
        let Some(pid) = crate::sys::fork().unwrap() else {
            begin_task();
            let start = ARENA.0.get() as usize;
            // SAFETY: layouts are valid and pointers are given back with theirs.
            let is_right = unsafe {
                let (a, b) = (TaskHeap.alloc(layout(24, 8)), TaskHeap.alloc(layout(8, 8)));
                b.write(7);
                let c = TaskHeap.realloc(b, layout(8, 8), 16);
                let is_kept = c.read() == 7;
                TaskHeap.dealloc(c, layout(16, 8));
                let large = TaskHeap.alloc(layout(ARENA_LEN, 8));
                let is_elsewhere = TaskHeap::offset(large).is_none();
                TaskHeap.dealloc(large, layout(ARENA_LEN, 8));
                is_kept
                    && is_elsewhere
                    && (a as usize, b as usize, c as usize) == (start, start + 24, start + 32)
                    && AT.load(Ordering::Relaxed) == 32
            };
            crate::sys::exit_now(if is_right { 0 } else { 1 });
        };
        assert_eq!(crate::sys::reap(pid).unwrap().0, 0);
    }
}
