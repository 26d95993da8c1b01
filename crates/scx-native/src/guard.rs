// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls natively compiled code, and returns from it when it fails.
//!
//! A kernel's verifier proves that a scheduler accesses only its own memory and does not run for
//! ever. Compiled natively it may do both. Before a call the stack pointer is saved. Four events
//! end the call: a fault in the scheduler's code (SIGSEGV, SIGBUS, SIGFPE, SIGILL), a system call
//! (SIGSYS), more than [`LIMIT_S`] seconds of CPU time, and a broken rule. The registers are then
//! set so that the call returns at once with the reason. Whatever the abandoned stack frames leave
//! behind belongs to the scheduler; a run whose scheduler failed is never resumed.
//!
//! A scheduler has a stack of its own, so that its size does not depend on the thread. Functions
//! of the simulator that it calls run on it too, and trampolines keep room for them.
//!
//! The limit is CPU time of the thread, checked twice a second. It costs nothing per call, and the
//! load of the machine does not influence it. A fault outside of the scheduler's code goes to the
//! handler that was installed before.
//!
//! A division by zero is no fault of BPF programs: its quotient is 0 and its remainder the dividend
//! (Documentation/bpf/standardization/instruction-set.rst). [`super::division`] continues there.
//!
//! Source: signal(7), sigaltstack(2), timer_create(2), System V ABI for AMD64 (registers that a
//! function preserves: rbx, rbp, r12 to r15).

use super::zone;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::Once;

/// CPU time that one callback may use (s).
pub const LIMIT_S: u32 = 3;

/// Time between two checks of a thread (ns of its CPU time).
const PERIOD_NS: i64 = 500_000_000;

/// Time between two checks (ns) when the limit is exceeded but the scheduler is inside one of
/// schedlab's functions.
const HURRY_NS: i64 = 1_000_000;

/// Why a call was ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A signal in the scheduler's code.
    Signal {
        /// SIG*.
        signal: i32,
        /// Address of the code.
        at: u64,
        /// Address that it accessed, for SIGSEGV and SIGBUS; `None`: it is no address at all.
        touched: Option<u64>,
    },
    /// An access of bytes that belong to no object of the scheduler.
    Bounds {
        /// Address of the code.
        at: u64,
        /// Address that it accessed.
        touched: u64,
        /// Number of bytes.
        size: u64,
        /// Whether it wrote them.
        is_write: bool,
    },
    /// Its stack is full.
    Overflow {
        /// Address of the code.
        at: u64,
    },
    /// It went on at an address that is not in its code.
    Wild {
        /// Address of the code; 0: unknown.
        at: u64,
        /// The other address.
        to: u64,
    },
    /// It made a system call.
    SystemCall {
        /// Address of the code.
        at: u64,
        /// Number of the system call.
        number: i32,
    },
    /// It used more than the allowed time.
    Time {
        /// Address of the code.
        at: u64,
    },
    /// It broke a rule.
    Broken {
        /// The rule.
        what: String,
        /// Address of the code; `None`: that of its last call of the simulator.
        at: Option<u64>,
    },
}

/// Where the code and the stack of a scheduler are.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its code.
    pub text: Range<u64>,
    /// Its stack. Unmapped memory is before it.
    pub stack: Range<u64>,
}

/// A running call.
struct Active {
    /// Stack pointer to restore.
    stack: u64,
    /// Alive as long as the call.
    place: *const Place,
    fault: Option<Fault>,
}

