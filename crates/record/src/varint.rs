//! Varints, for compact forms: groups of seven bits, the lowest first; the top bit is set if another group follows
//! (LEB128; DWARF 5, section 7.6).

/// Appends a value.
pub fn put(out: &mut Vec<u8>, value: impl Into<u128>) {
    let mut value = value.into();
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value of at most 128 bits off the front; `None` if the bytes end early, or continue longer than any such
/// value.
pub(crate) fn take_wide(rest: &mut &[u8]) -> Option<u128> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a value of at most 64 bits off the front; `None` if there is none.
pub fn take(rest: &mut &[u8]) -> Option<u64> {
    u64::try_from(take_wide(rest)?).ok()
}

/// Zigzag encoding of a signed number: small if the number is close to zero, with the sign in the lowest bit.
pub fn folded(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Decodes a [`folded`] number.
pub fn unfolded(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_their_bytes() {
        let largest = [&[0xff; 9][..], &[0x01]].concat();
        for (value, bytes) in [
            (0_u64, &[0x00][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (300, &[0xac, 0x02]),
            (u64::MAX, &largest),
        ] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            let mut rest = bytes;
            assert_eq!(take(&mut rest), Some(value));
            assert!(rest.is_empty(), "{value}");
        }
    }

    #[test]
    fn signed_values_and_what_they_are_folded_to() {
        for (value, as_folded) in [(0, 0), (-1, 1), (1, 2), (i64::MIN, u64::MAX)] {
            assert_eq!(folded(value), as_folded);
            assert_eq!(unfolded(as_folded), value);
        }
    }

    #[test]
    fn bytes_that_end_early_or_go_beyond_64_bits_are_no_value() {
        assert_eq!(take(&mut &b""[..]), None);
        assert_eq!(take(&mut &b"\x80"[..]), None);
        let long = [&[0x80; 10][..], &[0x01]].concat();
        assert_eq!(take(&mut &long[..]), None);
    }
}
