//! Parsers of small values: sizes, durations, percentages, workloads.

use std::str::FromStr;

use record::{Bytes, Nanos, ParseUnitError, Pattern, has_unit};

/// A size that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub Bytes);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let size: Bytes = text.parse().map_err(|e: ParseUnitError| e.to_string())?;
        if size.0 == 0 {
            return Err("a size cannot be 0".to_owned());
        }
        Ok(Size(size))
    }
}

/// Range of file sizes, given as one size or as two: `1k-64k`. Files may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    /// Size of the smallest file.
    pub smallest: Bytes,
    /// Size of the largest file.
    pub largest: Bytes,
}

impl FromStr for FileSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<FileSizes, String> {
        let size = |text: &str| {
            let size: Result<Bytes, ParseUnitError> = text.trim().parse();
            size.map_err(|error| error.to_string())
        };
        let (smallest, largest) = match text.split_once('-') {
            Some((smallest, largest)) => (size(smallest)?, size(largest)?),
            None => (size(text)?, size(text)?),
        };
        match smallest <= largest {
            true => Ok(FileSizes { smallest, largest }),
            false => Err(format!(
                "{} is more than {}; give the smaller one first",
                smallest.exact(),
                largest.exact()
            )),
        }
    }
}

/// Bytes a second, given as a size, optionally followed by `/s`: `200MiB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput(pub Bytes);

impl FromStr for Throughput {
    type Err = String;

    fn from_str(text: &str) -> Result<Throughput, String> {
        let size = text.trim();
        let size = size.strip_suffix("/s").unwrap_or(size);
        if !has_unit(size) {
            return Err(format!(
                "'{text}' lacks a unit; write {0}MiB/s, or {0}B/s for bytes",
                size.trim()
            ));
        }
        let Size(bytes) = size.parse()?;
        Ok(Throughput(bytes))
    }
}

/// A duration that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Nanos);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let span: Nanos = text.parse().map_err(|e: ParseUnitError| e.to_string())?;
        if span < Nanos(100_000_000) {
            return Err("a duration here is at least 100ms".to_owned());
        }
        Ok(Span(span))
    }
}

/// Interval between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollInterval(pub Nanos);

impl FromStr for PollInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<PollInterval, String> {
        let span: Nanos = text.parse().map_err(|e: ParseUnitError| e.to_string())?;
        if !(Nanos(100_000_000)..=Nanos::from_secs(3600)).contains(&span) {
            return Err("an interval is at least 100ms and at most 1h".to_owned());
        }
        Ok(PollInterval(span))
    }
}

/// A requested latency, greater than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency(pub Nanos);

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Latency, String> {
        let span: Nanos = text.parse().map_err(|e: ParseUnitError| e.to_string())?;
        if span.0 == 0 {
            return Err("no request takes no time".to_owned());
        }
        Ok(Latency(span))
    }
}

/// A share, given as a percentage: `3%`. The sign is required, since `0.5` could mean half a percent or a half; only
/// `0` is accepted without it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let text = text.trim();
        let number = text.strip_suffix('%');
        let value: Option<f64> = number.unwrap_or(text).trim().parse().ok();
        let value = value.filter(|value| (0.0..=100.0).contains(value));
        match (value, number) {
            (None, _) => Err(format!(
                "'{text}' is not a percentage from 0% to 100%; write it as 3%"
            )),
            (Some(value), None) if value != 0.0 => Err(without_sign(text, value)),
            (Some(value), _) => Ok(Percent(value / 100.0)),
        }
    }
}

/// A share of requests, given as a fraction from 0 to 1 or as a percentage: `0.7`, `70%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(pub f64);

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Fraction, String> {
        if text.trim_end().ends_with('%') {
            return text.parse().map(|Percent(share)| Fraction(share));
        }
        let share: Option<f64> = text.trim().parse().ok();
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        share.map(Fraction).ok_or_else(|| {
            format!("'{text}' is not a share of requests; write it as 0.7 or 70%, from 0 to 1")
        })
    }
}

/// Suggestion for a number without a percent sign.
fn without_sign(text: &str, value: f64) -> String {
    let also = match value <= 1.0 {
        true => format!(", or {}% for that share", (value * 1e6).round() / 1e4),
        false => String::new(),
    };
    format!("'{text}' lacks the sign of a percentage; write {text}%{also}")
}

/// A workload defined by the user; omitted values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadText {
    /// Order of offsets.
    pub pattern: Option<Pattern>,
    /// Share of reads, 0 to 1.
    pub read: Option<f64>,
    /// Size of a request.
    pub block: Option<Bytes>,
    /// Number of threads.
    pub threads: Option<u32>,
    /// Requests in flight for each thread.
    pub depth: Option<u32>,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    /// Part of the target from its beginning.
    pub span: Option<Bytes>,
    /// Writes between two flushes.
    pub sync: Option<u32>,
}

impl FromStr for WorkloadText {
    type Err = String;

    fn from_str(text: &str) -> Result<WorkloadText, String> {
        let mut workload = WorkloadText::default();
        for pair in text.split(',') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("'{pair}' is not KEY=VALUE"))?;
            workload.set(key.trim(), value.trim())?;
        }
        Ok(workload)
    }
}

impl WorkloadText {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn set_once<T>(place: &mut Option<T>, value: T, key: &str) -> Result<(), String> {
            match place.replace(value) {
                None => Ok(()),
                Some(_) => Err(format!("{key} is given twice")),
            }
        }
        match key {
            "pattern" => set_once(&mut self.pattern, pattern(value)?, key),
            "read" => set_once(&mut self.read, fraction(value)?, key),
            "block" => set_once(&mut self.block, size(value)?, key),
            "threads" => set_once(&mut self.threads, count(key, value, 1024)?, key),
            "depth" => set_once(&mut self.depth, count(key, value, 16_384)?, key),
            "rate" => set_once(&mut self.rate, rate(value)?, key),
            "span" => set_once(&mut self.span, size(value)?, key),
            "sync" => set_once(&mut self.sync, number(key, value)?, key),
            _ => Err(format!(
                "'{key}' is not known; a workload has pattern, read, block, threads, depth, rate, \
                 span and sync"
            )),
        }
    }
}

