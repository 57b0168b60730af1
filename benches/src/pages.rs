//! The report as a page with tables and plots.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::report::Report;
use crate::svg::{self, Bar, Group, Line};
use crate::{Result, goals};

/// Writes the page, its plots and the raw figures into a directory; gives the page's text.
pub fn write(report: &Report, out: &Path) -> Result<String> {
    let mut page = Page {
        report,
        text: String::new(),
        plots: Vec::new(),
    };
    page.head();
    page.goals();
    page.runs();
    page.commands();
    page.lines(
        "host mounts",
        "Mounts on the host",
        HOST_MOUNTS,
        "mounts on the host besides its own",
    );
    page.lines(
        "binds",
        "Binds in the configuration",
        BINDS,
        "binds besides podman's configuration",
    );
    page.parallel();
    page.memory();
    page.counts();
    page.seccomp();
    page.mounts();
    page.text.push_str(METHOD);
    page.notes();
    for (name, svg) in &page.plots {
        fs::write(out.join(name), svg)?;
    }
    fs::write(out.join("performance.md"), &page.text)?;
    fs::write(out.join("performance.json"), report.to_json())?;
    Ok(page.text)
}

struct Page<'a> {
    report: &'a Report,
    text: String,
    plots: Vec<(String, String)>,
}

const HOST_MOUNTS: &str = "\
A new mount namespace is a copy of the host's, mount by mount, and leaving the old root behind
takes them all down again. A node with some hundred pods has thousands. Each point is a mount
namespace of its own with so many more mounts; podman's configuration.
";

const BINDS: &str = "\
Podman's configuration with so many more binds of one directory.
";

const METHOD: &str = "
## The floor

`benches/src/bin/floor` is the least that a container costs on this kernel: a launcher that was
written by hand for these four configurations and can do nothing else. It

- makes a control group in every hierarchy, writes the same limits and device rules as pipkin,
  joins it and removes it in the end;
- makes one process with the same namespaces, by clone3(2) with CLONE_VM and CLONE_VFORK, so that
  nothing is copied and nobody has to be waited for;
- makes the same mounts, masked and read-only paths, devices, links, sysctls, session keyring,
  host name and resource limits, drops the same capabilities, loads the filter that pipkin makes
  of the same profile, and executes the same program;
- waits for its end.

The filter, the capabilities, the limits and the device rules are computed when it is built.
It has no JSON and no state, finds nothing out (not even whether a path that it masks is a
file), and has none of the protection that a runtime must have: its paths are looked up in an
image that it trusts, the binary that started the container can be seen from inside it for a
moment (CVE-2019-5736), and what the image lacks it does not make. Descriptors that its caller
left open stay open. So nothing that is safe can be as fast; the distance is the price of that
and of being a runtime.

## How it is measured

- All runtimes run by turns in one go, in another order each time, after a warm-up: only
  figures of one report may be compared. Times are from before the execution of the runtime to
  after its end, as its caller sees them.
- A table shows the median, below it what lies between the first and the last quarter, and the
  minimum. The raw figures are in `performance.json`.
- Every runtime sees the same control groups. Debian's crun cannot work with a unified hierarchy
  beside those of v1, so where a machine has both, it is taken out of the bench's own mount
  namespace.
- What protects a runtime from its containers is part of every figure of pipkin's.
- Peak RSS is VmHWM of the runtime's process, read while a container runs in the foreground.
- System calls are what `strace -f -c` counts, those of the container's program among them.
";

/// Microseconds as milliseconds.
fn ms(us: f64) -> String {
    let ms = us / 1000.0;
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.1}")
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

