//! StatsD lines: `NAME:VALUE|TYPE|@RATE|#LABELS`, with several values (`a:1|c:2|c`, `a:1:2|ms`), and DogStatsD's labels
//! and times.

use super::labels::tag_with_labels;
use super::number::number;
use super::time;
use crate::event::{EventFigure, EventSink, ParsedEvent, Rejection};

/// Fields after a value's type.
#[derive(Default)]
struct Fields<'a> {
    rate: Option<f64>,
    labels: &'a [u8],
    at: Option<i64>,
    /// The next value of the same name, and the rest of the line.
    next: Option<&'a [u8]>,
}

/// Passes the events of a line to `each`.
pub(super) fn line(line: &[u8], tag: &mut Vec<u8>, each: &mut impl EventSink) {
    let Some(colon) = memchr::memchr(b':', line) else {
        return each(line, Err(Rejection::StatsD));
    };
    let (name, mut rest) = (&line[..colon], &line[colon + 1..]);
    loop {
        let Some(bar) = memchr::memchr(b'|', rest) else {
            return each(line, Err(Rejection::StatsD));
        };
        let values = &rest[..bar];
        let (kind, fields) = match fields(&rest[bar + 1..]) {
            Ok(found) => found,
            Err(reason) => return each(line, Err(reason)),
        };
        let tag = match fields.labels {
            [] => name,
            labels => {
                with_labels(name, labels, tag);
                &tag[..]
            }
        };
        // Usually one value.
        for value in values.split(|byte| *byte == b':') {
            let event = event(tag, value, kind, &fields);
            each(line, event);
        }
        match fields.next {
            Some(next) => rest = next,
            None => return,
        }
    }
}

/// The type and the fields after a value.
fn fields(text: &[u8]) -> Result<(&[u8], Fields<'_>), Rejection> {
    let end = memchr::memchr2(b'|', b':', text).unwrap_or(text.len());
    let (kind, mut rest) = text.split_at(end);
    let mut fields = Fields::default();
    loop {
        match rest {
            [] => return Ok((kind, fields)),
            [b':', next @ ..] => {
                fields.next = Some(next);
                return Ok((kind, fields));
            }
            [_, b'#', field @ ..] => {
                let end = memchr::memchr(b'|', field).unwrap_or(field.len());
                (fields.labels, rest) = field.split_at(end);
            }
            [_, b'@', field @ ..] => {
                let end = memchr::memchr2(b'|', b':', field).unwrap_or(field.len());
                let rate = number(&field[..end]).filter(|rate| *rate > 0.0 && *rate <= 1.0);
                fields.rate = Some(rate.ok_or(Rejection::StatsD)?);
                rest = &field[end..];
            }
            [_, b'T', field @ ..] => {
                let end = memchr::memchr(b'|', field).unwrap_or(field.len());
                let at = number(&field[..end]).ok_or(Rejection::Time)?;
                fields.at = Some(time::of_number(at));
                rest = &field[end..];
            }
            // Other fields, such as a container's identity, are ignored.
            [_, field @ ..] => {
                let end = memchr::memchr(b'|', field).unwrap_or(field.len());
                rest = &field[end..];
            }
        }
    }
}

fn event<'a>(
    tag: &'a [u8],
    value: &[u8],
    kind: &[u8],
    fields: &Fields<'_>,
) -> Result<ParsedEvent<'a>, Rejection> {
    if kind == b"s" {
        return Err(Rejection::Set);
    }
    let figure = number(value).ok_or(Rejection::StatsD)?;
    let times = fields.rate.map_or(1.0, times);
    let (count, figure) = match kind {
        b"c" => (figure * times, EventFigure::None),
        b"ms" | b"h" | b"d" => (times, EventFigure::Time(figure)),
        b"g" if matches!(value, [b'+' | b'-', ..]) => return Err(Rejection::RelativeGauge),
        b"g" => (1.0, EventFigure::Gauge(figure)),
        _ => return Err(Rejection::StatsD),
    };
    Ok(ParsedEvent {
        tag,
        count,
        at: fields.at,
        figure,
    })
}

