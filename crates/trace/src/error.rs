// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading a trace, with their place.

use std::fmt;

/// A place in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Position of a record in a binary file.
    Byte(u64),
    /// Line of a text, from 1.
    Line(u64),
    /// Row of a table, from 0.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(at) => write!(f, "byte {at}"),
            Self::Line(number) => write!(f, "line {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// Why a trace cannot be read, or not completely.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Where the faulty record begins.
    pub place: Place,
    /// What was found and what is allowed.
    pub what: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for ReadError {}
