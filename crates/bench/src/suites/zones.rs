//! `--suite zones`: ZCAV. Sequential reads in zones of the target, each read twice.
//!
//! The zones are not read in order: a disk that gets slower with time, for example because its burst credit is spent,
//! would look like a disk that is slower at its end.

use record::{Bytes, JobOptions, Nanos, Pattern, Phase, Workload};

use crate::phase_plan::{PhasePlan, base};
use crate::schedule::Schedule;
use crate::zone_phases::{SECOND_READ_SUFFIX, is_again};

/// Number of zones.
pub(crate) const ZONES: u64 = 64;
/// Minimum number of requests in a zone.
const MIN_REQUESTS: u64 = 16;
/// The smallest request that is chosen for a small target.
const MIN_BLOCK_SIZE: Bytes = Bytes::kib(4);
/// Largest number in flight, since without io_uring each is a thread.
const MAX_IN_FLIGHT: u64 = 128;

/// The pattern of all phases: each zone for 2 s at most, or until it is precise.
pub(crate) fn pattern() -> PhasePlan {
    let workload = Workload {
        pattern: Pattern::Sequential,
        block: Bytes::MIB,
        depth: 8,
        longest: Nanos::from_secs(2),
        shortest: Nanos(400_000_000),
        ..base()
    };
    PhasePlan {
        // Slices of 20 ms: an interval needs at least twenty of them.
        window: Nanos(200_000_000),
        ..PhasePlan::new("zones", workload)
    }
}

/// Options that the user gave: their values are not adapted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenOptions {
    /// True if the user gave the size of requests.
    pub block: bool,
    /// True if the user gave the number of requests in flight.
    pub depth: bool,
}

/// The zones of a target.
pub(crate) struct Zones {
    pattern: PhasePlan,
    span: Bytes,
    zone: Bytes,
}

impl Zones {
    /// Divides a target whose disks take requests of up to `whole` without a split. Unless the user gave them, the
    /// size and number of requests are adapted to small zones and to such disks.
    ///
    /// A request that the kernel must split costs io_uring a try for nothing since Linux 6.3 (commit
    /// 9cea62b2cbab): it comes back with EAGAIN, and is made once more by a thread. A limit of the blkio
    /// controller counts both, so that the disk would seem half as fast as it is.
    ///
    /// # Errors
    /// When the zones would be too small to be measured.
    pub(crate) fn of(
        mut pattern: PhasePlan,
        size: Bytes,
        asked: GivenOptions,
        whole: Option<Bytes>,
    ) -> Result<Zones, String> {
        let span = pattern.workload.span.unwrap_or(size);
        let zone = Bytes(span.0 / ZONES);
        let workload = &mut pattern.workload;
        if !asked.block {
            let in_flight = workload.block.0 * u64::from(workload.depth);
            let fits = |block: Bytes| {
                zone.0 / block.0 >= MIN_REQUESTS && whole.is_none_or(|whole| block <= whole)
            };
            while !fits(workload.block) && workload.block > MIN_BLOCK_SIZE {
                workload.block = Bytes(workload.block.0 / 2);
            }
            // As many bytes in flight as with larger requests, but at most half a zone.
            let requests = in_flight.min(zone.0 / 2) / workload.block.0;
            if !asked.depth {
                workload.depth = workload.depth.max(requests.min(MAX_IN_FLIGHT) as u32);
            }
        }
        let zone = zone.round_down(workload.block);
        if zone.0 / workload.block.0 < MIN_REQUESTS {
            return Err(format!(
                "{span} are too small for {ZONES} zones of {MIN_REQUESTS} requests of {} each; \
                 measure a larger target, or give a smaller --block",
                workload.block
            ));
        }
        Ok(Zones {
            pattern,
            span,
            zone,
        })
    }

    /// The zone that is read as the `nth`: the number with its six bits reversed, so that consecutive reads are
    /// spread over the whole target.
    fn order(nth: u64) -> u64 {
        nth.reverse_bits() >> (u64::BITS - ZONES.trailing_zeros())
    }

    /// Start of a zone, rounded down to a whole request.
    fn start(&self, zone: u64) -> Bytes {
        let exact = u128::from(self.span.0) * u128::from(zone) / u128::from(ZONES);
        Bytes(exact as u64).round_down(self.pattern.workload.block)
    }

