//! What filters for the real profiles cost: instructions, steps, and the time to make
//! one. `cargo run --release --example seccomp-cost`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement fails by panicking"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use pipkin_plan::seccomp::{Arch, Options, compile, compile_with};
use pipkin_seccomp_diff::{REAL, data, parse, raw, real, run};

fn main() {
    let rounds = std::env::args().nth(1).map_or(2000, |n| n.parse().unwrap());
    for name in REAL {
        let profile = parse(&real(name));
        let plain = Options {
            newer_is_enosys: false,
        };
        let plain = compile_with(&profile, Arch::X86_64, plain).unwrap();
        let filter = compile(&profile, Arch::X86_64).unwrap();
        let mut times: Vec<Duration> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                let _ = black_box(compile(black_box(&profile), Arch::X86_64));
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        let program = raw(&filter);
        let steps: Vec<usize> = (0..463)
            .map(|number| run(&program, &data(number, Arch::X86_64.audit(), [0; 6], false)).1)
            .collect();
        println!(
            "{name}: {} instructions ({} without ENOSYS), {} steps on average and {} at most, \
             {:?} at least and {:?} median to make",
            filter.program.len(),
            plain.program.len(),
            steps.iter().sum::<usize>() / steps.len(),
            steps.iter().max().unwrap(),
            times.first().unwrap(),
            times.get(times.len() / 2).unwrap(),
        );
    }
}
