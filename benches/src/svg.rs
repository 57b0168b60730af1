//! Plots as SVG: nothing but text, rectangles and lines, so that a browser and a code host
//! show them alike. They bring their own background and follow the reader's choice of light
//! or dark.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 24.0;
const NAMES: f64 = 96.0;
const BAR: f64 = 16.0;
const GAP: f64 = 4.0;
const GROUP: f64 = 14.0;

/// The colours of what is compared, in their order: light and dark.
const COLOURS: [(&str, &str); 7] = [
    ("#1f6fd0", "#4b96ee"),
    ("#7b7a74", "#9c9b94"),
    ("#d9622b", "#ee7c45"),
    ("#12936a", "#2fb58a"),
    ("#8a5bc4", "#a67fdc"),
    ("#b58900", "#d1a72a"),
    ("#c2417c", "#e0689c"),
];

/// One bar.
pub struct Bar {
    /// Which colour: the place of the runtime.
    pub colour: usize,
    pub name: String,
    pub value: f64,
    /// What stands at its end.
    pub label: String,
    /// The quarters of the values, drawn as a thin line.
    pub spread: Option<(f64, f64)>,
}

/// Bars that are compared with each other.
pub struct Group {
    pub title: String,
    pub bars: Vec<Bar>,
}

/// One line.
pub struct Line {
    pub colour: usize,
    pub name: String,
    /// Each point's place and value.
    pub points: Vec<(f64, f64)>,
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn head(title: &str, height: f64) -> String {
    let mut style = String::from(
        "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}\
         .back{fill:#fcfcfb}.ink{fill:#1c1c1a}.dim{fill:#62615b}.title{font-size:15px;\
         font-weight:600}.group{font-weight:600}.rule{stroke:#d8d7d1}.spread{stroke:#1c1c1a}",
    );
    let mut dark = String::from(
        ".back{fill:#1a1a19}.ink{fill:#f2f1ec}.dim{fill:#b3b2aa}.rule{stroke:#3d3d39}\
         .spread{stroke:#f2f1ec}",
    );
    for (number, (day, night)) in COLOURS.iter().enumerate() {
        let _ = write!(
            style,
            ".f{number}{{fill:{day}}}.s{number}{{stroke:{day};fill:none}}"
        );
        let _ = write!(
            dark,
            ".f{number}{{fill:{night}}}.s{number}{{stroke:{night}}}"
        );
    }
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n\
         <style>{style}@media(prefers-color-scheme:dark){{{dark}}}</style>\n\
         <rect class=\"back\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n\
         <text class=\"ink title\" x=\"{LEFT}\" y=\"30\">{title}</text>\n"
    )
}

/// Horizontal bars from zero, in groups, each with its name and its value.
pub fn bars(title: &str, groups: &[Group]) -> String {
    const ROOM: f64 = 92.0;
    let groups: Vec<&Group> = groups.iter().filter(|one| !one.bars.is_empty()).collect();
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = 56.0 + bars as f64 * (BAR + GAP) + groups.len() as f64 * (GROUP + 22.0);
    let most = groups
        .iter()
        .flat_map(|group| &group.bars)
        .map(|bar| {
            bar.spread
                .map_or(bar.value, |(_, upper)| bar.value.max(upper))
        })
        .fold(f64::MIN_POSITIVE, f64::max);
    let start = LEFT + NAMES;
    let scale = (WIDTH - start - ROOM) / most;
    let mut svg = head(title, height);
    let mut y = 46.0;
    for group in groups {
        y += GROUP;
        let _ = writeln!(
            svg,
            "<text class=\"ink group\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
            y + 4.0,
            escape(&group.title)
        );
        y += 14.0;
        for bar in &group.bars {
            let middle = y + BAR / 2.0;
            let length = (bar.value * scale).max(1.0);
            let _ = writeln!(
                svg,
                "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"f{}\" x=\"{start}\" y=\"{y:.1}\" width=\"{length:.1}\" \
                 height=\"{BAR}\" rx=\"2\"/>",
                start - 8.0,
                middle + 4.5,
                escape(&bar.name),
                bar.colour % COLOURS.len()
            );
            let mut end = start + length;
            if let Some((lower, upper)) = bar.spread {
                let (from, to) = (start + lower * scale, start + upper * scale);
                end = end.max(to);
                let _ = writeln!(
                    svg,
                    "<line class=\"spread\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" \
                     y2=\"{middle:.1}\"/>"
                );
            }
            let _ = writeln!(
                svg,
                "<text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                end + 6.0,
                middle + 4.5,
                escape(&bar.label)
            );
            y += BAR + GAP;
        }
        y += 8.0;
    }
    svg + "</svg>\n"
}

