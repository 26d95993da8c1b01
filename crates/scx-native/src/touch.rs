// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses memory at addresses that a scheduler passes, which may be invalid.
//!
//! Every access is an instruction of the functions below. When one faults, the handler of
//! [`super::guard`] makes the function return a failure. So checks cost nothing, and a bad pointer
//! never ends the process. With checks on, all bytes must belong to objects of the scheduler.

use super::{guard, host};
use std::ffi::c_void;

std::arch::global_asm!(
    ".pushsection .text.schedlab_scx_touch,\"ax\",@progbits",
    ".p2align 4",
    // rdi: to, rsi: from, rdx: bytes; 0, or 1 if it faulted.
    ".globl schedlab_scx_copy",
    ".globl schedlab_scx_copy_at",
    ".globl schedlab_scx_touch_failed",
    "schedlab_scx_copy:",
    "mov rcx, rdx",
    "schedlab_scx_copy_at:",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "schedlab_scx_touch_failed:",
    "mov eax, 1",
    "ret",
    // rdi: from, rsi: to, which is ours; 8 bytes.
    ".globl schedlab_scx_load8",
    ".globl schedlab_scx_load8_at",
    "schedlab_scx_load8:",
    "schedlab_scx_load8_at:",
    "mov rax, [rdi]",
    "mov [rsi], rax",
    "xor eax, eax",
    "ret",
    ".globl schedlab_scx_load4",
    ".globl schedlab_scx_load4_at",
    "schedlab_scx_load4:",
    "schedlab_scx_load4_at:",
    "mov eax, [rdi]",
    "mov [rsi], eax",
    "xor eax, eax",
    "ret",
    // rdi: from, rsi: to, which is ours; 128 bytes, a mask of CPUs: a string move would take
    // longer to begin than all of this.
    ".globl schedlab_scx_load128",
    ".globl schedlab_scx_load128_end",
    "schedlab_scx_load128:",
    "movups xmm0, [rdi]",
    "movups xmm1, [rdi + 16]",
    "movups xmm2, [rdi + 32]",
    "movups xmm3, [rdi + 48]",
    "movups xmm4, [rdi + 64]",
    "movups xmm5, [rdi + 80]",
    "movups xmm6, [rdi + 96]",
    "movups xmm7, [rdi + 112]",
    "schedlab_scx_load128_end:",
    "movups [rsi], xmm0",
    "movups [rsi + 16], xmm1",
    "movups [rsi + 32], xmm2",
    "movups [rsi + 48], xmm3",
    "movups [rsi + 64], xmm4",
    "movups [rsi + 80], xmm5",
    "movups [rsi + 96], xmm6",
    "movups [rsi + 112], xmm7",
    "xor eax, eax",
    "ret",
    // rdi: start, rsi: bytes. The number of bytes from there on that the shadow allows.
    ".globl schedlab_scx_usable",
    ".globl schedlab_scx_usable_end",
    "schedlab_scx_usable:",
    "mov rcx, rdi",
    "lea rdx, [rdi + rsi]",
    "2:",
    "cmp rcx, rdx",
    "jae schedlab_scx_usable_end",
    "mov rax, rcx",
    "shr rax, 3",
    // Eight times eight bytes at a time, while there are so many.
    "lea r8, [rcx + 64]",
    "cmp r8, rdx",
    "ja 3f",
    "cmp qword ptr [rax + {shadow}], 0",
    "jne 3f",
    "mov rcx, r8",
    "and rcx, -8",
    "jmp 2b",
    "3:",
    "movsx rax, byte ptr [rax + {shadow}]",
    "test rax, rax",
    "jnz 4f",
    "or rcx, 7",
    "inc rcx",
    "jmp 2b",
    "4:",
    "js schedlab_scx_usable_end",
    // The first bytes of the eight.
    "mov r8, rcx",
    "and r8, -8",
    "add r8, rax",
    "cmp r8, rcx",
    "cmova rcx, r8",
    "schedlab_scx_usable_end:",
    "cmp rcx, rdx",
    "cmova rcx, rdx",
    "mov rax, rcx",
    "sub rax, rdi",
    "ret",
    // rdi: where such a mask should be.
    ".globl schedlab_scx_probe128",
    ".globl schedlab_scx_probe128_end",
    "schedlab_scx_probe128:",
    "mov al, [rdi]",
    "mov al, [rdi + 127]",
    "schedlab_scx_probe128_end:",
    "xor eax, eax",
    "ret",
    ".popsection",
    shadow = const super::zone::SHADOW_OFFSET,
);

unsafe extern "C" {
    fn schedlab_scx_copy(to: *mut u8, from: *const u8, bytes: usize) -> u32;
    fn schedlab_scx_copy_at();
    fn schedlab_scx_load8(from: u64, to: *mut u8) -> u32;
    fn schedlab_scx_load8_at();
    fn schedlab_scx_load4(from: u64, to: *mut u8) -> u32;
    fn schedlab_scx_load4_at();
    fn schedlab_scx_load128(from: u64, to: *mut [u64; 16]) -> u32;
    fn schedlab_scx_load128_end();
    fn schedlab_scx_probe128(from: u64) -> u32;
    fn schedlab_scx_probe128_end();
    fn schedlab_scx_usable(from: u64, bytes: u64) -> u64;
    fn schedlab_scx_usable_end();
    fn schedlab_scx_touch_failed();
}

