// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of the two Parquet tables: no input panics beyond it. The first two bytes say where
//! the table of tasks ends and that of events begins.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use schedlab_model::trace::MemorySink;
use schedlab_trace::parquet;

fuzz_target!(|data: &[u8]| {
    let Some((length, tables)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(tables.len());
    let (tasks, events) = tables.split_at(length);
    let (tasks, events) = (Bytes::copy_from_slice(tasks), Bytes::copy_from_slice(events));
    let mut memory = MemorySink::default();
    let _ = parquet::read(events, tasks, &mut memory);
    assert!(memory.events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
});
