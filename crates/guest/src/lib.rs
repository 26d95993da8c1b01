// SPDX-License-Identifier: MIT OR Apache-2.0
//! The communication between the host and a guest: the shared memory, requests and replies. The
//! program of this crate is the guest's init.

pub mod protocol;
