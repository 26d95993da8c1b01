// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code that the steps of a program need. Its pages are found before the release: in a guest,
//! the first use of a lock or a pipe took 0.15 ms longer than the second.

use super::Player;
use crate::attr;
use crate::cgroup::Groups;
use crate::objects::Objects;
use crate::objects::mutex::HeldMutexes;
use crate::objects::queue::WaitQueue;
use crate::sys;
use crate::tunables::Tunables;
use schedlab_model::{Op, Program};

/// Addresses of functions that the steps of `program` call.
pub(super) fn of(program: &Program) -> Vec<usize> {
    let mut found = vec![Player::step as *const () as usize];
    let has = |wanted: fn(&Op) -> bool| program.ops.iter().any(wanted);
    if has(|op| matches!(op, Op::SetAttr(_) | Op::Change(_) | Op::Tune { .. })) {
        found.extend(changes());
    }
    if has(acts_on_objects) {
        found.extend(objects());
    }
    found
}

fn acts_on_objects(op: &Op) -> bool {
    matches!(
        op,
        Op::Lock { .. }
            | Op::Unlock { .. }
            | Op::Wait { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::Sync { .. }
            | Op::Barrier { .. }
            | Op::Suspend { .. }
            | Op::Resume { .. }
            | Op::SemWait { .. }
            | Op::SemPost { .. }
            | Op::Send { .. }
            | Op::Receive { .. }
            | Op::WaitAny { .. }
    )
}

fn changes() -> [usize; 8] {
    [
        Player::set_attr as *const () as usize,
        attr::apply_to_self as *const () as usize,
        attr::apply as *const () as usize,
        sys::sched_setattr as *const () as usize,
        sys::sched_setaffinity as *const () as usize,
        Groups::change as *const () as usize,
        Tunables::set as *const () as usize,
        libc::write as *const () as usize,
    ]
}

fn objects() -> [usize; 15] {
    [
        Player::act as *const () as usize,
        Objects::send as *const () as usize,
        Objects::receive as *const () as usize,
        Objects::sem_wait as *const () as usize,
        Objects::sem_post as *const () as usize,
        Objects::barrier as *const () as usize,
        HeldMutexes::lock as *const () as usize,
        WaitQueue::wait as *const () as usize,
        WaitQueue::grant as *const () as usize,
        sys::futex_lock_pi as *const () as usize,
        sys::futex_unlock_pi as *const () as usize,
        sys::epoll_wait as *const () as usize,
        libc::epoll_wait as *const () as usize,
        libc::read as *const () as usize,
        libc::write as *const () as usize,
    ]
}
