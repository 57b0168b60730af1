//! What pipkin is to reach, whether it does, and what stops it.

use crate::axes;
use crate::report::Report;

/// A goal and what was measured.
pub struct Goal {
    /// Empty where it is the one of the goal before.
    pub axis: &'static str,
    pub goal: &'static str,
    /// By the medians and by the best of each: the shortest times. Two equal figures are one.
    pub measured: Vec<String>,
    /// Whether it holds by each; nothing where it was not measured.
    pub holds: Vec<bool>,
    /// What stops it, in figures, where it does not hold.
    pub why: Option<String>,
}

impl Goal {
    /// Whether it holds by what decides: the medians, or the best on a busy machine.
    pub fn verdict(&self, is_busy: bool) -> Option<bool> {
        let decisive = if is_busy {
            self.holds.last()
        } else {
            self.holds.first()
        };
        decisive.copied()
    }
}

/// How a figure is compared with what it is to be.
enum Want {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
}

impl Want {
    fn holds(&self, value: f64) -> bool {
        match *self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Below(bound) => value < bound,
        }
    }
}

use Want::{AtLeast, AtMost, Below};

/// The median and the best of what was measured.
#[derive(Clone, Copy)]
struct Figure {
    median: f64,
    best: f64,
}

impl Figure {
    fn one(value: f64) -> Self {
        Self {
            median: value,
            best: value,
        }
    }

    /// Both with the other's.
    fn with(self, other: Self, operation: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            median: operation(self.median, other.median),
            best: operation(self.best, other.best),
        }
    }

    fn over(self, below: Self) -> Self {
        self.with(below, |above, below| above / below)
    }
}

struct Judge<'a> {
    report: &'a Report,
    goals: Vec<Goal>,
}

fn times(value: f64) -> String {
    format!("{value:.2} times")
}

fn kib(value: f64) -> String {
    format!("{value:.0} KiB")
}

fn number(value: f64) -> String {
    format!("{value:.0}")
}

fn micros(value: f64) -> String {
    format!("{value:.0} µs")
}

fn millis(us: f64) -> String {
    format!("{:.2} ms", us / 1000.0)
}

