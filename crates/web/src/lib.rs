// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator for web pages: questions and answers as JSON, events as typed arrays.
//!
//! [`answer`] does the work and runs anywhere. The functions that a page calls exist only on
//! wasm32. They are plain exports with addresses and lengths, so the page needs no generated code
//! and the build no tool of another version. [`policy`] asks a policy that is written in
//! JavaScript.

mod answer;
mod policy;

#[cfg(target_arch = "wasm32")]
mod abi;

pub use answer::{Answer, answer};
