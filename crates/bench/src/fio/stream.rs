//! A stream: one clone of a job, as a workload on files.

use engine::IoInterface;
use fiojob::{ExitWhat, SyncIo};
use record::{Bytes, JobOptions, Workload};

/// A stream: one clone of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stream {
    /// Name of its phase, where it is not summed with others.
    pub name: String,
    /// The job's name.
    pub job: String,
    /// Number of the group that it is summed with; `None` where it is reported by itself.
    pub group: Option<usize>,
    /// Number of its group, whether the group is reported as one phase or not.
    pub number: usize,
    /// Workload of the stream.
    pub workload: Workload,
    /// Bytes of each file that it uses.
    pub span: Bytes,
    /// Files of the stream, by number.
    pub files: Vec<usize>,
    /// Interface to the kernel.
    pub interface: IoInterface,
    /// True if it uses a target without zones as if the target had zones.
    pub zoned: bool,
    /// True if the page cache is bypassed.
    pub direct: bool,
    /// True if the files are dropped from the page cache first, where it is not bypassed.
    pub invalidate: bool,
    /// True if the kernel gets advice on how the files are read, where the page cache is not bypassed.
    pub advise: bool,
    /// `randseed=`.
    pub seed: u64,
    /// Mode of synchronous writes.
    pub sync_io: SyncIo,
    /// Streams that end together with this one.
    pub exits: Option<ExitWhat>,
}

/// The details of a workload, where it has any.
pub(super) fn details(workload: &Workload) -> Option<&JobOptions> {
    workload.details.as_deref()
}