/// Called by the fault handler. Returns whether the fault was an access of this file, which then
/// fails.
///
/// # Safety
///
/// `context` is that of a signal.
pub unsafe fn failed(context: *mut c_void) -> bool {
    const RIP: usize = libc::REG_RIP as usize;
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[RIP] as usize;
    let own = [
        schedlab_scx_copy_at as *const () as usize,
        schedlab_scx_load8_at as *const () as usize,
        schedlab_scx_load4_at as *const () as usize,
    ];
    let mask =
        schedlab_scx_load128 as *const () as usize..schedlab_scx_load128_end as *const () as usize;
    let probe = schedlab_scx_probe128 as *const () as usize
        ..schedlab_scx_probe128_end as *const () as usize;
    let usable =
        schedlab_scx_usable as *const () as usize..schedlab_scx_usable_end as *const () as usize;
    if usable.contains(&at) {
        // An address without a shadow: what was counted so far counts.
        registers[RIP] = usable.end as i64;
        return true;
    }
    if own.contains(&at) || mask.contains(&at) || probe.contains(&at) {
        registers[RIP] = schedlab_scx_touch_failed as *const () as i64;
        return true;
    }
    false
}

/// The number of bytes from `from` on, of `bytes`, that belong to an object of the scheduler. The
/// run has a shadow.
pub fn usable(from: u64, bytes: u64) -> u64 {
    if from.checked_add(bytes).is_none() {
        return 0;
    }
    // SAFETY: only the shadow is read; a fault ends the count.
    unsafe { schedlab_scx_usable(from, bytes) }
}

/// Whether the running callback may pass `bytes` bytes there.
#[inline]
fn may(from: u64, bytes: usize) -> bool {
    !host::is_checked() || usable(from, bytes as u64) == bytes as u64
}

/// Checks that memory can be written. An invalid address ends the callback.
pub fn require(to: u64, bytes: usize) {
    if !may(to, bytes) {
        no_memory(to, bytes);
    }
}

/// Reads memory. Returns whether the address was valid.
#[inline]
pub fn try_copy_from(from: u64, to: &mut [u8]) -> bool {
    if !may(from, to.len()) {
        return false;
    }
    // SAFETY: `to` is ours; a fault of the other side is a failure.
    unsafe {
        let failed = match to.len() {
            4 => schedlab_scx_load4(from, to.as_mut_ptr()),
            8 => schedlab_scx_load8(from, to.as_mut_ptr()),
            nr => schedlab_scx_copy(to.as_mut_ptr(), from as *const u8, nr),
        };
        failed == 0
    }
}

/// Reads a word of any memory; `None`: there is none.
pub fn peek(from: u64) -> Option<u64> {
    let mut word = [0u8; 8];
    // SAFETY: `word` is ours; a fault of the other side is a failure.
    let failed = unsafe { schedlab_scx_load8(from, word.as_mut_ptr()) };
    (failed == 0).then(|| u64::from_le_bytes(word))
}

/// Reads memory. An invalid address ends the callback.
#[inline]
pub fn copy_from(from: u64, to: &mut [u8]) {
    if !try_copy_from(from, to) {
        no_memory(from, to.len());
    }
}

/// Writes memory. An invalid address ends the callback.
#[inline]
pub fn copy_to(to: u64, from: &[u8]) {
    require(to, from.len());
    // SAFETY: `from` is ours; a fault of the other side is a failure.
    let failed = unsafe { schedlab_scx_copy(to as *mut u8, from.as_ptr(), from.len()) };
    if failed != 0 {
        no_memory(to, from.len());
    }
}

#[cold]
fn no_memory(at: u64, bytes: usize) -> ! {
    let place = host::place_of(at, bytes);
    guard::broken(format!("it passed a pointer to {bytes} bytes {place}"))
}

/// Checks that a mask of CPUs can be read.
#[inline]
pub fn probe16(from: u64) {
    require(from, size_of::<[u64; 16]>());
    // SAFETY: nothing is kept; a fault is a failure.
    if unsafe { schedlab_scx_probe128(from) } != 0 {
        no_memory(from, size_of::<[u64; 16]>());
    }
}

/// Reads a mask of CPUs there.
#[inline]
pub fn get16(from: u64) -> [u64; 16] {
    require(from, size_of::<[u64; 16]>());
    let mut words = [0u64; 16];
    // SAFETY: `words` is ours; a fault of the other side is a failure.
    if unsafe { schedlab_scx_load128(from, &raw mut words) } != 0 {
        no_memory(from, std::mem::size_of_val(&words));
    }
    words
}

/// Reads three words there.
pub fn get3(from: u64) -> [u64; 3] {
    let mut bytes = [0u8; 24];
    copy_from(from, &mut bytes);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8), word(16)]
}

/// Writes words there.
pub fn put_words(to: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    copy_to(to, &bytes);
}

/// Reads a text of at most `max` bytes, without its final zero; `None`: the address is invalid.
pub fn try_text(from: u64, max: usize) -> Option<Vec<u8>> {
    /// Memory is there, or not, in whole pages; an object ends within eight bytes.
    const PART: usize = 8;
    let mut text = Vec::new();
    let mut at = from;
    while text.len() < max {
        let to_boundary = PART - (at as usize % PART);
        let mut nr = to_boundary.min(max - text.len());
        if host::is_checked() {
            nr = usable(at, nr as u64) as usize;
        }
        let mut part = [0u8; PART];
        if nr == 0 || !try_copy_from(at, &mut part[..nr]) {
            return None;
        }
        if let Some(end) = part[..nr].iter().position(|byte| *byte == 0) {
            text.extend(&part[..end]);
            return Some(text);
        }
        at += nr as u64;
        text.extend(&part[..nr]);
    }
    Some(text)
}
