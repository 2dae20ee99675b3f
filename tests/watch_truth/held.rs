//! Caps that the kernel of this host keeps: disks of loop devices whose requests go through a limit of blkio.
//! An emulated machine hands on in clumps what is answered, so that no rate in it is flat.

use std::process::Command;
use std::thread;

use crate::causes::SIZES;
use crate::dice::Random;
use crate::loops::{FileSystem, Loop, Other, Throttle, fill, run};
use crate::machine::{findings, keep};
use crate::play::{Play, Verdict, judge};
use crate::support::{Place, has_program, skipped};

/// Length of the watch. A cap is found in 80 seconds in which the host hardly hesitates, twice.
const SECONDS: u64 = 150;
/// So many plays of each kind continue at a time: more would keep the host busy.
const AT_A_TIME: u64 = 5;
/// The size of a disk.
const MIB: u64 = 16;

/// Disks at work whose requests go through one limit, which is that of a device below them: to whoever looks
/// at a disk, its requests wait.
struct Held {
    // What lies on the others is taken down before them.
    disks: Vec<(Other, Loop)>,
    limit: Throttle,
    below: FileSystem,
    play: Play,
}

impl Held {
    /// No disk yet, and room for so many. `None`, with a note, where that cannot be made here.
    fn new(disks: u64) -> Option<Held> {
        let below = FileSystem::new("ext4", (disks + 1) * MIB)?;
        Some(Held {
            disks: Vec::new(),
            limit: Throttle::on(&below.device)?,
            below,
            play: Play::nothing(Vec::new(), SECONDS),
        })
    }

    /// Another disk, with random reads past the page cache by fio.
    fn add(&mut self, block: u64, depth: u64, more: &[String]) -> Option<String> {
        let file = self.below.join(&format!("disk{}", self.disks.len()));
        fill(&file, MIB);
        let disk = Loop::on(file.as_ref()).map_err(|why| skipped(&why)).ok()?;
        run("losetup", &["--direct-io=on", disk.path()]);
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--direct=1",
            "--rw=randread",
            "--time_based",
            "--thread",
        ])
        .args(["--ioengine=libaio", "--randrepeat=0"])
        .arg(format!("--filename={}", disk.path()))
        .arg(format!("--runtime={}", 2 * SECONDS))
        .arg(format!("--bs={block}k"))
        .arg(format!("--iodepth={depth}"))
        .args(more);
        let load = Other::start(&mut self.limit.hold(&fio));
        let name = disk.name();
        self.disks.push((load, disk));
        Some(name)
    }

    /// Findings of `watch` on these disks.
    fn watched(self) -> Verdict {
        let names: Vec<String> = self.disks.iter().map(|(_, disk)| disk.name()).collect();
        let seconds = SECONDS.to_string();
        let mut words = vec!["watch", "--json", "--count", &seconds];
        words.extend(names.iter().map(String::as_str));
        let now = jiff::Timestamp::now().as_second();
        let began = format!("{{\"kind\":\"began\",\"at\":{now}}}\n");
        let out = began + &Place::new().run(&words).ends_with(0).out;
        keep("held", &out, &format!("{:#?}", self.play));
        judge(&self.play, &findings(&out))
    }
}

/// More is asked than a cap on operations or on throughput lets through.
fn volume_cap(dice: &mut Random) -> Option<Held> {
    let mut held = Held::new(1)?;
    let depth = dice.between(8, 48);
    let (cap, block) = match dice.between(0, 1) {
        0 => {
            let iops = dice.between(80, 300);
            held.limit.limit_iops(iops);
            (format!("{iops} IOPS"), dice.one(&SIZES))
        }
        _ => {
            let mib = dice.between(8, 24);
            held.limit.limit_bytes(mib << 20);
            (format!("{mib} MiB/s"), 128)
        }
    };
    let name = held.add(block, depth, &[])?;
    held.play = Play {
        what: format!("{cap}, {depth} reads of {block} KiB at a time"),
        ..Play::of("volume-cap", &name, 0, SECONDS)
    };
    Some(held)
}

/// Disks that share a cap. The first is always at work, and each of the others rests for a while after so many
/// requests.
fn instance_cap(dice: &mut Random) -> Option<Held> {
    let disks = dice.between(3, 5);
    let mut held = Held::new(disks)?;
    let cap = dice.between(150, 300);
    held.limit.limit_iops(cap);
    let (block, depth) = (dice.one(&SIZES), dice.between(12, 24));
    let mut on = vec!["host".to_owned()];
    for number in 0..disks {
        let requests = dice.between(2, 6) * cap / disks;
        let rest = dice.between(1, 5);
        let rests = match number {
            0 => Vec::new(),
            _ => vec![
                format!("--thinktime={rest}s"),
                format!("--thinktime_blocks={requests}"),
            ],
        };
        on.push(held.add(block, depth, &rests)?);
    }
    held.play = Play {
        what: format!(
            "{cap} IOPS of {disks} disks, {depth} reads of {block} KiB at a time of each"
        ),
        on,
        ..Play::of("instance-cap", "host", 0, SECONDS)
    };
    Some(held)
}

/// A program asks so many times a second, as evenly as a cap would let it, of a disk that gives far more.
fn nothing(dice: &mut Random) -> Option<Held> {
    let mut held = Held::new(1)?;
    let rate = dice.between(80, 300);
    let block = dice.one(&SIZES);
    let name = held.add(block, 8, &[format!("--rate_iops={rate}")])?;
    held.play = Play {
        what: format!("{rate} reads of {block} KiB a second are asked for"),
        ..Play::nothing(vec![name, "host".to_owned()], SECONDS)
    };
    Some(held)
}

/// Plays each so often, and some of them at the same time.
pub(crate) fn play_all(plays: u64, dice: &mut Random) -> Option<Vec<Verdict>> {
    if !has_program("fio") {
        skipped("fio is not installed");
        return None;
    }
    let mut verdicts = Vec::new();
    for round in 0..plays.div_ceil(AT_A_TIME) {
        let mut held = Vec::new();
        for _ in 0..AT_A_TIME.min(plays - round * AT_A_TIME) {
            held.extend([volume_cap(dice)?, instance_cap(dice)?, nothing(dice)?]);
        }
        let watched = held
            .into_iter()
            .map(|held| thread::spawn(|| held.watched()));
        let watched: Vec<_> = watched.collect();
        for one in watched {
            let verdict = one.join().unwrap();
            println!("{verdict}");
            verdicts.push(verdict);
        }
    }
    Some(verdicts)
}