thread_local! {
    static ACTIVE: Cell<*mut Active> = const { Cell::new(null_mut()) };
    /// Number of calls so far; its value when the timer last expired; and how often in a row.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static SEEN: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
    static WATCH: Watch = const { Watch(Cell::new(None)) };
    /// Whether `WATCH` was started. Tested before every call; needs no drop.
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

std::arch::global_asm!(
    ".pushsection .text.schedlab_scx_enter,\"ax\",@progbits",
    ".p2align 4",
    ".globl schedlab_scx_enter",
    ".globl schedlab_scx_return",
    ".type schedlab_scx_enter,@function",
    "schedlab_scx_enter:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    // rdi: function, rsi: its four arguments, rdx: where the stack pointer is kept, rcx: the stack
    // to run on; 0: this one.
    "mov [rdx], rsp",
    "mov rbp, rsp",
    "test rcx, rcx",
    "cmovnz rsp, rcx",
    "mov rax, rdi",
    "mov rdi, [rsi]",
    "mov rdx, [rsi + 16]",
    "mov rcx, [rsi + 24]",
    "mov rsi, [rsi + 8]",
    "call rax",
    "mov rsp, rbp",
    "schedlab_scx_return:",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size schedlab_scx_enter, . - schedlab_scx_enter",
    // rdi: stack pointer that was kept.
    ".globl schedlab_scx_abandon",
    ".type schedlab_scx_abandon,@function",
    "schedlab_scx_abandon:",
    "mov rsp, rdi",
    "xor eax, eax",
    "cld",
    "jmp schedlab_scx_return",
    ".size schedlab_scx_abandon, . - schedlab_scx_abandon",
    ".popsection",
);

unsafe extern "C" {
    fn schedlab_scx_enter(f: u64, args: *const [u64; 4], kept: *mut u64, stack: u64) -> u64;
    fn schedlab_scx_return();
    fn schedlab_scx_abandon(stack: u64) -> !;
    fn schedlab_scx_overflow();
    fn schedlab_scx_wild();
}

/// Calls `function` with `args`. The code and the stack of the scheduler are at `place`.
///
/// # Safety
///
/// `function` is the address of a C function with at most four integer arguments in a loaded image,
/// whose code is `place.text`. Every pointer, `place` too, is valid longer than the call. The stack
/// is mapped, and of this run alone.
#[inline(always)]
pub unsafe fn call(function: u64, args: [u64; 4], place: *const Place) -> Result<u64, Box<Fault>> {
    watch();
    let outer = ACTIVE.get();
    // A call from within a call goes on below it.
    // SAFETY: the caller's promise.
    let stack = if outer.is_null() { unsafe { (*place).stack.end } } else { 0 };
    let mut active = Active { stack: 0, place, fault: None };
    let this = &raw mut active;
    CALLS.set(CALLS.get() + 1);
    ACTIVE.set(this);
    // SAFETY: the caller's promise; a fault comes back here as a return.
    let value =
        unsafe { schedlab_scx_enter(function, &raw const args, &raw mut (*this).stack, stack) };
    ACTIVE.set(outer);
    // SAFETY: `this` points to our own frame.
    match unsafe { (*this).fault.is_some() } {
        false => Ok(value),
        true => Err(Box::new(taken(&mut active))),
    }
}

#[cold]
fn taken(active: &mut Active) -> Fault {
    active.fault.take().expect("it was there")
}

/// Ends the running call, because the scheduler broke a rule. Called only from functions that the
/// scheduler calls, when they own nothing that needs a drop.
pub fn broken(what: String) -> ! {
    fail(Fault::Broken { what, at: None })
}

/// Ends the running call. Called only from functions that the scheduler calls, when they own
/// nothing that needs a drop.
pub fn fail(fault: Fault) -> ! {
    let active = ACTIVE.get();
    assert!(!active.is_null(), "outside of a callback: {fault:?}");
    // SAFETY: the frame is alive while ACTIVE points to it; its stack pointer is that of the entry.
    unsafe {
        (*active).fault = Some(fault);
        schedlab_scx_abandon((*active).stack)
    }
}

// A trampoline jumps here, with what returns to the scheduler's code on the stack. For a wild
// branch, r11 has its target.
std::arch::global_asm!(
    ".pushsection .text.schedlab_scx_stop,\"ax\",@progbits",
    ".globl schedlab_scx_overflow",
    "schedlab_scx_overflow:",
    "mov rdi, [rsp]",
    "jmp {overflow}",
    ".globl schedlab_scx_wild",
    "schedlab_scx_wild:",
    "mov rdi, [rsp]",
    "mov rsi, r11",
    "jmp {wild}",
    ".popsection",
    overflow = sym overflow,
    wild = sym wild,
);

/// The stack has no room for a call that returns to `to`.
pub extern "C" fn overflow(to: u64) -> ! {
    // A return address is after the call.
    fail(Fault::Overflow { at: to - 1 })
}

extern "C" fn wild(from: u64, to: u64) -> ! {
    fail(Fault::Wild { at: from - 1, to })
}

/// Address of the code for a call without room on the stack.
pub fn overflow_address() -> u64 {
    schedlab_scx_overflow as *const () as u64
}

/// Address of the code for a call that leaves the scheduler's code.
pub fn wild_address() -> u64 {
    schedlab_scx_wild as *const () as u64
}

/// Prepares the thread for calls: signal handlers once per process, a timer once per thread.
#[inline(always)]
fn watch() {
    if !IS_WATCHED.get() {
        WATCH.with(Watch::start);
        IS_WATCHED.set(true);
    }
}

/// The timer of a thread.
struct Watch(Cell<Option<usize>>);

static HANDLERS: Once = Once::new();

const SIGNALS: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSYS];

