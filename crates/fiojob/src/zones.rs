//! Checks of options of zones.

use crate::job::{Job, Share, ZoneMode};
use crate::pair::Amount;

/// An option that does not fit the zones of a job, and why.
pub(crate) fn problem(job: &Job) -> Option<(&'static str, &'static str)> {
    let one_file = job.nrfiles == 1 && job.filename.len() <= 1;
    let is_strided = job.zones.mode == ZoneMode::Strided;
    let why = match (job.zones.mode, job.zones.size) {
        (ZoneMode::None, 0) => return None,
        (ZoneMode::None, _) => "it needs zonemode=strided or zonemode=zbd",
        (_, 0) => "it is missing, and zonemode needs it",
        _ if is_strided && job.pattern.random => "strided zones of a random job are not done",
        _ if job.step != 0 => "together with a step of rw it is not done",
        _ if !one_file => "zones over several files are not done",
        (ZoneMode::Strided, _) => return None,
        (ZoneMode::Zoned, _) => return problem_of_zoned(job),
    };
    Some(("zonesize", why))
}

/// An option that does not fit `zonemode=zbd` on a target without zones, and why. fio then keeps a write pointer in
/// each zone: a job that writes fills one zone after another, and one that reads finds nothing in zones that it did
/// not write itself.
fn problem_of_zoned(job: &Job) -> Option<(&'static str, &'static str)> {
    let (zones, pattern) = (job.zones, job.pattern);
    let is_multiple = |bytes: u64| bytes.is_multiple_of(zones.size);
    let is_one_way = pattern.reads != pattern.writes && !pattern.trims && !pattern.trims_first;
    if !is_one_way || (pattern.writes && pattern.random) {
        let why = "with zonemode=zbd it is not done; write, and with read_beyond_wp=1 read and randread are";
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
    let filled = zones.filled();
    if filled > zones.size {
        return Some(("zonecapacity", "it is larger than zonesize"));
    }
    if job.sizes.write.len() > 1 {
        return Some(("zonesize", "with zonemode=zbd blocks have one size"));
    }
    let fits = |share: &Share| filled.is_multiple_of(share.bytes);
    (!job.sizes.write.iter().all(fits))
        .then_some(("zonesize", "zones are no multiple of the blocks"))
}
