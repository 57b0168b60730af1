//! `linux.seccomp`: a generator of classic BPF.
#![allow(missing_docs)]
use crate::Invalid;
#[derive(Clone, Copy)]
pub struct Arch;
impl Arch {
    pub const NATIVE: Self = Self;
}
#[derive(Clone)]
pub struct Filter {
    pub flags: u32,
}
impl Filter {
    pub fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }
    pub fn is_noop(&self) -> bool {
        true
    }
}
pub fn compile(_: &pipkin_spec::Seccomp, _: Arch) -> Result<Filter, Invalid> {
    Ok(Filter { flags: 0 })
}
