//! Lines of access logs: the common and the combined format of nginx and Apache, and any `log_format` or `LogFormat`.
//!
//! A request is an event of the tag `METHOD ROUTE` with the label `status=2xx`, and its response time, if the format
//! has one. The route is the path without the parts that differ between requests: numbers, identifiers, the query.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::labels::tag_with_labels;
use super::number::number;
use crate::event::{EventFigure, EventSink, ParsedEvent, Rejection};
use crate::level::Seconds;

/// The combined format; the common one is its beginning.
const COMBINED: &str =
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent"#;
/// Minimum length at which a path segment of hexadecimal digits is an identifier.
const MIN_IDENTIFIER_CHARS: usize = 8;

/// Meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `GET /path HTTP/1.1`.
    Request,
    Method,
    Path,
    Status,
    /// `10/Oct/2000:13:55:36 -0700`.
    Time,
    /// Seconds since 1970.
    Epoch,
    /// RFC 3339.
    Iso,
    /// The response time, in this unit.
    Millis(Unit),
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Millisecond,
    Microsecond,
}

/// A log format: fields, each with the text before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    fields: Vec<(Vec<u8>, Field)>,
    end: Vec<u8>,
}

impl Default for LogFormat {
    fn default() -> LogFormat {
        let mut format: Vec<(Vec<u8>, Field)> = Vec::new();
        let end = fields(COMBINED, &mut format);
        LogFormat {
            fields: format,
            end,
        }
    }
}

impl std::str::FromStr for LogFormat {
    type Err = String;

    /// nginx' `log_format` (`$request_time`), or Apache's `LogFormat` (`%D`).
    fn from_str(text: &str) -> Result<LogFormat, String> {
        let mut format = Vec::new();
        let end = fields(text, &mut format);
        let has = |field| format.iter().any(|(_, found)| *found == field);
        match has(Field::Request) || has(Field::Path) {
            true => Ok(LogFormat {
                fields: format,
                end,
            }),
            false => Err(format!(
                "'{text}' has no request; a format has $request or %r, and $request_time or %D for its time"
            )),
        }
    }
}

/// Splits a format into fields, and returns the text after the last.
fn fields(text: &str, into: &mut Vec<(Vec<u8>, Field)>) -> Vec<u8> {
    let (mut before, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '$' => {
                1 + rest[1..]
                    .find(|one: char| !one.is_alphanumeric() && one != '_')
                    .unwrap_or(rest.len() - 1)
            }
            '%' => directive(rest),
            other => {
                before.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[other.len_utf8()..];
                continue;
            }
        };
        let (name, behind) = rest.split_at(length);
        into.push((std::mem::take(&mut before), field(name)));
        rest = behind;
    }
    before
}

/// Length of one of Apache's directives: `%>s`, `%{Referer}i`.
fn directive(text: &str) -> usize {
    let mut braces = false;
    for (place, one) in text.char_indices().skip(1) {
        match one {
            '{' => braces = true,
            '}' => braces = false,
            _ if braces => {}
            one if one.is_ascii_alphabetic() || one == '%' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

fn field(name: &str) -> Field {
    match name {
        "$request" | "%r" => Field::Request,
        "$request_method" | "%m" => Field::Method,
        "$request_uri" | "$uri" | "%U" => Field::Path,
        "$status" | "%s" | "%>s" => Field::Status,
        "$time_local" | "%t" => Field::Time,
        "$msec" => Field::Epoch,
        "$time_iso8601" => Field::Iso,
        "$request_time" | "$upstream_response_time" | "%T" | "%{s}T" => Field::Millis(Unit::Second),
        "%{ms}T" => Field::Millis(Unit::Millisecond),
        "%D" | "%{us}T" => Field::Millis(Unit::Microsecond),
        _ => Field::Other,
    }
}

/// Fields of a line of an access log.
#[derive(Default)]
struct LineFields<'a> {
    method: &'a [u8],
    path: &'a [u8],
    status: &'a [u8],
    at: Option<Seconds>,
    millis: Option<f64>,
}

/// Passes the event of a line to `each`.
pub(super) fn line(format: &LogFormat, line: &[u8], tag: &mut Vec<u8>, each: &mut impl EventSink) {
    each(line, event(format, line, tag).ok_or(Rejection::AccessLog));
}

fn event<'a>(format: &LogFormat, line: &[u8], tag: &'a mut Vec<u8>) -> Option<ParsedEvent<'a>> {
    let found = find(format, line)?;
    let mut name = Vec::with_capacity(found.path.len() + 8);
    if !found.method.is_empty() {
        name.extend_from_slice(found.method);
        name.push(b' ');
    }
    route(found.path, &mut name);
    match found.status {
        [class @ b'1'..=b'5', _, _] => {
            tag_with_labels(&name, &mut [(b"status", &[*class, b'x', b'x'])], tag);
        }
        _ => tag_with_labels(&name, &mut [], tag),
    }
    Some(ParsedEvent {
        tag,
        count: 1.0,
        at: found.at,
        figure: found.millis.map_or(EventFigure::None, EventFigure::Time),
    })
}

