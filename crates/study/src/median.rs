//! The median.

/// The middle value, or the mean of the two in the middle; `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    let upper = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (below, at, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
    let at = *at;
    if below.len() > (values.len() - 1) / 2 {
        let lower = values[..upper].iter().copied().max_by(f64::total_cmp)?;
        return Some(0.5 * (lower + at));
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_or_the_mean_of_the_two_there() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(vec![]), None);
    }
}
