//! Paths that are put together without an allocator.

use core::ffi::CStr;

use pipkin_sys::{Errno, Result};

/// A path of at most 1,023 bytes.
pub struct Path {
    bytes: [u8; 1024],
    length: usize,
}

impl Path {
    /// The parts, one after the other.
    pub fn of(parts: &[&[u8]]) -> Result<Self> {
        let mut path = Self {
            bytes: [0; 1024],
            length: 0,
        };
        for part in parts {
            let end = path.length + part.len();
            path.bytes
                .get_mut(path.length..end)
                .filter(|_| end < 1024)
                .ok_or(Errno::ENAMETOOLONG)?
                .copy_from_slice(part);
            path.length = end;
        }
        Ok(path)
    }

    /// The path with its NUL.
    pub fn c_str(&self) -> Result<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::ENAMETOOLONG)
    }
}