impl Judge<'_> {
    /// Times and sizes: the smallest is the best.
    fn figure(&self, axis: &str, point: &str, runtime: &str) -> Option<Figure> {
        let summary = self.report.get(axis, point, runtime)?;
        Some(Figure {
            median: summary.median,
            best: summary.min,
        })
    }

    /// Containers a second: the largest is the best.
    fn rate(&self, runtime: &str) -> Option<Figure> {
        let summary = self.report.get("rate", "64", runtime)?;
        Some(Figure {
            median: summary.median,
            best: summary.max,
        })
    }

    fn own(&self, axis: &str, point: &str) -> Option<Figure> {
        self.figure(axis, point, "pipkin")
    }

    fn ratio(&self, axis: &str, point: &str, above: &str, below: &str) -> Option<Figure> {
        let below = self.figure(axis, point, below)?;
        Some(self.figure(axis, point, above)?.over(below))
    }

    /// What decides of a figure.
    fn decisive(&self, figure: Figure) -> f64 {
        if self.report.is_busy() {
            figure.best
        } else {
            figure.median
        }
    }

    fn add(
        &mut self,
        axis: &'static str,
        goal: &'static str,
        figure: Option<Figure>,
        want: Want,
        show: impl Fn(f64) -> String,
        why: impl Fn(&Self) -> Vec<Option<String>>,
    ) {
        let mut goal = Goal {
            axis,
            goal,
            measured: Vec::new(),
            holds: Vec::new(),
            why: None,
        };
        for value in figure.iter().flat_map(|one| [one.median, one.best]) {
            goal.measured.push(show(value));
            goal.holds.push(want.holds(value));
        }
        goal.measured.dedup();
        goal.holds.truncate(goal.measured.len());
        if goal.verdict(self.report.is_busy()) == Some(false) {
            let reasons: Vec<String> = why(self).into_iter().flatten().collect();
            goal.why = (!reasons.is_empty()).then(|| reasons.join(" "));
        }
        self.goals.push(goal);
    }

    /// How far the floor is from another runtime: nobody can be farther.
    fn floor_against(&self, point: &str, other: &str) -> Option<String> {
        let ratio = self.decisive(self.ratio("run", point, other, "floor")?);
        let own = self.decisive(self.ratio("run", point, "pipkin", "floor")?);
        Some(format!(
            "{other} takes {} as long as the floor, which does nothing but what the container \
             needs; pipkin takes {} as long as the floor.",
            times(ratio),
            times(own)
        ))
    }

    /// Where pipkin's time beyond the floor's goes.
    fn beyond_the_floor(&self) -> Vec<Option<String>> {
        let two = |axis: &str, show: fn(f64) -> String| {
            let own = self.decisive(self.own(axis, "podman")?);
            let floor = self.decisive(self.figure(axis, "podman", "floor")?);
            Some((show(own), show(floor)))
        };
        let calls = two("calls", number)
            .map(|(own, floor)| format!("pipkin makes {own} system calls, the floor {floor}."));
        let processor = two("processor", millis)
            .map(|(own, floor)| format!("pipkin uses {own} of the processor, the floor {floor}."));
        let version = self.own("reference", "version").map(|figure| {
            let time = millis(self.decisive(figure));
            format!("To execute pipkin alone (`--version`) takes {time}.")
        });
        let compile = self.own("seccomp compile", "podman").map(|figure| {
            let time = millis(self.decisive(figure));
            format!("To make the filter, which the floor has ready, takes {time}.")
        });
        let v2 = self.ratio("run", axes::V2, "pipkin", "floor").map(|ratio| {
            let ratio = times(self.decisive(ratio));
            format!("With control groups of version 2 alone it is {ratio}.")
        });
        vec![calls, processor, version, compile, v2]
    }

    fn against_nothing(&self, command: &str) -> Vec<Option<String>> {
        let version = || {
            let nothing = self.figure("reference", "nothing", "a static program")?;
            let version = self.own("reference", "version")?;
            Some(format!(
                "To execute pipkin and end at once (`--version`) takes {}, {} what the program \
                 that does nothing takes ({}).",
                millis(self.decisive(version)),
                times(self.decisive(version.over(nothing))),
                millis(self.decisive(nothing))
            ))
        };
        let calls = self.own("command calls", command).map(|calls| {
            let calls = number(self.decisive(calls));
            format!("`{command}` makes {calls} system calls.")
        });
        vec![version(), calls]
    }

    fn floors_rate(&self, other: &str) -> Option<String> {
        let floor = self.rate("floor")?;
        let ratio = floor.over(self.rate(other)?);
        Some(format!(
            "The floor itself makes {:.0} a second, {} those of {other}.",
            self.decisive(floor),
            times(self.decisive(ratio))
        ))
    }

    fn load(&self) -> Vec<Option<String>> {
        let compile = self.own("seccomp compile", "podman");
        let load = self.own("seccomp load", "podman");
        let parts = compile.zip(load).map(|(compile, load)| {
            format!(
                "To make it takes {}, to load it {}, which is the kernel's.",
                micros(self.decisive(compile)),
                micros(self.decisive(load))
            )
        });
        let least = self.own("seccomp least", "podman").map(|least| {
            let least = micros(self.decisive(least));
            format!("To load one of two instructions takes {least}.")
        });
        vec![parts, least]
    }

    fn resident(&self) -> Vec<Option<String>> {
        let file = self.own("peak", "file");
        let anonymous = self.own("peak", "anonymous");
        let reason = file.zip(anonymous).map(|(file, anonymous)| {
            format!(
                "While it waits, {} of it are pages of the program's file, and {} its own.",
                kib(self.decisive(file)),
                kib(self.decisive(anonymous))
            )
        });
        vec![reason]
    }

    fn calls(&self) -> Vec<Option<String>> {
        let figure = |axis: &str, runtime: &str| {
            let figure = self.figure(axis, "podman", runtime)?;
            Some(number(self.decisive(figure)))
        };
        let here = || {
            Some(format!(
                "The floor makes {}. Of pipkin's, {} are for the control groups ({}), of the \
                 floor's {}.",
                figure("calls", "floor")?,
                figure("calls for groups", "pipkin")?,
                self.report.machine.cgroups,
                figure("calls for groups", "floor")?
            ))
        };
        let v2 = || {
            Some(format!(
                "With version 2 alone pipkin makes {}, {} of them for the groups; the floor \
                 {} and {}.",
                figure("calls v2", "pipkin")?,
                figure("calls for groups v2", "pipkin")?,
                figure("calls v2", "floor")?,
                figure("calls for groups v2", "floor")?
            ))
        };
        vec![here(), v2()]
    }

    fn empty_data(&self) -> Option<Figure> {
        let mut sum = None;
        for axis in ["empty data", "empty data v2"] {
            for point in self.report.points(axis) {
                if let Some(count) = self.report.median(axis, point, "pipkin") {
                    sum = Some(sum.unwrap_or(0.0) + count);
                }
            }
        }
        sum.map(Figure::one)
    }
}

