// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload as bytes, for the way into the guest.
//!
//! The model has no dependency, so it cannot be serialised by derivation; here every type of it
//! that a run needs is taken apart once, by macros that name each field and each variant. A field
//! or a variant that the model gains does not compile before it stands here. Both ends are built
//! from the same sources and check that they are (`protocol::VERSION`), so there is no rule for
//! reading other versions. The reader trusts nothing all the same.
//!
//! Integers are little-endian, sequences have their length before them (u32), choices one byte.
//! Left out: expectations, which lanes do not look at.

mod workload;

use std::fmt;

/// Bytes that are no message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// Bytes that are left to read.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.bytes.split_at_checked(len) else {
            return Err(WireError(format!(
                "a message ends too early: {len} bytes wanted, {} are left",
                self.bytes.len()
            )));
        };
        self.bytes = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.slice(1)?[0])
    }

    /// Everything was read.
    pub fn finish(self) -> Result<(), WireError> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(WireError(format!("{left} bytes too many at the end of a message"))),
        }
    }
}

fn unknown(what: &str, found: u8) -> WireError {
    WireError(format!("{found} stands for no {what}"))
}

/// What can be written into a message and read from it.
pub trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value.
    fn take(input: &mut Input<'_>) -> Result<Self, WireError>;
}

/// The bytes of one value.
pub fn encode<T: Wire>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

/// The value that the bytes hold, all of them.
pub fn decode<T: Wire>(bytes: &[u8]) -> Result<T, WireError> {
    let mut input = Input::new(bytes);
    let value = T::take(&mut input)?;
    input.finish()?;
    Ok(value)
}

macro_rules! wire_numbers {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
                let mut bytes = [0; size_of::<Self>()];
                bytes.copy_from_slice(input.slice(size_of::<Self>())?);
                Ok(Self::from_le_bytes(bytes))
            }
        }
    )*};
}
wire_numbers!(u8, i8, u16, u32, u64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(unknown("truth value", found)),
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        let len = u32::take(input)? as usize;
        let bytes = input.slice(len)?.to_vec();
        Self::from_utf8(bytes).map_err(|_| WireError("a text is not UTF-8".into()))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        let len = u32::take(input)?;
        // Every item takes a byte at least: a length that lies allocates nothing.
        let mut items = Self::with_capacity((len as usize).min(input.bytes.len()).min(4096));
        for _ in 0..len {
            items.push(T::take(input)?);
        }
        Ok(items)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        Ok(if bool::take(input)? { Some(T::take(input)?) } else { None })
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        Ok(Self::new(T::take(input)?))
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        Ok((A::take(input)?, B::take(input)?))
    }
}

/// A struct: its fields in this order.
macro_rules! wire_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $( $field.put(out); )*
            }
            fn take(
                input: &mut $crate::wire::Input<'_>,
            ) -> Result<Self, $crate::wire::WireError> {
                $( let $field = $crate::wire::Wire::take(input)?; )*
                Ok(Self { $($field),* })
            }
        }
    };
}

/// An enum: one byte that says which, then the fields.
macro_rules! wire_enum {
    ($type:ident {
        $( $tag:literal => $variant:ident
            $( ( $($item:ident),* ) )? $( { $($field:ident),* } )? ),* $(,)?
    }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( Self::$variant $( ( $($item),* ) )? $( { $($field),* } )? => {
                        out.push($tag);
                        $( $( $item.put(out); )* )?
                        $( $( $field.put(out); )* )?
                    } )*
                }
            }
            fn take(
                input: &mut $crate::wire::Input<'_>,
            ) -> Result<Self, $crate::wire::WireError> {
                Ok(match <u8 as $crate::wire::Wire>::take(input)? {
                    $( $tag => Self::$variant
                        $( ( $( { let $item = $crate::wire::Wire::take(input)?; $item } ),* ) )?
                        $( { $( $field: $crate::wire::Wire::take(input)? ),* } )?, )*
                    found => return Err($crate::wire::unknown(stringify!($type), found)),
                })
            }
        }
    };
}
pub(crate) use {wire_enum, wire_struct};
