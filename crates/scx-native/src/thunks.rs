// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trampolines: short pieces of code in an image, through which a scheduler leaves its own code.
//!
//! A call of the simulator first makes sure that the stack has room for it, and writes down where
//! it came from. A call through a pointer must lead into the image's code. clang makes all such
//! calls through `__x86_indirect_thunk_r11` (`-mretpoline-external-thunk`), with the address in
//! r11. A trampoline uses r10 and r11 alone, which functions need not preserve and no argument is
//! in (System V ABI for AMD64).

use super::guard;

/// The name by which clang calls through pointers.
pub const BRANCH: &str = "__x86_indirect_thunk_r11";

/// Bytes of a trampoline.
pub const THUNK: usize = 64;

/// Bytes of [`Words`].
pub const WORDS: usize = 32;

/// Words of an image that its trampolines use.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Their address.
    pub base: u64,
}

impl Words {
    /// The lowest stack pointer at which the simulator may be called.
    pub fn stack_limit(self) -> u64 {
        self.base
    }

    /// Where the last call of the simulator returns to.
    pub fn last_call(self) -> u64 {
        self.base + 8
    }

    /// First address of the code.
    pub fn text_start(self) -> u64 {
        self.base + 16
    }

    /// Bytes of code.
    pub fn text_len(self) -> u64 {
        self.base + 24
    }
}

/// Code that is put together at `at`.
struct Code {
    at: u64,
    bytes: Vec<u8>,
}

impl Code {
    fn new(at: u64) -> Self {
        Self { at, bytes: Vec::with_capacity(THUNK) }
    }

    fn push(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// An instruction whose last four bytes are the distance of `word`.
    fn with_word(mut self, opcode: &[u8], word: u64) -> Self {
        self.bytes.extend(opcode);
        let next = self.at + self.bytes.len() as u64 + 4;
        let distance = word.wrapping_sub(next) as u32;
        self.push(&distance.to_le_bytes())
    }

    /// `addl $value, word(%rip)`.
    fn add(mut self, value: u32, word: u64) -> Self {
        if value == 0 {
            return self;
        }
        self.bytes.extend([0x81, 0x05]);
        let next = self.at + self.bytes.len() as u64 + 8;
        let distance = word.wrapping_sub(next) as u32;
        self.push(&distance.to_le_bytes()).push(&value.to_le_bytes())
    }

    /// `movabs $to, %r10; jmp *%r10`.
    fn jump(self, to: u64) -> Self {
        self.push(&[0x49, 0xba]).push(&to.to_le_bytes()).push(&[0x41, 0xff, 0xe2])
    }
}

/// Bytes of [`Code::jump`].
const JUMP: u8 = 13;

/// Calls `function` of the simulator, which takes a kernel so many instructions. They are added to
/// the 32-bit word at `counter`.
pub fn call(at: u64, function: u64, words: Words, (insns, counter): (u32, u64)) -> Vec<u8> {
    Code::new(at)
        .add(insns, counter)
        // cmp stack_limit(%rip), %rsp; jb to the second jump
        .with_word(&[0x48, 0x3b, 0x25], words.stack_limit())
        .push(&[0x72, 4 + 7 + JUMP])
        // mov (%rsp), %r10; mov %r10, last_call(%rip)
        .push(&[0x4c, 0x8b, 0x14, 0x24])
        .with_word(&[0x4c, 0x89, 0x15], words.last_call())
        .jump(function)
        .jump(guard::overflow_address())
        .bytes
}

/// Calls the function at r11.
pub fn branch(at: u64, words: Words) -> Vec<u8> {
    Code::new(at)
        // mov %r11, %r10; sub text_start(%rip), %r10; cmp text_len(%rip), %r10; jae past the jump
        .push(&[0x4d, 0x89, 0xda])
        .with_word(&[0x4c, 0x2b, 0x15], words.text_start())
        .with_word(&[0x4c, 0x3b, 0x15], words.text_len())
        .push(&[0x73, 0x03])
        // jmp *%r11
        .push(&[0x41, 0xff, 0xe3])
        .jump(guard::wild_address())
        .bytes
}

/// Calls `function` with the index of the missing function: `mov $index, %edi` and a jump.
pub fn absent(index: usize, function: u64) -> Vec<u8> {
    Code::new(0).push(&[0xbf]).push(&(index as u32).to_le_bytes()).jump(function).bytes
}
