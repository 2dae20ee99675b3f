//! A disk for the tests of `zero`: a loop device on a file in the test's own place, and what is said
//! of it.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::loops::{Loop, fill, skipped};
use crate::support::{Place, ProgramOutput, Running};

pub(crate) const MIB: u64 = 1 << 20;

/// A loop device on a file in the test's own place, full of data that is no signature.
pub(crate) struct Disk {
    pub(crate) device: Loop,
    pub(crate) file: PathBuf,
    /// The argument of `--destroy` for it, with unknown data on it.
    pub(crate) consent: String,
}

impl Disk {
    /// One of so many bytes.
    pub(crate) fn new(place: &Place, name: &str, bytes: u64) -> Option<Disk> {
        let file = place.path(name);
        fill(file.to_str().unwrap(), bytes.div_ceil(MIB));
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        Disk::on(file)
    }

    /// One that has nothing behind it yet.
    pub(crate) fn sparse(place: &Place, name: &str, bytes: u64) -> Option<Disk> {
        let file = place.path(name);
        File::create(&file).unwrap().set_len(bytes).unwrap();
        Disk::on(file)
    }

    pub(crate) fn on(file: PathBuf) -> Option<Disk> {
        let device = Loop::on(&file).map_err(|why| skipped(&why)).ok()?;
        let consent = format!("{}=unknown", device.path());
        Some(Disk {
            device,
            file,
            consent,
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.device.path()
    }

    pub(crate) fn zero(&self, place: &Place, arguments: &[&str]) -> ProgramOutput {
        place.run(&self.words(arguments))
    }

    fn words<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [
            &["zero", self.path(), "--destroy", &self.consent],
            arguments,
        ]
        .concat()
    }

    pub(crate) fn start(&self, place: &Place, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(place, arguments))
    }

    pub(crate) fn command(&self, place: &Place, arguments: &[&str]) -> Command {
        place.command(&self.words(arguments))
    }

    /// The places, one in each MiB, that are zero, behind the first block, which has a stamp. They are read in the
    /// file: in the device's own page cache they would stay as they were.
    pub(crate) fn zero_places(&self) -> Vec<u64> {
        let file = File::open(&self.file).unwrap();
        let is_zero = |at: &u64| {
            let mut block = [1; 4096];
            file.read_exact_at(&mut block, *at).unwrap();
            block == [0; 4096]
        };
        let last = file.metadata().unwrap().len() - 4096;
        (4096..last).step_by(MIB as usize).filter(is_zero).collect()
    }

    /// Starts a zeroing with a command, and waits until more of the disk is zero than was, its first 3 MiB
    /// included, in order: after a sample of random places, which may have these among them and counts once it is whole.
    pub(crate) fn start_and_wait(&self, command: &mut Command) -> Running {
        let before = self.zero_places().len();
        let mut running = Running::start(command);
        running.wait_until("zeroes nothing", || self.has_come_beyond(before));
        running
    }

    pub(crate) fn has_come_beyond(&self, before: usize) -> bool {
        let now = self.zero_places();
        // A sample is a quarter of the places at most; before it comes the first place, after it the rest.
        let sample = (fs::metadata(&self.file).unwrap().len() / MIB / 4) as usize;
        now.len() > before.max(sample + 1)
            && now.iter().take_while(|at| **at < 3 * MIB).count() == 3
    }

    /// Bytes that were written to it since the host was started.
    pub(crate) fn written(&self) -> u64 {
        let text = fs::read_to_string(format!("/sys/block/{}/stat", self.device.name())).unwrap();
        let sectors: u64 = text.split_whitespace().nth(6).unwrap().parse().unwrap();
        512 * sectors
    }

    /// Bytes allocated behind it.
    pub(crate) fn allocated(&self) -> u64 {
        fs::metadata(&self.file).unwrap().blocks() * 512
    }

    pub(crate) fn change(&self, at: u64) {
        let mut node = File::options().write(true).open(self.path()).unwrap();
        node.seek(SeekFrom::Start(at)).unwrap();
        node.write_all(&[7; 4096]).unwrap();
        node.sync_all().unwrap();
    }
}

/// Number of bytes of a device that are not zero.
pub(crate) fn not_zero(node: &Path) -> usize {
    let mut bytes = Vec::new();
    File::open(node).unwrap().read_to_end(&mut bytes).unwrap();
    bytes.iter().filter(|byte| **byte != 0).count()
}

pub(crate) fn only(said: &ProgramOutput) -> Value {
    let document = said.json();
    assert_eq!(
        (&document["schema"], &document["command"]),
        (&1.into(), &"zero".into())
    );
    let disks = document["disks"].as_array().unwrap();
    assert_eq!(disks.len(), 1, "{document:#}");
    disks[0].clone()
}