/// Number of events that a sampled event stands for. A rate of 0.1 is not exact as a double, hence the rounding.
fn times(rate: f64) -> f64 {
    let times = 1.0 / rate;
    let whole = times.round();
    if (times - whole).abs() < 1e-9 * whole {
        whole
    } else {
        times
    }
}

fn with_labels(name: &[u8], labels: &[u8], into: &mut Vec<u8>) {
    let mut pairs = [(&b""[..], &b""[..]); 32];
    let mut count = 0;
    let named = labels
        .split(|byte| *byte == b',')
        .filter(|label| !label.is_empty());
    // Labels beyond the fixed number of places are dropped.
    for (label, place) in named.zip(&mut pairs) {
        *place = match memchr::memchr2(b':', b'=', label) {
            Some(colon) => (&label[..colon], &label[colon + 1..]),
            None => (label, &b""[..]),
        };
        count += 1;
    }
    tag_with_labels(name, &mut pairs[..count], into);
}

#[cfg(test)]
mod tests {
    use super::super::{EventFormat, parsed};
    use super::*;

    fn events(text: &str) -> Vec<(String, f64, EventFigure)> {
        let found = parsed(EventFormat::Statsd, text);
        found
            .into_iter()
            .map(|one| one.unwrap())
            .map(|one| (one.tag, one.count, one.figure))
            .collect()
    }

    #[test]
    fn lines_of_the_protocol_are_read() {
        let none = EventFigure::None;
        for (line, tag, count, figure) in [
            ("gorets:1|c", "gorets", 1.0, none),
            ("gorets:-3|c", "gorets", -3.0, none),
            ("gorets:3|c|@0.1", "gorets", 30.0, none),
            ("glork:320|ms", "glork", 1.0, EventFigure::Time(320.0)),
            (
                "glork:320.5|ms|@0.1",
                "glork",
                10.0,
                EventFigure::Time(320.5),
            ),
            ("gaugor:333|g", "gaugor", 1.0, EventFigure::Gauge(333.0)),
            ("a b/c:1|c", "a b/c", 1.0, none),
            (
                "api:7|d|@0.5|#zone:b,host:a",
                "api;host=a;zone=b",
                2.0,
                EventFigure::Time(7.0),
            ),
            (
                "api:1|c|#x,y;z=:1|T1656581400|c:83c0",
                "api;x=;y_z=:1",
                1.0,
                none,
            ),
        ] {
            assert_eq!(events(line), [(tag.to_owned(), count, figure)], "{line}");
        }
    }

    #[test]
    fn several_values_are_several_events() {
        let times: Vec<EventFigure> = events("a:1:2:3|ms").into_iter().map(|one| one.2).collect();
        assert_eq!(times, [1.0, 2.0, 3.0].map(EventFigure::Time));
        let counts: Vec<f64> = events("a:1|c:2|c|@0.5:3|c")
            .into_iter()
            .map(|one| one.1)
            .collect();
        assert_eq!(counts, [1.0, 4.0, 3.0]);
    }

    #[test]
    fn metrics_that_cannot_be_summed_are_rejected_with_the_reason() {
        for (line, reason) in [
            ("uniques:765|s", Rejection::Set),
            ("gaugor:+4|g", Rejection::RelativeGauge),
            ("gaugor:-4|g", Rejection::RelativeGauge),
            ("a:1", Rejection::StatsD),
            ("a|c", Rejection::StatsD),
            ("a:x|c", Rejection::StatsD),
            ("a:1|z", Rejection::StatsD),
            ("a:1|", Rejection::StatsD),
            ("a:1|c|@0", Rejection::StatsD),
            ("a:1|c|@", Rejection::StatsD),
        ] {
            assert_eq!(parsed(EventFormat::Statsd, line), [Err(reason)], "{line}");
        }
    }
}
