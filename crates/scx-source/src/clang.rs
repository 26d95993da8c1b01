// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiler.

use std::path::PathBuf;

/// Environment variable that names the compiler.
pub const CLANG_VARIABLE: &str = "SCHEDLAB_CLANG";

/// Versions of clang that are searched after plain `clang`.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=30;

/// Finds the compiler: the one in `SCHEDLAB_CLANG`, or else `clang`, or else the newest `clang-N`.
///
/// # Errors
/// There is none; the text says what to install.
pub fn find_clang() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(CLANG_VARIABLE) {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = std::iter::once("clang".to_owned())
        .chain(VERSIONS.rev().map(|version| format!("clang-{version}")));
    for name in names {
        for directory in std::env::split_paths(&path) {
            let candidate = directory.join(&name);
            if candidate.is_file() {
                return Ok(candidate);
            }
        }
    }
    Err(format!(
        "compiling a scheduler takes clang, 14 or later, and there is none in PATH; install it \
         (Debian: `apt install clang`) or name it in {CLANG_VARIABLE}"
    ))
}

/// What to do about headers that the compiler did not find, from its messages; empty if it found
/// all of them.
pub fn advice_on_headers(messages: &str) -> String {
    let missing = messages.lines().find_map(|line| {
        let (_, rest) = line.split_once("fatal error: '")?;
        Some(rest.split_once("' file not found")?.0)
    });
    let Some(missing) = missing else { return String::new() };
    let origin = match missing.starts_with("scx/") {
        true => {
            " (it comes with published schedulers: tools/sched_ext/include in the source of Linux, \
             scheds/include in the scx repository)"
        }
        false => "",
    };
    format!("Name the directory in which {missing} is with --scx-include DIR{origin}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_advised_on() {
        let said =
            |name: &str| format!("a.bpf.c:1:10: fatal error: '{name}' file not found\n 1 |\n");
        let advice = advice_on_headers(&said("scx/common.bpf.h"));
        assert!(advice.starts_with("Name the directory in which scx/common.bpf.h is with --scx-"));
        assert!(advice.contains("tools/sched_ext/include"), "{advice}");
        let advice = advice_on_headers(&said("mine.h"));
        assert_eq!(advice, "Name the directory in which mine.h is with --scx-include DIR");
        assert_eq!(advice_on_headers("a.bpf.c:1:10: error: unknown type name 'x'"), "");
    }
}
