// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels under QEMU: boots one, plays a workload in it, and brings the trace back.
