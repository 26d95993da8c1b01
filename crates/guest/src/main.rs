// SPDX-License-Identifier: MIT OR Apache-2.0
//! The init of the kernels that `schedlab vm` boots. It contains the host lane.
//!
//! It mounts the kernel's file systems and finds the shared memory. It waits until the boot's own
//! work is done; then the host may take a snapshot. It runs the request with the host lane, writes
//! result and trace back, and ends QEMU. No other program runs in the guest. It is linked
//! statically, because the guest has no libraries.

mod checks;
mod command;
mod devices;
mod mounts;
mod run;
mod scheduler;

use schedlab_guest::protocol::{DEBUG_EXIT_DONE, stage, word};
use schedlab_host::sys::TaskHeap;

#[global_allocator]
static HEAP: TaskHeap = TaskHeap;

/// Time (ns) after which boot work (late initialisation, calibration of the clock, first
/// housekeeping) is done. Idle time costs nothing with a counted clock.
const CALM_NS: u64 = 1_000_000_000;
/// With a counted clock a guest is ready at a multiple of this time (ns) and begins one multiple
/// later. The pause is in between, while the whole guest sleeps.
const ROUND_NS: u64 = 4_000_000_000;

fn main() {
    if std::process::id() != 1 {
        eprintln!(
            "schedlab-guest is the init of the guests that `schedlab vm` boots; it does nothing \
             else."
        );
        std::process::exit(2);
    }
    mounts::mount_all();
    let shared = match devices::Shared::open() {
        Ok(shared) => shared,
        Err(text) => {
            eprintln!("schedlab-guest: {text}");
            devices::end(1);
        }
    };
    run::outrank();
    let is_counted = shared.word(word::PAUSES) != 0;
    if is_counted {
        run::prepare();
        let ready_at = (run::monotonic_ns() + CALM_NS).next_multiple_of(ROUND_NS);
        run::sleep_until(ready_at);
        shared.set_word(word::STAGE, stage::READY);
        devices::pause_in_two_seconds();
        run::sleep_until(ready_at + ROUND_NS);
    }
    shared.set_word(word::STAGE, stage::WORKING);
    let (reply, trace) = run::answer(shared.request());
    shared.answer(&reply, &trace);
    devices::end(DEBUG_EXIT_DONE);
}
