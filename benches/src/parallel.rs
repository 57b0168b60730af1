//! Many starts at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::WaitOptions;

use crate::Result;
use crate::report::Report;
use crate::runtime::{self, Kind, Runtime};
use crate::world::{Subject, World};

/// What a run of many gave.
#[derive(Default)]
struct Many {
    times: Vec<f64>,
    failures: usize,
    elapsed: Duration,
    /// What the last that failed said, or one that failed beside it.
    complaint: String,
}

/// Containers a second, and how long each took, with so many at once.
pub fn parallel(world: &World, report: &mut Report) -> Result<()> {
    const CHUNKS: usize = 4;
    let mut slots: Vec<Subject> = Vec::new();
    for _ in 0..world.runs(64, 64) {
        slots.push(world.subject("podman", &["/bin/true"])?);
    }
    for at_once in [1, 8, 64] {
        let point = at_once.to_string();
        let slots = &slots[..at_once.min(slots.len())];
        let mut able = Vec::new();
        for one in &world.runtimes {
            // pipkin makes the groups and mount points that the floor expects in each bundle;
            // the others only have to show that they can.
            let total = if one.name == "pipkin" { slots.len() } else { 1 };
            let many = batch(world, one, slots, total)?;
            if many.times.is_empty() {
                report.fail(&one.name, &format!("{at_once} at once"), &many.complaint);
            } else {
                able.push(one);
            }
        }
        let mut results: Vec<Many> = able.iter().map(|_| Many::default()).collect();
        for _ in 0..CHUNKS {
            for (one, result) in able.iter().zip(&mut results) {
                let total = match (at_once, one.name.as_str()) {
                    // What must not fail once.
                    (64, "pipkin") => world.runs(2000, 2000),
                    (64, _) if one.kind == Kind::Floor => world.runs(2000, 400),
                    (64, _) => world.runs(2000, 128),
                    (1, _) => world.runs(200, 40),
                    _ => world.runs(400, 60),
                };
                let many = batch(world, one, slots, total.div_ceil(CHUNKS))?;
                let rate = many.times.len() as f64 / many.elapsed.as_secs_f64();
                report.add("rate", &point, &one.name, "containers/s", rate);
                result.times.extend(many.times);
                result.failures += many.failures;
                if many.failures > 0 {
                    result.complaint = many.complaint;
                }
            }
        }
        for (one, result) in able.iter().zip(&results) {
            let failures = result.failures as f64;
            report.add("failures", &point, &one.name, "", failures);
            for time in &result.times {
                report.add("latency", &point, &one.name, "us", *time);
            }
            if result.failures > 0 {
                let all = result.failures + result.times.len();
                let place = format!("{} of {all} starts, {at_once} at once", result.failures);
                report.fail(&one.name, &place, &result.complaint);
            }
        }
    }
    Ok(())
}

/// `total` runs, one in each slot at a time.
fn batch(world: &World, one: &Runtime, slots: &[Subject], total: usize) -> Result<Many> {
    let mut many = Many::default();
    let mut running: HashMap<i32, (usize, Instant)> = HashMap::new();
    let mut begun = 0;
    let mut free: Vec<usize> = (0..slots.len()).collect();
    let written = world.written();
    let begin = Instant::now();
    while begun < total || !running.is_empty() {
        while begun < total
            && let Some(slot) = free.pop()
        {
            let words = one.run_words(world, &slots[slot], &world.id());
            let mut command = runtime::command(world, &one.path, &words)?;
            let start = Instant::now();
            let pid = i32::try_from(command.spawn()?.id())?;
            running.insert(pid, (slot, start));
            begun += 1;
        }
        let Some((pid, status)) = rustix::process::wait(WaitOptions::empty())? else {
            continue;
        };
        // Others are containers that a runtime left to the bench.
        if let Some((slot, start)) = running.remove(&pid.as_raw_nonzero().get()) {
            free.push(slot);
            match status.exit_status() {
                Some(0) => many.times.push(start.elapsed().as_nanos() as f64 / 1000.0),
                _ => many.failures += 1,
            }
        }
    }
    many.elapsed = begin.elapsed();
    if many.failures > 0 {
        many.complaint = world.last_line(written);
    }
    Ok(many)
}
