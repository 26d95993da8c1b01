// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF helpers about maps, storage of tasks and groups, ring buffers, timers, arenas.
//!
//! Semantics: kernel/bpf/helpers.c, bpf_local_storage.c, ringbuf.c, arena.c of Linux 6.18.

use super::helpers::{cgroup, ok, task};
use super::host::with;
use super::maps::KeyOf;
use super::maps::errno::{EAGAIN, EBUSY, EINVAL, ENOENT};
use super::ops::storage_number;
use super::run::{Run, Timer};
use super::touch;

/// Longest key that is read without allocating.
const KEY_MAX: usize = 64;

/// BPF_LOCAL_STORAGE_GET_F_CREATE.
const CREATE: u64 = 1;

/// BPF_F_TIMER_ABS.
const TIMER_ABS: u64 = 1;
/// BPF_F_TIMER_CPU_PIN, which has no effect: a timer always expires on the CPU that started it.
const TIMER_CPU_PIN: u64 = 2;

fn map(run: &Run, at: u64, function: &str) -> Result<usize, String> {
    run.map(at).ok_or_else(|| format!("{function} was given {at:#x}, which is no map"))
}

/// Calls `f` with the key of an operation on the map at `at`.
#[inline]
fn with_key<R>(at: u64, key: u64, function: &str, f: impl FnOnce(usize, &[u8]) -> R) -> R {
    let (index, size) = ok(with(|_, run| {
        let index = map(run, at, function)?;
        Ok((index, run.maps[index].def.key_size as usize))
    }));
    let mut short = [0u8; KEY_MAX];
    if size <= KEY_MAX {
        touch::copy_from(key, &mut short[..size]);
        return f(index, &short[..size]);
    }
    let mut long = vec![0u8; size];
    if !touch::try_copy_from(key, &mut long) {
        drop(long);
        touch::copy_from(key, &mut short);
        return f(index, &short);
    }
    f(index, &long)
}

pub extern "C" fn map_lookup_elem(at: u64, key: u64) -> u64 {
    with_key(at, key, "bpf_map_lookup_elem", |index, key| {
        with(|k, run| run.maps[index].lookup(key, k.this_cpu().0))
    })
}

/// A lookup whose key is a variable of four bytes.
pub extern "C" fn map_lookup_u32(at: u64, key: u32) -> u64 {
    ok(with(|k, run| {
        let index = map(run, at, "bpf_map_lookup_elem")?;
        let map = &mut run.maps[index];
        match map.def.key_size {
            4 => Ok(map.lookup(&key.to_le_bytes(), k.this_cpu().0)),
            size => Err(format!(
                "bpf_map_lookup_elem was given a key of 4 bytes, those of map {} have {size}",
                map.name
            )),
        }
    }))
}

pub extern "C" fn map_lookup_percpu_elem(at: u64, key: u64, cpu: u32) -> u64 {
    with_key(at, key, "bpf_map_lookup_percpu_elem", |index, key| {
        with(|_, run| if cpu < run.nr_cpus { run.maps[index].lookup(key, cpu) } else { 0 })
    })
}

/// The value of an operation, of the size of the map's values.
fn value(index: usize, from: u64) -> Vec<u8> {
    let size = with(|_, run| run.maps[index].def.value_size);
    let mut bytes = vec![0u8; size as usize];
    touch::copy_from(from, &mut bytes);
    bytes
}

pub extern "C" fn map_update_elem(at: u64, key: u64, from: u64, flags: u64) -> i64 {
    with_key(at, key, "bpf_map_update_elem", |index, key| {
        let bytes = value(index, from);
        let place = with(|k, run| run.maps[index].insert(key, flags & !4, k.this_cpu().0));
        match place {
            Ok(place) => {
                let mut bytes = bytes;
                with(|_, run| keep(&run.maps[index].def.kept, place, &mut bytes));
                touch::copy_to(place, &bytes);
                0
            }
            Err(errno) => -errno,
        }
    })
}

/// Puts what an update leaves alone into the new value `bytes` of the element at `place`.
fn keep(kept: &[(u64, u64)], place: u64, bytes: &mut [u8]) {
    for (offset, size) in kept {
        if let Some(part) = bytes.get_mut(*offset as usize..(*offset + *size) as usize) {
            touch::copy_from(place + *offset, part);
        }
    }
}