fn find<'a>(format: &LogFormat, line: &'a [u8]) -> Option<LineFields<'a>> {
    let mut found = LineFields::default();
    let mut rest = line;
    let mut fields = format.fields.iter().peekable();
    while let Some((before, field)) = fields.next() {
        rest = rest.strip_prefix(&before[..])?;
        // A field ends where the text before the next field begins. Apache adds the brackets around %t itself.
        let after = fields.peek().map_or(&format.end, |(before, _)| before);
        let length = match (&after[..], field, rest.first()) {
            (_, Field::Time, Some(b'[')) => memchr::memchr(b']', rest)? + 1,
            ([], _, _) if fields.peek().is_none() => {
                memchr::memchr2(b' ', b'"', rest).unwrap_or(rest.len())
            }
            ([], _, _) => return None,
            (after, _, _) => match memchr::memmem::find(rest, after) {
                Some(length) => length,
                None if fields.peek().is_none() => rest.len(),
                None => return None,
            },
        };
        let (text, after) = rest.split_at(length);
        rest = after;
        found.take(*field, text)?;
    }
    (!found.path.is_empty()).then_some(found)
}

impl<'a> LineFields<'a> {
    /// Parses a field; `None` if it does not have the field's form.
    fn take(&mut self, field: Field, text: &'a [u8]) -> Option<()> {
        match field {
            Field::Request => {
                let mut words = text.split(|byte| *byte == b' ');
                self.method = words.next()?;
                self.path = words.next()?;
                // Not an HTTP request, such as the bytes of a port scan.
                let is_method = (1..=16).contains(&self.method.len())
                    && self.method.iter().all(u8::is_ascii_uppercase);
                is_method.then_some(())?;
            }
            Field::Method => self.method = text,
            Field::Path => self.path = text,
            Field::Status => self.status = text,
            Field::Time => self.at = Some(local_time(text)?),
            Field::Epoch => self.at = Some(number(text)? as Seconds),
            Field::Iso => self.at = Some(super::time::of_text(std::str::from_utf8(text).ok()?)?),
            Field::Millis(_) if text == b"-" => {}
            Field::Millis(unit) => {
                // nginx lists one time for each upstream server; they are summed: `0.010, 0.020 : 0.030`.
                let parts = text
                    .split(|byte| matches!(byte, b',' | b':'))
                    .map(<[u8]>::trim_ascii);
                let sum: Option<f64> = parts.filter(|part| *part != b"-").map(number).sum();
                let in_millis = match unit {
                    Unit::Second => 1000.0,
                    Unit::Millisecond => 1.0,
                    Unit::Microsecond => 0.001,
                };
                self.millis = Some(sum? * in_millis);
            }
            Field::Other => {}
        }
        Some(())
    }
}

/// The route of a path: without the query, and with `*` for parts that are numbers or identifiers.
fn route(path: &[u8], into: &mut Vec<u8>) {
    let end = memchr::memchr3(b'?', b'#', b';', path).unwrap_or(path.len());
    for (place, part) in path[..end].split(|byte| *byte == b'/').enumerate() {
        if place > 0 {
            into.push(b'/');
        }
        let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
        let hex = part
            .iter()
            .filter(|byte| byte.is_ascii_hexdigit() || **byte == b'-')
            .count();
        let is_number = !part.is_empty() && digits == part.len();
        let is_identifier = part.len() >= MIN_IDENTIFIER_CHARS && hex == part.len() && digits > 0;
        match is_number || is_identifier {
            true => into.push(b'*'),
            // A tag must not have control characters.
            false => into.extend(
                part.iter()
                    .map(|byte| if byte.is_ascii_graphic() { *byte } else { b'_' }),
            ),
        }
    }
}

