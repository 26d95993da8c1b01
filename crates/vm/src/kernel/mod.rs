// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: where to get them, where to store them, and what they contain.

pub mod apt;
pub mod btf;
pub mod elf;
pub mod image;
pub mod series;
pub mod store;

pub use btf::ExtSupport;
pub use store::{Kernel, Store};
