// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the compiler's checks of loads and stores call (`-fsanitize=address`), and the words for
//! what they find.
//!
//! The checks look at the shadow of a zone ([`super::zone`]) and call a function here when it does
//! not allow an access. The rest of the compiler's run time is in rt.c: variables whose address is
//! taken are in frames of the zone, so that the real stack is out of reach.
//!
//! Source: llvm/lib/Transforms/Instrumentation/AddressSanitizer.cpp (names of the functions, layout
//! and description of a frame).

use super::guard::{self, Fault};
use super::ops::NativeOps;
use super::run::Run;
use super::touch;
use super::zone;

// Stubs that add what the functions below need: the size and the kind of a reported access, and
// what returns to the scheduler's code, which is on the stack.
macro_rules! stubs {
    ($($name:ident = $symbol:literal: $($code:literal),+ => $target:ident;)*) => {
        std::arch::global_asm!(
            ".pushsection .text.schedlab_scx_checks,\"ax\",@progbits",
            $(
                concat!(".globl ", $symbol),
                concat!($symbol, ":"),
                $($code,)+
                "mov rcx, [rsp]",
                concat!("jmp {", stringify!($target), "}"),
            )*
            ".popsection",
            report = sym report,
            copy = sym copy,
            set = sym set,
        );
        unsafe extern "C" {
            $(
                #[doc = "Called by the compiler's checks."]
                #[link_name = $symbol]
                pub fn $name();
            )*
        }
    };
}

stubs! {
    load1 = "schedlab_scx_bad_load1": "mov esi, 1", "xor edx, edx" => report;
    load2 = "schedlab_scx_bad_load2": "mov esi, 2", "xor edx, edx" => report;
    load4 = "schedlab_scx_bad_load4": "mov esi, 4", "xor edx, edx" => report;
    load8 = "schedlab_scx_bad_load8": "mov esi, 8", "xor edx, edx" => report;
    load16 = "schedlab_scx_bad_load16": "mov esi, 16", "xor edx, edx" => report;
    load_n = "schedlab_scx_bad_load_n": "xor edx, edx" => report;
    store1 = "schedlab_scx_bad_store1": "mov esi, 1", "mov edx, 1" => report;
    store2 = "schedlab_scx_bad_store2": "mov esi, 2", "mov edx, 1" => report;
    store4 = "schedlab_scx_bad_store4": "mov esi, 4", "mov edx, 1" => report;
    store8 = "schedlab_scx_bad_store8": "mov esi, 8", "mov edx, 1" => report;
    store16 = "schedlab_scx_bad_store16": "mov esi, 16", "mov edx, 1" => report;
    store_n = "schedlab_scx_bad_store_n": "mov edx, 1" => report;
    memcpy = "schedlab_scx_memcpy": "nop" => copy;
    memset = "schedlab_scx_memset": "nop" => set;
}

extern "C" fn report(touched: u64, size: u64, is_write: u64, from: u64) -> ! {
    // A return address is after the call.
    guard::fail(Fault::Bounds { at: from - 1, touched, size, is_write: is_write != 0 })
}

/// Ends the callback if a byte of the memory is out of bounds.
fn check(start: u64, size: u64, is_write: bool, from: u64) {
    let nr = touch::usable(start, size);
    if nr < size {
        let touched = start.wrapping_add(nr);
        guard::fail(Fault::Bounds { at: from - 1, touched, size: size - nr, is_write });
    }
}

/// `memcpy` and `memmove`.
extern "C" fn copy(to: u64, from: u64, size: u64, caller: u64) -> u64 {
    check(from, size, false, caller);
    check(to, size, true, caller);
    // SAFETY: all bytes are of objects of the scheduler, in its zone.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size as usize) };
    to
}

/// `memset`.
extern "C" fn set(to: u64, byte: i32, size: u64, caller: u64) -> u64 {
    check(to, size, true, caller);
    // SAFETY: as above.
    unsafe { std::ptr::write_bytes(to as *mut u8, byte as u8, size as usize) };
    to
}

/// Does nothing: what the compiler calls when a module is loaded, or before a call that does not
/// return.
pub extern "C" fn nothing() {}

/// The stack of frames is full. `from` is what returns to the scheduler's function.
pub extern "C" fn frames_full(from: u64) -> ! {
    guard::overflow(from)
}

/// An object of the scheduler: what it is, where it starts, its size in bytes.
struct Object {
    what: String,
    start: u64,
    size: u64,
}

impl Run {
    /// Says which bytes of which object an access is about.
    pub(super) fn describe_place(&self, at: u64) -> String {
        match self.object_near(at) {
            Some(Object { what, size: 0, .. }) => format!("of {what}"),
            Some(Object { what, start, size }) => {
                format!("at offset {} of {what}, which has {size} bytes", at.wrapping_sub(start))
            }
            None if self.stack.contains(&at) => "of its stack that are no variable's".to_owned(),
            None if self.zone.range().contains(&at) => {
                "that belong to no object of the scheduler".to_owned()
            }
            None => format!("at {at:#x}, which is no memory of the scheduler's"),
        }
    }

