//! Times of power cuts, as users write them.

use std::str::FromStr;

use record::Nanos;

/// Maximum number of power cuts of one group.
const MAX_CUTS: u32 = 1000;

/// Times of power cuts, from the start of the command: a number of cuts, each at a random time between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutTimes {
    /// Number of power cuts, 1 to 1,000.
    pub count: u32,
    /// Lower bound of each time.
    pub earliest: Nanos,
    /// Upper bound of each time; not below the lower bound.
    pub latest: Nanos,
}

impl FromStr for CutTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<CutTimes, String> {
        let bad = || {
            format!(
                "'{text}' is not a time for a power cut; write a duration or two, such as 10s or \
                 5s..30s, with a number of cuts up to {MAX_CUTS} before it if there are more, such \
                 as 3x10s"
            )
        };
        let (count, times) = match text.split_once('x') {
            Some((count, times)) => (count.parse().map_err(|_| bad())?, times),
            None => (1, text),
        };
        let (earliest, latest) = times.split_once("..").unwrap_or((times, times));
        match (earliest.parse(), latest.parse()) {
            (Ok(earliest), Ok(latest)) if earliest <= latest && (1..=MAX_CUTS).contains(&count) => {
                Ok(CutTimes {
                    count,
                    earliest,
                    latest,
                })
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_cuts_are_read_or_refused() {
        let times = |count, earliest, latest| CutTimes {
            count,
            earliest: Nanos::from_secs(earliest),
            latest: Nanos::from_secs(latest),
        };
        for (text, wanted) in [
            ("10s", times(1, 10, 10)),
            ("5s..30s", times(1, 5, 30)),
            ("3x10s", times(3, 10, 10)),
            ("1000x0s..1m", times(1000, 0, 60)),
        ] {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "x",
            "0x1s",
            "1001x1s",
            "3x",
            "soon",
            "30s..5s",
            "5s..",
            "-1s",
            "1s..2s..3s",
        ] {
            let refused = text.parse::<CutTimes>().unwrap_err();
            assert!(refused.contains("not a time for a power cut"), "{text}");
        }
    }
}
