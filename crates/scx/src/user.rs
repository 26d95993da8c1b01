// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user half of a scheduler: the program that loads it and goes on deciding, as a task of the
//! run. Its steps are [`super::ops::Ops::user_step`]; its sleep ends by a timer of the core.

use super::class::ExtClass;
use super::kernel::{Kernel, TIMER_OF_CORE};
use super::ops::UserWait;
use super::state::Status;
use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::{Core, UserNext};

/// Process id of the user half, which is known before its task exists.
pub const USER_PID: u32 = 900;

/// Timers of the user half's sleep; the low bits count its sleeps.
const TIMER_USER: u64 = TIMER_OF_CORE | 1 << 62;

/// Time between two looks whether the scheduler is active (ns).
const LOOK_NS: Nanos = 10_000_000;

/// State of the user half.
#[derive(Debug, Default)]
pub struct UserState {
    /// Number of its present sleep.
    sleep: u64,
    /// Whether it will be woken at this instant.
    is_called: bool,
}

impl Kernel<'_> {
    /// Wakes the user half, if it sleeps, after the running callback.
    pub fn wake_user_half(&mut self) {
        if self.core.user_half.is_some() && !self.state.user.is_called {
            self.state.user.is_called = true;
            let token = TIMER_USER | self.state.user.sleep;
            self.core.start_timer(self.core.now, token);
        }
    }

    /// Process id of `p`, if it is the user half.
    pub(crate) fn user_pid(&self, p: TaskId) -> Option<u32> {
        (self.core.user_half == Some(p)).then_some(USER_PID)
    }
}

/// Whether a timer of the core is one of the user half.
pub fn is_timer(token: u64) -> bool {
    token & TIMER_USER == TIMER_USER
}

impl ExtClass {
    /// Lets the user half do a step.
    pub(super) fn step_of_user(&mut self, core: &mut Core, cpu: CpuId, p: TaskId) -> UserNext {
        let now = core.now;
        let mut ext = self.on_user(core, cpu);
        let is_ended = ext.k.state.exit.is_some() && ext.k.state.status == Status::Disabled;
        let wait = match ext.k.state.status {
            Status::Enabled => ext.ops.user_step(&mut ext.k, p),
            _ if is_ended => Ok(UserWait::Until(None)),
            // Its attach has not returned yet.
            _ => Ok(UserWait::Until(Some(now.saturating_add(LOOK_NS)))),
        };
        let next = match wait {
            Ok(UserWait::Yield) => UserNext::Yield,
            Ok(UserWait::Until(Some(at))) if at <= now => UserNext::Work,
            Ok(UserWait::Until(at)) => {
                let user = &mut ext.k.state.user;
                user.sleep = (user.sleep + 1) & u64::from(u32::MAX);
                let token = TIMER_USER | user.sleep;
                if let Some(at) = at {
                    let at = ext.k.core.timer_comes(at);
                    ext.k.core.start_timer(at, token);
                }
                UserNext::Sleep
            }
            Err(fault) => {
                ext.ops.before_unload(&mut ext.k);
                ext.k.core.fail(fault.0);
                UserNext::Sleep
            }
        };
        ext.settle();
        next
    }

    /// A timer of the user half has expired.
    pub(super) fn user_timer(&mut self, core: &mut Core, token: u64) {
        let user = &mut self.state_mut().user;
        if std::mem::take(&mut user.is_called) || token == TIMER_USER | user.sleep {
            core.wake_user_half();
        }
    }
}
