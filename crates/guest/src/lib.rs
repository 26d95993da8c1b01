// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes between the lab and a guest: `protocol` is the shared memory and what stands in it,
//! `wire` a request as bytes. The program of this crate is the guest's init.

pub mod protocol;
pub mod wire;
