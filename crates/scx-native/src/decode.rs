// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the bytes of maps and variables by the types of the source.

use super::cache::hex;
use super::dwarf::Type;
use schedlab_scx::inspect::Value;

/// Most values of one element or variable: beyond that, arrays are cut.
const VALUES_MAX: usize = 1_024;

/// Most elements of an array that are shown.
const ARRAY_MAX: usize = 64;

/// Most bytes of unknown meaning that are shown.
const BYTES_MAX: usize = 64;

/// Decodes values. `name_of` says what a pointer refers to, if it knows.
pub struct Decoder<'d> {
    name_of: &'d dyn Fn(u64) -> Option<String>,
    /// Number of values that may follow.
    left: usize,
}

impl<'d> Decoder<'d> {
    /// A decoder for one element or variable.
    pub fn new(name_of: &'d dyn Fn(u64) -> Option<String>) -> Self {
        Self { name_of, left: VALUES_MAX }
    }

    /// Decodes `bytes` as a value of type `of`; `None`: the type is unknown. Bytes that are missing
    /// count as a value of unknown type.
    pub fn value(&mut self, of: Option<&Type>, bytes: &[u8]) -> Value {
        self.left = self.left.saturating_sub(1);
        let known = of.filter(|of| of.size() <= bytes.len() as u64);
        match known {
            Some(Type::Bool) => Value::Flag(bytes[0] != 0),
            Some(Type::Int { size: size @ 1..=8, signed }) => integer(bytes, *size, *signed),
            Some(Type::Enum { size: size @ 1..=8, values }) => {
                let number = signed(word(bytes, *size), *size * 8);
                let named = values.iter().find(|(_, value)| *value == number);
                named.map_or(Value::Signed(number), |(name, _)| Value::Word(name.clone()))
            }
            Some(Type::Bits {
                size: size @ 1..=8,
                shift,
                bits: bits @ 1..=64,
                signed: has_sign,
            }) => {
                let word = word(bytes, *size) >> shift.min(&63) & (u64::MAX >> (64 - bits));
                match has_sign {
                    true => Value::Signed(signed(word, *bits)),
                    false => Value::Unsigned(word),
                }
            }
            Some(Type::Pointer) => self.pointer(word(bytes, 8)),
            Some(Type::Array { of, nr }) => self.array(of, *nr as usize, bytes),
            Some(Type::Struct { size, members }) => self.members(members, &bytes[..*size as usize]),
            _ => raw(bytes),
        }
    }

    fn pointer(&self, to: u64) -> Value {
        Value::Word(match to {
            0 => "NULL".into(),
            to => (self.name_of)(to).unwrap_or_else(|| format!("{to:#x}")),
        })
    }

    fn array(&mut self, of: &Type, nr: usize, bytes: &[u8]) -> Value {
        if let (Type::Int { size: 1, signed: true }, Some(text)) = (of, text(&bytes[..nr])) {
            return Value::Text(short(text));
        }
        let size = of.size() as usize;
        if size == 0 {
            return Value::List(Vec::new());
        }
        let element = |index: usize| &bytes[index * size..(index + 1) * size];
        let is_zero = |index: usize| element(index).iter().all(|byte| *byte == 0);
        // Zeroes at the end of a long array say nothing.
        let nr_used = match nr {
            ..=8 => nr,
            _ => (0..nr).rev().find(|index| !is_zero(*index)).map_or(0, |last| last + 1),
        };
        let mut values = Vec::new();
        while values.len() < nr_used.min(ARRAY_MAX) && self.left > 0 {
            values.push(self.value(Some(of), element(values.len())));
        }
        match nr - values.len() {
            0 => {}
            more if values.len() == nr_used => values.push(Value::Word(format!("{more} times 0"))),
            more => values.push(Value::Word(format!("{more} more"))),
        }
        Value::List(values)
    }

    fn members(&mut self, members: &[(String, u64, Type)], bytes: &[u8]) -> Value {
        let mut all = Vec::new();
        for (name, offset, of) in members {
            let rest = bytes.get(*offset as usize..).unwrap_or_default();
            let size = (of.size() as usize).min(rest.len());
            match self.value(Some(of), &rest[..size]) {
                // Members of a struct without a name are found as its own.
                Value::Members(inner) if name.is_empty() => all.extend(inner),
                value => all.push((name.clone(), value)),
            }
        }
        Value::Members(all)
    }
}

fn word(bytes: &[u8], size: u64) -> u64 {
    let mut word = [0; 8];
    word[..size as usize].copy_from_slice(&bytes[..size as usize]);
    u64::from_le_bytes(word)
}

/// A number of so many bits, 1 to 64, with a sign.
fn signed(word: u64, bits: u64) -> i64 {
    let above = 64 - bits;
    (word << above) as i64 >> above
}

