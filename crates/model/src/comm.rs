// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name of a task as the kernel keeps it.

use std::fmt;

/// The name of a task as the kernel keeps it: at most 15 bytes (`TASK_COMM_LEN`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Comm {
    bytes: [u8; 15],
    len: u8,
}

impl Comm {
    /// The name, cut to 15 bytes at the end of a character.
    pub fn new(name: &str) -> Self {
        let mut writer = Writer::default();
        writer.push(name);
        writer.comm
    }

    /// The name of the task number `nth` that was forked from the description `name`. It does not
    /// allocate, because a task that was just forked finds its name itself.
    pub fn of_forked(name: &str, nth: u32) -> Self {
        let mut writer = Writer::default();
        let _ = fmt::Write::write_fmt(&mut writer, format_args!("{name}-{nth}"));
        writer.comm
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// The name with the zero byte at its end, as system calls take it.
    pub fn to_bytes_with_nul(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..15].copy_from_slice(&self.bytes);
        bytes
    }
}

/// Writes a name, and drops what does not fit.
#[derive(Default)]
struct Writer {
    comm: Comm,
    /// Whether a character did not fit: no later one is added.
    is_full: bool,
}

impl Writer {
    fn push(&mut self, text: &str) {
        let comm = &mut self.comm;
        let from = usize::from(comm.len);
        let mut len = if self.is_full { 0 } else { text.len().min(comm.bytes.len() - from) };
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.is_full |= len < text.len();
        comm.bytes[from..from + len].copy_from_slice(&text.as_bytes()[..len]);
        comm.len += len as u8;
    }
}

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_the_end_of_a_character() {
        assert_eq!(Comm::new("hog-0").as_str(), "hog-0");
        assert_eq!(Comm::new("0123456789abcdef").as_str(), "0123456789abcde");
        assert_eq!(Comm::new("0123456789abcd\u{e9}").as_str(), "0123456789abcd");
        assert_eq!(Comm::default().as_str(), "");
        assert_eq!(&Comm::new("hog").to_bytes_with_nul(), b"hog\0\0\0\0\0\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn forked_tasks_have_the_name_that_reports_show() {
        for (name, nth, expected) in [
            ("job", 12, "job-12"),
            ("0123456789abc", 1234, "0123456789abc-1"),
            ("0123456789abcd\u{e9}", 3, "0123456789abcd"),
        ] {
            let comm = Comm::of_forked(name, nth);
            assert_eq!(comm.as_str(), expected);
            assert_eq!(comm, Comm::new(&format!("{name}-{nth}")));
        }
    }
}