/// All goals.
pub fn all(report: &Report) -> Vec<Goal> {
    let mut judge = Judge {
        report,
        goals: Vec::new(),
    };
    let nothing_to_say = |_: &Judge<'_>| Vec::new();

    judge.add(
        "`run`, podman's configuration",
        "at most 1.25 times the floor",
        judge.ratio("run", "podman", "pipkin", "floor"),
        AtMost(1.25),
        times,
        Judge::beyond_the_floor,
    );
    judge.add(
        "",
        "crun takes at least 8 times as long",
        judge.ratio("run", "podman", "crun", "pipkin"),
        AtLeast(8.0),
        times,
        |judge| vec![judge.floor_against("podman", "crun")],
    );
    judge.add(
        "",
        "runc takes at least 15 times as long",
        judge.ratio("run", "podman", "runc", "pipkin"),
        AtLeast(15.0),
        times,
        |judge| vec![judge.floor_against("podman", "runc")],
    );
    judge.add(
        "`run`, the `spec` configuration, no seccomp",
        "crun takes at least 3 times as long",
        judge.ratio("run", "spec", "crun", "pipkin"),
        AtLeast(3.0),
        times,
        |judge| vec![judge.floor_against("spec", "crun")],
    );
    let many = judge.own("host mounts", "5000");
    judge.add(
        "5,000 mounts on the host",
        "at most 1.15 times the time without",
        many.zip(judge.own("host mounts", "0"))
            .map(|(many, none)| many.over(none)),
        AtMost(1.15),
        times,
        |judge| {
            let spread = report.get("host mounts", "0", "pipkin").map(|one| {
                format!(
                    "Without them, half of the runs took between {} and {}.",
                    millis(one.lower),
                    millis(one.upper)
                )
            });
            let floor = judge.figure("host mounts", "5000", "floor").map(|one| {
                let time = millis(judge.decisive(one));
                format!("The floor, which copies the host's mounts, takes {time} beside 5,000.")
            });
            vec![spread, floor]
        },
    );
    judge.add(
        "seccomp, podman's profile",
        "made and loaded in less than 100 µs",
        judge.own("seccomp", "podman"),
        Below(100.0),
        micros,
        Judge::load,
    );
    judge.add(
        "",
        "fewer than 250 instructions",
        judge.own("instructions", "podman"),
        Below(250.0),
        number,
        nothing_to_say,
    );
    commands(&mut judge);
    at_once(&mut judge);
    exec(&mut judge);
    sizes(&mut judge);
    judge.goals
}

fn commands(judge: &mut Judge<'_>) {
    let nothing = judge.figure("reference", "nothing", "a static program");
    let against =
        |time: Option<Figure>| time.zip(nothing).map(|(time, nothing)| time.over(nothing));
    let goal = "less than 1.5 times the execution of a program that does nothing";
    for (axis, command) in [("`state`", "state"), ("`kill`", "kill")] {
        let figure = against(judge.own("command", command));
        judge.add(axis, goal, figure, Below(1.5), times, |judge| {
            judge.against_nothing(command)
        });
    }
    let removal = judge.figure("reference", "cgroup", "removal");
    let rest = judge.own("command", "delete").zip(removal);
    let rest = rest.map(|(time, removal)| time.with(removal, |time, removal| time - removal));
    judge.add(
        "`delete`",
        "the same, without the removal of the control groups",
        against(rest),
        Below(1.5),
        times,
        |judge| judge.against_nothing("delete"),
    );
}

