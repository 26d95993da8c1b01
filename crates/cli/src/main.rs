// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `schedlab` program.
fn main() {}
