//! `/proc/mdstat`: md's present actions, in one read for all arrays (linux, drivers/md/md.c, `md_seq_show`). Values
//! that change rarely are in sysfs, see [`crate::md`].

use record::Bytes;
use record::raid::MdLevel;
use record::sample::{BytesPerSecond, Progress, SyncAction};

use super::polled_file::PolledFile;
use crate::root::{Result, Root};

/// Unit of positions in the file in bytes; speeds are in this unit a second.
const BLOCK: u64 = 1024;

/// A member in the first line of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberWord {
    /// The kernel's name of it.
    pub name: String,
    /// True for a member marked `(F)`: faulty.
    pub faulty: bool,
    /// True for a member marked `(S)`: spare.
    pub spare: bool,
}

/// An array in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayLine {
    /// The kernel's name, such as `md127`.
    pub name: String,
    /// True if it is assembled.
    pub active: bool,
    /// True if it is assembled but unusable: a member is missing at a level without redundancy (Linux 6.0).
    pub broken: bool,
    /// RAID level of the array, such as `raid10`.
    pub level: Option<MdLevel>,
    /// Members of the array, in the kernel's order.
    pub members: Vec<MemberWord>,
    /// Size of the array; `None` if it is not in the line.
    pub size: Option<Bytes>,
    /// Number of members that it should have, and number of working ones.
    pub wanted_and_working: Option<(u32, u32)>,
    /// Action in progress, or pending.
    pub action: Option<SyncAction>,
    /// Position of the action; `None` if none is in progress.
    pub position: Option<Progress>,
    /// Speed of the action; `None` if none is in progress.
    pub speed: Option<BytesPerSecond>,
}

impl ArrayLine {
    /// Parses the text of the file. Lines that belong to no array are skipped.
    pub fn parse_all(text: &[u8]) -> Vec<ArrayLine> {
        let mut arrays: Vec<ArrayLine> = Vec::new();
        for line in super::polled_file::lines(text) {
            if let Some(array) = first_line(line) {
                arrays.push(array);
            } else if let Some(array) = arrays.last_mut() {
                array.further_line(line);
            }
        }
        arrays
    }

    /// Parses the lines after the first: the size with `[4/3] [UU_U]`, and the action in progress.
    fn further_line(&mut self, line: &str) {
        for word in line.split_ascii_whitespace() {
            let inside = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
            if let Some((wanted, working)) = inside.and_then(|inside| inside.split_once('/'))
                && let (Ok(wanted), Ok(working)) = (wanted.parse(), working.parse())
            {
                self.wanted_and_working = Some((wanted, working));
            }
        }
        let trimmed = line.trim_start();
        if let Some((size, _)) = trimmed.split_once(" blocks") {
            self.size = blocks(size).or(self.size);
        }
        // `resync=DELAYED` waits for another array on the same disks.
        if let Some((word, _)) = trimmed.split_once('=')
            && let Some(action) = action(word.rsplit(' ').next().unwrap_or(word))
        {
            self.action = Some(action);
        }
        // `[==>....]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec`.
        let Some((before, after)) = trimmed.split_once(" = ") else {
            return;
        };
        self.action = before.rsplit(' ').next().and_then(action);
        if self.action.is_none() {
            return;
        }
        self.position = after
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .and_then(|(inside, _)| inside.split_once('/'))
            .and_then(|(done, of)| {
                Some(Progress {
                    done: blocks(done)?,
                    of: blocks(of)?,
                })
            });
        self.speed = after
            .split_once("speed=")
            .and_then(|(_, rest)| rest.split_once("K/sec"))
            .and_then(|(speed, _)| speed.parse::<f64>().ok())
            .map(|speed| BytesPerSecond(speed * BLOCK as f64));
    }
}

/// Parses a first line like `md0 : active raid10 vdd[3] vdc[2](F) vdb[1]`, possibly with `(read-only)` or
/// `(auto-read-only)` after `active`.
fn first_line(line: &str) -> Option<ArrayLine> {
    let (name, rest) = line.split_once(" : ")?;
    if !name.starts_with("md") || name.contains(' ') {
        return None;
    }
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    let mut array = ArrayLine {
        name: name.to_owned(),
        active: ["active", "broken"].contains(&state),
        broken: state == "broken",
        ..ArrayLine::default()
    };
    for word in words {
        match word.split_once('[') {
            Some((member, flags)) => array.members.push(MemberWord {
                name: member.to_owned(),
                faulty: flags.contains("(F)"),
                spare: flags.contains("(S)"),
            }),
            None if word.starts_with('(') => {}
            None => array.level = Some(MdLevel::from(word.to_owned())),
        }
    }
    Some(array)
}

/// The action of a word; the file has `recovery` where sysfs has `recover`.
fn action(word: &str) -> Option<SyncAction> {
    match word {
        "recovery" => Some(SyncAction::Recover),
        "resync" => Some(SyncAction::Resync),
        "check" => Some(SyncAction::Check),
        "reshape" => Some(SyncAction::Reshape),
        "repair" => Some(SyncAction::Repair),
        _ => None,
    }
}

