//! The ticks of a logarithmic axis of latency, with the same unit within a decade.

use ui::format;

/// Divisions of a decade, from few ticks to many.
const LADDERS: [&[f64]; 5] = [
    &[1.0],
    &[1.0, 3.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
    &[
        1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 9.0,
    ],
];
/// Minimum number of ticks on an axis.
const MIN_TICKS: usize = 4;

/// Rounds to five significant digits: more than a chart can show, in a third of the bytes.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// Ticks between two decimal logarithms of seconds, each with its position in seconds and its text, from the sparsest
/// ladder with enough of them.
pub(crate) fn logarithmic(from: f64, to: f64) -> Vec<(f64, String)> {
    let on = |ladder: &[f64]| -> Vec<(f64, String)> {
        let decades = from.floor() as i32..=to.ceil() as i32;
        decades
            .flat_map(|decade| ladder.iter().map(move |step| step * 10_f64.powi(decade)))
            .filter(|seconds| (from..=to).contains(&seconds.log10()))
            .map(|seconds| (rounded(seconds), format::short_latency(seconds)))
            .collect()
    };
    let mut ticks = Vec::new();
    for ladder in LADDERS {
        ticks = on(ladder);
        if ticks.len() >= MIN_TICKS {
            break;
        }
    }
    if ticks.len() < 2 {
        // The range is narrower than any ladder: evenly spaced ticks.
        let at = |share: f64| 10_f64.powf(from + (to - from) * share);
        ticks = [0.2, 0.8]
            .map(at)
            .map(|seconds| (seconds, format::latency((seconds * 1e9) as u64)))
            .to_vec();
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(from: f64, to: f64) -> Vec<String> {
        logarithmic(from.log10(), to.log10())
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn there_are_enough_ticks_and_not_too_many() {
        assert_eq!(texts(90e-6, 0.5), ["100 µs", "1 ms", "10 ms", "100 ms"]);
        assert_eq!(texts(0.9e-3, 35e-3), ["1 ms", "3 ms", "10 ms", "30 ms"]);
        assert_eq!(
            texts(450e-6, 2.1e-3),
            ["500 µs", "700 µs", "1 ms", "1.5 ms", "2 ms"]
        );
        for width in [1.05, 1.5, 3.0, 20.0, 1e3, 1e6] {
            assert!(
                (2..=9).contains(&texts(1.9e-4, 1.9e-4 * width).len()),
                "{width}"
            );
        }
    }
}
