use super::*;
use std::collections::HashMap;
use std::fs;

/// A store that takes all at once.
#[derive(Default)]
struct Taken {
    positions: HashMap<String, u64>,
    text: String,
}

impl Intake for Taken {
    fn take(&mut self, deliveries: &[Delivery<'_>]) -> Result<(), Stopped> {
        for delivery in deliveries {
            let Identity::Step { source, from, to } = delivery.identity else {
                panic!("{delivery:?}");
            };
            let at = self.positions.insert(source.to_owned(), to);
            assert_eq!(at.unwrap_or(0), from);
            self.text += std::str::from_utf8(delivery.lines).unwrap();
        }
        Ok(())
    }

    fn position(&mut self, source: &str) -> Result<Option<u64>, Stopped> {
        Ok(self.positions.get(source).copied())
    }
}

impl Taken {
    /// Polls until this was taken, and once more.
    fn takes(&mut self, source: &mut FileSource, text: &str) {
        let limit = Instant::now() + Duration::from_secs(120);
        while self.text != text {
            source.poll(Duration::from_millis(1), self);
            assert!(Instant::now() < limit, "{:?}", self.text);
        }
        source.poll(Duration::from_millis(1), self);
        assert_eq!(std::mem::take(&mut self.text), text);
    }
}

#[test]
fn a_truncated_file_is_continued_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let mut taken = Taken::default();
    // In place: the inode stays.
    fs::write(&path, "head\n1\n2\n3\n").unwrap();
    let mut source = FileSource::open(&path, true).unwrap();
    taken.takes(&mut source, "head\n1\n2\n3\n");
    fs::write(&path, "head\n4\n").unwrap();
    taken.takes(&mut source, "head\n4\n");
    // Longer than before it was emptied.
    fs::write(&path, "head\n4\n5\n6\n7\n8\n9\n").unwrap();
    let mut source = FileSource::open(&path, true).unwrap();
    taken.takes(&mut source, "5\n6\n7\n8\n9\n");
}

#[test]
fn no_line_of_two_rotations_at_once_is_missed() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut taken = Taken::default();
    let mut first = File::create(path("a.log")).unwrap();
    first.write_all(b"1\n").unwrap();
    fs::write(path("a.log.9"), "long ago\n").unwrap();
    let old = File::options().write(true).open(path("a.log.9")).unwrap();
    old.set_modified(UNIX_EPOCH).unwrap();
    let mut source = FileSource::open(&path("a.log"), true).unwrap();
    taken.takes(&mut source, "1\n");
    fs::rename(path("a.log"), path("a.log.2")).unwrap();
    fs::write(path("a.log"), "3\n").unwrap();
    // By a writer that has not opened the new file.
    source.poll(Duration::from_millis(1), &mut taken);
    first.write_all(b"2\n").unwrap();
    fs::rename(path("a.log"), path("a.log.1")).unwrap();
    fs::write(path("a.log"), "4\n").unwrap();
    fs::write(path("a.log.1.gz"), "packed\n").unwrap();
    fs::write(path("a.log-errors"), "another\n").unwrap();
    taken.takes(&mut source, "2\n3\n4\n");
}