pub extern "C" fn map_delete_elem(at: u64, key: u64) -> i64 {
    with_key(at, key, "bpf_map_delete_elem", |index, key| {
        with(|k, run| match run.maps[index].delete(key) {
            Ok(range) => {
                run.end_timers(k, &range);
                0
            }
            Err(errno) => -errno,
        })
    })
}

pub extern "C" fn map_push_elem(at: u64, from: u64, flags: u64) -> i64 {
    let index = ok(with(|_, run| map(run, at, "bpf_map_push_elem")));
    let bytes = value(index, from);
    with(|_, run| run.maps[index].push(bytes, flags))
}

fn take(at: u64, to: u64, keep: bool, function: &str) -> i64 {
    let taken = ok(with(|_, run| {
        let index = map(run, at, function)?;
        Ok(run.maps[index].pop(keep))
    }));
    match taken {
        Ok(bytes) => {
            touch::copy_to(to, &bytes);
            0
        }
        Err(errno) => -errno,
    }
}

pub extern "C" fn map_pop_elem(at: u64, to: u64) -> i64 {
    take(at, to, false, "bpf_map_pop_elem")
}

pub extern "C" fn map_peek_elem(at: u64, to: u64) -> i64 {
    take(at, to, true, "bpf_map_peek_elem")
}

/// The callback is called from here, so nothing of the run may be borrowed at that time.
pub extern "C" fn for_each_map_elem(at: u64, callback: u64, context: u64, flags: u64) -> i64 {
    if flags != 0 {
        return -EINVAL;
    }
    let elements = ok(with(|k, run| {
        let index = map(run, at, "bpf_for_each_map_elem")?;
        Ok(run.maps[index].elements(k.this_cpu().0))
    }));
    // SAFETY: the scheduler passed one of its functions.
    let callback: extern "C" fn(u64, u64, u64, u64) -> i64 =
        unsafe { std::mem::transmute(callback as *const ()) };
    let mut nr = 0;
    // The key of an element of an array is its index, in memory that the scheduler may read.
    let own_key = with(|_, run| run.alloc(size_of::<u64>() as u64));
    for (index, (key, value)) in elements.into_iter().enumerate() {
        if key == 0 {
            touch::copy_to(own_key, &(index as u32).to_le_bytes());
        }
        nr += 1;
        if callback(at, if key == 0 { own_key } else { key }, value, context) != 0 {
            break;
        }
    }
    with(|_, run| run.free(own_key));
    nr
}

/// Storage of task or group `number`, created and set to `initial` if requested.
fn storage(index: usize, number: usize, initial: u64, flags: u64) -> u64 {
    let (place, is_new) = with(|_, run| run.maps[index].storage(number, flags & CREATE != 0));
    if is_new && initial != 0 {
        let bytes = value(index, initial);
        touch::copy_to(place, &bytes);
    }
    place
}

pub extern "C" fn task_storage_get(at: u64, p: u64, initial: u64, flags: u64) -> u64 {
    if p == 0 {
        return 0;
    }
    let (index, number) = ok(with(|_, run| {
        let index = map(run, at, "bpf_task_storage_get")?;
        // Idle tasks have storage too, before all the others.
        let number = match run.tasks.idle_cpu(p) {
            Some(cpu) => cpu as usize,
            None => storage_number(run.nr_cpus, task(run, p, "bpf_task_storage_get")?),
        };
        Ok((index, number))
    }));
    let at = storage(index, number, initial, flags);
    with(|_, run| run.tasks.set_storage(p, run.maps[index].address, at));
    at
}

pub extern "C" fn task_storage_delete(at: u64, p: u64) -> i64 {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_task_storage_delete")?;
        let task = task(run, p, "bpf_task_storage_delete")?;
        run.tasks.set_storage(p, run.maps[index].address, 0);
        Ok(if run.maps[index].drop_storage(storage_number(run.nr_cpus, task)) {
            0
        } else {
            -ENOENT
        })
    }))
}

