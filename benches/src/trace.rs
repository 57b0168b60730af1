//! What strace sees of a whole run.

use std::fs;
use std::path::Path;

use pipkin_tests::host;

use crate::Result;
use crate::report::Report;
use crate::runtime::{self, Kind, Runtime};
use crate::world::{CONFIGURATIONS, Subject, World};

/// How many calls, how many of mount(2) with an empty string, and how long the filter is.
pub fn calls(world: &World, report: &mut Report) -> Result<()> {
    for name in CONFIGURATIONS {
        let subject = world.subject(name, &["/bin/true"])?;
        for one in &world.runtimes {
            // The first run makes mount points that later ones find.
            for round in 0..1 + world.runs(3, 1) {
                match count(world, one, &subject) {
                    Ok(count) if round > 0 => report.add("calls", name, &one.name, "", count),
                    Ok(_) => {}
                    Err(error) => {
                        report.note(format!("{} cannot do calls {name}: {error}", one.name));
                        break;
                    }
                }
            }
            if let Ok((empty, longest)) = look(world, one, &subject) {
                report.add("empty data", name, &one.name, "", empty);
                let known = one.kind == Kind::Floor || one.name == "pipkin";
                if longest > 0.0 && !known {
                    report.add("instructions", name, &one.name, "", longest);
                }
            }
        }
    }
    Ok(())
}

fn strace(
    world: &World,
    one: &Runtime,
    subject: &Subject,
    options: &[&str],
    file: &Path,
) -> Result<String> {
    let mut words: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
    words.push("-o".into());
    words.push(file.to_string_lossy().into_owned());
    words.push(one.path.to_string_lossy().into_owned());
    words.extend(one.run_words(world, subject, &world.id()));
    runtime::time(world, &host::find("strace"), &words)?;
    Ok(fs::read_to_string(file)?)
}

fn count(world: &World, one: &Runtime, subject: &Subject) -> Result<f64> {
    let file = world.scratch.dir().join("calls");
    let table = strace(world, one, subject, &["-f", "-c"], &file)?;
    // `100.00    0.001462           7       200         9 total`
    let total = table.lines().find(|line| line.ends_with(" total"));
    let total = total.and_then(|line| line.split_whitespace().nth(3));
    Ok(total.ok_or("strace counted nothing")?.parse()?)
}

fn look(world: &World, one: &Runtime, subject: &Subject) -> Result<(f64, f64)> {
    let file = world.scratch.dir().join("calls");
    let options = ["-f", "-e", "trace=mount,seccomp,prctl"];
    let trace = strace(world, one, subject, &options, &file)?;
    let empty = trace.lines().filter(|line| {
        line.contains("mount(")
            && line
                .split(" = ")
                .next()
                .unwrap_or_default()
                .trim_end_matches(" <unfinished ...>")
                .trim_end_matches([' ', ')'])
                .ends_with(", \"\"")
    });
    let lengths = trace.lines().filter_map(|line| {
        let (_, rest) = line.split_once("{len=")?;
        rest.split([',', '}']).next()?.parse::<f64>().ok()
    });
    Ok((empty.count() as f64, lengths.fold(0.0, f64::max)))
}
