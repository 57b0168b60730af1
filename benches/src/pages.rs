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
    page.failures();
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

const INTRODUCTION: &str = "\
How long pipkin takes to start a container, and what of the machine it takes, beside other
runtimes and beside the floor: a launcher that does only what the container needs and can do
nothing else (see below). `make bench` wrote this page, and `performance.json` with every
figure. Times differ from machine to machine; their ratios within one page are the point.
";

const HOST_MOUNTS: &str = "\
Milliseconds of a whole run, podman's configuration. A new mount namespace is a copy of the
host's, mount by mount, and leaving the old root behind takes them all down again; a node with
some hundred pods has thousands. Each row is a host with so many more mounts. The floor copies
them as the others do; pipkin begins from an empty namespace.
";

const BINDS: &str = "\
Milliseconds of a whole run, podman's configuration with so many more binds of one directory.
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

A test (`benches/tests/floor.rs`) wants a program to see the same in its container as in pipkin's.

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
- A table shows the median, below it the quarters, between which the middle half of the runs
  lies, and the minimum.
- Every runtime sees the same control groups. Debian's crun cannot work with a unified hierarchy
  beside those of v1, so where a machine has both, it is taken out of the bench's own mount
  namespace.
- What runtimes remember of their containers is in memory, as in /run everywhere; the bundles
  are on the disk.
- What protects a runtime from its containers is part of every figure of pipkin's.
- Peak RSS is VmHWM of the runtime's process, read while a container runs in the foreground.
- System calls are those that `strace -f` sees come back, those of the container's program
  among them.