fn blocks(text: &str) -> Option<Bytes> {
    let blocks: u64 = text.trim().parse().ok()?;
    Some(Bytes(blocks.saturating_mul(BLOCK)))
}

/// Reads `/proc/mdstat`.
#[derive(Debug)]
pub struct MdStat {
    file: PolledFile,
}

impl MdStat {
    /// Opens the file.
    ///
    /// # Errors
    /// When it does not exist: the kernel has no md, or it is not loaded yet.
    pub fn open(root: &Root) -> Result<MdStat> {
        let file = PolledFile::open(&root.proc.join("mdstat"))?;
        Ok(MdStat { file })
    }

    /// The present arrays.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> Result<Vec<ArrayLine>> {
        Ok(ArrayLine::parse_all(self.file.read()?))
    }
}

#[cfg(test)]
mod tests {
    use record::raid::Level;

    use super::*;
    use proptest::prelude::*;

    const SEEN: &[u8] = b"\
Personalities : [raid1] [raid6] [raid5] [raid4] [raid10] [raid0]
md1 : active raid10 vde[4](S) vdd[3] vdc[2](F) vdb[1](W) vda[0]
      292945152 blocks super 1.2 512K chunks 2 near-copies [4/3] [UU_U]
      [==>..................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec
      bitmap: 1/3 pages [4KB], 65536KB chunk

md2 : active (auto-read-only) raid1 sdb1[1] sda1[0]
      1047552 blocks [2/2] [UU]
      \tresync=PENDING

md3 : inactive sdc[0](S)
      1047552 blocks super 1.2

md0 : active raid0 nvme2n1[1] nvme1n1[0]
      2093056 blocks super 1.2 512k chunks

unused devices: <none>
";

    #[test]
    fn every_array_is_read() {
        let arrays = ArrayLine::parse_all(SEEN);
        let names: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
        assert_eq!(names, ["md1", "md2", "md3", "md0"]);
        let [md1, md2, md3, md0] = &arrays[..] else {
            panic!("{arrays:?}");
        };
        assert_eq!(md1.level, Some(Level::Ten.into()));
        assert_eq!(md1.wanted_and_working, Some((4, 3)));
        assert_eq!(md1.action, Some(SyncAction::Recover));
        assert_eq!(
            md1.position,
            Some(Progress {
                done: Bytes::kib(37_043_392),
                of: Bytes::kib(292_945_152)
            })
        );
        assert_eq!(md1.speed, Some(BytesPerSecond(33_440.0 * 1024.0)));
        let faulty: Vec<bool> = md1.members.iter().map(|member| member.faulty).collect();
        assert_eq!(faulty, [false, false, true, false, false]);
        assert!(md1.members[0].spare);
        assert_eq!(md1.size, Some(Bytes::kib(292_945_152)));
        assert_eq!(md2.level, Some(Level::One.into()));
        assert_eq!(md2.action, Some(SyncAction::Resync));
        assert_eq!(md2.position, None);
        assert!(!md3.active);
        assert_eq!(md3.level, None);
        assert_eq!(md0.wanted_and_working, None);
        assert_eq!(md0.action, None);
    }

    #[test]
    fn an_array_that_lost_what_it_has_no_copy_of_is_broken() {
        let seen = b"md0 : broken raid0 nvme2n1[1] nvme1n1[0]\n      2093056 blocks super 1.2\n";
        let arrays = ArrayLine::parse_all(seen);
        assert!(arrays[0].broken && arrays[0].active);
        assert_eq!(arrays[0].level, Some(Level::Zero.into()));
        assert!(!ArrayLine::parse_all(SEEN).iter().any(|array| array.broken));
    }

    #[test]
    fn every_action_is_known_by_its_word() {
        for (word, known) in [
            ("check", SyncAction::Check),
            ("resync", SyncAction::Resync),
            ("reshape", SyncAction::Reshape),
        ] {
            let text = format!(
                "md0 : active raid1 sda[0] sdb[1]\n  100 blocks [2/2] [UU]\n  \
                 [>..]  {word} =  0.5% (5/1000) finish=0.1min speed=12K/sec\n"
            );
            let arrays = ArrayLine::parse_all(text.as_bytes());
            assert_eq!(arrays[0].action, Some(known));
            assert_eq!(arrays[0].speed, Some(BytesPerSecond(12_288.0)));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: Vec<u8>) {
            let _ = ArrayLine::parse_all(&text);
        }

        #[test]
        fn a_damaged_file_is_read(at in 0..SEEN.len(), byte: u8) {
            let mut text = SEEN.to_vec();
            text[at] = byte;
            let _ = ArrayLine::parse_all(&text);
            let _ = ArrayLine::parse_all(&text[..at]);
        }
    }
}
