//! A static program that does nothing: what executing any program costs at least. With an
//! argument it waits until it is ended.

#![no_main]

/// The C library's entry, called directly: the standard library's would do something.
#[unsafe(no_mangle)]
pub extern "C" fn main(argc: i32, _argv: *const *const u8) -> i32 {
    if argc > 1 {
        // The empty set: no signal is waited for.
        let _ = pipkin_sys::process::wait_signal(0);
    }
    0
}
