// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats of the kernel's BPF functions for text, with arguments as 64-bit words.
//!
//! Source: `bpf_bprintf_prepare` in kernel/bpf/helpers.c of Linux 6.18, which supports a subset of
//! printf(3). Left out: addresses and names of kernel objects (`%pB`, `%pi4`), which are printed as
//! numbers.

use std::fmt::Write as _;

/// Formats `words`. `text_at` reads the texts of `%s`.
pub fn format(format: &str, words: &[u64], text_at: &dyn Fn(u64) -> Option<String>) -> String {
    let mut out = String::new();
    let mut words = words.iter().copied();
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let mut flags = String::new();
        while let Some(flag) = rest.next_if(|c| "-+ #0".contains(*c)) {
            flags.push(flag);
        }
        let mut width = 0usize;
        while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
            width = (width * 10 + digit as usize).min(512);
            rest.next();
        }
        let mut precision = None;
        if rest.next_if_eq(&'.').is_some() {
            let mut most = 0usize;
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                most = most.saturating_mul(10).saturating_add(digit as usize - '0' as usize);
            }
            precision = Some(most);
        }
        let mut nr_long = 0;
        while let Some(size) = rest.next_if(|c| "lhz".contains(*c)) {
            nr_long += u32::from(size != 'h');
        }
        let kind = rest.next().unwrap_or('%');
        let mut pointer = String::new();
        if kind == 'p' {
            while let Some(c) = rest.next_if(char::is_ascii_alphanumeric) {
                pointer.push(c);
            }
        }
        let word = words.next().unwrap_or(0);
        let narrow = if nr_long == 0 { word & 0xffff_ffff } else { word };
        let text = match kind {
            'd' | 'i' if nr_long == 0 => (word as i32).to_string(),
            'd' | 'i' => (word as i64).to_string(),
            'u' => narrow.to_string(),
            'x' if flags.contains('#') => format!("{narrow:#x}"),
            'x' => format!("{narrow:x}"),
            'X' => format!("{narrow:X}"),
            'c' => char::from(word as u8).to_string(),
            's' => limited(text_at(word), precision),
            'p' if matches!(&*pointer, "ks" | "us") => limited(text_at(word), precision),
            'p' => format!("{word:016x}"),
            other => format!("%{other}"),
        };
        pad(&mut out, &text, width, &flags);
    }
    out
}

/// A text of `%s`, of which a precision takes the beginning.
fn limited(text: Option<String>, precision: Option<usize>) -> String {
    let text = text.unwrap_or_else(|| "(fault)".into());
    match precision {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    }
}

fn pad(out: &mut String, text: &str, width: usize, flags: &str) {
    if flags.contains('-') {
        let _ = write!(out, "{text:<width$}");
    } else if flags.contains('0') {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        let width = width.saturating_sub(sign.len());
        let _ = write!(out, "{sign}{digits:0>width$}");
    } else {
        let _ = write!(out, "{text:>width$}");
    }
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn formats_are_those_of_the_kernel() {
        let no_text = |_: u64| None;
        assert_eq!(format("%d %u|", &[-1i64 as u64, 7], &no_text), "-1 7|");
        assert_eq!(format("%lld", &[-5i64 as u64], &no_text), "-5");
        assert_eq!(format("%llu", &[u64::MAX], &no_text), u64::MAX.to_string());
        assert_eq!(format("[%3d|%-3d|%03d]", &[1, 2, 3], &no_text), "[  1|2  |003]");
        assert_eq!(format("%#llx 100%%", &[255], &no_text), "0xff 100%");
        assert_eq!(format("%s!", &[1], &|_| Some("hi".into())), "hi!");
        assert_eq!(format("%s %d", &[1], &no_text), "(fault) 0");
        let a_text = |_: u64| Some("kernel".into());
        assert_eq!(
            format("[%pks|%pus|%.3s|%8s]", &[1, 1, 1, 1], &a_text),
            "[kernel|kernel|ker|  kernel]"
        );
        assert_eq!(format("%p %pS", &[0x1f, 2], &no_text), "000000000000001f 0000000000000002");
        assert_eq!(format("%x %X %#x %c %i", &[255, 255, 16, 65, 3], &no_text), "ff FF 0x10 A 3");
        assert_eq!(format("%99999999999999999999d|%", &[1], &no_text).len(), 512 + 3);
    }
}
