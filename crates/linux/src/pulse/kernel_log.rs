//! New records of the kernel's log (linux, Documentation/ABI/testing/dev-kmsg).

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use record::sample::{KernelError, KernelErrorKind};

use crate::root::{Error, Result, Root};

/// Maximum length of a record (CONSOLE_EXT_LOG_MAX in include/linux/printk.h).
const MAX_RECORD_BYTES: usize = 8192;
/// Maximum number of records per read, so that a flooded log does not delay other work.
const MAX_RECORDS_PER_READ: usize = 1000;
/// Maximum level of records that are examined (syslog(2)): 5 is a notice.
const MAX_LEVEL: u32 = 4;
/// Text of an error that md reports at level 6: a member whose sectors were rewritten.
const CORRECTED: &str = "read error corrected";

/// A record of the kernel's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// Severity: 0 is an emergency, 3 an error, 4 a warning (syslog(2)).
    pub level: u32,
    /// Text of the record.
    pub text: &'a str,
}

impl<'a> LogRecord<'a> {
    /// Parses a record: `6,1234,5678,-;text`, followed by lines of keys. `None` if it has another form, or does not
    /// come from the kernel.
    pub fn parse(record: &'a [u8]) -> Option<LogRecord<'a>> {
        let line = record.split(|&byte| byte == b'\n').next()?;
        let (head, text) = std::str::from_utf8(line).ok()?.split_once(';')?;
        let priority: u32 = head.split(',').next()?.parse().ok()?;
        // The facility is above the three bits of the level; 0 is the kernel.
        (priority < 8).then_some(LogRecord {
            level: priority,
            text,
        })
    }

    /// The disk error that it reports; `None` for other records.
    pub fn trouble(&self) -> Option<KernelError> {
        if self.level > MAX_LEVEL && !self.text.contains(CORRECTED) {
            return None;
        }
        let kind = kind_of(self.text)?;
        Some(KernelError {
            kind,
            device: device_in(self.text).map(str::to_owned),
            text: self.text.to_owned(),
        })
    }
}

/// The kernel's phrases for errors, and the kind of each. The phrases are those of block/blk-core.c,
/// drivers/nvme/host, drivers/ata/libata-eh.c, drivers/scsi, drivers/md, fs/jbd2 and the file systems.
const PHRASES: [(&str, KernelErrorKind); 30] = [
    ("Disk failure on", KernelErrorKind::Array),
    (CORRECTED, KernelErrorKind::Array),
    ("read error not correctable", KernelErrorKind::Array),
    ("unrecoverable I/O", KernelErrorKind::Array),
    ("kicking non-fresh", KernelErrorKind::Array),
    ("super_written gets error", KernelErrorKind::Array),
    ("EXT4-fs error", KernelErrorKind::FileSystem),
    (
        "Remounting filesystem read-only",
        KernelErrorKind::FileSystem,
    ),
    ("Aborting journal on device ", KernelErrorKind::FileSystem),
    ("Corruption of in-memory data", KernelErrorKind::FileSystem),
    ("metadata I/O error", KernelErrorKind::FileSystem),
    ("log I/O error", KernelErrorKind::FileSystem),
    ("shut down due to", KernelErrorKind::FileSystem),
    ("BTRFS error", KernelErrorKind::FileSystem),
    ("timeout error, dev ", KernelErrorKind::Timeout),
    ("I/O error, dev ", KernelErrorKind::Io),
    ("transport error, dev ", KernelErrorKind::Io),
    ("protection error, dev ", KernelErrorKind::Io),
    ("Buffer I/O error", KernelErrorKind::Io),
    ("critical medium error", KernelErrorKind::Io),
    ("critical target error", KernelErrorKind::Io),
    ("critical nexus error", KernelErrorKind::Io),
    ("critical space allocation error", KernelErrorKind::Io),
    ("exception Emask", KernelErrorKind::Io),
    ("timeout, aborting", KernelErrorKind::Timeout),
    ("timeout, reset controller", KernelErrorKind::Timeout),
    ("timeout, disable controller", KernelErrorKind::Timeout),
    ("timeout, completion polled", KernelErrorKind::Timeout),
    ("controller is down; will reset", KernelErrorKind::Timeout),
    ("timing out command", KernelErrorKind::Timeout),
];

fn kind_of(text: &str) -> Option<KernelErrorKind> {
    PHRASES
        .iter()
        .find(|(phrase, _)| text.contains(phrase))
        .map(|(_, kind)| *kind)
}

/// The device that a message names: after `dev `, `on dev `, `device ` or `on `, in brackets after `sd 0:0:0:0`, in
/// parentheses after the file system, or at the beginning.
fn device_in(text: &str) -> Option<&str> {
    let after = |mark: &str| {
        let (_, rest) = text.split_once(mark)?;
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '!' | '/')))
            .unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    };
    after("dev ")
        .or_else(|| after("Disk failure on "))
        .or_else(|| after("(device "))
        .or_else(|| after(" on ").filter(|_| text.contains(CORRECTED)))
        // The journal's name is that of its device, followed by the number of an inode.
        .or_else(|| after("Aborting journal on device ")?.split('-').next())
        .or_else(|| text.strip_prefix("EXT4-fs (").and_then(|_| after("(")))
        .or_else(|| text.strip_prefix("sd ").and_then(|_| after("[")))
        .or_else(|| text.strip_prefix("XFS (").and_then(|_| after("(")))
        .or_else(|| {
            let names = text.strip_prefix("nvme ")?;
            names.split_once(':').map(|(name, _)| name)
        })
}

