//! Measures pipkin beside other runtimes and beside the floor, in one go and by turns, and
//! writes a report.
//!
//! ```text
//! pipkin-bench [OPTION…]
//!   --quick                   few measurements, and the report in target/bench
//!   --out DIRECTORY           where the report goes; docs without it
//!   --runtimes NAME=PATH,…    more runtimes
//!   --only AXIS,…             these axes alone
//!   --runs COUNT              at most so many measurements of everything
//!   --programs DIRECTORY      where its other programs are; beside this one without it
//! ```
//!
//! It never fails because of what it measures: a runtime that is missing or cannot do
//! something, and an axis that cannot be measured, are told of in the report.

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
pub struct Options {
    quick: bool,
    out: Option<PathBuf>,
    runtimes: Vec<(String, PathBuf)>,
    only: Vec<String>,
    runs: Option<usize>,
    programs: Option<PathBuf>,
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
                "--runs" => options.runs = Some(value()?.parse()?),
                "--programs" => options.programs = Some(value()?.into()),
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
    let known = |name: &String| AXES.iter().any(|(axis, _)| axis == name);
    if let Some(name) = options.only.iter().find(|name| !known(name)) {
        return Err(format!("{name}: no axis has this name").into());
    }
    // Joining another mount namespace changes the directory that a relative path begins at.
    let out = options.out.clone().unwrap_or_else(|| {
        let root = pipkin_tests::host::workspace_root();
        root.join(if options.quick {
            "target/bench"
        } else {
            "docs"
        })
    });
    std::fs::create_dir_all(&out)?;
    let out = out.canonicalize()?;
    let world = World::new(&options)?;
    let order = world.runtimes.iter().map(|one| one.name.clone()).collect();
    let mut report = Report::new(machine::look(&world), options.quick, order);
    for missing in &world.missing {
        report.fail(missing, "everything", &"it is not on this machine");
    }
    let processors = machine::Processors::watch()?;
    for (name, axis) in AXES {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            let start = Instant::now();
            eprint!("bench: {name} … ");
            if let Err(error) = axis(&world, &mut report) {
                report.fail("the bench", name, &error);
            }
            world.leave()?;
            let seconds = start.elapsed().as_secs_f64();
            report.seconds.push((name, seconds));
            eprintln!("{seconds:.1} s");
        }
    }
    report.shares = processors.shares()?;
    let page = pages::write(&report, &out)?;
    println!("{page}");
    eprintln!("bench: {}", out.join("performance.md").display());
    Ok(())
}
