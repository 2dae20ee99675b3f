//! JSON lines: `{"tag":"login","n":1,"ms":12.5,"gauge":3,"ts":1763600000,"labels":{"host":"a"}}`, or an array of such
//! objects on one line. Other keys are ignored.
//!
//! Plain lines (no escapes, no labels, no nested values) are parsed here, for speed; serde parses all others, and
//! decides what is valid JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::labels::tag_with_labels;
use super::number::leading;
use super::time;
use crate::event::{EventFigure, EventSink, ParsedEvent, Rejection};
use crate::level::Seconds;

/// Passes the events of a line to `each`.
pub(super) fn line(line: &[u8], tag: &mut Vec<u8>, each: &mut impl EventSink) {
    if let Some(event) = plain(line) {
        return each(line, event);
    }
    if line[0] == b'[' {
        return match serde_json::from_slice::<Vec<Fields<'_>>>(line) {
            Ok(all) => all.iter().for_each(|fields| each(line, fields.event(tag))),
            Err(_) => each(line, Err(Rejection::Json)),
        };
    }
    match serde_json::from_slice::<Fields<'_>>(line) {
        Ok(fields) => each(line, fields.event(tag)),
        Err(_) => each(line, Err(Rejection::Json)),
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    tag: Cow<'a, str>,
    n: Option<f64>,
    ms: Option<f64>,
    gauge: Option<f64>,
    #[serde(borrow)]
    ts: Option<Time<'a>>,
    #[serde(borrow)]
    labels: Option<BTreeMap<Cow<'a, str>, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Time<'a> {
    Number(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

impl Fields<'_> {
    fn event<'a>(&'a self, tag: &'a mut Vec<u8>) -> Result<ParsedEvent<'a>, Rejection> {
        let at = match &self.ts {
            None => None,
            Some(Time::Number(number)) => Some(time::of_number(*number)),
            Some(Time::Text(text)) => Some(time::of_text(text).ok_or(Rejection::Time)?),
        };
        let name = match &self.labels {
            None => self.tag.as_bytes(),
            Some(labels) => {
                let texts: Vec<(&str, Cow<'_, str>)> = labels
                    .iter()
                    .map(|(name, value)| (&**name, text(value)))
                    .collect();
                let mut pairs: Vec<(&[u8], &[u8])> = texts
                    .iter()
                    .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
                    .collect();
                tag_with_labels(self.tag.as_bytes(), &mut pairs, tag);
                tag
            }
        };
        event(name, self.n, self.ms, self.gauge, at)
    }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn event(
    tag: &[u8],
    count: Option<f64>,
    ms: Option<f64>,
    gauge: Option<f64>,
    at: Option<Seconds>,
) -> Result<ParsedEvent<'_>, Rejection> {
    let figure = match (ms, gauge) {
        (None, None) => EventFigure::None,
        (Some(ms), None) => EventFigure::Time(ms),
        (None, Some(gauge)) => EventFigure::Gauge(gauge),
        (Some(_), Some(_)) => return Err(Rejection::Json),
    };
    Ok(ParsedEvent {
        tag,
        count: count.unwrap_or(1.0),
        at,
        figure,
    })
}

/// The event of a plain line; `None` for any other line, which serde parses.
fn plain(line: &[u8]) -> Option<Result<ParsedEvent<'_>, Rejection>> {
    let mut rest = line.trim_ascii().strip_prefix(b"{")?;
    let (mut tag, mut count, mut ms, mut gauge, mut at) = (None, None, None, None, None);
    loop {
        let (key, behind) = key(rest.trim_ascii_start())?;
        let value = behind.trim_ascii_start().strip_prefix(b":")?;
        let value = value.trim_ascii_start();
        let is_again = match key {
            Key::Tag => {
                let (text, behind) = string(value)?;
                rest = behind;
                tag.replace(text).is_some()
            }
            Key::Time => {
                let (found, behind) = match value.first() {
                    Some(b'"') => {
                        let (text, behind) = string(value)?;
                        (time::of_text(std::str::from_utf8(text).ok()?)?, behind)
                    }
                    _ => {
                        let (number, behind) = leading(value)?;
                        (time::of_number(number), behind)
                    }
                };
                rest = behind;
                at.replace(found).is_some()
            }
            Key::Count | Key::Millis | Key::Gauge => {
                let (number, behind) = leading(value)?;
                rest = behind;
                let place = match key {
                    Key::Count => &mut count,
                    Key::Millis => &mut ms,
                    _ => &mut gauge,
                };
                place.replace(number).is_some()
            }
        };
        if is_again {
            return None;
        }
        match rest.trim_ascii_start() {
            [b',', behind @ ..] => rest = behind,
            [b'}'] => return Some(event(tag?, count, ms, gauge, at)),
            _ => return None,
        }
    }
}

#[derive(Clone, Copy)]
enum Key {
    Tag,
    Count,
    Millis,
    Gauge,
    Time,
}

/// A key, and the text after it.
fn key(text: &[u8]) -> Option<(Key, &[u8])> {
    match text {
        [b'"', b't', b'a', b'g', b'"', rest @ ..] => Some((Key::Tag, rest)),
        [b'"', b'n', b'"', rest @ ..] => Some((Key::Count, rest)),
        [b'"', b'm', b's', b'"', rest @ ..] => Some((Key::Millis, rest)),
        [b'"', b'g', b'a', b'u', b'g', b'e', b'"', rest @ ..] => Some((Key::Gauge, rest)),
        [b'"', b't', b's', b'"', rest @ ..] => Some((Key::Time, rest)),
        _ => None,
    }
}

/// A string without escapes, and the text after it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', text)?;
    let inner = &text[..end];
    // JSON has no control characters in strings.
    (text[end] == b'"').then_some((inner, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::super::{EventFormat, parsed};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_and_other_lines_are_read_alike() {
        for (line, tag, count, at, figure) in [
            (r#"{"tag":"login"}"#, "login", 1.0, None, EventFigure::None),
            (
                r#"{ "n" : 3, "tag" : "login" } "#,
                "login",
                3.0,
                None,
                EventFigure::None,
            ),
            (
                r#"{"tag":"api","ms":12.5,"ts":1763600000.25}"#,
                "api",
                1.0,
                Some(1_763_600_000),
                EventFigure::Time(12.5),
            ),
            (
                r#"{"tag":"a","ts":1763600000250}"#,
                "a",
                1.0,
                Some(1_763_600_000),
                EventFigure::None,
            ),
            (
                r#"{"tag":"a","ts":"2026-11-24T00:00:00Z"}"#,
                "a",
                1.0,
                Some(1_795_478_400),
                EventFigure::None,
            ),
            (
                r#"{"tag":"a\n\u00e9","gauge":-1}"#,
                "a\né",
                1.0,
                None,
                EventFigure::Gauge(-1.0),
            ),
            (
                r#"{"tag":"a","labels":{"z":"1","host":7},"more":[{}]}"#,
                "a;host=7;z=1",
                1.0,
                None,
                EventFigure::None,
            ),
        ] {
            let found = parsed(EventFormat::Json, line);
            let [Ok(event)] = &found[..] else {
                panic!("{line}: {found:?}")
            };
            assert_eq!(
                (&*event.tag, event.count, event.at, event.figure),
                (tag, count, at, figure),
                "{line}"
            );
        }
        assert_eq!(
            parsed(EventFormat::Json, r#"[{"tag":"a"},{"tag":"b"}]"#).len(),
            2
        );
    }

    #[test]
    fn lines_that_are_no_event_are_rejected() {
        for line in [
            "{}",
            "{",
            r#"{"tag":1}"#,
            r#"{"tag":"a","ms":1,"gauge":1}"#,
            r#"{"tag":"a","tag":"b"}"#,
            r#"{"tag":"a","n":NaN}"#,
            r#"{"tag":"a"} x"#,
            "[1]",
        ] {
            assert_eq!(
                parsed(EventFormat::Json, line),
                [Err(Rejection::Json)],
                "{line}"
            );
        }
        assert_eq!(parsed(EventFormat::Json, r#"{"tag":"a","ts":-5}"#).len(), 1);
    }

    proptest! {
        #[test]
        fn the_plain_reader_agrees_with_serde(
            line in r#"\{ ?"tag" ?: ?"[a-z\\"é]{0,4}"(, ?"(n|ms|gauge|ts|x)": ?-?[0-9]{1,4}(\.[0-9]{1,3})?(e[0-9])?){0,3} ?\}"#,
        ) {
            let Some(found) = plain(line.as_bytes()) else { return Ok(()) };
            let mut tag = Vec::new();
            if let Ok(fields) = serde_json::from_str::<Fields<'_>>(&line) {
                prop_assert_eq!(found, fields.event(&mut tag), "{}", line);
            }
        }
    }
}