/// `10/Oct/2000:13:55:36 -0700`, in brackets or not.
fn local_time(text: &[u8]) -> Option<Seconds> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    if text.len() != 26 {
        return None;
    }
    let digits = |at: usize, count: usize| {
        let digits = &text[at..at + count];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| {
            digits
                .iter()
                .fold(0_i16, |sum, digit| sum * 10 + i16::from(digit - b'0'))
        })
    };
    let small = |at: usize| digits(at, 2).and_then(|value| i8::try_from(value).ok());
    let months = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.chunks(3).position(|month| *month == text[3..6])?;
    let time = DateTime::new(
        digits(7, 4)?,
        i8::try_from(month).ok()? + 1,
        small(0)?,
        small(12)?,
        small(15)?,
        small(18)?.min(59),
        0,
    );
    let (hours, minutes) = (i32::from(small(22)?), i32::from(small(24)?));
    let offset = hours * 3600 + minutes * 60;
    let offset = if text[21] == b'-' { -offset } else { offset };
    let at = Offset::from_seconds(offset)
        .ok()?
        .to_timestamp(time.ok()?)
        .ok()?;
    Some(at.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(format: &str, line: &str) -> Option<(String, Option<Seconds>, EventFigure)> {
        let format = match format {
            "" => LogFormat::default(),
            format => format.parse().unwrap(),
        };
        let mut tag = Vec::new();
        let event = event(&format, line.as_bytes(), &mut tag)?;
        let (at, figure) = (event.at, event.figure);
        Some((String::from_utf8(event.tag.to_vec()).unwrap(), at, figure))
    }

    #[test]
    fn lines_of_nginx_and_apache_are_read() {
        // From the documentation of both, and as they write them.
        for (format, line, tag, at, figure) in [
            (
                "",
                r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
                "GET /apache_pb.gif;status=2xx",
                971_211_336,
                EventFigure::None,
            ),
            (
                "",
                r#"::1 - - [24/Nov/2026:10:00:00 +0100] "POST /users/17/files/3f2a-99b0c1?x=1 HTTP/1.1" 503 0 "-" "curl/8""#,
                "POST /users/*/files/*;status=5xx",
                1_795_510_800,
                EventFigure::None,
            ),
            (
                r#"$remote_addr [$time_local] "$request" $status rt=$request_time ua="$upstream_response_time""#,
                r#"10.0.0.1 [24/Nov/2026:09:00:00 +0000] "GET / HTTP/2.0" 200 rt=0.250 ua="0.1, 0.1""#,
                "GET /;status=2xx",
                1_795_510_800,
                EventFigure::Time(200.0),
            ),
            (
                r#"%h %l %u %t "%r" %>s %b %D"#,
                r#"10.0.0.1 - - [24/Nov/2026:09:00:00 +0000] "GET /a HTTP/1.1" 404 12 1500"#,
                "GET /a;status=4xx",
                1_795_510_800,
                EventFigure::Time(1.5),
            ),
        ] {
            assert_eq!(
                read(format, line),
                Some((tag.to_owned(), Some(at), figure)),
                "{line}"
            );
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "",
            "hello",
            r#"1.2.3.4 - - [24/Nov/2026:09:00:00 +0000] "\x16\x03\x01" 400 157 "-" "-""#,
            r#"1.2.3.4 - - [24/Nov/2026:09:00:00 +0000] "" 400 0"#,
            r#"1.2.3.4 - - [99/Nov/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 0"#,
        ] {
            assert_eq!(read("", line), None, "{line}");
        }
        assert!("$status".parse::<LogFormat>().is_err());
    }

    proptest! {
        #[test]
        fn no_line_and_no_format_makes_the_reader_panic(format in "[$%a-z{}> \"é]{0,20}", line in "\\PC{0,80}") {
            let mut all = Vec::new();
            let end = fields(&format, &mut all);
            let _ = find(&LogFormat { fields: all, end }, line.as_bytes());
            let _ = event(&LogFormat::default(), line.as_bytes(), &mut Vec::new());
        }
    }
}
