//! What pipkin is to reach, and whether it does.

use crate::report::Report;

/// A goal and what was measured.
pub struct Goal {
    pub axis: &'static str,
    pub goal: &'static str,
    pub measured: String,
    /// `None` where it was not measured.
    pub holds: Option<bool>,
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

/// What was measured: the median and the smallest, or a figure that has but one.
#[derive(Clone, Copy)]
struct Figure {
    median: f64,
    min: f64,
}

impl Figure {
    /// Both with the other's.
    fn with(self, other: Self, operation: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            median: operation(self.median, other.median),
            min: operation(self.min, other.min),
        }
    }
}

struct Judge<'a> {
    report: &'a Report,
    goals: Vec<Goal>,
}

impl Judge<'_> {
    fn figure(&self, axis: &str, point: &str, runtime: &str) -> Option<Figure> {
        let summary = self.report.get(axis, point, runtime)?;
        Some(Figure {
            median: summary.median,
            min: summary.min,
        })
    }

    fn own(&self, axis: &str, point: &str) -> Option<Figure> {
        self.figure(axis, point, "pipkin")
    }

    fn ratio(&self, axis: &str, point: &str, above: &str, below: &str) -> Option<Figure> {
        let below = self.figure(axis, point, below)?;
        let above = self.figure(axis, point, above)?;
        Some(above.with(below, |above, below| above / below))
    }

    /// One goal. The shortest times decide where the machine was busy.
    fn add(
        &mut self,
        axis: &'static str,
        goal: &'static str,
        figure: Option<Figure>,
        want: Want,
        show: impl Fn(f64) -> String,
    ) {
        let measured = match figure {
            None => "not measured".to_owned(),
            Some(Figure { median, min }) if show(median) == show(min) => show(median),
            Some(Figure { median, min }) => format!("{}, minima {}", show(median), show(min)),
        };
        let is_busy = self.report.is_busy();
        let decides = figure.map(|figure| if is_busy { figure.min } else { figure.median });
        self.goals.push(Goal {
            axis,
            goal,
            measured,
            holds: decides.map(|value| want.holds(value)),
        });
    }
}

/// All goals.
pub fn all(report: &Report) -> Vec<Goal> {
    let times = |value: f64| format!("{value:.2} times");
    let kib = |value: f64| format!("{value:.0} KiB");
    let number = |value: f64| format!("{value:.0}");
    let micros = |value: f64| format!("{value:.0} µs");
    let mut judge = Judge {
        report,
        goals: Vec::new(),
    };

    let podman = |judge: &Judge<'_>, other| judge.ratio("run", "podman", other, "pipkin");
    let figure = judge.ratio("run", "podman", "pipkin", "floor");
    let goal = "at most 1.25 times the floor";
    judge.add(
        "`run`, podman's configuration",
        goal,
        figure,
        AtMost(1.25),
        times,
    );
    let goal = "crun takes at least 8 times as long";
    let figure = podman(&judge, "crun");
    judge.add("", goal, figure, AtLeast(8.0), times);
    let goal = "runc takes at least 15 times as long";
    let figure = podman(&judge, "runc");
    judge.add("", goal, figure, AtLeast(15.0), times);

    let goal = "crun takes at least 3 times as long";
    let figure = judge.ratio("run", "spec", "crun", "pipkin");
    let axis = "`run`, the `spec` configuration, no seccomp";
    judge.add(axis, goal, figure, AtLeast(3.0), times);

    let goal = "at most 1.15 times the time without";
    let many = judge.own("host mounts", "5000");
    let figure = many.zip(judge.own("host mounts", "0"));
    let figure = figure.map(|(many, none)| many.with(none, |many, none| many / none));
    judge.add(
        "5,000 mounts on the host",
        goal,
        figure,
        AtMost(1.15),
        times,
    );

    let figure = judge.own("seccomp", "podman");
    let goal = "compiled and loaded in less than 100 µs";
    judge.add(
        "seccomp, podman's profile",
        goal,
        figure,
        Below(100.0),
        micros,
    );
    let figure = judge.own("instructions", "podman");
    judge.add(
        "",
        "fewer than 250 instructions",
        figure,
        Below(250.0),
        number,
    );

    let nothing = judge.figure("reference", "nothing", "a static program");
    let removal = judge.figure("reference", "cgroup", "removal");
    let against = |time: Option<Figure>| {
        let ratio = |time, nothing| time / nothing;
        time.zip(nothing)
            .map(|(time, nothing)| time.with(nothing, ratio))
    };
    let goal = "less than 1.5 times the execution of a program that does nothing";
    let figure = against(judge.own("command", "state"));
    judge.add("`state`", goal, figure, Below(1.5), times);
    let figure = against(judge.own("command", "kill"));
    judge.add("`kill`", goal, figure, Below(1.5), times);
    let rest = judge.own("command", "delete").zip(removal);
    let rest = rest.map(|(time, removal)| time.with(removal, |time, removal| time - removal));
    let goal = "the same, without the removal of the control groups";
    judge.add("`delete`", goal, against(rest), Below(1.5), times);

    let goal = "at least 7 times the containers a second of crun";
    let figure = judge.ratio("rate", "64", "pipkin", "crun");
    judge.add("64 starts at once", goal, figure, AtLeast(7.0), times);
    let figure = judge.ratio("rate", "64", "pipkin", "runc");
    judge.add(
        "",
        "at least 12 times those of runc",
        figure,
        AtLeast(12.0),
        times,
    );
    let figure = judge.own("failures", "64");
    judge.add(
        "",
        "no failure in 2,000 starts",
        figure,
        AtMost(0.0),
        number,
    );

    judge.goals.push(Goal {
        axis: "`exec`",
        goal: "crun takes at least 4 times as long, runc 15 times",
        measured: "the command does not exist yet".into(),
        holds: None,
    });

    let figure = judge.own("limit", "memory");
    let axis = "smallest memory limit that still starts";
    judge.add(axis, "192 KiB or less", figure, AtMost(192.0), kib);
    let figure = judge.own("peak", "RSS");
    judge.add("peak RSS", "at most 1,024 KiB", figure, AtMost(1024.0), kib);
    let figure = judge.own("waiting", "RSS");
    let axis = "RSS of a container that waits for `start`";
    judge.add(axis, "at most 256 KiB", figure, AtMost(256.0), kib);

    let figure = judge.own("calls", "podman");
    let axis = "system calls of a `run`, podman's configuration";
    let goal = "at most 220, the program's own among them";
    judge.add(axis, goal, figure, AtMost(220.0), number);
    let points = report.points("empty data");
    let empty: Option<f64> = points
        .iter()
        .map(|point| report.median("empty data", point, "pipkin"))
        .sum();
    let figure = empty.filter(|_| !points.is_empty());
    let figure = figure.map(|empty| Figure {
        median: empty,
        min: empty,
    });
    let axis = "mount(2) with an empty string";
    let goal = "none, with any of the configurations";
    judge.add(axis, goal, figure, AtMost(0.0), number);
    judge.goals
}
