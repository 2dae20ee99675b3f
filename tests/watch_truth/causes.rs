//! The causes that lie in a disk or in the host, one function each: what it puts into a machine, and what
//! must be found.
//!
//! The random choices vary what a rule could rely on: the member, the load, sizes, and the start.

use crate::dice::Random;
use crate::machine::{Load, Machine};
use crate::play::Play;

/// When a cause begins, and whether there is time for what is seen slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The earliest and the latest beginning of what is seen at once.
    pub(crate) soon: (u64, u64),
    /// The same of what needs a time without it first.
    pub(crate) after: (u64, u64),
    /// The same of what needs half a minute.
    pub(crate) early: (u64, u64),
    /// Factor of the lengths of what lasts only for some seconds.
    pub(crate) stretch: u64,
}

impl Times {
    /// For a machine of a minute and more.
    pub(crate) const LONG: Times = Times {
        soon: (8, 38),
        after: (27, 36),
        early: (2, 22),
        stretch: 1,
    };
    /// For one of some seconds, where there is time only for what is seen at once.
    pub(crate) const SHORT: Times = Times {
        soon: (3, 5),
        after: (5, 5),
        early: (0, 0),
        stretch: 1,
    };
}

/// Sizes of requests in KiB.
pub(crate) const SIZES: [u64; 3] = [8, 16, 32];
/// In KiB.
pub(crate) const MIB: u64 = 1024;

/// Streams of which some read and some write, over a span.
pub(crate) fn mixed(dice: &mut Random, streams: u64, span: u64) -> Load {
    let reads = dice.between(0, streams);
    Load {
        reads,
        writes: streams - reads,
        block: dice.one(&SIZES),
        span,
    }
}

/// Streams that read.
pub(crate) fn reading(streams: u64, block: u64, span: u64) -> Load {
    Load {
        reads: streams,
        writes: 0,
        block,
        span,
    }
}

/// So many volumes of one kind.
pub(crate) fn volumes(machine: &mut Machine, count: usize, spec: &str) -> Vec<String> {
    (0..count).map(|_| machine.volume(spec)).collect()
}

/// Burst credit lasts for most of a minute.
pub(crate) fn burst_spent(machine: &mut Machine, dice: &mut Random) {
    let begins = dice.between(47, 57);
    let base = dice.between(30, 60);
    let burst = base * dice.between(20, 35) / 10;
    // Credit flows in at the base rate while it is spent.
    let credits = (burst - base) * begins;
    let spec = format!("iops={base},burst={burst},credits={credits},latency=5ms");
    let device = machine.volume(&format!("{spec},merge=none:512MiB"));
    let streams = dice.between(7, 12);
    let load = mixed(dice, streams, 480 * MIB);
    machine.load_from(0, &device, &load);
    machine.add(Play {
        what: format!("{spec}, gone at {begins} s, {load}"),
        // A burst has its own cap, and so has what is left.
        follows: &["volume-cap"],
        ..Play::of("burst-spent", &device, begins, machine.seconds())
    });
}

/// Blocks of a restored volume are read for the first time: from the beginning, one at a time, or
/// after others that were read before.
pub(crate) fn cold(machine: &mut Machine, dice: &mut Random, times: Times) {
    let seconds = machine.seconds();
    let block = dice.one(&SIZES);
    // Requests come in order, so that each is to meet a cold block of its own.
    let spec = format!("cold,cold-block={block}KiB,merge=none");
    let (begins, what, device) = if dice.between(0, 1) == 0 {
        let begins = dice.between(times.early.0, times.early.1);
        let device = machine.volume(&format!("{spec}:512MiB"));
        let load = reading(1, block, 500 * MIB);
        machine.load_from(begins, &device, &load);
        (begins, format!("from the first read on, {load}"), device)
    } else {
        let begins = dice.between(times.after.0, times.after.1) - 5;
        let device = machine.volume(&format!("{spec},latency=10ms:512MiB"));
        let warm = reading(1, block, 64 * block);
        machine.load_from(0, &device, &warm);
        machine.end_loads(begins, &device);
        let load = reading(dice.between(1, 2), block, 500 * MIB);
        machine.at(begins + 1, &format!("rm /tmp/{device}.end"));
        machine.load_from(begins + 2, &device, &load);
        (begins + 2, format!("after others, {load}"), device)
    };
    machine.add(Play {
        what,
        ..Play::of("cold", &device, begins, seconds)
    });
}

/// More is in flight than the queues take.
pub(crate) fn queue_full(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.soon.0, times.soon.1);
    let (latency, depth) = (dice.between(150, 250), dice.between(4, 6));
    let device = machine.volume(&format!("latency={latency}ms:512MiB"));
    machine.prepare(&format!(
        "echo {depth} >/sys/block/{device}/queue/nr_requests"
    ));
    let load = mixed(dice, 2 * depth, 480 * MIB);
    machine.load_from(begins, &device, &load);
    machine.add(Play {
        what: format!("nr_requests {depth} from {begins} s, {load}"),
        ..Play::of("queue-full", &device, begins, machine.seconds())
    });
}

/// A disk is kept busy by pages of memory.
pub(crate) fn small_io(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.early.0, times.early.1);
    // Half as many again as take note, for what an emulated machine is late.
    let (latency, streams) = (dice.between(10, 16), dice.between(3, 5));
    let device = machine.volume(&format!("latency={latency}ms,merge=none:512MiB"));
    let mut load = mixed(dice, streams, 480 * MIB);
    load.block = 4;
    machine.load_from(begins, &device, &load);
    machine.add(Play {
        what: format!("from {begins} s, {latency} ms, {load}"),
        ..Play::of("small-io", &device, begins, machine.seconds())
    });
}

/// Files are written faster than the disk takes.
pub(crate) fn writeback(machine: &mut Machine, dice: &mut Random, times: Times) {
    let begins = dice.between(times.soon.0, times.soon.1);
    let (rate, limit) = (dice.between(4, 8), dice.between(24, 48));
    let device = machine.volume(&format!("throughput={rate}MiB,latency=2ms:512MiB"));
    // QEMU puts neighbouring writes together, up to all that are in flight, and then nothing completes
    // for as long as all of them take: a stall of its own.
    machine.prepare(&format!(
        "echo 16 >/sys/block/{device}/queue/nr_requests\n\
         echo 128 >/sys/block/{device}/queue/max_sectors_kb\n\
         echo {} >/proc/sys/vm/dirty_bytes; echo {} >/proc/sys/vm/dirty_background_bytes\n\
         mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/{device}\n\
         mkdir -p /srv; mount /dev/{device} /srv; echo 3 >/proc/sys/vm/drop_caches",
        limit << 20,
        limit << 19,
    ));
    machine.at(
        begins,
        "for turn in 1 2 3; do dd if=/dev/zero of=/srv/file bs=64k count=1600 conv=notrunc; done",
    );
    machine.add(Play {
        what: format!("{limit} MiB at {rate} MiB/s from {begins} s"),
        on: vec!["host".to_owned(), device],
        // The disk is at its cap, and its queue is filled by the kernel. Where md could not write a superblock,
        // the kernel's log does not say of which array: that is said of the host, and comes of the errors
        // that are played in the same machine.
        follows: &["volume-cap", "queue-full", "errors"],
        ..Play::of("writeback", "host", begins, begins + 20)
    });
}
