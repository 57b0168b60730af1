//! Measures pipkin beside other runtimes and beside the floor, in one go and by turns, and
//! writes a report.
//!
//! ```text
//! pipkin-bench [--quick] [--out DIRECTORY] [--runtimes NAME=PATH,…] [--only AXIS,…]
//! ```
//!
//! It judges nothing: it ends with an error only where it could not measure.

#![forbid(unsafe_code)]

mod axes;
mod goals;
mod lifecycle;
mod machine;
mod memory;
mod pages;
mod parallel;
mod report;
mod runtime;
mod stats;
mod svg;
mod trace;
mod world;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use report::Report;
use world::World;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the command line says.
#[derive(Default)]
struct Options {
    quick: bool,
    out: Option<PathBuf>,
    runtimes: Vec<(String, PathBuf)>,
    only: Vec<String>,
}

impl Options {
    fn parse() -> Result<Self> {
        let mut options = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value"));
            match word.as_str() {
                "--quick" => options.quick = true,
                "--out" => options.out = Some(value()?.into()),
                "--runtimes" => {
                    for one in value()?.split(',').filter(|one| !one.is_empty()) {
                        let (name, path) = one.split_once('=').ok_or("a runtime is NAME=PATH")?;
                        options.runtimes.push((name.into(), path.into()));
                    }
                }
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                _ => return Err(format!("{word}: unknown option").into()),
            }
        }
        Ok(options)
    }
}

type Axis = fn(&World, &mut Report) -> Result<()>;

/// Every axis, by the name that `--only` takes.
const AXES: [(&str, Axis); 10] = [
    ("run", axes::run),
    ("commands", lifecycle::commands),
    ("host-mounts", axes::host_mounts),
    ("binds", axes::binds),
    ("parallel", parallel::parallel),
    ("rss", memory::rss),
    ("limit", memory::limit),
    ("calls", trace::calls),
    ("seccomp", axes::seccomp),
    ("mounts", axes::mounts),
];

fn main() -> Result<()> {
    let options = Options::parse()?;
    let world = World::new(options.quick, &options.runtimes)?;
    let order = world.runtimes.iter().map(|one| one.name.clone()).collect();
    let mut report = Report::new(machine::look(&world), options.quick, order);
    let processors = machine::Processors::watch()?;
    for (name, axis) in AXES {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            let start = Instant::now();
            eprint!("bench: {name} … ");
            axis(&world, &mut report)?;
            eprintln!("{:.1} s", start.elapsed().as_secs_f64());
        }
    }
    report.others = processors.others()?;
    let out = options.out.unwrap_or_else(|| {
        let root = pipkin_tests::host::workspace_root();
        root.join(if options.quick {
            "target/bench"
        } else {
            "docs"
        })
    });
    std::fs::create_dir_all(&out)?;
    let page = pages::write(&report, &out)?;
    println!("{page}");
    eprintln!("bench: {}", out.join("performance.md").display());
    Ok(())
}