    /// A read of `bytes` from the start of a zone.
    fn read(&self, zone: u64, bytes: Bytes, again: &str) -> PhasePlan {
        let details = JobOptions {
            offset: self.start(zone),
            bytes: Some(bytes),
            ..JobOptions::default()
        };
        PhasePlan {
            name: format!("zone-{zone:02}{again}"),
            workload: Workload {
                span: Some(bytes),
                details: Some(Box::new(details)),
                ..self.pattern.workload.clone()
            },
            ..self.pattern.clone()
        }
    }
}

impl Schedule for Zones {
    fn next(&mut self, done: &[Phase]) -> Option<PhasePlan> {
        let firsts = done.iter().filter(|phase| !is_again(phase)).count() as u64;
        if let Some(last) = done.last().filter(|last| !is_again(last)) {
            let read = last.read.as_ref().map_or(0, |flow| flow.bytes);
            let same = Bytes(read.min(self.zone.0)).round_down(self.pattern.workload.block);
            if same.0 > 0 {
                return Some(self.read(Self::order(firsts - 1), same, SECOND_READ_SUFFIX));
            }
        }
        (firsts < ZONES).then(|| self.read(Self::order(firsts), self.zone, ""))
    }

    fn missing(&self, done: &[Phase]) -> Vec<String> {
        let firsts = done.iter().filter(|phase| !is_again(phase)).count() as u64;
        match ZONES - firsts {
            0 => Vec::new(),
            left => vec![format!("{left} of {ZONES} zones")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_is_read_once_and_no_two_neighbours_in_turn() {
        let order: Vec<u64> = (0..ZONES).map(Zones::order).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..ZONES));
        assert!(order.windows(2).all(|two| two[0].abs_diff(two[1]) > 1));
    }

    const NO_OPTIONS: GivenOptions = GivenOptions {
        block: false,
        depth: false,
    };
    const BLOCK: GivenOptions = GivenOptions {
        block: true,
        depth: false,
    };

    #[test]
    fn requests_fit_into_small_zones_unless_their_size_was_given() {
        let zones = Zones::of(pattern(), Bytes::mib(64), NO_OPTIONS, None).unwrap();
        assert_eq!(zones.pattern.workload.block, Bytes::kib(64));
        assert_eq!(zones.pattern.workload.depth, 8);
        let why = Zones::of(pattern(), Bytes::mib(64), BLOCK, None)
            .err()
            .unwrap();
        assert!(why.contains("too small for 64 zones"), "{why}");
        assert!(Zones::of(pattern(), Bytes::kib(64), NO_OPTIONS, None).is_err());
        let large = Zones::of(pattern(), Bytes::gib(64), NO_OPTIONS, None).unwrap();
        assert_eq!(large.pattern.workload.block, Bytes::MIB);
        let plan = large.read(63, large.zone, "");
        assert_eq!(plan.name, "zone-63");
        assert_eq!(plan.workload.details.unwrap().offset, Bytes::gib(63));
    }

    #[test]
    fn a_request_is_no_larger_than_the_disks_take_and_as_much_is_in_flight() {
        let of = |size, asked, whole| {
            let zones = Zones::of(pattern(), size, asked, Some(Bytes::kib(whole))).unwrap();
            (zones.pattern.workload.block, zones.pattern.workload.depth)
        };
        assert_eq!(of(Bytes::gib(64), NO_OPTIONS, 1280), (Bytes::MIB, 8));
        assert_eq!(of(Bytes::gib(64), NO_OPTIONS, 128), (Bytes::kib(128), 64));
        // Half a zone of 4 MiB.
        assert_eq!(of(Bytes::mib(256), NO_OPTIONS, 128), (Bytes::kib(128), 16));
        // The maximum request of some disks behind USB.
        assert_eq!(of(Bytes::gib(64), NO_OPTIONS, 120), (Bytes::kib(64), 128));
        assert_eq!(of(Bytes::gib(64), NO_OPTIONS, 4), (Bytes::kib(4), 128));
        assert_eq!(of(Bytes::gib(64), BLOCK, 128), (Bytes::MIB, 8));
        let depth = GivenOptions {
            block: false,
            depth: true,
        };
        assert_eq!(of(Bytes::gib(64), depth, 128), (Bytes::kib(128), 8));
    }
}
