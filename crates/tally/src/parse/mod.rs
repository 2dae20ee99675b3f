//! Text formats of events, given or detected for each line.

mod access;
mod json;
mod labels;
mod number;
mod statsd;
mod time;

use crate::event::{EventSink, ParsedEvent, Rejection};

pub use access::LogFormat;

/// Text format of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EventFormat {
    /// Found for each line.
    #[default]
    Auto,
    /// JSON: `{"tag":"login","n":1,"ms":12.5,"ts":1763600000}`.
    Json,
    /// StatsD: `login:1|c`, `api.get:12.5|ms|@0.1|#host:a`, `load:3|g`.
    Statsd,
    /// Access logs of nginx and Apache: common, combined, or --log-format.
    Access,
}

/// Parser, with a buffer that it reuses for each line.
#[derive(Debug)]
pub struct Parser {
    format: EventFormat,
    log_format: LogFormat,
    /// Buffer for a tag with its labels, if they are not adjacent in the line.
    tag: Vec<u8>,
}

impl Parser {
    /// A parser of this format.
    pub fn new(format: EventFormat) -> Parser {
        Parser {
            format,
            log_format: LogFormat::default(),
            tag: Vec::new(),
        }
    }

    /// A parser of access logs in this log format.
    pub fn of_log(log_format: LogFormat) -> Parser {
        Parser {
            log_format,
            ..Parser::new(EventFormat::Access)
        }
    }

    /// Passes each event of some lines to `each`, or the reason why a line is not an event. Empty lines are skipped.
    pub fn lines(
        &mut self,
        text: &[u8],
        each: &mut impl FnMut(&[u8], Result<ParsedEvent<'_>, Rejection>),
    ) {
        let mut begin = 0;
        while begin < text.len() {
            let end = memchr::memchr(b'\n', &text[begin..]).map_or(text.len(), |at| begin + at);
            let line = &text[begin..end];
            begin = end + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                self.line(line, each);
            }
        }
    }

    fn line(&mut self, line: &[u8], each: &mut impl EventSink) {
        match self.format {
            EventFormat::Json => json::line(line, &mut self.tag, each),
            EventFormat::Statsd => statsd::line(line, &mut self.tag, each),
            EventFormat::Access => access::line(&self.log_format, line, &mut self.tag, each),
            EventFormat::Auto => match line[0] {
                b'{' | b'[' => json::line(line, &mut self.tag, each),
                _ if is_access(line) => access::line(&self.log_format, line, &mut self.tag, each),
                _ if memchr::memchr(b'|', line).is_some() => {
                    statsd::line(line, &mut self.tag, each)
                }
                _ => each(line, Err(Rejection::Unknown)),
            },
        }
    }
}

/// True if a bracket precedes the first quote, as before the time and the request of an access log. No StatsD line has
/// both.
fn is_access(line: &[u8]) -> bool {
    memchr::memchr(b'"', line).is_some_and(|quote| memchr::memchr(b'[', &line[..quote]).is_some())
}

#[cfg(test)]
pub(crate) fn parsed(
    format: EventFormat,
    text: &str,
) -> Vec<Result<crate::parse::tests::Owned, Rejection>> {
    let mut found = Vec::new();
    Parser::new(format).lines(text.as_bytes(), &mut |_, event| {
        found.push(event.map(|event| tests::Owned {
            tag: String::from_utf8_lossy(event.tag).into_owned(),
            count: event.count,
            at: event.at,
            figure: event.figure,
        }));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventFigure;
    use crate::level::Seconds;

    /// An event that owns its tag.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Owned {
        pub(crate) tag: String,
        pub(crate) count: f64,
        pub(crate) at: Option<Seconds>,
        pub(crate) figure: EventFigure,
    }

    #[test]
    fn the_form_is_found_for_each_line() {
        let text = "login:1|c\r\n\n{\"tag\":\"login\"}\nhello\n";
        let found = parsed(EventFormat::Auto, text);
        let tags: Vec<_> = found
            .iter()
            .map(|one| one.as_ref().map(|event| &*event.tag))
            .collect();
        assert_eq!(tags, [Ok("login"), Ok("login"), Err(&Rejection::Unknown)]);
    }
}
