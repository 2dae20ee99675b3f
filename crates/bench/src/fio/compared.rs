//! The comparison of data that compresses or repeats with random data, after jobs that write such data.

use engine::IoInterface;
use fiojob::SyncIo;
use record::Bytes;

use super::stream::{Stream, details};
use crate::contents;
use crate::phase_plan::PhasePlan;

/// Minimum size of the part that is written: on a smaller one a disk's cache may absorb all writes of a turn.
const MIN_SPAN: Bytes = Bytes::mib(64);

/// Walls that follow those of the jobs, and a note about them, as a sentence.
pub(super) struct ComparedWalls {
    pub walls: Vec<Vec<Stream>>,
    pub note: String,
}

/// The comparison that follows `walls`, in the part of a file or device that the first stream with compressible or
/// repeated data writes. `None` if there is no such stream, if it uses the page cache, or if blocks are verified,
/// since a later run may need their contents.
pub(super) fn behind(walls: &[Vec<Stream>]) -> Option<ComparedWalls> {
    let streams = || walls.iter().flatten();
    let verifies =
        |stream: &Stream| details(&stream.workload).is_some_and(|details| details.verify.is_some());
    if streams().any(verifies) {
        return None;
    }
    let lead = streams().find(|stream| {
        let shaped = details(&stream.workload).is_some_and(|details| details.contents.is_some());
        let writes_data = stream.workload.writes() && !stream.workload.trims();
        shaped && writes_data && stream.direct && stream.span >= MIN_SPAN
    })?;
    let contents = details(&lead.workload)?.contents.as_ref()?;
    let number = streams().map(|stream| stream.number).max().unwrap_or(0) + 1;
    let turns = contents::comparison(contents);
    Some(ComparedWalls {
        note: format!(
            "{} writes data that compresses or repeats. Behind all jobs such data and random data were written in \
             turn where it writes, for {} s, to find out whether the target is the faster for it.",
            lead.job,
            turns.len()
        ),
        walls: turns
            .into_iter()
            .enumerate()
            .map(|(at, plan)| vec![turn(lead, plan, number + at)])
            .collect(),
    })
}

/// A phase of the comparison, on the first file of `lead`.
fn turn(lead: &Stream, plan: PhasePlan, number: usize) -> Stream {
    let PhasePlan {
        name, mut workload, ..
    } = plan;
    workload.details.get_or_insert_default().offset =
        details(&lead.workload).map_or(Bytes(0), |details| details.offset);
    Stream {
        job: name.clone(),
        name,
        group: None,
        number,
        workload,
        span: lead.span.round_down(Bytes::MIB),
        files: lead.files.iter().take(1).copied().collect(),
        interface: IoInterface::Auto,
        zoned: false,
        direct: true,
        invalidate: false,
        advise: false,
        seed: 0,
        sync_io: SyncIo::None,
        exits: None,
    }
}