pub extern "C" fn cgrp_storage_get(at: u64, p: u64, initial: u64, flags: u64) -> u64 {
    if p == 0 {
        return 0;
    }
    let (index, group) = ok(with(|_, run| {
        let index = map(run, at, "bpf_cgrp_storage_get")?;
        Ok((index, cgroup(run, p, "bpf_cgrp_storage_get")?))
    }));
    storage(index, group.index(), initial, flags)
}

pub extern "C" fn cgrp_storage_delete(at: u64, p: u64) -> i64 {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_cgrp_storage_delete")?;
        let group = cgroup(run, p, "bpf_cgrp_storage_delete")?;
        Ok(if run.maps[index].drop_storage(group.index()) { 0 } else { -ENOENT })
    }))
}

/// BPF_RB_NO_WAKEUP.
const NO_WAKEUP: u64 = 1;
/// BPF_RB_AVAIL_DATA and BPF_RB_RING_SIZE, questions of `bpf_ringbuf_query`.
const AVAILABLE: u64 = 0;
const RING_SIZE: u64 = 1;

/// Adds a record for the user program and wakes it. Without such a program it is dropped.
fn add_record(index: usize, bytes: Vec<u8>, flags: u64) -> bool {
    with(|k, run| {
        if !run.has_user_program {
            return true;
        }
        let has_room = run.maps[index].add_record(bytes);
        if has_room && flags & NO_WAKEUP == 0 {
            k.wake_user_half();
        }
        has_room
    })
}

pub extern "C" fn ringbuf_output(at: u64, from: u64, size: u64, flags: u64) -> i64 {
    let (index, is_kept) = ok(with(|_, run| {
        let index = map(run, at, "bpf_ringbuf_output")?;
        Ok((index, run.has_user_program && size <= run.maps[index].record_room()))
    }));
    let mut bytes = Vec::new();
    if is_kept {
        touch::require(from, size as usize);
        bytes.resize(size as usize, 0);
        touch::copy_from(from, &mut bytes);
    } else if with(|_, run| run.has_user_program) {
        return -EAGAIN;
    }
    if add_record(index, bytes, flags) { 0 } else { -EAGAIN }
}

pub extern "C" fn ringbuf_reserve(at: u64, size: u64, _flags: u64) -> u64 {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_ringbuf_reserve")?;
        if run.has_user_program && size > run.maps[index].record_room() {
            return Ok(0);
        }
        let record = run.alloc(size);
        if record != 0 && run.has_user_program {
            run.reservations.insert(record, (index, size));
        }
        Ok(record)
    }))
}

pub extern "C" fn ringbuf_submit(record: u64, flags: u64) {
    if let Some((index, size)) = with(|_, run| run.reservations.remove(&record)) {
        let mut bytes = vec![0; size as usize];
        touch::copy_from(record, &mut bytes);
        add_record(index, bytes, flags);
    }
    super::helpers::free(record);
}

pub extern "C" fn ringbuf_discard(record: u64, _flags: u64) {
    with(|_, run| run.reservations.remove(&record));
    super::helpers::free(record);
}

pub extern "C" fn ringbuf_query(at: u64, flags: u64) -> u64 {
    ok(with(|_, run| {
        let map = map(run, at, "bpf_ringbuf_query").map(|index| &run.maps[index])?;
        Ok(match flags {
            AVAILABLE => map.record_bytes(),
            RING_SIZE if run.has_user_program => map.def.max_entries,
            _ => 0,
        })
    }))
}

/// The next record that the user program has written into a buffer, as an object that its caller
/// frees; 0: there is none. `size`: where its length goes.
pub extern "C" fn user_record(at: u64, size: u64) -> u64 {
    let (record, bytes) = ok(with(|_, run| {
        let index = map(run, at, "bpf_user_ringbuf_drain")?;
        Ok(match run.maps[index].take_record(u64::MAX) {
            Some(bytes) => (run.alloc(bytes.len() as u64), bytes),
            None => (0, Vec::new()),
        })
    }));
    if record != 0 {
        touch::copy_to(record, &bytes);
        touch::copy_to(size, &(bytes.len() as u32).to_le_bytes());
    }
    record
}

pub extern "C" fn arena_alloc_pages(at: u64, address: u64, nr: u32, _node: i32, _f: u64) -> u64 {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_arena_alloc_pages")?;
        Ok(run.maps[index].alloc_pages(address, u64::from(nr)))
    }))
}

