//! Figures as short text.

use std::time::Duration;

use jiff::tz::TimeZone;
use record::Nanos;
use record::sample::SampleTime;
use ui::format;
use ui::units::{compact, compact_latency};

/// Text for an unknown figure.
pub(crate) const UNKNOWN: &str = "-";
/// Bytes in a MiB.
pub(crate) const MIB: f64 = 1_048_576.0;

/// A rate in at most five columns: `0`, `0.4`, `9.3`, `12345`, `1.2M`.
pub(crate) fn rate(value: Option<f64>) -> String {
    let Some(value) = value else {
        return UNKNOWN.to_owned();
    };
    match value {
        0.0 => "0".to_owned(),
        v if v < 99.95 => format!("{v:.1}"),
        v if v < 99_999.5 => format!("{v:.0}"),
        v if v < 9_999_500.0 => format!("{:.0}k", v / 1e3),
        v if v < 9_999.5e6 => format!("{:.0}M", v / 1e6),
        _ => "many".to_owned(),
    }
}

/// A rate of bytes, in MiB.
pub(crate) fn mib(bytes: Option<f64>) -> String {
    rate(bytes.map(|bytes| bytes / MIB))
}

/// A latency, given in seconds, in at most five columns: `830µs`, `1.2ms`, `12ms`, `3.4s`.
pub(crate) fn wait(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), compact_latency)
}

/// A size in at most five columns: `512`, `4.0k`, `128k`, `1.0M`.
pub(crate) fn size(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else {
        return UNKNOWN.to_owned();
    };
    let (value, unit) = match bytes {
        b if b < 1023.5 => return format!("{b:.0}"),
        b if b < 1023.5 * 1024.0 => (b / 1024.0, 'k'),
        b if b < 1023.5 * MIB => (b / MIB, 'M'),
        b if b < 1023.5 * MIB * 1024.0 => (b / MIB / 1024.0, 'G'),
        b => (b / MIB / MIB, 'T'),
    };
    if value < 9.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// A share in percent, in at most four columns.
pub(crate) fn share(fraction: Option<f64>) -> String {
    match fraction {
        None => UNKNOWN.to_owned(),
        Some(fraction) if fraction > 0.0 && fraction < 0.005 => "<1%".to_owned(),
        Some(fraction) => format!("{:.0}%", (100.0 * fraction).min(999.0)),
    }
}

/// The time of day, or the time since the first reading where it is not known.
pub(crate) fn clock(moment: SampleTime) -> String {
    match moment.wall {
        Some(wall) => {
            let local = wall.to_zoned(TimeZone::system());
            local.strftime("%H:%M:%S").to_string()
        }
        None => format!("{:.0}s", moment.elapsed.as_secs_f64()),
    }
}

/// The day and the time of day.
pub(crate) fn date_and_clock(moment: SampleTime) -> String {
    match moment.wall {
        Some(wall) => format::local_date(wall),
        None => clock(moment),
    }
}

/// A span of time in few columns: `42s`, `3m07s`.
pub(crate) fn span(time: Nanos) -> String {
    compact(Duration::from_nanos(time.0))
}

/// A line of blocks, whose heights are relative to the highest value. Unknown values are gaps, and zero differs from
/// small values.
pub(crate) fn sparkline(values: &[Option<f64>], unicode: bool) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const SIGNS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let signs = if unicode { BLOCKS } else { SIGNS };
    let sign = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 => {
            if unicode {
                '·'
            } else {
                '_'
            }
        }
        Some(value) => signs[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(sign).collect()
}

/// A text, right-aligned in `width` columns.
pub(crate) fn right_aligned(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// A text in exactly `width` columns: padded, or truncated with an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…").chars().take(width).collect()
}

/// Text for a figure that is not known.
pub(crate) fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in [(0.0, "0"), (0.04, "0.0"), (9.34, "9.3"), (99.96, "100")] {
            assert_eq!(rate(Some(value)), text);
        }
        assert_eq!(rate(Some(123_456.0)), "123k");
        for (value, text) in [
            (0.0, "0µs"),
            (83e-6, "83µs"),
            (1.23e-3, "1.2ms"),
            (3.44, "3.4s"),
        ] {
            assert_eq!(wait(Some(value)), text);
        }
        for (value, text) in [
            (512.0, "512"),
            (4096.0, "4.0k"),
            (131_072.0, "128k"),
            (MIB, "1.0M"),
        ] {
            assert_eq!(size(Some(value)), text);
        }
        assert_eq!(share(Some(0.001)), "<1%");
        assert_eq!(share(Some(1.004)), "100%");
        assert_eq!(
            [rate(None), wait(None), size(None), share(None)],
            [UNKNOWN; 4]
        );
    }

    #[test]
    fn a_sparkline_tells_nothing_from_little_and_from_not_known() {
        let values = [None, Some(0.0), Some(0.1), Some(5.0), Some(10.0)];
        assert_eq!(sparkline(&values, true), " ·▁▄█");
        assert_eq!(sparkline(&values, false), " _.=@");
        assert_eq!(sparkline(&[Some(0.0)], false), "_");
    }

    proptest! {
        #[test]
        fn no_figure_is_wider_than_its_column(value in 0.0_f64..1e15) {
            for text in [rate(Some(value)), wait(Some(value / 1e9)), share(Some(value))] {
                prop_assert!(text.chars().count() <= 5, "{}", text);
            }
            prop_assert!(size(Some(value)).chars().count() <= 5, "{}", size(Some(value)));
        }
    }
}
