// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divisions by zero, as BPF defines them: the quotient is 0, the remainder is the dividend. The
//! quotient of the least number and -1 is the least number, and their remainder is 0.
//!
//! The processor faults on both. The handler decodes the instruction (`div` and `idiv`, opcodes F6
//! and F7 with /6 and /7), writes the results into the registers and continues after it.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
//! DIV, IDIV; Documentation/bpf/standardization/instruction-set.rst.

use std::ffi::c_void;

/// Registers of a context by their numbers in instructions.
const REGISTERS: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// A decoded division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Division {
    /// Length of the instruction.
    len: usize,
    /// Bits of the divisor and of the results.
    bits: u32,
    is_signed: bool,
}

/// Decodes an instruction; `None`: it is no division.
fn decode(code: &[u8]) -> Option<Division> {
    let mut at = 0;
    let mut is_short = false;
    if code.first() == Some(&0x66) {
        (is_short, at) = (true, 1);
    }
    let rex = *code.get(at)?;
    let is_rex = rex & 0xf0 == 0x40;
    at += usize::from(is_rex);
    let opcode = *code.get(at)?;
    let bits = match (opcode, is_rex && rex & 8 != 0, is_short) {
        (0xf6, ..) => 8,
        (0xf7, true, _) => 64,
        (0xf7, false, true) => 16,
        (0xf7, false, false) => 32,
        _ => return None,
    };
    let modrm = *code.get(at + 1)?;
    let is_signed = match modrm >> 3 & 7 {
        6 => false,
        7 => true,
        _ => return None,
    };
    at += 2;
    let (mode, base) = (modrm >> 6, modrm & 7);
    if mode != 3 && base == 4 {
        let sib = *code.get(at)?;
        at += 1;
        at += if mode == 0 && sib & 7 == 5 { 4 } else { 0 };
    }
    at += match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(Division { len: at, bits, is_signed })
}

impl Division {
    /// Quotient and remainder for a dividend whose halves are `low` and `high`. A fault of a signed
    /// division of the least number by -1 has this number as its dividend; so has one by 0, whose
    /// remainder then is wrong by it: BPF code cannot tell them apart here.
    fn results(self, low: u64, high: u64) -> (u64, u64) {
        let least = 1u64 << (self.bits - 1);
        let mask = u64::MAX >> (64 - self.bits);
        let is_least = self.is_signed && low & mask == least && high & mask == mask;
        if is_least { (least, 0) } else { (0, low & mask) }
    }
}

/// Continues after a division that faulted. Returns false if the instruction is none.
///
/// # Safety
///
/// `context` is that of a SIGFPE in readable code.
pub unsafe fn skip(context: *mut c_void) -> bool {
    const LONGEST: usize = 15;
    // SAFETY: the caller's promise; code ends before the trampolines, so 15 bytes are mapped.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[libc::REG_RIP as usize];
        let code = std::slice::from_raw_parts(at as *const u8, LONGEST);
        let Some(division) = decode(code) else { return false };
        let [ax, dx] = [REGISTERS[0] as usize, REGISTERS[2] as usize];
        let (low, high) = (registers[ax] as u64, registers[dx] as u64);
        if division.bits == 8 {
            let (quotient, rest) = division.results(low & 0xff, low >> 8 & 0xff);
            registers[ax] = (low & !0xffff | rest << 8 | quotient) as i64;
        } else {
            let (quotient, rest) = division.results(low, high);
            // A result of 16 bits leaves the rest of the register, one of 32 bits clears it.
            let kept = if division.bits == 16 { !0xffff } else { 0 };
            registers[ax] = (low & kept | quotient) as i64;
            registers[dx] = (high & kept | rest) as i64;
        }
        registers[libc::REG_RIP as usize] = at + division.len as i64;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_decoded() {
        let of = |code: &[u8]| decode(code).map(|found| (found.len, found.bits, found.is_signed));
        assert_eq!(of(&[0xf7, 0xf1, 0x90]), Some((2, 32, false)), "div ecx");
        assert_eq!(of(&[0x49, 0xf7, 0xf8]), Some((3, 64, true)), "idiv r8");
        assert_eq!(of(&[0x66, 0xf7, 0xf1]), Some((3, 16, false)), "div cx");
        assert_eq!(of(&[0xf6, 0xf1]), Some((2, 8, false)), "div cl");
        let stack = [0x48, 0xf7, 0x74, 0x24, 0x08];
        assert_eq!(of(&stack), Some((5, 64, false)), "div qword [rsp + 8]");
        let relative = [0x48, 0xf7, 0x35, 1, 2, 3, 4];
        assert_eq!(of(&relative), Some((7, 64, false)), "div qword [rip + x]");
        assert_eq!(of(&[0x48, 0xf7, 0xe1, 0]), None, "mul rcx");
    }

    #[test]
    fn results_are_those_of_bpf() {
        let signed = Division { len: 2, bits: 32, is_signed: true };
        assert_eq!(signed.results(7, 0), (0, 7));
        assert_eq!(signed.results(0x8000_0000, 0xffff_ffff), (0x8000_0000, 0));
        let unsigned = Division { is_signed: false, ..signed };
        assert_eq!(unsigned.results(0x8000_0000, 0), (0, 0x8000_0000));
    }
}
