// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the digests as this machine computes them.

fn main() {
    print!("{}", schedlab_wasm::digests());
}
