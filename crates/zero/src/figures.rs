//! Results of zeroed disks, as sentences.

use reader::ForegroundReport;
use record::Ranges;
use study::compare::{RatioInterval, ratio_of_intervals};
use study::interval::Interval;

use super::checkpoint::{Disk, Method};
use super::sample::ReadBack;

/// Minimum difference of a ratio from 1 that is reported: disks that are sold as equal differ by up to a tenth.
const MIN_DIFFERENCE: f64 = 0.1;
/// Maximum number of ranges that are listed; of the others, only the number is given.
const MAX_LISTED_PLACES: usize = 8;

/// A disk that is zeroed to its end, with the results of reading a sample back.
pub(crate) struct ZeroedDisk {
    /// The disk that was zeroed.
    pub disk: Disk,
    /// Result of reading a sample of its places.
    pub back: ReadBack,
    /// Foreground latency and targets; `None` where there was no foreground.
    pub foreground: Option<ForegroundReport>,
}

impl ZeroedDisk {
    /// True if the whole disk was written and the sample reads as zero.
    pub(crate) fn is_well(&self) -> bool {
        self.disk.failed.is_empty() && self.back.is_well()
    }

    /// Time of the first write to a place divided by that of the second; `None` where it was not measured.
    pub(crate) fn penalty(&self) -> Option<RatioInterval> {
        self.disk.passes.as_ref()?.penalty()?.interval
    }

    fn shown(&self) -> String {
        self.disk.path.display().to_string()
    }

    /// Notes for the user about this disk, without comparisons with other disks.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut notices = Vec::new();
        notices.extend(self.unwritten());
        notices.extend(self.read_back_sentence());
        notices.extend(self.about_first_writes());
        let beside = self.foreground.as_ref();
        notices.extend(beside.map(|beside| format!("{}: {}", self.shown(), beside.text())));
        if self.disk.starts > 1 {
            notices.push(format!(
                "{} was zeroed in {} starts; its time and throughput are those of all together.",
                self.shown(),
                self.disk.starts
            ));
        }
        notices
    }

    fn unwritten(&self) -> Option<String> {
        let failed = &self.disk.failed;
        let why = self.disk.why_failed.as_deref().unwrap_or("no reason given");
        (!failed.is_empty()).then(|| {
            format!(
                "{} could not be written at {} ({why}): {}. Do not trust this disk; replace it.",
                self.shown(),
                listed(failed),
                failed.total()
            )
        })
    }

    fn read_back_sentence(&self) -> Option<String> {
        let (back, shown) = (&self.back, self.shown());
        if !back.not_zero.is_empty() {
            return Some(format!(
                "{shown} took zeros and gave back something else at {}. Do not trust this disk; \
                 replace it.",
                listed(&back.not_zero)
            ));
        }
        let why = back.why.as_deref()?;
        Some(format!(
            "{shown} could not be read back at {} ({why}). Do not trust this disk; replace it.",
            listed(&back.unreadable)
        ))
    }

    /// Sentence on the first writes to a sample of places: whether the disk allocates its storage at the first write.
    fn about_first_writes(&self) -> Option<String> {
        let shown = self.shown();
        let offloaded = self.disk.method != Method::Writes;
        let Some(ratio) = self.penalty() else {
            return offloaded.then(|| {
                format!(
                    "Whether {shown} has allocated the blocks that it zeroed is not known: it has \
                     too few places to compare first writes with second ones."
                )
            });
        };
        let times = times(&ratio);
        if ratio.low > 1.0 + MIN_DIFFERENCE {
            Some(if offloaded {
                format!(
                    "After {shown} had zeroed itself, the first write to a place took {times} times \
                     as long as the second, which suggests that it has not allocated what it \
                     zeroed. Zero it without{}, or its first writes will be slow.",
                    self.disk.method.option()
                )
            } else {
                format!(
                    "On {shown} the first write to a place took {times} times as long as the \
                     second. That is paid now; a database would have paid it."
                )
            })
        } else if !offloaded {
            None
        } else if ratio.high < 1.0 + MIN_DIFFERENCE {
            Some(format!(
                "After {shown} had zeroed itself, the first write to a place took {times} times as \
                 long as the second: either it has allocated what it zeroed, or allocating costs \
                 it nothing, or it detects zeros and allocates nothing for them."
            ))
        } else {
            Some(format!(
                "After {shown} had zeroed itself, the first write to a place took {times} times as \
                 long as the second, which is too uncertain to say whether it has allocated what \
                 it zeroed."
            ))
        }
    }
}

/// Text of a ratio with its interval.
fn times(ratio: &RatioInterval) -> String {
    format!("{:.2} ({:.2} to {:.2})", ratio.ratio, ratio.low, ratio.high)
}

/// Text of a list of ranges, as offsets in bytes.
fn listed(places: &Ranges) -> String {
    let first: Vec<String> = places
        .iter()
        .take(MAX_LISTED_PLACES)
        .map(|range| format!("{} to {}", range.start, range.end))
        .collect();
    let more = places.count().saturating_sub(MAX_LISTED_PLACES);
    let rest = match more {
        0 => String::new(),
        more => format!(" and {more} other places"),
    };
    format!("bytes {}{rest}", first.join(", "))
}

/// A disk that is clearly slower than its siblings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlowDisk {
    /// Index of the disk.
    pub disk: usize,
    /// Index of the median disk of its siblings.
    pub than: usize,
    /// Throughput of the disk divided by that of the median disk.
    pub ratio: RatioInterval,
}

