//! Columns of numbers: the number of bytes of the largest number, then the lowest byte of each number, then the second
//! byte of each, and so on. Similar bytes are adjacent, which compresses well.

/// Appends a column.
pub(super) fn put(out: &mut Vec<u8>, values: &[u64]) {
    let all = values.iter().fold(0, |all, value| all | value);
    let width = (64 - all.leading_zeros()).div_ceil(8);
    out.push(width as u8);
    for plane in 0..width {
        out.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
    }
}

/// Takes a column of `count` numbers off the front.
pub(super) fn take(rest: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let (&width, tail) = rest.split_first()?;
    if width > 8 {
        return None;
    }
    let planes = tail.get(..count.checked_mul(usize::from(width))?)?;
    *rest = &tail[planes.len()..];
    let mut values = vec![0; count];
    for (number, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (value, byte) in values.iter_mut().zip(plane) {
            *value |= u64::from(*byte) << (8 * number);
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_column_comes_back(values in prop::collection::vec(any::<u64>(), 0..40), shift in 0_u32..64) {
            let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
            let mut out = Vec::new();
            put(&mut out, &values);
            let mut rest = &out[..];
            prop_assert_eq!(take(&mut rest, values.len()), Some(values.clone()));
            prop_assert!(rest.is_empty());
            for cut in 0..out.len() {
                prop_assert_eq!(take(&mut &out[..cut], values.len()), None);
            }
        }
    }
}
