// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls natively compiled code, and returns from it when it fails.
//!
//! A kernel's verifier proves that a scheduler accesses only its own memory and does not run for
//! ever. Compiled natively it may do both. Before a call the stack pointer is saved. Three events
//! end the call: a fault in the scheduler's code (SIGSEGV, SIGBUS, SIGFPE, SIGILL), more than
//! [`LIMIT_S`] seconds of CPU time, and a broken rule. The registers are then set so that the call
//! returns at once with the reason. Whatever the abandoned stack frames leave behind belongs to the
//! scheduler; a run whose scheduler failed is never resumed.
//!
//! The limit is CPU time of the thread, checked twice a second. It costs nothing per call, and the
//! load of the machine does not influence it. A fault outside of the scheduler's code goes to the
//! handler that was installed before.
//!
//! Source: signal(7), sigaltstack(2), timer_create(2), System V ABI for AMD64 (registers that a
//! function preserves: rbx, rbp, r12 to r15).

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
        /// Address that it accessed, for SIGSEGV and SIGBUS.
        touched: u64,
    },
    /// It used more than the allowed time.
    Time {
        /// Address of the code.
        at: u64,
    },
    /// It broke a rule.
    Broken(String),
}

/// A running call.
struct Active {
    /// Stack pointer to restore.
    stack: u64,
    /// Code of the scheduler.
    text: Range<u64>,
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
    // rdi: function, rsi, rdx, rcx, r8: its arguments, r9: where the stack pointer is kept.
    "mov [r9], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov rcx, r8",
    "call rax",
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
    fn schedlab_scx_enter(f: u64, a: u64, b: u64, c: u64, d: u64, stack: *mut u64) -> u64;
    fn schedlab_scx_return();
    fn schedlab_scx_abandon(stack: u64) -> !;
}

/// Calls `function`, whose code is within `text`, with `args`.
///
/// # Safety
///
/// `function` is the address of a C function with at most four integer arguments in a loaded image,
/// whose code is `text`. Every pointer that it gets is valid longer than the call.
#[inline(always)]
pub unsafe fn call(function: u64, args: [u64; 4], text: Range<u64>) -> Result<u64, Box<Fault>> {
    watch();
    let outer = ACTIVE.get();
    let mut active = Active { stack: 0, text, fault: None };
    let this = &raw mut active;
    CALLS.set(CALLS.get() + 1);
    ACTIVE.set(this);
    // SAFETY: the caller's promise; a fault comes back here as a return.
    let value = unsafe {
        let [a, b, c, d] = args;
        schedlab_scx_enter(function, a, b, c, d, &raw mut (*this).stack)
    };
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
    let active = ACTIVE.get();
    assert!(!active.is_null(), "outside of a callback: {what}");
    // SAFETY: the frame is alive while ACTIVE points to it; its stack pointer is that of the entry.
    unsafe {
        (*active).fault = Some(Fault::Broken(what));
        schedlab_scx_abandon((*active).stack)
    }
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

const SIGNALS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The previous handlers; written once, before schedlab's are installed.
static mut BEFORE: [Option<libc::sigaction>; 4] = [None; 4];

/// The signal of the timers: the first free real-time signal.
fn timer_signal() -> c_int {
    libc::SIGRTMIN() + 7
}

impl Watch {
    #[cold]
    fn start(&self) {
        HANDLERS.call_once(install);
        ensure_stack();
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

/// No code is below this address: it was a call of a null pointer.
const NULL_PAGE: u64 = 4096;

/// Makes the interrupted call return. Returns whether its code was the scheduler's.
unsafe fn end_call(context: *mut c_void, fault: impl FnOnce(u64) -> Fault) -> bool {
    let active = ACTIVE.get();
    if active.is_null() {
        return false;
    }
    // SAFETY: the frame is alive while ACTIVE points to it; the context is the interrupted one's.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[RIP] as u64;
        // The time of a call may be up while an inner one is under way; both have the same code.
        let is_its = (*active).text.contains(&at) || at < NULL_PAGE;
        if !is_its {
            return false;
        }
        (*active).fault = Some(fault(at));
        registers[RSP] = (*active).stack as i64;
        registers[RIP] = schedlab_scx_return as *const () as i64;
        registers[RAX] = 0;
        registers[EFL] &= !0x400;
    }
    true
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes valid pointers.
    unsafe {
        if super::touch::failed(context) {
            return;
        }
        let touched = (*info).si_addr() as u64;
        if end_call(context, |at| Fault::Signal { signal, at, touched }) {
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
    let ended = unsafe { end_call(context, |at| Fault::Time { at }) };
    let _ = WATCH.try_with(|watch| {
        if let Some(timer) = watch.0.get().filter(|timer| *timer != usize::MAX) {
            // Within a function of ours nothing is interrupted: soon again.
            arm(timer as libc::timer_t, if ended { PERIOD_NS } else { HURRY_NS });
        }
    });
}
