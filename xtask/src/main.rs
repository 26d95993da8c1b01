// SPDX-License-Identifier: MIT OR Apache-2.0
//! Development tasks of the repository.
fn main() {}
