//! The order in which a block measures its layouts: random, and the same for the same seed, so that drift over time
//! does not look like an effect, and a sweep can be repeated.

use engine::derive_seed;

/// The layouts of a block in the order in which they are measured. The baseline comes first, in every block, even when
/// it is not in the race: it shows the drift between blocks.
pub(crate) fn order(layouts: &[usize], baseline: usize, block: usize, seed: u64) -> Vec<usize> {
    let mut rest: Vec<usize> = layouts
        .iter()
        .copied()
        .filter(|&layout| layout != baseline)
        .collect();
    // Fisher and Yates's shuffle. A remainder is not exactly uniform: for a thousand layouts it is
    // off by less than one in 10^16.
    let seed = derive_seed(seed, block as u64);
    for last in (1..rest.len()).rev() {
        let drawn = derive_seed(seed, last as u64) % (last as u64 + 1);
        rest.swap(last, drawn as usize);
    }
    rest.insert(0, baseline);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_its_own_order_and_repeats_from_its_seed() {
        let layouts: Vec<usize> = (0..24).collect();
        let first = order(&layouts, 3, 0, 1);
        assert_eq!(first, order(&layouts, 3, 0, 1));
        assert_ne!(first, order(&layouts, 3, 1, 1));
        assert_ne!(first, order(&layouts, 3, 0, 2));
        assert_eq!(first[0], 3);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, layouts);
    }

    #[test]
    fn the_baseline_is_measured_when_it_is_not_wanted_too() {
        assert_eq!(order(&[5], 3, 2, 1), [3, 5]);
        assert_eq!(order(&[], 3, 2, 1), [3]);
    }

    #[test]
    fn every_place_is_as_likely() {
        let layouts: Vec<usize> = (0..5).collect();
        let mut seen = [[0u32; 5]; 5];
        for block in 0..4000 {
            for (place, layout) in order(&layouts, 0, block, 7).into_iter().enumerate() {
                seen[place][layout] += 1;
            }
        }
        for place in &seen[1..] {
            for &count in &place[1..] {
                assert!((900..1100).contains(&count), "{seen:?}");
            }
        }
    }
}
