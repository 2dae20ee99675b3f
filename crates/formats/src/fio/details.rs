//! Extended options of a job of fio: mixed block sizes, the offset, the distribution of offsets.

use record::{Bytes, JobOptions, RandomDistribution, SizeShare};

use super::options::Options;

/// fio's default exponent of a Zipf distribution.
const ZIPF: f64 = 1.1;
/// fio's default power of a Pareto distribution.
const PARETO: f64 = 0.2;

/// Details of a job; `None` if any of them is not understood. Ramp time and run time do not change the workload, and
/// are kept only as options. `norandommap` is unknown: it has no value, and fio leaves it out of the document.
pub(super) fn details(options: &Options<'_>) -> Option<Box<JobOptions>> {
    let (read_sizes, write_sizes) = sizes(options)?;
    Some(Box::new(JobOptions {
        read_sizes,
        write_sizes,
        offset: match options.get("offset") {
            Some(_) => options.size("offset")?,
            None => Bytes(0),
        },
        files: files(options)?,
        spread: spread(options.get("random_distribution").unwrap_or("random"))?,
        even_rate: match options.get("rate_process").unwrap_or("linear") {
            "linear" => true,
            "poisson" => false,
            _ => return None,
        },
        full_sync: options.get("fdatasync").is_none_or(|every| every == "0"),
        ..JobOptions::default()
    }))
}

/// Number of files that take turns.
pub(super) fn files(options: &Options<'_>) -> Option<u32> {
    let named = options.get("filename");
    // A colon separates names; one after a backslash belongs to a name.
    let names = |text: &str| text.replace("\\:", "").matches(':').count() as u32 + 1;
    match named.map(names) {
        Some(1) => Some(1),
        Some(_) => None,
        None => options.number("nrfiles", 1),
    }
}

/// Sizes of reads and of writes: `bssplit=4k/10:16k/90`, or one size each, `bs=4k,16k`. Both are empty if all requests
/// have the same size.
fn sizes(options: &Options<'_>) -> Option<(Vec<SizeShare>, Vec<SizeShare>)> {
    if let Some(split) = options.get("bssplit") {
        let mut parts = split.split(',');
        let reads = shares(options, parts.next()?)?;
        let writes = match parts.next() {
            Some(writes) => shares(options, writes)?,
            None => reads.clone(),
        };
        return Some((reads, writes));
    }
    let whole = |text: &str| {
        let size = options.size_of(text)?;
        Some(vec![SizeShare { size, share: 1.0 }])
    };
    let given = options.get("bs").or_else(|| options.get("blocksize"));
    match given.and_then(|given| given.split_once(',')) {
        None => Some((Vec::new(), Vec::new())),
        Some((reads, writes)) => {
            let writes = writes.split(',').next()?;
            Some((whole(reads)?, whole(writes)?))
        }
    }
}

/// Sizes with their percentages; sizes without one share the rest.
fn shares(options: &Options<'_>, text: &str) -> Option<Vec<SizeShare>> {
    let mut shares: Vec<(Bytes, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = match percent {
            "" => None,
            percent => Some(
                percent
                    .parse::<f64>()
                    .ok()
                    .filter(|p| (0.0..=100.0).contains(p))?,
            ),
        };
        shares.push((options.size_of(size)?, percent));
    }
    let given: f64 = shares.iter().filter_map(|(_, percent)| *percent).sum();
    let open = shares
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count();
    let rest = (100.0 - given).max(0.0) / open.max(1) as f64;
    let share = |(size, percent): (Bytes, Option<f64>)| SizeShare {
        size,
        share: percent.unwrap_or(rest) / 100.0,
    };
    Some(shares.into_iter().map(share).collect())
}

fn spread(text: &str) -> Option<RandomDistribution> {
    let (kind, number) = text.split_once(':').unwrap_or((text, ""));
    let number = |default: f64| match number {
        "" => Some(default),
        text => text.parse::<f64>().ok().filter(|number| number.is_finite()),
    };
    match kind {
        "random" => Some(RandomDistribution::Uniform),
        "zipf" => number(ZIPF).map(RandomDistribution::Zipf),
        "pareto" => number(PARETO).map(RandomDistribution::Pareto),
        "normal" => number(0.0).map(|percent| RandomDistribution::Normal(percent / 100.0)),
        _ => None,
    }
}

/// Value of `bssplit=` for the sizes; `None` if there are none.
pub(super) fn split(details: &JobOptions) -> Option<String> {
    let part = |share: &SizeShare| format!("{}/{}", share.size.0, (share.share * 100.0).round());
    let list = |shares: &[SizeShare]| shares.iter().map(part).collect::<Vec<_>>().join(":");
    let (reads, writes) = (list(&details.read_sizes), list(&details.write_sizes));
    match (reads.as_str(), writes.as_str()) {
        ("", "") => None,
        (_, "") => Some(reads),
        ("", _) => Some(writes),
        _ if reads == writes => Some(reads),
        _ => Some(format!("{reads},{writes}")),
    }
}
