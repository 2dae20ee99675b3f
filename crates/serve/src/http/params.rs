//! Parameters of requests.

use domain::moment::MomentOrDay;
use jiff::Timestamp;
use record::Nanos;
use tally::query::Selection;

use super::reply::Problem;
use crate::axis::Seconds;
use crate::{verdicts, view};

/// Length of a leap year in seconds.
const YEAR: Seconds = 366 * 86_400;
/// Maximum span of a view in seconds.
const MAX_SPAN: Seconds = 3 * YEAR;
/// Minimum span of a view in seconds.
const MIN_SPAN: Seconds = 60;
/// Number of slots of a view without the parameter `points`.
const POINTS: usize = 600;
/// Maximum number of slots.
const MAX_POINTS: usize = 1000;
/// Maximum number of `disk` parameters; further ones are ignored.
const MAX_DISKS: usize = 64;

/// Names and values of the query's parameters, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(pub(crate) Vec<(String, String)>);

impl Params {
    /// The first value of a parameter that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a parameter that are not empty.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    fn selection(&self) -> Result<Option<Selection>, Problem> {
        let tag = self.get("tag").map(str::parse);
        tag.transpose().map_err(Problem::misused)
    }

    /// The span as its start and end: from `from` to `to`, or the time `last` before the end, or else `usual` seconds
    /// before the end. Without `to`, it ends now. `longest` is its maximum length.
    pub(crate) fn span(
        &self,
        usual: Seconds,
        longest: Seconds,
        now: Seconds,
    ) -> Result<(Seconds, Seconds), Problem> {
        let to = self.get("to").map(moment).transpose()?;
        let from = self.get("from").map(moment).transpose()?;
        let last = self.get("last").map(length).transpose()?;
        // The end of now's slot.
        let to = to.unwrap_or(now + 1);
        let from = from.unwrap_or_else(|| to.saturating_sub(last.unwrap_or(usual)));
        let span = to.saturating_sub(from);
        if span < MIN_SPAN.min(usual) || span > longest {
            return Err(Problem::misused(format!(
                "from and to are {span} s apart; a span here is {MIN_SPAN} s to {} days long",
                longest / 86_400
            )));
        }
        Ok((from, to))
    }

    /// Question of the view of response times.
    pub(crate) fn view(&self, now: Seconds) -> Result<view::Question, Problem> {
        let (from, to) = self.span(3600, MAX_SPAN, now)?;
        let points = self.get("points").map(str::parse::<usize>).transpose();
        let points = points.map_err(|_| Problem::misused("points is a number such as 600"))?;
        Ok(view::Question {
            selection: self.selection()?,
            from,
            to,
            host: self.owned("host"),
            disks: self
                .all("disk")
                .take(MAX_DISKS)
                .map(str::to_owned)
                .collect(),
            points: points.unwrap_or(POINTS).clamp(1, MAX_POINTS),
        })
    }

    /// The time whose state the verdicts show: `as_of`, but at most `now`.
    pub(crate) fn as_of(&self, now: Seconds) -> Result<Seconds, Problem> {
        let as_of = self.get("as_of").map(moment).transpose()?;
        Ok(as_of.map_or(now, |as_of| as_of.min(now)))
    }

    /// Question of verdicts.
    pub(crate) fn verdicts(&self, now: Seconds) -> Result<verdicts::Question, Problem> {
        let (from, to) = self.span(86_400, verdicts::MAX_SPAN, now)?;
        Ok(verdicts::Question {
            selection: self.selection()?,
            from,
            to,
            host: self.owned("host"),
        })
    }

    /// Span of the markers; unlimited if the request names none.
    pub(crate) fn markers(&self, now: Seconds) -> Result<(Timestamp, Timestamp), Problem> {
        let is_named = ["from", "to", "last"]
            .iter()
            .any(|name| self.get(name).is_some());
        if !is_named {
            return Ok((Timestamp::MIN, Timestamp::MAX));
        }
        let (from, to) = self.span(86_400, 1000 * YEAR, now)?;
        Ok((crate::axis::timestamp(from), crate::axis::timestamp(to)))
    }

    /// Filter of runs.
    pub(crate) fn runs(&self) -> Result<ledger::Filter, Problem> {
        let limit = self.get("limit").map(str::parse::<u32>).transpose();
        let limit = limit.map_err(|_| Problem::misused("limit is a number such as 50"))?;
        Ok(ledger::Filter {
            host: self.owned("host"),
            target: self.owned("target"),
            suite: self.owned("suite"),
            limit: Some(limit.unwrap_or(200).min(1000)),
            ..ledger::Filter::default()
        })
    }
}

/// Parses a time: seconds since 1970, or the format of `--from` of other verbs.
fn moment(text: &str) -> Result<Seconds, Problem> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => Timestamp::from_second(seconds.floor() as i64)
            .map_err(|_| Problem::misused(format!("'{text}' is no time")))?,
        Err(_) => text.parse::<MomentOrDay>().map_err(Problem::misused)?.at,
    };
    Ok(seconds.as_second())
}

/// Parses a duration such as `10m`, `1d`, `2w` or `1y`.
fn length(text: &str) -> Result<Seconds, Problem> {
    let (text_of, unit) = match text.strip_suffix(['y', 'w']) {
        Some(number) if text.ends_with('y') => (format!("{number}d"), 366),
        Some(number) => (format!("{number}d"), 7),
        None => (text.to_owned(), 1),
    };
    let nanos: Nanos = text_of.parse().map_err(|_| {
        Problem::misused(format!(
            "'{text}' is no length of time; write it as 10m, 2h, 7d or 1y"
        ))
    })?;
    Ok((nanos.as_secs_f64() as i64).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &[(&str, &str)]) -> Params {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Params(text.iter().map(own).collect())
    }

    #[test]
    fn spans_are_read_in_all_forms() {
        let now = 1_795_529_100;
        for (text, from, to) in [
            (&[][..], now - 3599, now + 1),
            (&[("last", "10m")], now - 599, now + 1),
            (&[("last", "1y")], now + 1 - YEAR, now + 1),
            (
                &[("from", "1795000000"), ("to", "1795000600")],
                1_795_000_000,
                1_795_000_600,
            ),
            (
                &[
                    ("from", "2026-11-24T10:00:00Z"),
                    ("to", "2026-11-24T11:00:00Z"),
                ],
                1_795_514_400,
                1_795_518_000,
            ),
        ] {
            let found = params(text).span(3600, MAX_SPAN, now).unwrap();
            assert_eq!(found, (from, to), "{text:?}");
        }
        for text in [
            &[("last", "x")][..],
            &[("from", "5"), ("to", "5")],
            &[("from", "9"), ("to", "5")],
            &[("from", "-1e300")],
            &[("from", "NaN"), ("to", "x")],
            &[("last", "9000y")],
        ] {
            assert!(params(text).span(3600, MAX_SPAN, now).is_err(), "{text:?}");
        }
    }
}
