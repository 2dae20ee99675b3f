//! Formats of events: positions of the fields, which differ between kernels.

use std::collections::HashMap;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Start in the event, in bytes.
    pub offset: usize,
    /// Length.
    pub size: usize,
}

/// Format of an event, from its file `format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Number at the start of each of its events.
    pub id: u16,
    fields: HashMap<String, Field>,
}

impl EventFormat {
    /// Parses a file `format`; `None` if it has no ID.
    pub fn parse(text: &str) -> Option<EventFormat> {
        let mut id = None;
        let mut fields = HashMap::new();
        for line in text.lines() {
            if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            }
            fields.extend(field(line.trim()));
        }
        Some(EventFormat { id: id?, fields })
    }

    /// Position and size of the field `name` in the event; `None` if there is no such field.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// A line such as `field:char rwbs[10]; offset:34; size:10; signed:0;`, with tabs.
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let name = parts.next()?.rsplit([' ', '\t']).next()?;
    let name = name.split('[').next()?.to_owned();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some((
        name,
        Field {
            offset: offset?,
            size: size?,
        },
    ))
}

impl Field {
    /// The bytes of the field in an event; `None` where the event is too short.
    pub fn bytes(self, event: &[u8]) -> Option<&[u8]> {
        event.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Reads the field as an unsigned number in the host's byte order.
    pub fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = self.bytes(event)?;
        if bytes.len() > 8 {
            return None;
        }
        let digit = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(match cfg!(target_endian = "little") {
            true => bytes.iter().rev().fold(0, digit),
            false => bytes.iter().fold(0, digit),
        })
    }

    /// Reads the field as text up to the first zero.
    pub fn text(self, event: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
        let bytes = self.bytes(event)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        Some(String::from_utf8_lossy(
            &bytes[..end.unwrap_or(bytes.len())],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_says() {
        let text = "name: block_rq_issue\nID: 1234\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
            \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"%d,%d %s\", 1\n";
        let format = EventFormat::parse(text).unwrap();
        assert_eq!(format.id, 1234);
        let rwbs = format.field("rwbs").unwrap();
        assert_eq!((rwbs.offset, rwbs.size), (34, 10));
        assert_eq!(format.field("cmd").unwrap().offset, 60);
        assert_eq!(format.field("sector"), None);
        let mut event = vec![0; 64];
        event[8] = 3;
        event[34..36].copy_from_slice(b"WS");
        assert_eq!(format.field("dev").unwrap().number(&event), Some(3));
        assert_eq!(rwbs.text(&event).unwrap(), "WS");
        assert_eq!(rwbs.text(&event[..40]), None);
    }
}
