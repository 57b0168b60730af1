//! What a series of measurements comes to.

/// The figures of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub min: f64,
    /// A quarter of the values is below it.
    pub lower: f64,
    pub median: f64,
    /// A quarter is above it.
    pub upper: f64,
    pub p99: f64,
    pub max: f64,
}

impl Summary {
    /// The figures of `values`; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            count: sorted.len(),
            min: *sorted.first()?,
            lower: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper: quantile(&sorted, 0.75),
            p99: quantile(&sorted, 0.99),
            max: *sorted.last()?,
        })
    }
}

/// The value with this share of the sorted ones below it, between its two neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = sorted[place as usize];
    let above = sorted[(place as usize + 1).min(sorted.len() - 1)];
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&values).unwrap();
        assert_eq!(summary.min, 0.0);
        assert_eq!(summary.lower, 25.0);
        assert_eq!(summary.median, 50.0);
        assert_eq!(summary.upper, 75.0);
        assert_eq!(summary.p99, 99.0);
        assert_eq!(summary.max, 100.0);
        assert_eq!(Summary::of(&[1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Summary::of(&[]), None);
    }
}
