//! Options of zones: their checks, and values given as a number of zones.

use crate::job::{Distribution, Job, SizeSplit, ZoneMode};
use crate::pair::Amount;

/// Options whose value may be a number of zones, as in `size=10z`.
const COUNTED: [&str; 5] = ["size", "io_size", "offset", "offset_increment", "zoneskip"];

/// Number of zones in a value.
fn zones_of(value: &str) -> Option<u64> {
    value.strip_suffix('z')?.parse().ok()
}

/// True if the value of this option is given in zones.
pub(crate) fn is_counted(option: &str, value: &str) -> bool {
    COUNTED.contains(&option) && zones_of(value).is_some()
}

/// Options that a job gives in zones, with their numbers of zones.
pub(crate) fn counted(job: &Job) -> Vec<(&'static str, u64)> {
    let zones = |option: &&'static str| Some((*option, zones_of(job.given.get(option)?)?));
    COUNTED.iter().filter_map(zones).collect()
}

/// Length of a number of zones of a job, in bytes.
///
/// # Errors
/// A sentence, if the zone size is not given, or there are too many zones.
pub(crate) fn bytes(job: &Job, zones: u64) -> Result<u64, String> {
    match job.zones.size {
        0 => Err("it is in zones, and there is no zonesize; give one, or bytes".to_owned()),
        size => zones
            .checked_mul(size)
            .ok_or_else(|| format!("{zones} zones are too many")),
    }
}

/// An option that is not compatible with the zones of a job, and the reason.
pub(crate) fn problem(job: &Job) -> Option<(&'static str, &'static str)> {
    let is_strided = job.zones.mode == ZoneMode::Strided;
    let why = match (job.zones.mode, job.zones.size) {
        (ZoneMode::None, 0) => return None,
        (ZoneMode::None, _) => "it needs zonemode=strided or zonemode=zbd",
        (_, 0) => "it is missing, and zonemode needs it",
        _ if is_strided && job.pattern.random && draws_unevenly(job) => {
            "in strided zones all places are as likely; leave out random_distribution and percentage_random"
        }
        _ if job.step != 0 => "together with a step of rw it is not supported",
        _ if !job.has_one_file() => "zones over several files are not supported",
        (ZoneMode::Strided, _) => return None,
        (ZoneMode::Zoned, _) => return problem_of_zoned(job),
    };
    Some(("zonesize", why))
}

/// True if some positions of a random job are not random, or not equally probable.
fn draws_unevenly(job: &Job) -> bool {
    job.distribution != Distribution::Uniform || !job.draws_all()
}

/// An option that is not compatible with `zonemode=zbd` on a target without zones, and the reason. fio then keeps a
/// write pointer in each zone: a job that writes fills one zone after another, or with random positions fills the
/// zones of these positions, and a job that reads finds no data in zones that it did not write itself.
fn problem_of_zoned(job: &Job) -> Option<(&'static str, &'static str)> {
    let (zones, pattern) = (job.zones, job.pattern);
    let is_multiple = |bytes: u64| bytes.is_multiple_of(zones.size);
    let is_one_way = pattern.reads != pattern.writes && !pattern.trims && !pattern.trims_first;
    if !is_one_way {
        let why = "with zonemode=zbd it is not supported; write and randwrite are, and with read_beyond_wp=1 read and randread";
        return Some(("rw", why));
    }
    if !is_multiple(zones.skip) {
        return Some(("zoneskip", "it is no multiple of zonesize"));
    }
    if pattern.reads {
        let why = "zones count as empty until the job writes them, so that fio reads nothing; give read_beyond_wp=1";
        return (!zones.reads_unwritten).then_some(("read_beyond_wp", why));
    }
    let at_start = matches!(job.offset, Amount::Bytes(bytes) if is_multiple(bytes));
    if !at_start || !is_multiple(job.offset_increment) {
        let option = match at_start {
            true => "offset_increment",
            false => "offset",
        };
        return Some((option, "a job that writes zones begins at the start of one"));
    }
    if job.numjobs > 1 && job.offset_increment == 0 {
        let why = "clones would write the same blocks, where fio's share each zone; give offset_increment";
        return Some(("numjobs", why));
    }
    if pattern.random && job.numjobs > 1 && zones.open > 0 {
        let why =
            "clones would share the open zones, and here each would have its own; give numjobs=1";
        return Some(("max_open_zones", why));
    }
    if zones.open_by_clone > 0 && zones.open == 0 {
        let why = "as in fio it needs max_open_zones; give that";
        return Some(("job_max_open_zones", why));
    }
    let filled = zones.filled();
    if filled > zones.size {
        return Some(("zonecapacity", "it is larger than zonesize"));
    }
    if job.sizes.write.len() > 1 {
        return Some(("zonesize", "with zonemode=zbd blocks have one size"));
    }
    let fits = |share: &SizeSplit| filled.is_multiple_of(share.bytes);
    (!job.sizes.write.iter().all(fits))
        .then_some(("zonesize", "zones are no multiple of the blocks"))
}
