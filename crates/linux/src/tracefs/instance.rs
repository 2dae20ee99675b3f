//! An instance: separate buffers and settings, which do not affect other users of tracing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::mount::Tracefs;
use super::{EventFormat, TracefsError};
use crate::process;
use crate::root::Root;

/// Prefix of the names of instances, followed by the process id and its start time.
const PREFIX: &str = "disksmith-";

/// An instance, which is removed when this is dropped. That of a killed process is removed by the next one.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    _tracefs: Tracefs,
}

/// Number of events that the kernel could not store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostEvents(pub u64);

impl Instance {
    /// Creates an instance without events, whose clock is CLOCK_MONOTONIC, and removes those of processes that have
    /// ended.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(root: &Root, tracefs: Tracefs) -> Result<Instance, TracefsError> {
        let instances = tracefs.folder().join("instances");
        remove_abandoned(root, &instances);
        let own = process::own(root).map_err(|error| TracefsError::Format {
            path: instances.clone(),
            detail: error.to_string(),
        })?;
        let mut number = 0;
        let folder = loop {
            let name = format!("{PREFIX}{}-{}-{number}", own.pid, own.started);
            let folder = instances.join(name);
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => {
                    number += 1;
                }
                Err(source) => {
                    return Err(TracefsError::File {
                        path: folder,
                        source,
                    });
                }
            }
        };
        let instance = Instance {
            folder,
            _tracefs: tracefs,
        };
        instance.write("trace_clock", "mono")?;
        // A full buffer keeps its contents, so that a loss is a gap. `stats` counts it; pages only have a mark for
        // lost events if a buffer is overwritten.
        instance.write("options/overwrite", "0")?;
        Ok(instance)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), TracefsError> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|source| TracefsError::File { path, source })
    }

    /// The format of an event, such as `block/block_rq_issue`.
    ///
    /// # Errors
    /// When the kernel has no such event.
    pub fn format(&self, event: &str) -> Result<EventFormat, TracefsError> {
        let path = self.folder.join("events").join(event).join("format");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(TracefsError::NoEvent(event.replace('/', ":")));
            }
            Err(source) => return Err(TracefsError::File { path, source }),
        };
        EventFormat::parse(&text).ok_or(TracefsError::Format {
            path,
            detail: "it names no ID".to_owned(),
        })
    }

    /// Starts to trace an event, for occurrences that match `filter`.
    ///
    /// # Errors
    /// When the kernel refuses the filter.
    pub fn enable(&self, event: &str, filter: &str) -> Result<(), TracefsError> {
        self.write(&format!("events/{event}/filter"), filter)?;
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Stops tracing an event.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self, event: &str) -> Result<(), TracefsError> {
        self.write(&format!("events/{event}/enable"), "0")
    }

    /// Stops tracing; the contents of the buffers stay.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<(), TracefsError> {
        self.write("tracing_on", "0")
    }

    /// Sets the size of each processor's buffer. Events that occur meanwhile are lost without being counted.
    ///
    /// # Errors
    /// When there is not that much memory.
    pub fn set_buffer(&self, kib: u64) -> Result<(), TracefsError> {
        self.write("buffer_size_kb", &kib.to_string())
    }

    /// The readers of the processors' buffers.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn readers(&self) -> Result<Readers, TracefsError> {
        let folder = self.folder.join("per_cpu");
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| TracefsError::File { path, source }
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed(&folder))? {
            let path = entry
                .map_err(failed(&folder))?
                .path()
                .join("trace_pipe_raw");
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(&path)
                .map_err(failed(&path))?;
            files.push(file);
        }
        Ok(Readers {
            files,
            page: vec![0; rustix::param::page_size()],
        })
    }

    /// Number of events lost so far, over all processors.
    pub fn losses(&self) -> LostEvents {
        let folder = fs::read_dir(self.folder.join("per_cpu"))
            .into_iter()
            .flatten();
        let stats = folder.flatten().map(|cpu| cpu.path().join("stats"));
        let lost = stats.filter_map(|path| fs::read_to_string(path).ok());
        LostEvents(lost.map(|text| lost_of(&text)).sum())
    }
}

/// Sum of the lines of `stats` that count losses.
fn lost_of(text: &str) -> u64 {
    let count = |line: &str| {
        let (name, number) = line.split_once(':')?;
        let is_loss = matches!(name, "overrun" | "commit overrun" | "dropped events");
        is_loss.then(|| number.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(count).sum()
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If it fails, the next start removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the instances of processes that have ended. The kernel refuses to remove one that is being read.
fn remove_abandoned(root: &Root, instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((pid, started)) = name.to_str().and_then(owner) else {
            continue;
        };
        let is_there = match process::of(root, pid) {
            Ok(found) => found.is_some_and(|process| process.started == started),
            Err(_) => true,
        };
        if !is_there {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Process id and start time in an instance's name.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Readers of the processors' buffers.
#[derive(Debug)]
pub struct Readers {
    files: Vec<File>,
    page: Vec<u8>,
}

impl Readers {
    /// Number of processors that have a buffer.
    pub fn processors(&self) -> usize {
        self.files.len()
    }

    /// Passes the pages of each processor to `each`, until it returns false or there are no more. Returns the maximum
    /// number of bytes in a processor's buffer.
    ///
    /// # Errors
    /// When a buffer cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<u64> {
        let mut most = 0;
        for file in &mut self.files {
            let mut bytes = 0;
            loop {
                match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        bytes += length as u64;
                        if !each(&self.page[..length]) {
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // An empty buffer, one that is being resized, or a processor that was removed.
                    Err(error) if is_passing(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            most = most.max(bytes);
        }
        Ok(most)
    }
}

fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::AGAIN, Errno::NOMEM, Errno::BUSY, Errno::NODEV];
    passing
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_the_sum_of_three_lines() {
        let stats = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 300\ndropped events: 4\nread events: 9\n";
        assert_eq!(lost_of(stats), 7);
    }

    #[test]
    fn pages_are_counted_of_the_fullest_buffer() {
        let buffer = |pages: usize| {
            use std::io::{Seek as _, Write as _};
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![0; pages * 8]).unwrap();
            file.rewind().unwrap();
            file
        };
        let mut readers = Readers {
            files: [1, 5, 0].map(buffer).into(),
            page: vec![0; 8],
        };
        let mut pages = 0;
        let most = readers.read(|_| {
            pages += 1;
            // There is another page behind it.
            pages < 5
        });
        assert_eq!((most.unwrap(), pages), (4 * 8, 5));
    }

    #[test]
    fn an_instance_names_its_process() {
        assert_eq!(owner("disksmith-12-3456-0"), Some((12, 3456)));
        assert_eq!(owner("other-12-3456"), None);
        assert_eq!(owner("disksmith-x"), None);
    }

    #[test]
    fn an_event_that_the_kernel_does_not_have_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        let tracing = root.sys.join("kernel/tracing");
        fs::create_dir_all(tracing.join("instances")).unwrap();
        fs::write(tracing.join("trace_clock"), "").unwrap();
        let instance = Instance {
            folder: tracing.join("instances/none"),
            _tracefs: Tracefs::open(&root).unwrap(),
        };
        let error = instance.format("block/block_rq_issue").unwrap_err();
        let words = "no event block:block_rq_issue: it was built without CONFIG_BLK_DEV_IO_TRACE";
        assert!(error.to_string().contains(words), "{error}");
    }
}
