//! What was measured.

use serde_json::{Value, json};

use crate::machine::{Machine, Shares};
use crate::stats::Summary;

/// The values of one runtime at one point of an axis.
pub struct Series {
    pub axis: &'static str,
    pub point: String,
    pub runtime: String,
    pub unit: &'static str,
    pub values: Vec<f64>,
}

/// All series, and what there is to say besides.
pub struct Report {
    pub machine: Machine,
    pub quick: bool,
    pub series: Vec<Series>,
    /// What could not be measured: who failed, why, and at what.
    pub failures: Vec<(String, String, Vec<String>)>,
    /// What `make bench-mounts` prints.
    pub mounts: String,
    /// What was used of the processors meanwhile, but for the bench.
    pub shares: Shares,
    /// Seconds that each axis took.
    pub seconds: Vec<(&'static str, f64)>,
    /// Everything that runs, in the order of the tables.
    order: Vec<String>,
}

impl Report {
    pub fn new(machine: Machine, quick: bool, order: Vec<String>) -> Self {
        Self {
            machine,
            quick,
            series: Vec::new(),
            failures: Vec::new(),
            mounts: String::new(),
            shares: Shares::default(),
            seconds: Vec::new(),
            order,
        }
    }

    /// Adds one value.
    pub fn add(
        &mut self,
        axis: &'static str,
        point: &str,
        runtime: &str,
        unit: &'static str,
        value: f64,
    ) {
        let known = self
            .series
            .iter_mut()
            .find(|one| one.axis == axis && one.point == point && one.runtime == runtime);
        match known {
            Some(series) => series.values.push(value),
            None => self.series.push(Series {
                axis,
                point: point.to_owned(),
                runtime: runtime.to_owned(),
                unit,
                values: vec![value],
            }),
        }
    }

    /// Says that a runtime, or an axis, could not do something.
    pub fn fail(&mut self, who: &str, place: &str, why: &dyn std::fmt::Display) {
        let why = why.to_string();
        let known = self.failures.iter_mut();
        let mut known = known.filter(|(other, reason, _)| other == who && *reason == why);
        match known.next() {
            Some((_, _, places)) if places.iter().any(|other| other == place) => {}
            Some((_, _, places)) => places.push(place.to_owned()),
            None => self
                .failures
                .push((who.to_owned(), why, vec![place.to_owned()])),
        }
    }

    /// The figures of a series.
    pub fn get(&self, axis: &str, point: &str, runtime: &str) -> Option<Summary> {
        self.series
            .iter()
            .find(|one| one.axis == axis && one.point == point && one.runtime == runtime)
            .and_then(|one| Summary::of(&one.values))
    }

    /// The median of a series.
    pub fn median(&self, axis: &str, point: &str, runtime: &str) -> Option<f64> {
        self.get(axis, point, runtime).map(|summary| summary.median)
    }

    /// Whether so much else ran that the shortest times say more than the medians. What the
    /// kernel's threads do is not counted: they clean up after the containers.
    pub fn is_busy(&self) -> bool {
        self.shares.others > 0.05
    }

    /// The points of an axis in the order in which they were measured.
    pub fn points(&self, axis: &str) -> Vec<&str> {
        let mut points: Vec<&str> = Vec::new();
        for series in self.series.iter().filter(|one| one.axis == axis) {
            if !points.contains(&series.point.as_str()) {
                points.push(&series.point);
            }
        }
        points
    }

    /// The runtimes of an axis.
    pub fn runtimes(&self, axis: &str) -> Vec<&str> {
        let mut runtimes: Vec<&str> = Vec::new();
        for series in self.series.iter().filter(|one| one.axis == axis) {
            if !runtimes.contains(&series.runtime.as_str()) {
                runtimes.push(&series.runtime);
            }
        }
        runtimes.sort_by_key(|name| self.order.iter().position(|other| other == name));
        runtimes
    }

    /// Everything as JSON, one series a line.
    pub fn to_json(&self) -> String {
        let machine = json!({
            "date": self.machine.date,
            "kernel": self.machine.kernel,
            "cpu": self.machine.cpu,
            "cores": self.machine.cores,
            "memory_mib": self.machine.memory,
            "cgroups": self.machine.cgroups,
            "versions": self.machine.versions.iter().cloned().collect::<serde_json::Map<_, _>>(),
            "quick": self.quick,
            "others": self.shares.others,
            "kernel": self.shares.kernel,
            "seconds": self.seconds.iter().map(|(name, seconds)| {
                ((*name).to_owned(), json!(seconds.round()))
            }).collect::<serde_json::Map<_, _>>(),
        });
        let lines: Vec<String> = self.series.iter().map(Series::to_json).collect();
        format!(
            "{{\n\"machine\": {machine},\n\"failures\": {},\n\"series\": [\n{}\n]\n}}\n",
            json!(self.failures),
            lines.join(",\n")
        )
    }
}

impl Series {
    fn to_json(&self) -> String {
        let round = |value: &f64| match value.fract() == 0.0 || *value >= 1000.0 {
            true => json!(*value as i64),
            false => json!((value * 10.0).round() / 10.0),
        };
        json!({
            "axis": self.axis,
            "point": self.point,
            "runtime": self.runtime,
            "unit": self.unit,
            "values": self.values.iter().map(round).collect::<Vec<Value>>(),
        })
        .to_string()
    }
}
