//! What filters for the real profiles cost: instructions, steps, and the time to make and
//! to load one. `cargo run --release -p pipkin-seccomp-diff --example seccomp-cost`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a measurement fails by panicking"
)]

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use pipkin_plan::seccomp::{Arch, Filter, Options, compile, compile_with};
use pipkin_seccomp_diff::{REAL, data, parse, raw, real, run};
use pipkin_spec::Seccomp;
use serde_json::json;

/// Processes to load a filter in.
const PROCESSES: usize = 200;
/// Filters to make in this one.
const ROUNDS: usize = 2000;

fn main() {
    if let Some(name) = std::env::args().nth(1) {
        return once(&profile(&name));
    }
    for name in REAL.into_iter().chain(["two instructions"]) {
        println!("{name}: {}", report(&profile(name)));
        let warm = times(ROUNDS, |profile| time(|| make(profile)).1, &profile(name));
        let (first, loads): (Vec<_>, Vec<_>) = (0..PROCESSES).map(|_| ask(name)).unzip();
        println!("    made again: {}", spread(warm));
        println!("    made first in a process: {}", spread(first));
        println!("    loaded: {}", spread(loads));
    }
}

/// A real profile, or one that allows everything.
fn profile(name: &str) -> Seccomp {
    match REAL.contains(&name) {
        true => parse(&real(name)),
        false => parse(&json!({ "defaultAction": "SCMP_ACT_ALLOW" })),
    }
}

fn make(profile: &Seccomp) -> Filter {
    black_box(compile(black_box(profile), Arch::NATIVE).expect("a filter"))
}

fn report(profile: &Seccomp) -> String {
    let plain = Options {
        newer_is_enosys: false,
    };
    let plain = compile_with(profile, Arch::NATIVE, plain).expect("a filter");
    let program = raw(&make(profile));
    let big_endian = cfg!(target_endian = "big");
    let mut steps: Vec<usize> = (0..463)
        .map(|number| data(number, Arch::NATIVE.audit(), [0; 6], big_endian))
        .map(|data| run(&program, &data).1)
        .collect();
    steps.sort_unstable();
    format!(
        "{} instructions ({} without ENOSYS), {} steps for the middle call and {} at most",
        program.len(),
        plain.program.len(),
        steps[steps.len() / 2],
        steps[steps.len() - 1],
    )
}

fn time<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = what();
    (result, start.elapsed())
}

fn times(rounds: usize, what: fn(&Seccomp) -> Duration, profile: &Seccomp) -> Vec<Duration> {
    (0..rounds).map(|_| what(profile)).collect()
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let micros = |at: usize| times[at].as_secs_f64() * 1e6;
    format!(
        "{:.1} µs at least, {:.1} µs median",
        micros(0),
        micros(times.len() / 2)
    )
}

/// In a process of its own, since a filter stays: makes one, loads it, tells the times.
fn once(profile: &Seccomp) {
    let (filter, made) = time(|| make(profile));
    let program = filter.to_bytes();
    pipkin_sys::process::no_new_privs().expect("no_new_privs");
    let (result, loaded) = time(|| pipkin_sys::process::seccomp_filter(&program, filter.flags));
    result.expect("the filter");
    println!("{} {}", made.as_nanos(), loaded.as_nanos());
}

fn ask(name: &str) -> (Duration, Duration) {
    let own = std::env::current_exe().expect("own path");
    let output = Command::new(own).arg(name).output().expect("own program");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let mut numbers = text
        .split_whitespace()
        .map(|n| n.parse().expect("a number"));
    let mut next = || Duration::from_nanos(numbers.next().expect("two numbers"));
    (next(), next())
}
