//! Sizes of requests: a single size, a range, or several sizes with their shares.

use crate::job::{Job, SizeOption, SizeSplit};
use crate::number::whole;
use crate::pair::PerDirection;
use crate::values::block;

/// Maximum number of sizes in a range, which are multiples of its smallest size.
const MAX_SIZES: u64 = 4096;

/// Replaces the sizes of the directions that an option names, unless an option that takes precedence has set them.
pub(crate) fn put(
    job: &mut Job,
    by: SizeOption,
    named: PerDirection<Option<Vec<SizeSplit>>>,
) -> Result<(), String> {
    let (sizes, given) = (&mut job.sizes, &mut job.sizes_by);
    for (sizes, given, named) in [
        (&mut sizes.read, &mut given.read, named.read),
        (&mut sizes.write, &mut given.write, named.write),
    ] {
        let Some(named) = named else { continue };
        if by == SizeOption::Range && *given == SizeOption::Split {
            check_within(sizes, &named)?;
            job.notes.insert(
                "bsrange",
                "bssplit gives the sizes, as in fio, wherever it stands",
            );
            continue;
        }
        if by >= *given {
            (*sizes, *given) = (named, by);
        } else {
            job.notes.insert(
                "bs",
                "bssplit or bsrange gives the sizes, as in fio, wherever it stands",
            );
        }
    }
    Ok(())
}

/// Checks that all sizes of `split` are valid in a `range` that follows: fio limits them to it.
fn check_within(split: &[SizeSplit], range: &[SizeSplit]) -> Result<(), String> {
    let bytes = |share: Option<&SizeSplit>| share.map_or(1, |share| share.bytes);
    let (low, high) = (bytes(range.first()), bytes(range.last()));
    let fits = |share: &SizeSplit| share.bytes.is_multiple_of(low) && share.bytes <= high;
    match split.iter().all(fits) {
        true => Ok(()),
        false => Err(
            "bssplit stands before it, whose sizes fio limits to this range; keep one".to_owned(),
        ),
    }
}

/// If sizes are given by order, uses the sizes of the job's order for all of its requests.
pub(crate) fn by_order(job: &mut Job) {
    let sizes = &mut job.sizes;
    match (job.sizes_by_order, job.pattern.random) {
        (true, true) => sizes.read = sizes.write.clone(),
        (true, false) => sizes.write = sizes.read.clone(),
        (false, _) => {}
    }
}

/// A single size of requests.
pub(crate) fn only(text: &str, kb_base: u64) -> Result<Vec<SizeSplit>, String> {
    let bytes = block(text, kb_base)?;
    Ok(vec![SizeSplit {
        bytes,
        percent: 100.0,
    }])
}

/// Sizes and their shares: `4k/10:64k/50:32k/40`, with the rest divided among sizes without a share. If the shares do
/// not add up to 100 %, the most frequent size gets the rest, as in fio.
pub(crate) fn shares(text: &str, kb_base: u64) -> Result<Vec<SizeSplit>, String> {
    let mut named: Vec<(u64, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent {
            "" => None,
            percent => Some(percentage(percent, kb_base)?),
        };
        named.push((block(size, kb_base)?, percent));
    }
    let sum: f64 = named.iter().filter_map(|(_, percent)| *percent).sum();
    let open = named
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count();
    if open > 0 && sum > 100.0 {
        return Err(format!(
            "the shares add up to {sum} %, and leave nothing for the others"
        ));
    }
    let rest = (100.0 - sum) / open.max(1) as f64;
    let share = |(bytes, percent): (u64, Option<f64>)| SizeSplit {
        bytes,
        percent: percent.unwrap_or(rest),
    };
    let mut shares: Vec<SizeSplit> = named.into_iter().map(share).collect();
    if open == 0 && sum != 100.0 {
        fill_up(&mut shares);
    }
    // A size that is never drawn must not affect the alignment of requests.
    shares.retain(|share| share.percent > 0.0);
    match shares.is_empty() {
        true => Err("no size has a share".to_owned()),
        false => Ok(shares),
    }
}

/// Gives the most frequent size the rest of 100 %: fio draws by cumulative shares, beginning with the least frequent,
/// and the last one has no upper bound.
fn fill_up(shares: &mut [SizeSplit]) {
    shares.sort_by(|one, other| one.percent.total_cmp(&other.percent));
    let mut left = 100.0;
    let last = shares.len() - 1;
    for (at, share) in shares.iter_mut().enumerate() {
        share.percent = match at == last {
            true => left,
            false => share.percent.min(left),
        };
        left -= share.percent;
    }
}

fn percentage(text: &str, kb_base: u64) -> Result<f64, String> {
    match whole(text, kb_base)? {
        percent @ 0..=100 => Ok(percent as f64),
        percent => Err(format!("{percent} % is more than all")),
    }
}

/// Sizes from the smallest to the largest: fio draws all multiples of the smallest with equal probability, and uses
/// the largest for multiples beyond it.
pub(crate) fn range(text: &str, kb_base: u64) -> Result<Vec<SizeSplit>, String> {
    let (low, high) = text
        .split_once(['-', ':'])
        .ok_or_else(|| format!("'{text}' is no range; write SMALLEST-LARGEST"))?;
    let (low, high) = (block(low, kb_base)?, block(high, kb_base)?);
    let (low, high) = (low.min(high), low.max(high));
    let steps = high / low;
    if steps > MAX_SIZES {
        return Err(format!(
            "it has {steps} sizes, and at most {MAX_SIZES} are drawn; give a larger smallest size"
        ));
    }
    let one = 100.0 * low as f64 / high as f64;
    let mut shares: Vec<SizeSplit> = (1..=steps)
        .map(|step| SizeSplit {
            bytes: low * step,
            percent: one,
        })
        .collect();
    // The last size of a range, if it is not a multiple of the smallest.
    let left = 100.0 - one * steps as f64;
    if left > 1e-9 {
        shares.push(SizeSplit {
            bytes: high,
            percent: left,
        });
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_size_has_what_the_others_leave() {
        let of = |text| -> Vec<(u64, f64)> {
            let shares = shares(text, 1024).unwrap();
            shares
                .iter()
                .map(|share| (share.bytes >> 10, share.percent))
                .collect()
        };
        assert_eq!(of("4k/60:8k/70"), [(4, 60.0), (8, 40.0)]);
        assert_eq!(of("4k/60:8k/30"), [(8, 30.0), (4, 70.0)]);
        assert_eq!(of("2k/1:128k/100:4k/2"), [(2, 1.0), (4, 2.0), (128, 97.0)]);
        assert_eq!(of("4k/50:8k/50"), [(4, 50.0), (8, 50.0)]);
        for wrong in ["4k/60:8k/70:16k", "4k/101", ""] {
            assert!(shares(wrong, 1024).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_the_multiples_of_its_smallest_size() {
        let sizes = |text| -> Vec<(u64, u64)> {
            let shares = range(text, 1024).unwrap();
            let rounded = |share: &SizeSplit| (share.bytes, share.percent.round() as u64);
            shares.iter().map(rounded).collect()
        };
        assert_eq!(
            sizes("4k-16k"),
            [(4096, 25), (8192, 25), (12288, 25), (16384, 25)]
        );
        assert_eq!(sizes("4k-4k"), [(4096, 100)]);
        assert_eq!(sizes("4k-10k"), [(4096, 40), (8192, 40), (10240, 20)]);
        assert!(range("512-64m", 1024).is_err() && range("4k", 1024).is_err());
    }
}
