// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the module exports. The page writes a question into [`input`], calls
//! [`call`], and reads the answer at [`reply`] and its columns at [`columns`]. Everything stays
//! valid until the next call. The module has one thread, so the cell is never borrowed twice: a
//! policy that calls back into the module gets an empty buffer.

use crate::answer::{Answer, answer};
use std::cell::RefCell;

#[derive(Default)]
struct Buffers {
    input: Vec<u8>,
    answer: Answer,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Passes the text of a panic to the page.
    fn panicked(text: *const u8, len: usize);
}

/// Prepares the module; called once, first.
#[unsafe(no_mangle)]
pub extern "C" fn start() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page copies `len` bytes from `text` before it returns.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
}

/// The buffer for a question of `len` bytes of UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn input(len: usize) -> *mut u8 {
    BUFFERS.with(|buffers| {
        buffers.try_borrow_mut().map_or(std::ptr::null_mut(), |mut buffers| {
            buffers.input = vec![0; len];
            buffers.input.as_mut_ptr()
        })
    })
}

/// Answers the question. Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    let taken = BUFFERS.with(|b| b.try_borrow_mut().map(|mut b| std::mem::take(&mut b.input)).ok());
    let text = String::from_utf8_lossy(&taken.unwrap_or_default()).into_owned();
    // No buffer is borrowed while a policy runs.
    let made = answer(&text);
    let len = made.json.len();
    BUFFERS.with(|buffers| {
        if let Ok(mut buffers) = buffers.try_borrow_mut() {
            buffers.answer = made;
        }
    });
    len
}

/// The answer: JSON in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn reply() -> *const u8 {
    BUFFERS.with(|b| b.try_borrow().map_or(std::ptr::null(), |b| b.answer.json.as_ptr()))
}

/// The columns of the answer, whose places the answer gives in `columns`.
#[unsafe(no_mangle)]
pub extern "C" fn columns() -> *const u8 {
    BUFFERS.with(|b| b.try_borrow().map_or(std::ptr::null(), |b| b.answer.bytes.as_ptr()))
}
