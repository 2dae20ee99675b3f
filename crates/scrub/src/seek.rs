//! Decision whether to locate the mismatches that a scrub has counted, and the number of bytes to read for that.

use std::sync::atomic::AtomicBool;

use jiff::{SignedDuration, Timestamp};
use job::JobStore;
use linux::Root;
use linux::block::Devices;
use record::Bytes;

use super::array_scrub::{ScrubResult, end_reason};
use super::checkpoint::Checkpoint;
use super::drive::ScrubEnd;
use super::locate::{Located, RereadSchedule, locate, to_read};
use super::target::Target;
use ui::context::{Context, notice};
use ui::exit::sentence;

/// Age above which the counts of an earlier scrub are out of date: mismatches may have disappeared or appeared, and a
/// monthly scrub starts over.
const MAX_COUNTS_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum number of bytes to read from the members after a scrub that was told to end early.
const MAX_QUICK_BYTES: Bytes = Bytes(256 << 20);

/// Locates the mismatches that a scrub has counted, and their owners. `None` where there are none.
pub(crate) fn find(
    one: &ScrubResult,
    root: &Root,
    interrupt: &AtomicBool,
) -> Option<Result<Located, String>> {
    if one.checkpoint.mismatches == 0 || one.checkpoint.repairs {
        return None;
    }
    Some(locate_mismatches(one, root, interrupt).map_err(|error| sentence(&error)))
}

/// Results of arrays whose last scrub ended within a week and found mismatches, and the other arrays, which have to be
/// scrubbed.
pub(crate) fn known(targets: Vec<Target>, context: &Context) -> (Vec<ScrubResult>, Vec<Target>) {
    let store = JobStore::open_if_there(context).ok().flatten();
    let mut known = Vec::new();
    let mut others = Vec::new();
    for target in targets {
        let find = |store: &JobStore| store.find::<Checkpoint>(&target.uuid).ok()?;
        let work = store.as_ref().and_then(find);
        let is_fresh = |finished| Timestamp::now().duration_since(finished) < MAX_COUNTS_AGE;
        let checkpoint = work
            .filter(|work| {
                let checked = work.document.checked(work.summary.finished);
                checked.is_some_and(is_fresh)
            })
            .map(|work| work.document)
            .filter(|checkpoint| {
                !checkpoint.repairs && checkpoint.left() > 0 && !checkpoint.places.is_empty()
            })
            .filter(|checkpoint| {
                checkpoint.level == target.level.into() && checkpoint.of == target.end.0
            })
            // After a reshape the positions of earlier counts are no longer valid.
            .filter(|checkpoint| checkpoint.shape == target.sync.shape());
        match checkpoint {
            Some(checkpoint) => {
                context.notice(&format!(
                    "disksmith: {}: its last scrub is done and has counted mismatches; they are \
                     searched for where it did, and it is not scrubbed again (--anew would).",
                    target.path()
                ));
                known.push(ScrubResult::known(target, checkpoint));
            }
            None => others.push(target),
        }
    }
    (known, others)
}

fn locate_mismatches(
    one: &ScrubResult,
    root: &Root,
    interrupt: &AtomicBool,
) -> anyhow::Result<Located> {
    let path = one.target.path();
    let places = one.checkpoint.places_in_bytes();
    anyhow::ensure!(
        !places.is_empty(),
        "the ranges that contain them were not stored; --anew --locate checks and searches again"
    );
    if let (ScrubEnd::Recovery(_) | ScrubEnd::Waits(_), Some(why)) =
        (&one.ending, end_reason(&one.ending))
    {
        anyhow::bail!("{why}; try again with --locate when it is done");
    }
    let devices = Devices::read(root)?;
    let device = devices
        .get(one.target.device.number)
        .filter(|_| one.target.sync.is_there())
        .ok_or_else(|| anyhow::anyhow!("the array no longer exists"))?;
    let bytes = to_read(root, device, &places)?;
    anyhow::ensure!(
        bytes <= MAX_QUICK_BYTES || !matches!(one.ending, ScrubEnd::Ordered(_)),
        "the scrub was to end, and {bytes} of the members would have to be read; the same command goes \
         on, and searches at its end"
    );
    notice(&format!(
        "disksmith: {path}: locating the mismatches: {bytes} of its members are read, with a pause after each read. Ctrl-C ends it."
    ));
    locate(
        root,
        &devices,
        device,
        &places,
        RereadSchedule::LIVE,
        interrupt,
    )
}
