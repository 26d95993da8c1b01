// SPDX-License-Identifier: MIT OR Apache-2.0
//! No file makes the workload reader panic, hang or overflow its stack; what it accepts passes the
//! model's check and prints to a file that reads back to the same workload.
//!
//! Run: `cargo +nightly fuzz run read_workload -- -dict=fuzz/workload.dict`; seeds:
//! crates/workload/examples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_workload::{read_rtapp, write_rtapp};

const NR_CPUS: u32 = 4;

fuzz_target!(|text: &str| {
    match read_rtapp("fuzz.json", text, NR_CPUS) {
        Err(error) => assert!(error.line >= 1 && error.column >= 1 && !error.help.is_empty()),
        Ok(read) => {
            read.workload.check(NR_CPUS).expect("what is read passes the check");
            let printed = write_rtapp(&read.workload);
            let again = read_rtapp("fuzz.json", &printed, NR_CPUS).expect("what is printed reads");
            assert_eq!(again.workload, read.workload, "{printed}");
        }
    }
});
