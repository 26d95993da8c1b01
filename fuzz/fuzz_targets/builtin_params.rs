// SPDX-License-Identifier: MIT OR Apache-2.0
//! No parameter text makes a built-in workload panic; what comes out passes the model's check.
//!
//! Input: `name key=value key=value ...`. Run: `cargo +nightly fuzz run builtin_params`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schedlab_workload::builtin;

fuzz_target!(|text: &str| {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let params: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    if let Ok(workload) = builtin(name, &params) {
        // CPU 1023 is the last that a mask can name; fewer CPUs may make an affinity impossible.
        workload.check(1024).expect("a built-in passes the check");
    }
});
