//! A static program that does nothing: what executing any program costs at least. With an
//! argument it waits until it is ended.

#![no_main]
#![forbid(unsafe_op_in_unsafe_fn)]

/// The C library's entry, called directly: the standard library's would do something.
#[unsafe(no_mangle)]
pub extern "C" fn main(argc: i32, _argv: *const *const u8) -> i32 {
    while argc > 1 {
        // The empty set: no signal is waited for.
        let _ = pipkin_sys::process::wait_signal(0);
    }
    0
}
