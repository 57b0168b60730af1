//! The generator's filters against libseccomp's, against the profile by the letter, and
//! in the kernel.
//!
//! libseccomp 2.5.4 itself errs: where several rules of a call have an inequality or an
//! order, it may give a verdict that no rule asks for, and with several arguments it may
//! not even come back; and its programs may compare a word that was not loaded. Such
//! calls are counted, shown to be of that kind, and judged by the letter of the profile
//! alone, as all calls are.
//!
//! `PIPKIN_PROFILES=5000 cargo test -p pipkin-seccomp-diff -- random` looks further.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod kernel;
mod profiles;
mod reference;
mod tables;

/// A test's name and what it does; what it returns is worth showing.
type Test = (&'static str, fn() -> String);

const TESTS: [Test; 10] = [
    ("tables", tables::agree_with_libseccomp),
    ("real_profiles", profiles::real),
    ("real_profiles_elsewhere", profiles::real_elsewhere),
    ("random_equalities", profiles::equalities),
    ("random_single_conditions", profiles::single),
    ("random_any", profiles::any),
    ("random_without_libseccomp", profiles::unknown_to_libseccomp),
    ("newer_is_enosys", profiles::newer),
    ("kernel_verdicts", kernel::verdicts),
    ("kernel_real_profiles", kernel::real),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some(reference::FILTER) => return reference::answer_filter(),
        Some(reference::NUMBERS) => return reference::answer_numbers(),
        Some(kernel::LOAD) => return kernel::load(),
        // What cargo asks of a test program.
        Some("--list") => return TESTS.iter().for_each(|(name, _)| println!("{name}: test")),
        _ => {}
    }
    let chosen: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in TESTS {
        if chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str())) {
            let start = std::time::Instant::now();
            let report = test();
            println!("test {name} ... ok ({:.1?}) {report}", start.elapsed());
        }
    }
}
