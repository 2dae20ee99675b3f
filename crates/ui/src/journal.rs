//! The journal of systemd: entries with structured fields, if standard error is connected to it.

use std::io::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::LazyLock;

use crate::charset::{printable, shown};
use crate::window::{fitted, width_of_errors};

/// Socket of journald for entries in its own protocol (systemd, "Native Journal Protocol").
const SOCKET: &str = "/run/systemd/journal/socket";

/// The journal of this process, if it has one.
static PROCESS_JOURNAL: LazyLock<Option<Journal>> = LazyLock::new(Journal::of_process);

/// A field of an entry: a name of `A-Z`, `0-9` and `_`, and its value.
pub type JournalField = (String, String);

/// Adds an entry to the journal of a service, if this process has one. Nothing is printed instead.
pub fn add(priority: JournalPriority, text: &str, fields: &[JournalField]) {
    if let Some(journal) = &*PROCESS_JOURNAL {
        // Nothing depends on it.
        let _ = journal.write(priority, text, fields);
    }
}

/// Reports a sentence on standard error: as an entry with these fields if that is the journal of a service, otherwise
/// as a line.
pub fn report(priority: JournalPriority, text: &str, fields: &[JournalField]) {
    let is_written = PROCESS_JOURNAL
        .as_ref()
        .is_some_and(|journal| journal.write(priority, text, fields));
    if !is_written {
        let text = fitted(&shown(&printable(text)), width_of_errors());
        // With standard error closed it cannot be reported.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Importance of an entry, as syslog(3) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalPriority {
    /// 3.
    Error,
    /// 4.
    Warning,
    /// 5.
    Notice,
    /// 6.
    Info,
}

/// True if this process has a journal, to which its standard output leads too.
pub fn is_standard_output() -> bool {
    let streams = (
        rustix::fs::fstat(io::stdout()),
        rustix::fs::fstat(io::stderr()),
    );
    PROCESS_JOURNAL.is_some()
        && matches!(streams, (Ok(out), Ok(err)) if (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino))
}

/// The journal that this process's standard error leads to.
#[derive(Debug)]
struct Journal {
    socket: UnixDatagram,
}

impl Journal {
    /// The one of this process; `None` where systemd has not connected its standard error to one.
    fn of_process() -> Option<Journal> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let own = rustix::fs::fstat(io::stderr()).ok()?;
        // A child may have the variable and another standard error (systemd.exec(5)).
        (stream == format!("{}:{}", own.st_dev, own.st_ino)).then_some(())?;
        Journal::at(Path::new(SOCKET)).ok()
    }

    fn at(path: &Path) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // An entry is not worth a wait.
        socket.set_nonblocking(true)?;
        Ok(Journal { socket })
    }

    /// Writes an entry: a sentence and fields. `false` where it is lost, as while journald is being restarted.
    fn write(&self, priority: JournalPriority, message: &str, fields: &[JournalField]) -> bool {
        let mut entry = Vec::new();
        let level = match priority {
            JournalPriority::Error => "3",
            JournalPriority::Warning => "4",
            JournalPriority::Notice => "5",
            JournalPriority::Info => "6",
        };
        let head = [
            ("MESSAGE", message),
            ("PRIORITY", level),
            ("SYSLOG_IDENTIFIER", "disksmith"),
        ];
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in head.into_iter().chain(fields) {
            push(&mut entry, name, value);
        }
        self.socket.send(&entry).is_ok()
    }
}

/// Appends a field. One with line breaks has its length before it.
fn push(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend((value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_fields_in_journalds_protocol() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let server = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(&path).unwrap();
        let fields = [
            ("DISKSMITH_DEVICE".to_owned(), "md0".to_owned()),
            ("LINES".to_owned(), "a\nb".to_owned()),
        ];
        assert!(journal.write(JournalPriority::Warning, "it is slow", &fields));
        let mut got = [0; 256];
        let length = server.recv(&mut got).unwrap();
        let wanted =
            b"MESSAGE=it is slow\nPRIORITY=4\nSYSLOG_IDENTIFIER=disksmith\nDISKSMITH_DEVICE=md0\n\
            LINES\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert_eq!(&got[..length], wanted);
    }
}
