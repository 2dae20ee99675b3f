//! Finds out which jobs an entry of `jobs` sums up. The document does not say whether clones and sections were summed:
//! fio repeats only options with a value, and `group_reporting` is mostly given without one. The entries show it (seen
//! with fio 3.33):
//!
//! - clones that are not summed have an entry each, all with the same name;
//! - `job_runtime` is the sum over all that an entry sums up, and a direction's `runtime` is the
//!   longest of them;
//! - where sections are summed, the entry has the name of the first and the options of the last.

use super::node::Node;
use super::options::Options;
use crate::ReadError;

/// Processes that an entry sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummedJobs {
    /// This number of processes with the options of the entry.
    Clones(u32),
    /// An unknown number of processes with the options of the entry.
    Unsure,
    /// Processes of several sections, some with other options than the entry's.
    Sections,
}

impl SummedJobs {
    /// Number of processes with the options of the entry, if it is known.
    pub(crate) fn clones(self) -> Option<u32> {
        match self {
            SummedJobs::Clones(clones) => Some(clones),
            SummedJobs::Unsure | SummedJobs::Sections => None,
        }
    }
}

/// The processes that the entry `job`, one of `jobs`, sums up.
pub(crate) fn summed(
    job: &Node<'_>,
    jobs: &[Node<'_>],
    options: &Options<'_>,
) -> Result<SummedJobs, ReadError> {
    let name = job.value("jobname");
    let own_name = options.own("name");
    let of_all = name.is_some_and(|name| name == "All clients") && job.value("hostname").is_some();
    if of_all || own_name.is_some() && own_name != name.and_then(|name| name.as_str()) {
        return Ok(SummedJobs::Sections);
    }
    let Some(asked) = options.number::<u32>("numjobs", 1).filter(|n| *n > 0) else {
        return Ok(SummedJobs::Unsure);
    };
    let same = |other: &&Node<'_>| {
        ["jobname", "groupid", "hostname"]
            .iter()
            .all(|key| job.value(key) == other.value(key))
    };
    let entries = jobs.iter().filter(same).count() as u64;
    let clones = match entries {
        1 => asked,
        all if all >= u64::from(asked) => 1,
        _ => return Ok(SummedJobs::Unsure),
    };
    let (Some(total), Some(time)) = (job.number("job_runtime")?, time(job, options)?) else {
        return Ok(SummedJobs::Clones(clones));
    };
    // fio rounds both times to milliseconds, and a process takes a little time to start and to end.
    let most = f64::from(clones) * (time * 1.1 + 5.0);
    Ok(match total > most {
        true => SummedJobs::Sections,
        false => SummedJobs::Clones(clones),
    })
}

/// Factor for fio's CPU shares, which are relative to the sum of the processes' times: that sum divided by the time of
/// the longest process.
pub(crate) fn times(
    job: &Node<'_>,
    options: &Options<'_>,
    summed: SummedJobs,
) -> Result<f64, ReadError> {
    let (total, time) = (job.number("job_runtime")?, time(job, options)?);
    let times = total.zip(time).map(|(total, time)| total / time);
    // For one process the two are equal except for rounding.
    Ok(match summed {
        SummedJobs::Clones(1) => 1.0,
        _ => times.filter(|times| *times > 1.0).unwrap_or(1.0),
    })
}

/// Time of the longest process in milliseconds. A job that verifies reads after it has written, so times are added.
fn time(job: &Node<'_>, options: &Options<'_>) -> Result<Option<f64>, ReadError> {
    let mut times = Vec::new();
    for key in ["read", "write", "trim", "mixed"] {
        if let Some(node) = job.object(key)? {
            times.extend(node.number("runtime")?);
        }
    }
    let time = match options.get("verify") {
        Some(_) => times.into_iter().sum(),
        None => times.into_iter().fold(0.0, f64::max),
    };
    Ok((time > 0.0).then_some(time))
}