pub extern "C" fn arena_free_pages(at: u64, address: u64, nr: u32) {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_arena_free_pages")?;
        run.maps[index].free_pages(address, u64::from(nr));
        Ok(())
    }));
}

pub extern "C" fn arena_reserve_pages(at: u64, address: u64, nr: u32) -> i32 {
    ok(with(|_, run| {
        let index = map(run, at, "bpf_arena_reserve_pages")?;
        let is_free = nr == 0 || run.maps[index].reserve_pages(address, u64::from(nr));
        Ok(if is_free { 0 } else { -EBUSY as i32 })
    }))
}

/// No user program opens a counter here: every place of the map is empty.
pub extern "C" fn perf_event_read_value(at: u64, _flags: u64, to: u64, size: u32) -> i64 {
    ok(with(|_, run| map(run, at, "bpf_perf_event_read_value")));
    touch::require(to, size as usize);
    touch::copy_to(to, &vec![0u8; size as usize]);
    -ENOENT
}

/// The timer of a `struct bpf_timer`, whose first word is its number plus one.
fn timer(run: &Run, at: u64, number: u64) -> Option<usize> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    run.timers.get(index).filter(|timer| timer.at == at).map(|_| index)
}

fn number(at: u64) -> u64 {
    let mut bytes = [0u8; 8];
    touch::copy_from(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

pub extern "C" fn timer_init(at: u64, map_at: u64, clock: u64) -> i64 {
    const CLOCKS: [u64; 3] = [0, 1, 7];
    if !CLOCKS.contains(&clock) {
        return -EINVAL;
    }
    let before = number(at);
    let answer = ok(with(|_, run| {
        let map = map(run, map_at, "bpf_timer_init")?;
        if timer(run, at, before).is_some() {
            return Ok(-EBUSY);
        }
        let key = run.maps[map].key_of(at).ok_or_else(|| {
            format!("bpf_timer_init of a timer that is not in map {}", run.maps[map].name)
        })?;
        let key = match key {
            KeyOf::At(key) => key,
            KeyOf::Index(index) => run.zone.block_of(&index.to_le_bytes()).address(),
        };
        run.timers.push(Timer { at, map, key, callback: 0 });
        Ok(run.timers.len() as i64)
    }));
    if answer > 0 {
        touch::put_words(at, &[answer as u64]);
        return 0;
    }
    answer
}

pub extern "C" fn timer_set_callback(at: u64, callback: u64) -> i64 {
    let number = number(at);
    with(|_, run| match timer(run, at, number) {
        Some(index) => {
            run.timers[index].callback = callback;
            0
        }
        None => -EINVAL,
    })
}

pub extern "C" fn timer_start(at: u64, ns: u64, flags: u64) -> i64 {
    let number = number(at);
    if flags & !(TIMER_ABS | TIMER_CPU_PIN) != 0 {
        return -EINVAL;
    }
    with(|k, run| match timer(run, at, number) {
        Some(index) if run.timers[index].callback != 0 => {
            let when = if flags & TIMER_ABS != 0 {
                ns.saturating_sub(schedlab_scx::kernel::UPTIME_NS)
            } else {
                // What the callback has done so far took time, too.
                run.spend(k);
                k.now().saturating_add(k.programs_ns()).saturating_add(ns)
            };
            k.start_timer(index as u64, when);
            0
        }
        _ => -EINVAL,
    })
}

pub extern "C" fn timer_cancel(at: u64) -> i64 {
    let number = number(at);
    with(|k, run| match timer(run, at, number) {
        Some(index) => i64::from(k.cancel_timer(index as u64)),
        None => -EINVAL,
    })
}

/// Refuses a pointer that does not refer to a function of the scheduler.
pub fn callback_of(run: &Run, token: u64) -> Result<[u64; 4], String> {
    let timer = usize::try_from(token).ok().and_then(|index| run.timers.get(index));
    let timer = timer.filter(|timer| timer.at != 0).ok_or("a timer fired that is gone")?;
    if !run.image.text.contains(&timer.callback) {
        return Err("the callback of a timer is no function of the scheduler's".into());
    }
    Ok([timer.callback, run.maps[timer.map].address, timer.key, timer.at])
}
