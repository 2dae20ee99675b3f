//! Integers of variable length in the compact forms of this crate: groups of seven bits,
//! lowest first, and a set top bit where another group follows (LEB128; DWARF 5, section 7.6).

/// Appends `value`.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value of at most 128 bits off the front; `None` when the bytes end early or continue for
/// longer than any such value.
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

/// The same for a value of at most 64 bits.
pub(crate) fn take(rest: &mut &[u8]) -> Option<u64> {
    u64::try_from(take_wide(rest)?).ok()
}
