// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placeholder head, replaced by the first code of this crate.