    /// The object that `at` is in, or that ends before it.
    fn object_near(&self, at: u64) -> Option<Object> {
        if let Some(variable) = self.variable_near(at) {
            return Some(variable);
        }
        if let Some(local) = self.local_near(at) {
            return Some(local);
        }
        if let Some((whose, start)) = self.tasks.nearest(at) {
            let what = format!("the task_struct of {whose}");
            return Some(Object { what, start, size: self.tasks.size() });
        }
        let in_maps = self.maps.iter().filter_map(|map| {
            let (element, start, size) = map.nearest(at)?;
            Some(Object { what: format!("{element} of map {}", map.name), start, size })
        });
        let allocated = self.object_before(at).map(|(start, size, is_freed)| {
            let what = if is_freed { "freed memory" } else { "an allocated object" };
            Object { what: what.to_owned(), start, size }
        });
        in_maps.chain(allocated).max_by_key(|object| object.start)
    }

    /// The global variable.
    fn variable_near(&self, at: u64) -> Option<Object> {
        let (object, section, start) = self.image.data_before(&self.program, at)?;
        let of = &self.program.objects[object];
        let offset = at - start;
        let symbols = of.symbols_in(section).filter(|(_, range)| range.start <= offset);
        let (symbol, range) = symbols.max_by_key(|(_, range)| range.start)?;
        // An array of unknown length is longer than its symbol says.
        let grown = self.sizes.get(&(object, section)).map(|len| *len as u64);
        let size = grown.unwrap_or(range.end - range.start);
        let what = format!("variable {}", symbol.name);
        Some(Object { what, start: start + range.start, size })
    }

    /// The local variable. A frame begins with a mark, then the address of its description: the
    /// number of variables, then offset, size, length of the name, name (and `:line`) of each.
    fn local_near(&self, at: u64) -> Option<Object> {
        const MARK: u64 = 0x41b5_8ab3;
        const MARK_RETURNED: u64 = 0x45e0_360e;
        const FRAME: u64 = 32;
        const FRAME_MAX: u64 = 1 << 16;
        const TEXT_MAX: usize = 4096;
        // Functions with assembly have their variables on the stack.
        let memory = [&self.frames, &self.stack].into_iter().find(|memory| memory.contains(&at))?;
        let past = || Object {
            what: "a local variable of a function that has returned".to_owned(),
            start: at,
            size: 0,
        };
        let lowest = memory.start.max(at.saturating_sub(FRAME_MAX)) / FRAME * FRAME;
        let mut frames = (lowest..=at / FRAME * FRAME).rev().step_by(FRAME as usize);
        let is_marked = |frame: &u64| matches!(touch::peek(*frame), Some(MARK | MARK_RETURNED));
        let frame = frames.find(is_marked).filter(|at| touch::peek(*at) == Some(MARK));
        let Some(frame) = frame else {
            return self.frames.contains(&at).then(past);
        };
        let text = touch::try_text(touch::peek(frame + 8)?, TEXT_MAX)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let words: Vec<&str> = text.split(' ').skip(1).collect();
        let locals = words.chunks_exact(4).filter_map(|words| {
            let start = frame + words[0].parse::<u64>().ok()?;
            let name = words[3].split(':').next().unwrap_or_default();
            let size = words[1].parse().ok()?;
            Some(Object { what: format!("local variable {name}"), start, size })
        });
        locals.rev().find(|local| local.start <= at).or_else(|| Some(past()))
    }
}

impl NativeOps {
    /// Describes an access of bytes that belong to no object.
    pub(super) fn describe_bounds(&self, touched: u64, size: u64, is_write: bool) -> String {
        let verb = if is_write { "wrote" } else { "read" };
        let bytes = if size == 1 { "byte" } else { "bytes" };
        format!("it {verb} {size} {bytes} {}", self.run.describe_place(touched))
    }

    /// Describes an access of an address that has no memory.
    pub(super) fn describe_address(&self, touched: Option<u64>) -> String {
        let Some(touched) = touched else { return "used an impossible address".to_owned() };
        let own = self.run.zone.is_checked().then(|| zone::shadowed(touched)).flatten();
        let touched = own.unwrap_or(touched);
        // The shadow of an address says only in which eight bytes it is.
        match touched {
            0..4096 => format!("followed a null pointer ({touched:#x})"),
            _ if own.is_some() => format!("used bytes {}", self.run.describe_place(touched)),
            _ => format!("touched memory that is not there ({touched:#x})"),
        }
    }
}
