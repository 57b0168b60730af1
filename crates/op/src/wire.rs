//! The encoding of the container's steps. Numbers are little-endian; strings and runs
//! of bytes carry a length of four bytes, and strings their NUL.
//!
//! Whoever decodes reads a sealed file that the runtime wrote, but every length is
//! checked all the same: a plan that is not well formed ends as an error.

use core::ffi::CStr;

use crate::{Covered, HookKind, MountAttr, Slot, Target};

/// Reads an encoded plan from its beginning on.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

/// Takes one value off an encoded plan.
pub trait Decode<'a>: Sized {
    /// `None` where it is not well formed.
    fn decode(reader: &mut Reader<'a>) -> Option<Self>;
}

/// Appends one value to an encoded plan.
#[cfg(feature = "alloc")]
pub trait Encode {
    /// Appends it.
    fn encode(&self, out: &mut alloc::vec::Vec<u8>);
}

macro_rules! number {
    ($($ty:ty),*) => { $(
        impl<'a> Decode<'a> for $ty {
            fn decode(reader: &mut Reader<'a>) -> Option<Self> {
                let bytes = reader.take(size_of::<$ty>())?;
                Some(<$ty>::from_le_bytes(bytes.try_into().ok()?))
            }
        }

        #[cfg(feature = "alloc")]
        impl Encode for $ty {
            fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )* };
}

number!(u8, u16, u32, u64, i32);

impl<'a> Decode<'a> for bool {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        match reader.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<'a> Decode<'a> for Slot {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        u16::decode(reader).map(Self)
    }
}

impl<'a> Decode<'a> for HookKind {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Prestart,
            1 => Self::CreateRuntime,
            2 => Self::CreateContainer,
            3 => Self::StartContainer,
            4 => Self::Poststart,
            5 => Self::Poststop,
            _ => return None,
        })
    }
}

impl<'a> Decode<'a> for Target {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Follow,
            1 => Self::Nofollow,
            2 => Self::NoLinks,
            3 => Self::New,
            _ => return None,
        })
    }
}

impl<'a> Decode<'a> for Covered {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        Some(match reader.byte()? {
            0 => Self::Unknown,
            1 => Self::Directory,
            2 => Self::File,
            _ => return None,
        })
    }
}

impl<'a> Decode<'a> for MountAttr {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        Some(Self {
            set: Decode::decode(reader)?,
            clear: Decode::decode(reader)?,
            propagation: Decode::decode(reader)?,
            recursive: Decode::decode(reader)?,
        })
    }
}

impl<'a> Decode<'a> for &'a [u8] {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        let length = u32::decode(reader)?;
        reader.take(usize::try_from(length).ok()?)
    }
}

impl<'a> Decode<'a> for &'a CStr {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        CStr::from_bytes_with_nul(Decode::decode(reader)?).ok()
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    fn decode(reader: &mut Reader<'a>) -> Option<Self> {
        Some(if bool::decode(reader)? {
            Some(T::decode(reader)?)
        } else {
            None
        })
    }
}

#[cfg(feature = "alloc")]
mod encode {
    use alloc::{ffi::CString, vec::Vec};

    use super::Encode;
    use crate::{Covered, HookKind, MountAttr, Slot, Target};

    impl Encode for bool {
        fn encode(&self, out: &mut Vec<u8>) {
            out.push(u8::from(*self));
        }
    }

    impl Encode for Slot {
        fn encode(&self, out: &mut Vec<u8>) {
            self.0.encode(out);
        }
    }

    impl Encode for HookKind {
        fn encode(&self, out: &mut Vec<u8>) {
            out.push(*self as u8);
        }
    }

    impl Encode for Target {
        fn encode(&self, out: &mut Vec<u8>) {
            out.push(*self as u8);
        }
    }

    impl Encode for Covered {
        fn encode(&self, out: &mut Vec<u8>) {
            out.push(*self as u8);
        }
    }

    impl Encode for MountAttr {
        fn encode(&self, out: &mut Vec<u8>) {
            self.set.encode(out);
            self.clear.encode(out);
            self.propagation.encode(out);
            self.recursive.encode(out);
        }
    }

    impl Encode for Vec<u8> {
        /// A run of 4 GiB or more cannot be encoded; its length then does not match and
        /// the plan is refused where it is decoded.
        fn encode(&self, out: &mut Vec<u8>) {
            u32::try_from(self.len()).unwrap_or(u32::MAX).encode(out);
            out.extend_from_slice(self);
        }
    }

    impl Encode for CString {
        fn encode(&self, out: &mut Vec<u8>) {
            let bytes = self.as_bytes_with_nul();
            u32::try_from(bytes.len()).unwrap_or(u32::MAX).encode(out);
            out.extend_from_slice(bytes);
        }
    }

    impl<T: Encode> Encode for Option<T> {
        fn encode(&self, out: &mut Vec<u8>) {
            self.is_some().encode(out);
            if let Some(value) = self {
                value.encode(out);
            }
        }
    }
}

/// A list of strings in one run of bytes, each followed by a NUL.
#[cfg(feature = "alloc")]
pub fn pack<'s>(strings: impl IntoIterator<Item = &'s str>) -> alloc::vec::Vec<u8> {
    let mut out = alloc::vec::Vec::new();
    for string in strings {
        out.extend_from_slice(string.as_bytes());
        out.push(0);
    }
    out
}

/// The strings of a packed list.
pub fn unpack(packed: &[u8]) -> impl Iterator<Item = &CStr> {
    let mut rest = packed;
    core::iter::from_fn(move || {
        let string = CStr::from_bytes_until_nul(rest).ok()?;
        rest = rest.get(string.count_bytes() + 1..)?;
        Some(string)
    })
}

/// What stands before the steps: `HEADER` bytes, all numbers u32 but the flags.
///
/// | offset | what |
/// | --- | --- |
/// | 0 | magic |
/// | 4 | length of the whole, in bytes |
/// | 8 | descriptor of the socket to the runtime |
/// | 12 | number of slots |
/// | 16 | step at which a fault is injected, 0 for none |
/// | 20 | one i32 a slot: its descriptor, or -1 |
///
/// Then, for each step, its number in the plan (u32, from 1) and the step.
pub const HEADER: usize = 20;

/// The first four bytes of an encoded plan.
pub const MAGIC: u32 = 0x4e50_4b50;
