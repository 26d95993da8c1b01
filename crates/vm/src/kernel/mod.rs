// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: where they come from, where they are kept, and what is in them.

pub mod apt;
pub mod btf;
pub mod elf;
pub mod image;
pub mod series;
pub mod store;

pub use btf::ExtSupport;
pub use store::{Kernel, Store};
