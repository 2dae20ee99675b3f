//! Pages of the kernel's ring buffer (include/linux/ring_buffer.h; a time stamp, the length of the events, then the
//! events).

/// Size of the header before the events: the time stamp and the length.
const HEAD: usize = 16;
/// Bits of the length; the bits above are flags that only overwritten buffers have.
const LENGTH_BITS: u64 = (1 << 27) - 1;
/// Bits of a time in a time stamp event.
const STAMP_BITS: u64 = (1 << 59) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// An event in the form of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// Time on the instance's clock.
    pub time: u64,
    /// Fields of the event, beginning with the number of its format.
    pub bytes: &'a [u8],
}

/// A page of a trace buffer, from which events are read one by one.
#[derive(Clone, Debug)]
pub struct TracePage<'a> {
    rest: &'a [u8],
    time: u64,
}

impl<'a> TracePage<'a> {
    /// A complete page; `None` if it is too short.
    pub fn new(bytes: &'a [u8]) -> Option<TracePage<'a>> {
        let time = number::<8>(bytes, 0)?;
        let commit = number::<8>(bytes, 8)?;
        let events = bytes.get(HEAD..)?;
        let length = (commit & LENGTH_BITS) as usize;
        Some(TracePage {
            rest: events.get(..length)?,
            time,
        })
    }
}

impl<'a> Iterator for TracePage<'a> {
    type Item = RawEvent<'a>;

    fn next(&mut self) -> Option<RawEvent<'a>> {
        loop {
            let head = number::<4>(self.rest, 0)? as u32;
            // The bit fields of struct ring_buffer_event begin at the end that is first in the byte order.
            let (kind, delta) = match cfg!(target_endian = "little") {
                true => (head & 31, u64::from(head >> 5)),
                false => (head >> 27, u64::from(head & ((1 << 27) - 1))),
            };
            let word = number::<4>(self.rest, 4);
            self.rest = &self.rest[4..];
            match kind {
                // Without a length the page ends here; with one an event was discarded.
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.time = self.time.wrapping_add(delta);
                    self.rest = self.rest.get(word? as usize..)?;
                }
                TIME_EXTEND => {
                    self.time = self.time.wrapping_add(delta + (word? << 27));
                    self.rest = self.rest.get(4..)?;
                }
                TIME_STAMP => {
                    let stamp = (delta + (word? << 27)) & STAMP_BITS;
                    self.time = stamp | self.time & !STAMP_BITS;
                    self.rest = self.rest.get(4..)?;
                }
                kind => {
                    self.time = self.time.wrapping_add(delta);
                    // An event of more than 112 bytes is preceded by its length, which includes itself.
                    let length = match kind {
                        0 => {
                            let length = (word? as usize).checked_sub(4)?;
                            self.rest = self.rest.get(4..)?;
                            length.checked_next_multiple_of(4)?
                        }
                        kind => kind as usize * 4,
                    };
                    let (bytes, rest) = self.rest.split_at_checked(length)?;
                    self.rest = rest;
                    return Some(RawEvent {
                        time: self.time,
                        bytes,
                    });
                }
            }
        }
    }
}

/// A number in the host's byte order.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(N)?)?.iter();
    let digit = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(match cfg!(target_endian = "little") {
        true => bytes.rev().fold(0, digit),
        false => bytes.fold(0, digit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(time: u64, flags: u64, events: &[u8]) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((events.len() as u64 | flags).to_ne_bytes());
        page.extend(events);
        page
    }

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        match cfg!(target_endian = "little") {
            true => (delta << 5 | kind).to_ne_bytes(),
            false => (kind << 27 | delta).to_ne_bytes(),
        }
    }

    #[test]
    fn events_have_times_that_add_up() {
        let events = [
            &head(2, 10)[..],
            &[1; 8],
            // 1 << 27 more.
            &head(TIME_EXTEND, 5),
            &1_u32.to_ne_bytes(),
            &head(1, 0),
            &[2; 4],
            // A discarded event.
            &head(PADDING, 1),
            &8_u32.to_ne_bytes(),
            &[9; 4],
            // With a length before it.
            &head(0, 1),
            &(4_u32 + 5).to_ne_bytes(),
            &[3; 8],
            &head(TIME_STAMP, 7),
            &2_u32.to_ne_bytes(),
            &head(1, 0),
            &[4; 4],
            &head(PADDING, 0),
            &[7; 20],
        ]
        .concat();
        // With flags above the length.
        let bytes = page(1000, 3 << 30, &events);
        let page = TracePage::new(&bytes).unwrap();
        let found: Vec<(u64, u8, usize)> = page
            .map(|raw| (raw.time, raw.bytes[0], raw.bytes.len()))
            .collect();
        let extended = 1015 + (1 << 27);
        assert_eq!(
            found,
            [
                (1010, 1, 8),
                (extended, 2, 4),
                (extended + 2, 3, 8),
                (7 + (2 << 27), 4, 4)
            ]
        );
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic_or_go_on_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(page) = TracePage::new(&bytes) {
                prop_assert!(page.count() <= 300);
            }
            let page = page(0, 0, &bytes);
            prop_assert!(TracePage::new(&page).unwrap().count() <= 300);
        }
    }
}