/// A number whose grid lines are easy to read: 1, 2 or 5 times a power of ten.
fn step(most: f64) -> f64 {
    let rough = (most / 5.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= rough)
        .unwrap_or(10.0);
    factor * power
}

/// Lines from zero, with their names at their ends.
pub fn lines(title: &str, across: &str, up: &str, all: &[Line]) -> String {
    const HEIGHT: f64 = 400.0;
    const TOP: f64 = 70.0;
    const BOTTOM: f64 = 350.0;
    const RIGHT: f64 = 650.0;
    const START: f64 = 70.0;
    let points = || all.iter().flat_map(|line| &line.points);
    let most_x = points()
        .map(|point| point.0)
        .fold(f64::MIN_POSITIVE, f64::max);
    let most_y = points()
        .map(|point| point.1)
        .fold(f64::MIN_POSITIVE, f64::max);
    let step = step(most_y);
    let lines = (most_y / step).ceil();
    let x = |value: f64| START + value / most_x * (RIGHT - START);
    let y = |value: f64| BOTTOM - value / (lines * step) * (BOTTOM - TOP);
    let mut svg = head(title, HEIGHT);
    let _ = writeln!(
        svg,
        "<text class=\"dim\" x=\"{LEFT}\" y=\"54\">{}</text>",
        escape(up)
    );
    for number in 0..=lines as u32 {
        let value = f64::from(number) * step;
        let _ = writeln!(
            svg,
            "<line class=\"rule\" x1=\"{START}\" x2=\"{RIGHT}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"dim\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{value}</text>",
            y(value),
            START - 8.0,
            y(value) + 4.5
        );
    }
    let mut places: Vec<f64> = points().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut last = f64::MIN;
    for place in places {
        if x(place) - last < 30.0 {
            continue;
        }
        last = x(place);
        let _ = writeln!(
            svg,
            "<text class=\"dim\" x=\"{last:.1}\" y=\"{}\" text-anchor=\"middle\">{place}</text>",
            BOTTOM + 20.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"dim\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(START, RIGHT),
        BOTTOM + 40.0,
        escape(across)
    );
    let mut names: Vec<(f64, usize, &str)> = Vec::new();
    for line in all {
        let colour = line.colour % COLOURS.len();
        let path: Vec<String> = line
            .points
            .iter()
            .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"s{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            path.join(" ")
        );
        for point in &line.points {
            let _ = writeln!(
                svg,
                "<circle class=\"f{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/>",
                x(point.0),
                y(point.1)
            );
        }
        if let Some(end) = line.points.last() {
            names.push((y(end.1), colour, &line.name));
        }
    }
    // Names that would lie over each other are moved up, from the lowest on.
    names.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut free = f64::MAX;
    for (wanted, colour, name) in names {
        let place = wanted.min(free);
        free = place - 16.0;
        let _ = writeln!(
            svg,
            "<rect class=\"f{colour}\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" rx=\"2\"/>\
             <text class=\"ink\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            RIGHT + 12.0,
            place - 4.0,
            RIGHT + 25.0,
            place + 4.5,
            escape(name)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (most, wanted) in [(0.9, 0.2), (48.0, 10.0), (83.0, 20.0), (5000.0, 1000.0)] {
            assert!((step(most) - wanted).abs() < 1e-9, "{most}: {}", step(most));
        }
    }

    #[test]
    fn names_are_escaped() {
        let bar = Bar {
            colour: 9,
            name: "<a&b>".into(),
            value: 2.0,
            label: "2".into(),
            spread: Some((1.0, 3.0)),
        };
        let group = Group {
            title: "\"x\"".into(),
            bars: vec![bar],
        };
        let svg = bars("t", &[group]);
        assert!(svg.contains("&lt;a&amp;b&gt;") && svg.contains("&quot;x&quot;"));
        let line = Line {
            colour: 0,
            name: "n".into(),
            points: vec![(0.0, 0.0), (1.0, 2.0)],
        };
        assert!(lines("t", "x", "y", &[line]).ends_with("</svg>\n"));
    }
}
