//! Rate at which the members of an array can be read, where no earlier scrub shows it: each is read for a
//! moment, all at once, as a check would.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::diskstats::Counter;
use record::Bytes;
use rustix::fs::OFlags;

use super::locate::Buffer;
use super::target::Target;

/// So long it is looked how busy the members are. Nothing is begun meanwhile.
const LOOKS: Duration = Duration::from_millis(300);
/// So long each member is read.
const LASTS: Duration = Duration::from_secs(1);
/// Size of one read: large enough that the time to a disk across a network does not count for much.
const READ: usize = 1 << 20;

/// Rate of the members of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// Bytes a second, as md counts positions, of a check that has them for itself. What others read
    /// and write meanwhile makes it less, so that it is no promise of how it will be when they are gone.
    pub alone: f64,
    /// The share of the time in which others had requests at the busiest one, just before.
    pub busy: f64,
}

/// Reads the members for a moment; `None` where they cannot be read.
pub(super) fn of_members(target: &Target, root: &Root) -> Option<Speed> {
    let busy = busy(target, root);
    Some(Speed {
        alone: alone(target, root)?,
        busy,
    })
}

/// The share of the time in which the busiest member has something to do, while nothing is read here
/// (`io_ticks` in linux, Documentation/block/stat.rst). What cannot be read counts as idle.
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
    sleep(LOOKS);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let most = now()
        .into_iter()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before))
        .max();
    (most.unwrap_or(0) as f64 / ms).min(1.0)
}

fn alone(target: &Target, root: &Root) -> Option<f64> {
    let slowest = std::thread::scope(|scope| {
        let members = target.members.iter().map(|member| {
            let node = root.locate(&member.node());
            scope.spawn(move || of(&node, member.size, LASTS).ok())
        });
        let members: Vec<_> = members.collect();
        members
            .into_iter()
            .filter_map(|member| member.join().ok()?)
            .min_by(f64::total_cmp)
    });
    Some(slowest? * target.wide() as f64)
}

/// Bytes a second of one device, read on from its middle past the cache.
fn of(node: &Path, size: Bytes, lasts: Duration) -> io::Result<f64> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let device = File::options().read(true).custom_flags(flags).open(node)?;
    let length = READ as u64;
    let last = (size.0 / length).max(1);
    let mut buffer = Buffer::new(1, READ);
    buffer.set(1, READ);
    let began = Instant::now();
    let mut moved = 0;
    let mut place = last / 2;
    while began.elapsed() < lasts {
        let read = device.read_at(buffer.part_mut(0), place * length)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        moved += read;
        place = (place + 1) % last;
    }
    Ok(moved as f64 / began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_over_and_over_and_what_is_not_there_has_no_speed() {
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
            let speed = of(&path, Bytes(4 * READ as u64), lasts).unwrap();
            assert!(speed > READ as f64, "{speed}");
        }
        assert!(of(&place.path().join("none"), Bytes(1), lasts).is_err());
    }
}