/// Reads `/dev/kmsg`, starting at its end.
#[derive(Debug)]
pub struct KernelLog {
    file: File,
    buffer: Box<[u8; MAX_RECORD_BYTES]>,
}

impl KernelLog {
    /// Opens the log. Earlier records are skipped.
    ///
    /// # Errors
    /// When it does not exist, or may not be read: `kernel.dmesg_restrict` limits it to root.
    pub fn open(root: &Root) -> Result<KernelLog> {
        let path = root.dev.join("kmsg");
        let failed = |source| Error::Read {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(KernelLog {
            file,
            buffer: Box::new([0; MAX_RECORD_BYTES]),
        })
    }

    /// Disk errors since the last call. Records that the kernel has overwritten meanwhile are lost.
    ///
    /// # Errors
    /// When the log can no longer be read.
    pub fn read(&mut self) -> io::Result<Vec<KernelError>> {
        let mut found = Vec::new();
        for _ in 0..MAX_RECORDS_PER_READ {
            match self.file.read(self.buffer.as_mut_slice()) {
                Ok(0) => break,
                Ok(length) => {
                    let record = LogRecord::parse(&self.buffer[..length]);
                    found.extend(record.and_then(|record| record.trouble()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // EPIPE: records were overwritten; the next read continues after them.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_are_distinguished_from_other_lines() {
        for (text, kind, device) in [
            (
                "I/O error, dev loop0, sector 63488 op 0x0:(READ) flags 0xa00000",
                KernelErrorKind::Io,
                Some("loop0"),
            ),
            (
                "blk_update_request: I/O error, dev nvme1n1, sector 2048",
                KernelErrorKind::Io,
                Some("nvme1n1"),
            ),
            (
                "Buffer I/O error on dev dm-3, logical block 0, async page read",
                KernelErrorKind::Io,
                Some("dm-3"),
            ),
            (
                "nvme nvme2: I/O 12 QID 1 timeout, aborting",
                KernelErrorKind::Timeout,
                Some("nvme2"),
            ),
            (
                "md/raid10:md0: Disk failure on vdc, disabling device.",
                KernelErrorKind::Array,
                Some("vdc"),
            ),
            (
                "EXT4-fs error (device vda1): ext4_find_entry:1463: inode #2",
                KernelErrorKind::FileSystem,
                Some("vda1"),
            ),
            (
                "md/raid1:md0: read error not correctable (sector 2056 on sdb1).",
                KernelErrorKind::Array,
                None,
            ),
            (
                "EXT4-fs (sda1): Remounting filesystem read-only",
                KernelErrorKind::FileSystem,
                Some("sda1"),
            ),
            (
                "Aborting journal on device sda1-8.",
                KernelErrorKind::FileSystem,
                Some("sda1"),
            ),
            (
                "timeout error, dev nvme1n1, sector 2048 op 0x1:(WRITE)",
                KernelErrorKind::Timeout,
                Some("nvme1n1"),
            ),
            (
                "nvme nvme0: controller is down; will reset: CSTS=0xffffffff",
                KernelErrorKind::Timeout,
                Some("nvme0"),
            ),
            (
                "XFS (nvme1n1p1): metadata I/O error in \"xfs_buf_ioend\"",
                KernelErrorKind::FileSystem,
                Some("nvme1n1p1"),
            ),
        ] {
            let record = format!("3,1,2,-;{text}\n SUBSYSTEM=block\n");
            let error = LogRecord::parse(record.as_bytes())
                .unwrap()
                .trouble()
                .unwrap();
            assert_eq!((error.kind, error.device.as_deref()), (kind, device));
            assert_eq!(error.text, text);
            let talk = format!("6,1,2,-;{text}");
            assert_eq!(LogRecord::parse(talk.as_bytes()).unwrap().trouble(), None);
        }
        let talk = b"4,1,2,-;md: data-check of RAID array md0";
        assert_eq!(LogRecord::parse(talk).unwrap().trouble(), None);
    }

    #[test]
    fn corrections_of_md_are_errors_though_it_logs_them_as_information() {
        let text = "md/raid1:md0: read error corrected (8 sectors at 264192 on sdb1)";
        let record = format!("6,1,2,-;{text}");
        let error = LogRecord::parse(record.as_bytes())
            .unwrap()
            .trouble()
            .unwrap();
        assert_eq!(error.kind, KernelErrorKind::Array);
        assert_eq!(error.device.as_deref(), Some("sdb1"));
    }

    #[test]
    fn records_of_programs_in_the_log_are_no_kernel_records() {
        assert_eq!(
            LogRecord::parse(b"12,5,6,-;I/O error, dev sda, sector 1"),
            None
        );
    }

    proptest! {
        #[test]
        fn any_record_is_read_or_refused(record: Vec<u8>, text: String) {
            let _ = LogRecord::parse(&record);
            let record = LogRecord { level: 3, text: &text };
            let _ = record.trouble();
            let _ = device_in(&text);
        }
    }
}