impl SlowDisk {
    /// The finding about the disk, as a sentence.
    pub(crate) fn sentence(&self, disks: &[ZeroedDisk]) -> String {
        let shown = |at: usize| disks.get(at).map_or_else(String::new, ZeroedDisk::shown);
        format!(
            "{} is slower than its siblings: its throughput is {} times that of {}. If they were \
             sold as equal, replace it.",
            shown(self.disk),
            times(&self.ratio),
            shown(self.than)
        )
    }
}

/// The disks that are significantly slower than the median of their siblings, by more than a tenth. Where there are two
/// middle siblings, the slower one counts: otherwise one fast disk of three would make two normal ones slow.
pub(crate) fn slow(rates: &[Option<Interval>]) -> Vec<SlowDisk> {
    let known: Vec<(usize, Interval)> = rates
        .iter()
        .enumerate()
        .filter_map(|(at, rate)| Some((at, (*rate)?)))
        .collect();
    let judge = |&(disk, rate): &(usize, Interval)| {
        let mut others: Vec<_> = known.iter().filter(|(at, _)| *at != disk).collect();
        others.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        let &&(than, middle) = others.get(others.len().checked_sub(1)? / 2)?;
        let ratio = ratio_of_intervals(rate, middle)?;
        (ratio.high < 1.0 - MIN_DIFFERENCE).then_some(SlowDisk { disk, than, ratio })
    };
    known.iter().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use record::{Bytes, Nanos};

    use super::*;
    use crate::checkpoint::for_tests;
    use crate::sample::DoubleWriteTimes;

    fn rate(mean: f64, half: f64) -> Option<Interval> {
        Some(Interval {
            mean,
            low: mean - half,
            high: mean + half,
        })
    }

    fn named(rates: &[Option<Interval>]) -> Vec<usize> {
        slow(rates).iter().map(|slow| slow.disk).collect()
    }

    #[test]
    fn the_slow_one_is_named_and_the_fast_ones_are_not() {
        assert_eq!(named(&[rate(100.0, 2.0), rate(60.0, 2.0)]), [1]);
        let four = [100.0, 101.0, 50.0, 99.0].map(|mean| rate(mean, 1.0));
        assert_eq!(named(&four), [2]);
        // A faster disk does not make the others slow.
        let four = [100.0, 101.0, 300.0, 99.0].map(|mean| rate(mean, 1.0));
        assert_eq!(named(&four), [0; 0]);
        let three = [100.0, 300.0, 101.0].map(|mean| rate(mean, 1.0));
        assert_eq!(named(&three), [0; 0]);
        let five = [100.0, 300.0, 101.0, 301.0, 99.0].map(|mean| rate(mean, 1.0));
        assert_eq!(named(&five), [0; 0]);
        let three = [100.0, 60.0, 101.0].map(|mean| rate(mean, 1.0));
        assert_eq!(named(&three), [1]);
    }

    /// Sentence for first writes that take `times` times as long as the second.
    fn first_write_sentence(method: Method, times: f64, scatter: f64) -> Option<String> {
        let first = |at: u64| {
            let scatter = 1.0 + scatter * (engine::derive_seed(3, at) % 1000) as f64 / 1000.0;
            Nanos((1e6 * times * scatter) as u64)
        };
        let group = |group: u64| {
            (0..8)
                .map(|at| (first(group), Nanos(1_000_000 + at)))
                .collect()
        };
        let groups = (0..8).map(group).collect();
        let one = ZeroedDisk {
            disk: Disk {
                method,
                passes: Some(DoubleWriteTimes { groups }),
                ..for_tests(Bytes::mib(300))
            },
            back: ReadBack::default(),
            foreground: None,
        };
        one.about_first_writes()
    }

    #[test]
    fn what_first_writes_suggest_is_said_and_no_more() {
        let expect = |notices: Option<String>, words: &str| {
            assert!(
                notices
                    .as_ref()
                    .is_some_and(|notices| notices.contains(words)),
                "{notices:?}"
            );
        };
        expect(
            first_write_sentence(Method::Discard, 3.0, 0.1),
            "without --discard",
        );
        expect(
            first_write_sentence(Method::WriteZeroes, 3.0, 0.1),
            "without --write-zeroes",
        );
        expect(
            first_write_sentence(Method::Discard, 1.0, 0.01),
            "or it detects zeros",
        );
        expect(
            first_write_sentence(Method::Discard, 0.5, 3.0),
            "too uncertain",
        );
        expect(
            first_write_sentence(Method::Writes, 3.0, 0.1),
            "That is paid now",
        );
        assert_eq!(first_write_sentence(Method::Writes, 1.0, 0.01), None);
        let unknown = |method| {
            let disk = Disk {
                method,
                ..for_tests(Bytes::MIB)
            };
            let back = ReadBack::default();
            ZeroedDisk {
                disk,
                back,
                foreground: None,
            }
            .about_first_writes()
        };
        expect(unknown(Method::Discard), "too few places");
        assert_eq!(unknown(Method::Writes), None);
    }

    #[test]
    fn what_may_be_noise_or_is_too_little_is_not_named() {
        assert_eq!(named(&[rate(100.0, 2.0), rate(95.0, 2.0)]), [0; 0]);
        assert_eq!(named(&[rate(100.0, 30.0), rate(70.0, 20.0)]), [0; 0]);
        assert_eq!(named(&[rate(100.0, 2.0), None]), [0; 0]);
        assert_eq!(named(&[rate(100.0, 2.0)]), [0; 0]);
        assert_eq!(named(&[]), [0; 0]);
    }

    #[test]
    fn long_lists_of_places_are_cut() {
        let places: Ranges = (0..20_u64).map(|at| at * 10..at * 10 + 1).collect();
        let notices = listed(&places);
        assert!(notices.starts_with("bytes 0 to 1, 10 to 11, "), "{notices}");
        assert!(
            notices.ends_with("70 to 71 and 12 other places"),
            "{notices}"
        );
    }
}
