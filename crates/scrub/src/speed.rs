//! Rate at which the members of an array can be read, where no earlier scrub gives it: all are read for a moment at the
//! same time, as by a check, unless other programs use them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::diskstats::{Counter, SECTOR};
use record::Bytes;
use rustix::fs::OFlags;

use super::target::Target;
use reader::Buffer;

/// Time for which the members' load is measured first, without any reads.
const IDLE_CHECK_TIME: Duration = Duration::from_millis(300);
/// Time for which each member is read.
const READ_TIME: Duration = Duration::from_secs(1);
/// Size of one read: large enough that the latency of a network disk hardly affects the rate.
const READ: usize = 1 << 20;
/// Maximum number of bytes that other programs move on idle members: a file system's journal writes now and then.
const MAX_JOURNAL_BYTES: u64 = 64 << 10;
/// Share of the time above which a busy member counts as in use.
const MAX_BUSY_SHARE_WHEN_IDLE: f64 = 0.02;

/// Rate of the members of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speed {
    /// Rate of a check without other programs, in bytes of md's positions a second.
    Alone(f64),
    /// Other programs use the members for at least this share of the time, so they were not read.
    Busy(f64),
}

/// Reads the members for a moment, unless other programs use them; `None` where they cannot be read.
pub(super) fn of_members(target: &Target, root: &Root) -> Option<Speed> {
    let busy = busy(target, root);
    if busy > MAX_BUSY_SHARE_WHEN_IDLE {
        return Some(Speed::Busy(busy));
    }
    let rates = std::thread::scope(|scope| {
        let members = target.members.iter().map(|member| {
            let counter = Counter::open(root, member).ok();
            let node = root.locate(&member.node());
            let moved = move || {
                let stats = counter.as_ref()?.read().ok()?;
                Some((stats.sectors_read + stats.sectors_written) * SECTOR)
            };
            scope.spawn(move || of(&node, member.size, READ_TIME, moved))
        });
        let members: Vec<_> = members.collect();
        members
            .into_iter()
            .filter_map(|member| member.join().ok()?.ok())
            .collect::<Vec<Option<f64>>>()
    });
    if rates.contains(&None) {
        return Some(Speed::Busy(busy));
    }
    let slowest = rates.into_iter().flatten().min_by(f64::total_cmp)?;
    Some(Speed::Alone(slowest * target.parallel_members() as f64))
}

/// Share of the time in which the busiest member has requests in flight, while this process reads nothing (`io_ticks`
/// in linux, Documentation/block/stat.rst). A member whose counters cannot be read counts as idle.
fn busy(target: &Target, root: &Root) -> f64 {
    let counters = target.members.iter();
    let counters: Vec<Counter> = counters
        .filter_map(|member| Counter::open(root, member).ok())
        .collect();
    let now = || -> Vec<u64> {
        let stats = counters.iter().map(Counter::read);
        stats
            .map(|stats| stats.map_or(0, |stats| stats.busy_ms))
            .collect()
    };
    let began = Instant::now();
    let before = now();
    sleep(IDLE_CHECK_TIME);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let most = now()
        .into_iter()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before))
        .max();
    (most.unwrap_or(0) as f64 / ms).min(1.0)
}

/// Rate of one device in bytes a second, read sequentially from its middle with direct I/O; `None` as soon as another
/// program uses it, by the bytes that all programs have moved.
fn of(
    node: &Path,
    size: Bytes,
    lasts: Duration,
    mut moved_by_all: impl FnMut() -> Option<u64>,
) -> io::Result<Option<f64>> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let device = File::options().read(true).custom_flags(flags).open(node)?;
    let length = READ as u64;
    let last = (size.0 / length).max(1);
    let mut buffer = Buffer::new(1, READ);
    let before = moved_by_all();
    let began = Instant::now();
    let mut moved = 0;
    let mut place = last / 2;
    while began.elapsed() < lasts {
        let read = device.read_at(buffer.part_mut(0), place * length)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        moved += read as u64;
        let all = before
            .zip(moved_by_all())
            .map(|(before, now)| now.saturating_sub(before));
        if all.is_some_and(|all| all > moved + MAX_JOURNAL_BYTES) {
            return Ok(None);
        }
        place = (place + 1) % last;
    }
    Ok(Some(moved as f64 / began.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_over_and_over_unless_others_use_it_and_what_is_not_there_has_no_speed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("member");
        std::fs::write(&path, vec![1; 4 * READ]).unwrap();
        let lasts = Duration::from_millis(50);
        let direct = File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed())
            .open(&path);
        // Not every file system has direct I/O.
        if direct.is_ok() {
            let size = Bytes(4 * READ as u64);
            let speed = of(&path, size, lasts, || None).unwrap();
            assert!(speed.unwrap() > READ as f64, "{speed:?}");
            // Other programs move as many bytes as this process reads.
            let mut moved = 0;
            let of_others = || {
                moved += 2 * READ as u64;
                Some(moved)
            };
            let speed = of(&path, size, Duration::MAX, of_others).unwrap();
            assert_eq!(speed, None, "it ends at once");
        }
        assert!(of(&place.path().join("none"), Bytes(1), lasts, || None).is_err());
    }
}