/// The previous handlers; written once, before schedlab's are installed.
static mut BEFORE: [Option<libc::sigaction>; 5] = [None; 5];

/// The signal of the timers: the first free real-time signal.
fn timer_signal() -> c_int {
    libc::SIGRTMIN() + 7
}

impl Watch {
    #[cold]
    fn start(&self) {
        HANDLERS.call_once(install);
        ensure_stack();
        super::seccomp::forbid_system_calls();
        // SAFETY: zeroes are a valid sigevent; the fields that matter are set.
        let timer = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = timer_signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = null_mut();
            let clock = libc::CLOCK_THREAD_CPUTIME_ID;
            (libc::timer_create(clock, &raw mut event, &raw mut timer) == 0).then_some(timer)
        };
        // Without a timer there is no limit; the user must notice an endless loop.
        let Some(timer) = timer else { return self.0.set(Some(usize::MAX)) };
        arm(timer, PERIOD_NS);
        self.0.set(Some(timer as usize));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(timer) = self.0.get().filter(|timer| *timer != usize::MAX) {
            // SAFETY: it is the timer of this thread, made by `start`.
            unsafe { libc::timer_delete(timer as libc::timer_t) };
        }
    }
}

fn arm(timer: libc::timer_t, period_ns: i64) {
    let at = libc::timespec { tv_sec: 0, tv_nsec: period_ns };
    let when = libc::itimerspec { it_interval: at, it_value: at };
    // SAFETY: the timer exists; timer_settime is safe in signal handlers.
    unsafe { libc::timer_settime(timer, 0, &raw const when, null_mut()) };
}

/// Creates a signal stack if the thread has none, as for threads that Rust did not start.
fn ensure_stack() {
    const SIZE: usize = 64 * 1024;
    // SAFETY: the stack that is given is never freed.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &raw mut now);
        if now.ss_flags & libc::SS_DISABLE != 0 {
            let memory = Box::leak(vec![0u8; SIZE].into_boxed_slice());
            let stack =
                libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
            libc::sigaltstack(&raw const stack, null_mut());
        }
    }
}

fn install() {
    // SAFETY: zeroes are a valid sigaction; the handlers have the signature of SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        action.sa_sigaction = on_fault as *const () as usize;
        for (index, signal) in SIGNALS.into_iter().enumerate() {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            BEFORE[index] = Some(before);
            libc::sigaction(signal, &raw const action, null_mut());
        }
        action.sa_flags |= libc::SA_RESTART;
        action.sa_sigaction = on_timer as *const () as usize;
        libc::sigaction(timer_signal(), &raw const action, null_mut());
    }
}

const RIP: usize = libc::REG_RIP as usize;
const RSP: usize = libc::REG_RSP as usize;
const RAX: usize = libc::REG_RAX as usize;
const EFL: usize = libc::REG_EFL as usize;

/// Makes the interrupted call return. Returns whether its code was the scheduler's. `jumped_to`:
/// the address from which the processor could not read an instruction.
unsafe fn end_call(
    context: *mut c_void,
    jumped_to: Option<u64>,
    fault: impl FnOnce(u64, &Place) -> Fault,
) -> bool {
    let active = ACTIVE.get();
    if active.is_null() {
        return false;
    }
    // SAFETY: the frame is alive while ACTIVE points to it; the context is the interrupted one's.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[RIP] as u64;
        // The time of a call may be up while an inner one is under way; both have the same code.
        let place = &*(*active).place;
        // Code of the simulator never goes on where no code is.
        let is_wild = jumped_to == Some(at);
        if !is_wild && !place.text.contains(&at) {
            return false;
        }
        let found = if is_wild { Fault::Wild { at: 0, to: at } } else { fault(at, place) };
        (*active).fault = Some(found);
        registers[RSP] = (*active).stack as i64;
        registers[RIP] = schedlab_scx_return as *const () as i64;
        registers[RAX] = 0;
        registers[EFL] &= !0x400;
    }
    true
}

