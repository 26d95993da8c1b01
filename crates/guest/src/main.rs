// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs as init in the kernels that `schedlab vm` boots: the host lane itself.
//!
//! It mounts the kernel's file systems, finds the memory that it shares with the lab, waits until
//! the boot's own work is over (or pauses itself there, for a snapshot), plays the request with the
//! host lane, writes result and trace back, and ends QEMU. Nothing else runs in the guest. It is
//! linked statically, for there is no library in it.

mod devices;
mod mounts;
mod run;

use schedlab_vm::protocol::{DEBUG_EXIT_DONE, stage, word};

/// Boot work (late initialisation, calibration of the clock, first housekeeping) is over by then;
/// idle time costs nothing with a counted clock.
const READY_AT_NS: u64 = 4_000_000_000;
/// Every run begins at a multiple of this time, whatever the resumption of a snapshot did to the
/// clock.
const ROUND_NS: u64 = 1_000_000_000;

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
    let pauses = shared.word(word::PAUSES) != 0;
    run::sleep_until(if pauses { READY_AT_NS } else { 0 });
    shared.set_word(word::STAGE, stage::READY);
    if pauses {
        devices::pause();
    }
    run::sleep_until(run::monotonic_ns().next_multiple_of(ROUND_NS).max(READY_AT_NS + ROUND_NS));
    shared.set_word(word::STAGE, stage::WORKING);
    let (reply, trace) = run::answer(&shared.request());
    shared.answer(&reply, &trace);
    devices::end(DEBUG_EXIT_DONE);
}