fn pattern(value: &str) -> Result<Pattern, String> {
    match value {
        "random" => Ok(Pattern::Random),
        "sequential" => Ok(Pattern::Sequential),
        _ => Err(format!("pattern is random or sequential, not '{value}'")),
    }
}

fn size(value: &str) -> Result<Bytes, String> {
    value.parse::<Size>().map(|size| size.0)
}

/// A fraction: a percentage, or a number from 0 to 1.
fn fraction(value: &str) -> Result<f64, String> {
    value.parse().map(|Fraction(share)| share)
}

fn rate(value: &str) -> Result<f64, String> {
    let rate: f64 = value
        .parse()
        .map_err(|_| format!("rate is a number of requests a second, not '{value}'"))?;
    check_rate(rate).map_err(|why| format!("rate {value}: {why}"))?;
    Ok(rate)
}

/// Maximum rate: more than any disk completes, and more than one processor can issue.
const MAX_RATE: f64 = 1e7;

/// Checks that requests can be issued at this rate.
///
/// # Errors
/// A clause that describes valid rates.
pub fn check_rate(rate: f64) -> Result<(), String> {
    if rate > 0.0 && rate <= MAX_RATE {
        Ok(())
    } else {
        Err(format!(
            "a rate is above 0 and at most {MAX_RATE} requests a second"
        ))
    }
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    value
        .parse()
        .map_err(|_| format!("{key} is a whole number, not '{value}'"))
}

fn count(key: &str, value: &str, most: u32) -> Result<u32, String> {
    let count = number(key, value)?;
    if (1..=most).contains(&count) {
        Ok(count)
    } else {
        Err(format!("{key} is a number from 1 to {most}, not '{value}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_workload_is_read_whole() {
        let text = "pattern=random,read=1,block=16k,threads=2,depth=20,rate=5000,span=1GiB,sync=1";
        let workload: WorkloadText = text.parse().unwrap();
        assert_eq!(
            workload,
            WorkloadText {
                pattern: Some(Pattern::Random),
                read: Some(1.0),
                block: Some(Bytes::kib(16)),
                threads: Some(2),
                depth: Some(20),
                rate: Some(5000.0),
                span: Some(Bytes::gib(1)),
                sync: Some(1),
            }
        );
    }

    #[test]
    fn a_mistake_in_a_workload_is_named() {
        for (text, expected) in [
            ("", "not KEY=VALUE"),
            ("pattern=zipf", "random or sequential"),
            ("read=70", "write it as 0.7 or 70%"),
            ("depth=0", "from 1 to 16384"),
            ("rate=-1", "above 0"),
            ("rate=nan", "above 0"),
            ("rate=1e12", "at most 10000000"),
            ("block=0", "cannot be 0"),
            ("queue=3", "'queue' is not known"),
            ("depth=1,depth=2", "given twice"),
        ] {
            let error = text.parse::<WorkloadText>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_percentage_is_read_with_its_sign_only() {
        for (text, share) in [
            ("3%", 0.03),
            ("100%", 1.0),
            ("0%", 0.0),
            ("0", 0.0),
            (" 0.5 % ", 0.005),
        ] {
            let Percent(read) = text.parse().unwrap();
            assert!((read - share).abs() < 1e-12, "{text}");
        }
        for (text, expected) in [
            ("0.5", "write 0.5%, or 50% for that share"),
            ("0.03", "write 0.03%, or 3% for that share"),
            ("1", "write 1%, or 100% for that share"),
            ("5", "write 5%"),
            ("99.5", "write 99.5%"),
        ] {
            let error = text.parse::<Percent>().unwrap_err();
            assert!(error.ends_with(expected), "{text}: {error}");
        }
        for text in [
            "",
            "%",
            "-1%",
            "101%",
            "101",
            "nan",
            "nan%",
            "few",
            "5%%",
            "5 percent",
        ] {
            let error = text.parse::<Percent>().unwrap_err();
            assert!(error.contains("write it as 3%"), "{text}: {error}");
        }
    }

    #[test]
    fn a_share_of_requests_is_a_fraction_or_a_percentage() {
        for (text, share) in [
            ("0.7", 0.7),
            ("1", 1.0),
            ("70%", 0.7),
            ("1%", 0.01),
            ("0", 0.0),
        ] {
            let Fraction(read) = text.parse().unwrap();
            assert!((read - share).abs() < 1e-12, "{text}");
        }
        for text in ["", "70", "1.5", "-0.1", "nan", "101%", "half"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_throughput_is_a_size_in_a_second() {
        for text in ["200MiB/s", "200M", " 200 MiB /s"] {
            assert_eq!(text.parse(), Ok(Throughput(Bytes::mib(200))), "{text}");
        }
        for text in ["125", "125/s", "131072000"] {
            let error = text.parse::<Throughput>().unwrap_err();
            assert!(error.contains("MiB/s, or"), "{text}: {error}");
        }
        for text in ["", "/s", "0/s", "200MiB/h", "fast"] {
            assert!(text.parse::<Throughput>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".*") {
            let _ = text.parse::<Throughput>();
            let _ = text.parse::<WorkloadText>();
            let _ = text.parse::<Percent>();
            let _ = text.parse::<Size>();
            let _ = text.parse::<Span>();
        }
    }
}
