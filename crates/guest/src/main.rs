// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs as init in the kernels that `schedlab vm` boots: the host lane itself.

fn main() {}