impl Page<'_> {
    fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn head(&mut self) {
        let machine = &self.report.machine;
        let mut text = String::from("# Performance\n\n");
        let _ = writeln!(
            text,
            "Measured on {} with Linux {}, {} cores of {}, {} MiB of memory, control groups {}.",
            machine.date,
            machine.kernel,
            machine.cores,
            machine.cpu,
            thousands(machine.memory as f64),
            machine.cgroups
        );
        for (name, version) in &machine.versions {
            let version = version.as_str().unwrap_or_default();
            let _ = writeln!(text, "- {name}: {version}");
        }
        text.push_str(
            "\n`make bench` wrote this page; only ratios within it mean something on another \
             machine.\n",
        );
        let others = self.report.others * 100.0;
        let _ = writeln!(
            text,
            "\nMeanwhile, other programs and the kernel's own threads used {others:.0} % of the \
             processors{}",
            if self.report.is_busy() {
                ": the shortest times of each, the minima, say more than the medians then, and \
                 decide what holds."
            } else {
                "."
            }
        );
        if self.report.quick {
            text.push_str("\n**A quick run: few measurements, rough figures.**\n");
        }
        self.text = text;
    }

    fn goals(&mut self) {
        self.say(
            "\n## What it is to reach\n\n| axis | goal | measured | holds |\n|---|---|---|---|\n",
        );
        for goal in goals::all(self.report) {
            let holds = match goal.holds {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "",
            };
            let line = format!(
                "| {} | {} | {} | {holds} |\n",
                goal.axis, goal.goal, goal.measured
            );
            self.say(&line);
        }
    }

    /// A heading, a table of an axis with its points as rows, and the ratio to pipkin.
    fn table(&mut self, axis: &str, corner: &str) {
        let report = self.report;
        let runtimes = report.runtimes(axis);
        let _ = write!(self.text, "\n| {corner} |");
        for runtime in &runtimes {
            let _ = write!(self.text, " {runtime} |");
        }
        let _ = writeln!(self.text, "\n|---|{}", "---:|".repeat(runtimes.len()));
        for point in report.points(axis) {
            let _ = write!(self.text, "| {point} |");
            for runtime in &runtimes {
                let cell = report.get(axis, point, runtime).map(|one| {
                    let base = report.median(axis, point, "pipkin");
                    let times = base.filter(|_| *runtime != "pipkin");
                    let times = times.map(|base| format!(" ({:.2}×)", one.median / base));
                    format!(
                        "**{}**{}<br>{}–{}, min {}",
                        ms(one.median),
                        times.unwrap_or_default(),
                        ms(one.lower),
                        ms(one.upper),
                        ms(one.min)
                    )
                });
                let _ = write!(self.text, " {} |", cell.unwrap_or_default());
            }
            self.text.push('\n');
        }
    }

    fn plot(&mut self, name: &str, title: &str, svg: String) {
        let file = format!("performance-{name}.svg");
        let _ = writeln!(self.text, "\n![{title}]({file})");
        self.plots.push((file, svg));
    }

    /// The colour of a runtime: its place among all.
    fn colour(&self, runtime: &str) -> usize {
        let all = ["pipkin", "floor", "crun", "runc"];
        if let Some(place) = all.iter().position(|name| *name == runtime) {
            return place;
        }
        let versions = self.report.machine.versions.iter();
        let others = versions.filter(|(name, _)| !all.contains(&name.as_str()));
        let place = others
            .map(|(name, _)| name)
            .position(|name| name == runtime);
        all.len() + place.unwrap_or(0)
    }

    /// A group of bars for each point of an axis.
    fn groups(&self, axis: &str, show: impl Fn(f64) -> String) -> Vec<Group> {
        let report = self.report;
        let mut groups = Vec::new();
        for point in report.points(axis) {
            let mut bars = Vec::new();
            for runtime in report.runtimes(axis) {
                if let Some(one) = report.get(axis, point, runtime) {
                    bars.push(Bar {
                        colour: self.colour(runtime),
                        name: runtime.to_owned(),
                        value: one.median,
                        label: show(one.median),
                        spread: (one.count > 4).then_some((one.lower, one.upper)),
                    });
                }
            }
            groups.push(Group {
                title: capitalised(point),
                bars,
            });
        }
        groups
    }

    fn runs(&mut self) {
        if self.report.points("run").is_empty() {
            return;
        }
        self.say(
            "\n## A whole run\n\n`run` of busybox's true: milliseconds, and in brackets how many \
             times pipkin's time that is.\n",
        );
        self.table("run", "configuration");
        let title = "A whole run, milliseconds";
        let svg = svg::bars(title, &self.groups("run", |us| format!("{} ms", ms(us))));
        self.plot("run", title, svg);
        self.say(
            "\nThe processor time of all its processes, in the kernel and outside, which depends \
             less on what else a machine does:\n",
        );
        self.table("processor", "configuration");
    }

    fn commands(&mut self) {
        if self.report.points("command").is_empty() {
            return;
        }
        self.say(
            "\n## Each command alone\n\nMilliseconds, with podman's configuration and a static \
             program that waits. pipkin's `start` returns when the program was executed, the \
             others' before. `exec` is not measured, for pipkin does not have it yet.\n",
        );
        self.table("command", "command");
        let nothing = self.report.get("reference", "nothing", "a static program");
        let removal = self.report.get("reference", "cgroup", "removal");
        if let (Some(nothing), Some(removal)) = (nothing, removal) {
            let line = format!(
                "\nTo compare: the execution of a static program that does nothing takes {} ms \
                 (min {}), the removal of a container's control groups {} ms (min {}).\n",
                ms(nothing.median),
                ms(nothing.min),
                ms(removal.median),
                ms(removal.min)
            );
            self.say(&line);
        }
        let title = "Each command alone, milliseconds";
        let svg = svg::bars(
            title,
            &self.groups("command", |us| format!("{} ms", ms(us))),
        );
        self.plot("commands", title, svg);
    }

    fn lines(&mut self, axis: &str, title: &str, about: &str, across: &str) {
        let report = self.report;
        if report.points(axis).is_empty() {
            return;
        }
        let _ = write!(self.text, "\n## {title}\n\n{about}");
        self.table(axis, across);
        let mut all = Vec::new();
        for runtime in report.runtimes(axis) {
            let points = report.points(axis).into_iter().filter_map(|point| {
                let median = report.median(axis, point, runtime)?;
                Some((point.parse().ok()?, median / 1000.0))
            });
            all.push(Line {
                colour: self.colour(runtime),
                name: runtime.to_owned(),
                points: points.collect(),
            });
        }
        let svg = svg::lines(title, across, "milliseconds", &all);
        self.plot(&axis.replace(' ', "-"), title, svg);
    }

    fn parallel(&mut self) {
        let report = self.report;
        if report.points("rate").is_empty() {
            return;
        }
        self.say(
            "\n## Many starts at once\n\nWhole runs with podman's configuration, as many at once \
             as the first column says: containers a second, the time of one (median and the one \
             of a hundred that takes longest), and how many failed.\n\n\
             | at once | runtime | containers/s | median ms | 99 % ms | starts | failures |\n\
             |---|---|---:|---:|---:|---:|---:|\n",
        );
        for point in report.points("rate") {
            for runtime in report.runtimes("rate") {
                let rate = report.median("rate", point, runtime).unwrap_or(0.0);
                let failures = report.median("failures", point, runtime).unwrap_or(0.0);
                let Some(time) = report.get("latency", point, runtime) else {
                    continue;
                };
                let starts = time.count as f64 + failures;
                let line = format!(
                    "| {point} | {runtime} | {rate:.0} | {} | {} | {} | {failures:.0} |\n",
                    ms(time.median),
                    ms(time.p99),
                    thousands(starts)
                );
                self.say(&line);
            }
        }
        let title = "Containers a second, by how many start at once";
        let svg = svg::bars(title, &self.groups("rate", |rate| format!("{rate:.0}")));
        self.plot("parallel", title, svg);
    }

    fn memory(&mut self) {
        let report = self.report;
        let mut rows = Vec::new();
        for (axis, point, title) in [
            ("peak", "RSS", "peak RSS of the runtime"),
            (
                "waiting",
                "RSS",
                "RSS of a container that waits for `start`",
            ),
            ("waiting", "anonymous", "of that, anonymous"),
            (
                "limit",
                "memory",
                "smallest memory limit in which a static program runs",
            ),
        ] {
            if report.points(axis).contains(&point) {
                rows.push((axis, point, title));
            }
        }
        if rows.is_empty() {
            return;
        }
        let runtimes: Vec<String> = report
            .machine
            .versions
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.say("\n## Memory\n\nKiB.\n\n| |");
        for runtime in &runtimes {
            let _ = write!(self.text, " {runtime} |");
        }
        let _ = writeln!(self.text, "\n|---|{}", "---:|".repeat(runtimes.len()));
        let mut groups = Vec::new();
        for (axis, point, title) in rows {
            let _ = write!(self.text, "| {title} |");
            let mut bars = Vec::new();
            for runtime in &runtimes {
                let value = report.median(axis, point, runtime);
                let _ = write!(self.text, " {} |", value.map(thousands).unwrap_or_default());
                if let Some(value) = value {
                    bars.push(Bar {
                        colour: self.colour(runtime),
                        name: runtime.clone(),
                        value,
                        label: thousands(value),
                        spread: None,
                    });
                }
            }
            self.text.push('\n');
            groups.push(Group {
                title: capitalised(&title.replace('`', "")),
                bars,
            });
        }
        let title = "Memory, KiB";
        self.plot("memory", title, svg::bars(title, &groups));
    }

    fn counts(&mut self) {
        let report = self.report;
        if report.points("calls").is_empty() {
            return;
        }
        self.say(
            "\n## System calls\n\nOf a whole run of busybox's true, which makes about 20 of them; \
             in brackets, how many of mount(2) have an empty string for data.\n\n| |",
        );
        let runtimes = report.runtimes("calls");
        for runtime in &runtimes {
            let _ = write!(self.text, " {runtime} |");
        }
        let _ = writeln!(self.text, "\n|---|{}", "---:|".repeat(runtimes.len()));
        for point in report.points("calls") {
            let _ = write!(self.text, "| {point} |");
            for runtime in &runtimes {
                let calls = report.median("calls", point, runtime);
                let empty = report.median("empty data", point, runtime);
                let cell = calls.map(|calls| {
                    let empty = empty.unwrap_or(0.0);
                    format!("{} ({empty:.0})", thousands(calls))
                });
                let _ = write!(self.text, " {} |", cell.unwrap_or_default());
            }
            self.text.push('\n');
        }
        let title = "System calls of a whole run";
        let svg = svg::bars(title, &self.groups("calls", thousands));
        self.plot("calls", title, svg);
    }

    fn seccomp(&mut self) {
        let report = self.report;
        if report.points("seccomp").is_empty() {
            return;
        }
        self.say(
            "\n## Seccomp\n\nMaking a filter of a profile and loading it, in a process that does \
             nothing else and nothing before: microseconds, and the length of the filter beside \
             those that the others load. *Least* is what loading a filter of two instructions \
             takes, which is part of any filter's.\n\n\
             | profile | compile | load | least | both (min) | instructions | others' |\n\
             |---|---:|---:|---:|---:|---:|---|\n",
        );
        for point in report.points("seccomp") {
            let compile = report.median("seccomp compile", point, "pipkin");
            let load = report.median("seccomp load", point, "pipkin");
            let least = report.median("seccomp least", point, "pipkin");
            let Some(both) = report.get("seccomp", point, "pipkin") else {
                continue;
            };
            let others: Vec<String> = report
                .runtimes("instructions")
                .into_iter()
                .filter(|runtime| *runtime != "pipkin")
                .filter_map(|runtime| {
                    let length = report.median("instructions", point, runtime)?;
                    Some(format!("{runtime} {}", thousands(length)))
                })
                .collect();
            let line = format!(
                "| {point} | {:.0} | {:.0} | {:.0} | {:.0} ({:.0}) | {:.0} | {} |\n",
                compile.unwrap_or(0.0),
                load.unwrap_or(0.0),
                least.unwrap_or(0.0),
                both.median,
                both.min,
                report
                    .median("instructions", point, "pipkin")
                    .unwrap_or(0.0),
                others.join(", ")
            );
            self.say(&line);
        }
    }

    fn mounts(&mut self) {
        if self.report.mounts.is_empty() {
            return;
        }
        let text = format!(
            "\n## mount(2) with an empty string\n\nWhat `make bench-mounts` prints: where a \
             string is given for data, the kernel allocates and copies a page. A ratio is to \
             the first line of its table.\n\n```text\n{}```\n",
            self.report.mounts
        );
        self.say(&text);
    }

    fn notes(&mut self) {
        if self.report.notes.is_empty() {
            return;
        }
        self.say("\n## What could not be measured\n\n");
        for note in &self.report.notes {
            let line = format!("- {}\n", note.lines().collect::<Vec<_>>().join(" / "));
            self.say(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1000.0), "1,000");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(ms(1234.0), "1.23");
        assert_eq!(ms(48_123.0), "48.1");
    }
}
