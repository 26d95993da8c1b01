// SPDX-License-Identifier: MIT OR Apache-2.0
//! What belongs to the source of a sched_ext scheduler, whether it is compiled for the simulator or
//! for a kernel.
//!
//! An author's file comes with others: headers in directories above it, further source files that
//! its build links to it, constants that its user program sets before it is loaded. Both lanes find
//! the same ones here, so that a file which runs in one is the same program in the other.

mod clang;
mod constants;
mod files;
mod headers;
mod reads;
mod ready;
mod user_half;

pub use clang::{CLANG_VARIABLE, advice_on_headers, find_clang};
pub use constants::{Constant, is_set_by_schedlab};
pub use files::{SourceOptions, check_define, setup_next_to};
pub use headers::{SHARED_HEADERS, SYSTEM_HEADERS};
pub use ready::{
    ArenaSetup, ReadySetup, SetupElement, SetupRun, SetupStep, SetupValue, arena, setup_path,
};
pub use user_half::{MissingSetup, SET_UP_BY_USER_PROGRAM};