- Whether a goal holds is judged by the medians, or, where other programs used more than 5 % of
  the processors, by the best of each. The kernel's own threads are not counted: they clean up
  after the containers.
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
        let report = self.report;
        let machine = &report.machine;
        let mut text = String::from("# Performance\n\n");
        text.push_str(INTRODUCTION);
        let _ = writeln!(
            text,
            "\n| | |\n|---|---|\n| measured on | {}{} |\n| kernel | Linux {} |\n\
             | machine | {} cores of {}, {} MiB of memory |\n| control groups | {} |",
            machine.date,
            if report.quick {
                ", **quickly: few measurements, rough figures**"
            } else {
                ""
            },
            machine.kernel,
            machine.cores,
            machine.cpu,
            thousands(machine.memory as f64),
            machine.cgroups
        );
        for (name, version) in &machine.versions {
            let version = version.as_str().unwrap_or_default();
            let _ = writeln!(text, "| {name} | {version} |");
        }
        let _ = writeln!(
            text,
            "| meanwhile | other programs used {:.0} % of the processors, the kernel's own \
             threads {:.0} % |",
            report.shares.others * 100.0,
            report.shares.kernel * 100.0
        );
        self.text = text;
    }

    fn goals(&mut self) {
        let is_busy = self.report.is_busy();
        let rule = if is_busy {
            "Other programs used more than 5 % of the processors, which makes some runs longer \
             and none shorter: so the best of each decides, its shortest time or its highest \
             rate."
        } else {
            "The medians decide, as what a user sees: other programs used less than 5 % of the \
             processors. On a busier machine the best of each would, its shortest time or its \
             highest rate."
        };
        self.say(&format!(
            "\n## What it is to reach\n\n{rule} Where the other figure says otherwise, it is *just* \
             so.\n\n\
             | axis | goal | medians | best | holds |\n|---|---|---:|---:|---|\n"
        ));
        let goals = goals::all(self.report);
        let mut reasons = String::new();
        let mut axis = "";
        for goal in &goals {
            let mut cells = goal.measured.clone();
            let decisive = if is_busy { 1 } else { 0 };
            if let [_, _] = cells[..] {
                cells[decisive] = format!("**{}**", cells[decisive]);
            }
            if cells.is_empty() {
                cells.push("not measured".into());
            }
            cells.resize(2, String::new());
            let holds = match goal.verdict(is_busy) {
                Some(true) if goal.holds.contains(&false) => "yes, just",
                Some(true) => "yes",
                Some(false) if goal.holds.contains(&true) => "**no**, just",
                Some(false) => "**no**",
                None => "",
            };
            let line = format!(
                "| {} | {} | {} | {} | {holds} |\n",
                goal.axis, goal.goal, cells[0], cells[1]
            );
            self.say(&line);
            if !goal.axis.is_empty() {
                axis = goal.axis;
            }
            if let Some(why) = &goal.why {
                let _ = writeln!(reasons, "- {axis}, {}: {why}", goal.goal);
            }
        }
        if !reasons.is_empty() {
            self.say("\nWhat stops those that do not hold, by the figures that decide:\n\n");
            self.say(&reasons);
        }
    }

    /// The first two rows of a table with a column for each runtime.
    fn columns(&mut self, corner: &str, runtimes: &[&str]) {
        let _ = write!(self.text, "\n|{corner}|");
        for runtime in runtimes {
            let _ = write!(self.text, " {runtime} |");
        }
        let _ = writeln!(self.text, "\n|---|{}", "---:|".repeat(runtimes.len()));
    }

    /// A heading, a table of an axis with its points as rows, and the ratio to pipkin.
    fn table(&mut self, axis: &str, corner: &str) {
        let report = self.report;
        let runtimes = report.runtimes(axis);
        self.columns(&format!(" {corner} "), &runtimes);
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
            "\n## A whole run\n\n`run` of busybox's true: milliseconds, median and in brackets how \
             many times pipkin's that is; below, the quarters and the minimum.\n",
        );
        self.table("run", "configuration");
        let title = "A whole run, milliseconds";
        let svg = svg::bars(title, &self.groups("run", |us| format!("{} ms", ms(us))));
        self.plot("run", title, svg);
        self.say(
            "\nMilliseconds of processor time of all its processes, in the kernel and outside, \
             which depend less on what else a machine does:\n",
        );
        self.table("processor", "configuration");
    }

    fn commands(&mut self) {
        let report = self.report;
        if report.points("command").is_empty() {
            return;
        }
        self.say(
            "\n## Each command alone\n\nMilliseconds, with podman's configuration and a static \
             program that waits. pipkin's `start` returns when the program was executed, the \
             others' before.\n",
        );
        if !self.report.points("command").contains(&"exec") {
            self.say("`exec` is not measured: pipkin does not have it yet.\n");
        }
        self.table("command", "command");
        let nothing = self.report.get("reference", "nothing", "a static program");
        let removal = self.report.get("reference", "cgroup", "removal");
        let version = self.report.get("reference", "version", "pipkin");
        if let (Some(nothing), Some(version), Some(removal)) = (nothing, version, removal) {
            let line = format!(
                "\nTo compare: the execution of a static program that does nothing takes {} ms \
                 (min {}), `pipkin --version` {} ms (min {}), the removal of a container's \
                 control groups {} ms (min {}).\n",
                ms(nothing.median),
                ms(nothing.min),
                ms(version.median),
                ms(version.min),
                ms(removal.median),
                ms(removal.min)
            );
            self.say(&line);
        }
        if !report.points("command calls").is_empty() {
            self.say("\nSystem calls of each:\n");
            self.calls("command calls", None);
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
        let mut groups = self.groups("rate", |rate| format!("{rate:.0}"));
        for group in &mut groups {
            group.title.push_str(" at once");
        }
        let svg = svg::bars(title, &groups);
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
        self.say("\n## Memory\n\n| KiB |");
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
        let _ = writeln!(
            self.text,
            "\n## System calls\n\nOf a whole run of busybox's true, which makes about 20 of them; \
             in brackets, how many are for the control groups ({}).",
            report.machine.cgroups
        );
        self.calls("calls", Some("calls for groups"));
        if !report.points("calls v2").is_empty() {
            self.say(
                "\nThe same where version 2 of the control groups is alone, as most machines have \
                 it. Its controllers belong to version 1 on this machine, so the configurations \
                 have no limits there but the rules for devices.\n",
            );
            self.calls("calls v2", Some("calls for groups v2"));
        }
        let mut empty = Vec::new();
        for runtime in report.runtimes("empty data") {
            let points = report.points("empty data");
            let counts = points
                .iter()
                .filter_map(|point| report.median("empty data", point, runtime));
            empty.push(format!("{runtime} {:.0}", counts.sum::<f64>()));
        }
        let _ = writeln!(
            self.text,
            "\nCalls of mount(2) with an empty string for data, all configurations together: {}.",
            empty.join(", ")
        );
        let title = "System calls of a whole run";
        let svg = svg::bars(title, &self.groups("calls", thousands));
        self.plot("calls", title, svg);
    }

    /// A table of counts, in brackets those of another axis.
    fn calls(&mut self, axis: &str, beside: Option<&str>) {
        let report = self.report;
        let runtimes = report.runtimes(axis);
        self.columns(" ", &runtimes);
        for point in report.points(axis) {
            let _ = write!(self.text, "| {point} |");
            for runtime in &runtimes {
                let calls = report.median(axis, point, runtime);
                let beside = beside.and_then(|axis| report.median(axis, point, runtime));
                let calls = calls.map(thousands).unwrap_or_default();
                let beside = beside.map(|beside| format!(" ({beside:.0})"));
                let _ = write!(self.text, " {calls}{} |", beside.unwrap_or_default());
            }
            self.text.push('\n');
        }
    }

    fn seccomp(&mut self) {
        let report = self.report;
        if report.points("seccomp").is_empty() {
            return;
        }
        self.say(
            "\n## Seccomp\n\nMaking a filter of a profile and loading it, in a process that does \
             nothing else and nothing before: microseconds, and the length of the filter beside \
             those that the others load. *Least* is what loading a filter of two \
             instructions takes, which is part of any filter's.\n\n\
             | profile | make, µs | load, µs | least, µs | both, µs (min) | instructions \
             | others' instructions |\n\
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
                "| {point} | {:.0} | {:.0} | {} | {:.0} ({:.0}) | {:.0} | {} |\n",
                compile.unwrap_or(0.0),
                load.unwrap_or(0.0),
                least.map(|least| format!("{least:.0}")).unwrap_or_default(),
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

    fn failures(&mut self) {
        let report = self.report;
        if report.failures.is_empty() {
            return;
        }
        self.say("\n## What could not be measured\n\n| what | at | why |\n|---|---|---|\n");
        for (who, why, places) in &report.failures {
            let why = why.lines().collect::<Vec<_>>().join(" / ");
            let why = why.replace('|', "/");
            let _ = writeln!(self.text, "| {who} | {} | {why} |", places.join("; "));
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
