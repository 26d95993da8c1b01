// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the digests that this machine computes.

fn main() {
    print!("{}{}", schedlab_wasm::digests(), schedlab_wasm::request_digests());
}