/// Whether the interrupted code is the scheduler's.
unsafe fn is_its_code(context: *mut c_void) -> bool {
    let active = ACTIVE.get();
    if active.is_null() {
        return false;
    }
    // SAFETY: as in `end_call`.
    unsafe {
        let at = (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[RIP] as u64;
        (*(*active).place).text.contains(&at)
    }
}

/// The address that an instruction could not access; `None`: there was none, or it was impossible.
unsafe fn touched(signal: c_int, info: *mut libc::siginfo_t) -> Option<u64> {
    /// SI_KERNEL: the kernel does not know the address.
    const UNKNOWN: c_int = 0x80;
    // SAFETY: the kernel passes a valid pointer.
    unsafe {
        let is_access = matches!(signal, libc::SIGSEGV | libc::SIGBUS);
        (is_access && (*info).si_code != UNKNOWN).then(|| (*info).si_addr() as u64)
    }
}

/// Gives the stack a shadow when a function of the scheduler marks its variables there. A function
/// with assembly, be it empty, has them on the stack and not in a frame of the zone. Until then the
/// stack is out of reach. Returns whether the store is to be repeated.
unsafe fn marks_stack(context: *mut c_void, touched: u64) -> bool {
    /// Bit of a page fault's error code: it was a write.
    const WRITE: i64 = 2;
    let active = ACTIVE.get();
    // SAFETY: as in `end_call`.
    unsafe {
        if !is_its_code(context) {
            return false;
        }
        let error = (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize];
        let stack = &(*(*active).place).stack;
        let shadow = zone::shadow_of(stack.start)..zone::shadow_of(stack.end);
        error & WRITE != 0 && shadow.contains(&touched) && zone::map_shadow(stack)
    }
}

impl Place {
    /// Whether an address is just below the stack.
    fn is_below_stack(&self, at: u64) -> bool {
        (self.stack.start - zone::GUARD..self.stack.start).contains(&at)
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers.
    unsafe {
        if super::touch::failed(context) {
            return;
        }
        if signal == libc::SIGFPE && is_its_code(context) && super::division::skip(context) {
            return;
        }
        let touched = touched(signal, info);
        if touched.is_some_and(|touched| marks_stack(context, touched)) {
            return;
        }
        let number = super::seccomp::number(info);
        let ended = end_call(context, touched, |at, place| match signal {
            libc::SIGSYS => Fault::SystemCall { at, number },
            _ if touched.is_some_and(|touched| place.is_below_stack(touched)) => {
                Fault::Overflow { at }
            }
            _ => Fault::Signal { signal, at, touched },
        });
        if ended {
            return;
        }
        // Not the scheduler's: the previous handler gets it when the instruction is repeated.
        let index = SIGNALS.iter().position(|known| *known == signal).unwrap_or(0);
        let before = &raw const BEFORE[index];
        if let Some(before) = &*before {
            libc::sigaction(signal, before, null_mut());
        }
    }
}

extern "C" fn on_timer(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let calls = CALLS.get();
    let (seen, mut times) = SEEN.get();
    times = if seen == calls { times + 1 } else { 0 };
    SEEN.set((calls, times));
    let periods = LIMIT_S as i64 * 1_000_000_000 / PERIOD_NS;
    if ACTIVE.get().is_null() || i64::from(times) < periods {
        return;
    }
    // SAFETY: as in `on_fault`.
    let ended = unsafe { end_call(context, None, |at, _| Fault::Time { at }) };
    let _ = WATCH.try_with(|watch| {
        if let Some(timer) = watch.0.get().filter(|timer| *timer != usize::MAX) {
            // Within a function of ours nothing is interrupted: soon again.
            arm(timer as libc::timer_t, if ended { PERIOD_NS } else { HURRY_NS });
        }
    });
}
