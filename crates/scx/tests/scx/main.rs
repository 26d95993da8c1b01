// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the sched_ext model. They are one program, which is compiled and linked once.

mod conformance;
mod errors;
mod ext_server;
mod order;
mod program_time;
mod stalls;
mod support;
mod user;
mod vectors;
