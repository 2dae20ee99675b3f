//! Serial numbers, which some drivers request from the disk itself.
//!
//! `serial_show` of virtio_blk sends a request to the disk and waits for the answer (drivers/block/virtio_blk.c):
//! behind a full queue it waits for all earlier requests, and a disk that hangs never answers. No signal interrupts
//! that wait.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::root::attribute;

/// Timeout for a disk's own answer where the caller must not be delayed. An idle disk answers within some
/// milliseconds.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The attributes that are being read: a read that hangs is not started a second time.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Time limit of reading a disk's serial number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Without a time limit.
    Always,
    /// For a tenth of a second; after that the serial number counts as missing.
    Briefly,
}

/// The serial number of the disk with this folder in sysfs.
///
/// virtio has `serial` beside the queue, NVMe and MMC at the controller, SCSI in the page 0x80 of vital product data,
/// which has a header of four bytes followed by text (SPC-4, 7.8.15).
pub(super) fn serial_of(folder: &Path, wait: Wait) -> Option<String> {
    let file = folder.join("serial");
    let own = match wait {
        Wait::Always => attribute(&file),
        Wait::Briefly => file.exists().then(|| read_briefly(file)).flatten(),
    };
    own.or_else(|| attribute(&folder.join("device/serial")))
        .or_else(|| {
            let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
            let text = String::from_utf8_lossy(page.get(4..)?);
            let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            (!text.is_empty()).then(|| text.to_owned())
        })
}

fn under_way() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // The set is consistent between any two of its methods.
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads on a separate thread, which is abandoned if the disk does not answer.
fn read_briefly(path: PathBuf) -> Option<String> {
    if !under_way().insert(path.clone()) {
        return None;
    }
    let (answer, answered) = sync_channel(1);
    let file = path.clone();
    let thread = std::thread::Builder::new().name("serial".into());
    let started = thread.spawn(move || {
        let text = attribute(&file);
        under_way().remove(&file);
        // The caller has stopped waiting if it took long.
        let _ = answer.send(text);
    });
    if started.is_err() {
        under_way().remove(&path);
        return None;
    }
    answered.recv_timeout(TIMEOUT).ok().flatten()
}

/// Source of a device's serial number.
pub(super) enum Serial {
    /// The serial number is known.
    Known(String),
    /// The device is queried.
    FromDevice(Wait),
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_disk_that_does_not_answer_blocks_no_caller_and_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let serial = folder.path().join("serial");
        // Opening a named pipe for reading waits for a writer.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &serial,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(serial_of(folder.path(), Wait::Briefly), None);
        let began = Instant::now();
        assert_eq!(serial_of(folder.path(), Wait::Briefly), None);
        assert!(began.elapsed() < TIMEOUT, "it was asked again: {began:?}");
        let mut pipe = fs::OpenOptions::new().write(true).open(&serial).unwrap();
        pipe.write_all(b"vol0abc\n").unwrap();
        drop(pipe);
        while under_way().contains(&serial) {
            std::thread::yield_now();
        }
        fs::remove_file(&serial).unwrap();
        fs::write(&serial, "vol0abc\n").unwrap();
        let serial = serial_of(folder.path(), Wait::Briefly);
        assert_eq!(serial.as_deref(), Some("vol0abc"));
    }

    #[test]
    fn a_disk_without_its_own_word_has_that_of_its_controller() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("device")).unwrap();
        for wait in [Wait::Always, Wait::Briefly] {
            assert_eq!(serial_of(folder.path(), wait), None);
        }
        fs::write(folder.path().join("device/serial"), "S1\n").unwrap();
        for wait in [Wait::Always, Wait::Briefly] {
            assert_eq!(serial_of(folder.path(), wait).as_deref(), Some("S1"));
        }
    }
}
