//! Which disk a plan was made of. Names change with a reboot or when a volume is attached anew, so
//! that who agrees to a plan agrees to these disks, and not to what has their names later.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use linux::block::Devices;
use linux::{Root, process, root};
use serde::{Deserialize, Serialize};

use super::place::Place;

/// What tells a disk from every other that may have its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// The boot of the host: with another, it may also be another host.
    pub boot: String,
    /// The disk's number among all that were attached since (`diskseq` in Linux,
    /// Documentation/ABI/stable/sysfs-block); `None` before Linux 5.15.
    pub diskseq: Option<u64>,
    /// The device's number.
    pub number: String,
    /// The name that is unique in the world, or the serial number.
    pub identity: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

impl FromStr for Seen {
    type Err = String;

    fn from_str(text: &str) -> Result<Seen, String> {
        serde_json::from_str(text).map_err(|why| format!("'{text}' is no disk of a plan: {why}"))
    }
}

impl Seen {
    /// What is to be seen of a disk that is claimed. `devices` must have been read after it was:
    /// until then another may have come under its name.
    ///
    /// # Errors
    /// When it is not known which boot this is.
    pub(crate) fn of(place: &Place, devices: &Devices, root: &Root) -> linux::Result<Seen> {
        let device = devices.get(place.number);
        let disk = device.and_then(|device| match device.partition_of() {
            Some(disk) => devices.get(disk),
            None => Some(device),
        });
        let diskseq = disk.and_then(|disk| {
            let folder = root.sys.join("class/block").join(disk.sysfs_name());
            root::number(&folder.join("diskseq"))
        });
        Ok(Seen {
            boot: process::boot_id(root)?,
            diskseq,
            number: place.number.to_string(),
            identity: device.and_then(linux::block::Device::identity),
            size_bytes: place.size().0,
        })
    }

    /// Why this is not what is there now, as a clause; `None` where it is.
    fn differs(&self, now: &Seen) -> Option<&'static str> {
        if self.boot != now.boot {
            Some("the host was started anew since, or is another")
        } else if self.identity != now.identity {
            Some("its serial number is another")
        } else if self.size_bytes != now.size_bytes {
            Some("its size is another")
        } else if self.diskseq != now.diskseq || self.number != now.number {
            Some("a disk was attached under this name since")
        } else {
            None
        }
    }
}

/// Sentences for the disks that are not those of the plan. Where nothing was planned there are none.
pub(crate) fn differing(planned: &[Seen], paths: &[PathBuf], now: &[Seen]) -> Vec<String> {
    if planned.is_empty() {
        return Vec::new();
    }
    if planned.len() != now.len() {
        return vec![format!(
            "the plan was made of {} disks, and {} are named",
            planned.len(),
            now.len()
        )];
    }
    let problem = |((then, now), path): ((&Seen, &Seen), &PathBuf)| {
        let why = then.differs(now)?;
        let path: &Path = path;
        Some(format!(
            "{} is not the disk that the plan was made of: {why}; make the plan again",
            path.display()
        ))
    };
    planned
        .iter()
        .zip(now)
        .zip(paths)
        .filter_map(problem)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen {
            boot: "b1".to_owned(),
            diskseq: Some(9),
            number: "259:1".to_owned(),
            identity: Some("vol1".to_owned()),
            size_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_disk_that_took_the_name_of_another_is_not_the_disk_of_the_plan() {
        let paths = [PathBuf::from("/dev/nvme1n1")];
        let problems = |now: Seen| differing(&[seen()], &paths, &[now]);
        assert_eq!(problems(seen()), [""; 0]);
        let others = [
            (
                Seen {
                    boot: "b2".to_owned(),
                    ..seen()
                },
                "started anew",
            ),
            (
                Seen {
                    identity: None,
                    ..seen()
                },
                "serial number",
            ),
            (
                Seen {
                    size_bytes: 1 << 20,
                    ..seen()
                },
                "size",
            ),
            (
                Seen {
                    diskseq: Some(10),
                    ..seen()
                },
                "attached under",
            ),
            (
                Seen {
                    number: "259:2".to_owned(),
                    ..seen()
                },
                "attached under",
            ),
        ];
        for (now, told) in others {
            let problems = problems(now);
            assert!(
                problems[0].contains("/dev/nvme1n1 is not the disk"),
                "{problems:?}"
            );
            assert!(problems[0].contains(told), "{problems:?}");
        }
    }

    #[test]
    fn a_plan_of_other_disks_is_no_plan_and_without_one_all_is_as_it_was() {
        let paths = [PathBuf::from("/dev/a")];
        assert_eq!(differing(&[], &paths, &[seen()]), [""; 0]);
        let problems = differing(&[seen(), seen()], &paths, &[seen()]);
        assert!(
            problems[0].contains("made of 2 disks, and 1"),
            "{problems:?}"
        );
    }

    #[test]
    fn it_is_read_as_it_is_written_and_nothing_else_is() {
        let text = serde_json::to_string(&seen()).unwrap();
        assert_eq!(text.parse::<Seen>(), Ok(seen()));
        for bad in ["", "{}", "/dev/a", r#"{"boot":1}"#] {
            assert!(bad.parse::<Seen>().is_err(), "{bad}");
        }
    }
}