fn integer(bytes: &[u8], size: u64, has_sign: bool) -> Value {
    let word = word(bytes, size);
    if has_sign { Value::Signed(signed(word, size * 8)) } else { Value::Unsigned(word) }
}

/// The text in an array of characters; `None`: it holds something else.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let is_text = text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    (is_text && bytes[end..].iter().all(|byte| *byte == 0)).then(|| text.to_owned())
}

/// A text without what is after the first [`VALUES_MAX`] characters.
fn short(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(VALUES_MAX) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// Bytes in hexadecimal digits.
fn raw(bytes: &[u8]) -> Value {
    if bytes.len() > 8 && bytes.iter().all(|byte| *byte == 0) {
        return Value::Word(format!("{} bytes of 0", bytes.len()));
    }
    let shown = &bytes[..bytes.len().min(BYTES_MAX)];
    let more = match bytes.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} bytes more"),
    };
    Value::Word(format!("{}{more}", hex(shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(of: &Type, bytes: &[u8]) -> Value {
        let name_of = |at: u64| (at == 0x1000).then(|| "task a[1000]".to_owned());
        Decoder::new(&name_of).value(Some(of), bytes)
    }

    fn int(size: u64, signed: bool) -> Type {
        Type::Int { size, signed }
    }

    fn array(of: Type, nr: u64) -> Type {
        Type::Array { of: Box::new(of), nr }
    }

    #[test]
    fn values_are_decoded_by_their_types() {
        assert_eq!(decode(&int(4, true), &[0xff; 4]), Value::Signed(-1));
        assert_eq!(decode(&int(8, false), &[0xff; 8]), Value::Unsigned(u64::MAX));
        assert_eq!(decode(&Type::Bool, &[1]), Value::Flag(true));
        let mode = Type::Enum { size: 4, values: vec![("LESS".into(), -1)] };
        assert_eq!(decode(&mode, &[0xff; 4]), Value::Word("LESS".into()));
        assert_eq!(decode(&mode, &[3, 0, 0, 0]), Value::Signed(3));
        let bits = |signed| Type::Bits { size: 4, shift: 4, bits: 3, signed };
        assert_eq!(decode(&bits(false), &[0x70, 0, 0, 0]), Value::Unsigned(7));
        assert_eq!(decode(&bits(true), &[0x70, 0, 0, 0]), Value::Signed(-1));
        let pointer = |at: u64| decode(&Type::Pointer, &at.to_le_bytes());
        assert_eq!(pointer(0), Value::Word("NULL".into()));
        assert_eq!(pointer(0x1000), Value::Word("task a[1000]".into()));
        assert_eq!(pointer(0x2000), Value::Word("0x2000".into()));
    }

    #[test]
    fn texts_structs_and_bytes_of_unknown_types_are_readable() {
        let chars = array(int(1, true), 8);
        assert_eq!(decode(&chars, b"abc\0\0\0\0\0"), Value::Text("abc".into()));
        let numbers = decode(&chars, b"a\x01\0\0\0\0\0\0");
        assert!(matches!(numbers, Value::List(list) if list[0] == Value::Signed(97)));
        let inner = Type::Struct { size: 2, members: vec![("b".into(), 1, int(1, false))] };
        let outer = Type::Struct {
            size: 4,
            members: vec![("a".into(), 0, int(2, false)), (String::new(), 2, inner)],
        };
        let expected = vec![("a".into(), Value::Unsigned(513)), ("b".into(), Value::Unsigned(4))];
        assert_eq!(decode(&outer, &[1, 2, 3, 4]), Value::Members(expected));
        assert_eq!(decode(&Type::Other { size: 2 }, &[0xab, 1]), Value::Word("ab01".into()));
        assert_eq!(decode(&Type::Other { size: 9 }, &[0; 9]), Value::Word("9 bytes of 0".into()));
        // What is shorter than its type is not read beyond its end.
        assert_eq!(decode(&int(8, false), &[7]), Value::Word("07".into()));
    }

    #[test]
    fn large_values_are_cut() {
        let Value::List(few) =
            decode(&array(int(1, false), 1_000), &[&[1, 2][..], &[0; 998]].concat())
        else {
            panic!("a list")
        };
        let expected = [Value::Unsigned(1), Value::Unsigned(2), Value::Word("998 times 0".into())];
        assert_eq!(few, expected);
        let deep = array(array(array(int(1, false), 64), 64), 64);
        let text = format!("{:?}", decode(&deep, &[1; 64 * 64 * 64]));
        assert!(text.matches("Unsigned").count() <= VALUES_MAX, "{}", text.len());
        assert!(text.contains(" more"), "{text}");
    }
}