fn at_once(judge: &mut Judge<'_>) {
    let against = |judge: &Judge<'_>, other| {
        let own = judge.rate("pipkin").zip(judge.rate(other));
        own.map(|(own, other)| own.over(other))
    };
    judge.add(
        "64 starts at once",
        "at least 7 times the containers a second of crun",
        against(judge, "crun"),
        AtLeast(7.0),
        times,
        |judge| vec![judge.floors_rate("crun")],
    );
    judge.add(
        "",
        "at least 12 times those of runc",
        against(judge, "runc"),
        AtLeast(12.0),
        times,
        |judge| vec![judge.floors_rate("runc")],
    );
    judge.add(
        "",
        "no failure in 2,000 starts",
        judge.own("failures", "64"),
        AtMost(0.0),
        number,
        |_| Vec::new(),
    );
}

fn exec(judge: &mut Judge<'_>) {
    judge.add(
        "`exec` of /bin/true",
        "crun takes at least 4 times as long",
        judge.ratio("command", "exec", "crun", "pipkin"),
        AtLeast(4.0),
        times,
        |_| Vec::new(),
    );
    judge.add(
        "",
        "runc takes at least 15 times as long",
        judge.ratio("command", "exec", "runc", "pipkin"),
        AtLeast(15.0),
        times,
        |_| Vec::new(),
    );
}

fn sizes(judge: &mut Judge<'_>) {
    judge.add(
        "smallest memory limit that still starts",
        "192 KiB or less",
        judge.own("limit", "memory"),
        AtMost(192.0),
        kib,
        |_| Vec::new(),
    );
    judge.add(
        "peak RSS",
        "at most 1,024 KiB",
        judge.own("peak", "RSS"),
        AtMost(1024.0),
        kib,
        Judge::resident,
    );
    judge.add(
        "RSS of a container that waits for `start`",
        "at most 256 KiB",
        judge.own("waiting", "RSS"),
        AtMost(256.0),
        kib,
        |_| Vec::new(),
    );
    judge.add(
        "system calls of a `run`, podman's configuration",
        "at most 220, the program's own among them",
        judge.own("calls", "podman"),
        AtMost(220.0),
        number,
        Judge::calls,
    );
    judge.add(
        "mount(2) with an empty string",
        "none, with any of the configurations",
        judge.empty_data(),
        AtMost(0.0),
        number,
        |_| Vec::new(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Machine, Shares};

    fn report(others: f64) -> Report {
        let machine = Machine {
            date: String::new(),
            kernel: String::new(),
            cpu: String::new(),
            cores: 2,
            memory: 1,
            cgroups: "v1, 9 hierarchies".into(),
            versions: Vec::new(),
        };
        let mut report = Report::new(machine, false, Vec::new());
        report.shares = Shares {
            others,
            kernel: 0.0,
        };
        for (runtime, times) in [("pipkin", [1200.0, 2000.0]), ("floor", [1000.0, 1000.0])] {
            for time in times {
                report.add("run", "podman", runtime, "us", time);
            }
        }
        report.add("calls", "podman", "pipkin", "", 300.0);
        report.add("calls", "podman", "floor", "", 195.0);
        report
    }

    #[test]
    fn a_busy_machine_is_judged_by_the_shortest_times() {
        for (others, verdict) in [(0.01, false), (0.5, true)] {
            let report = report(others);
            let goals = all(&report);
            let goal = &goals[0];
            assert_eq!(goal.measured, ["1.60 times", "1.20 times"]);
            assert_eq!(goal.verdict(report.is_busy()), Some(verdict));
            assert_eq!(goal.why.is_none(), verdict);
        }
    }

    #[test]
    fn what_does_not_hold_says_why() {
        let goals = all(&report(0.0));
        let calls = goals.iter().find(|goal| goal.goal.contains("220")).unwrap();
        assert_eq!(calls.verdict(false), Some(false));
        assert_eq!(calls.why, None, "there are no figures of groups");
        let why = goals[0].why.as_ref().unwrap();
        assert!(why.contains("300 system calls"), "{why}");
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let goals = all(&report(0.0));
        let exec = goals
            .iter()
            .find(|goal| goal.axis.contains("exec"))
            .unwrap();
        assert_eq!(exec.verdict(false), None);
    }
}
