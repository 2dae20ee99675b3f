//! The files of a job file: opened, laid out, and given to the streams.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::anyhow;
use fiojob::SyncIo;
use linux::consent::open_again;
use record::{Bytes, Pattern, TargetKind};
use rustix::fs::{Advice, OFlags, fadvise};

use super::plan::FioPlan;
use super::stream::Stream;
use crate::layout::Layout;
use crate::progress::Progress;
use crate::session::Session;
use crate::target::{Prepared, keep_access_time, set_direct};
use crate::{layout, testfile};
use ui::exit::{ExitClass as _, Failure};

/// A target with all files that the jobs need on it.
pub(super) struct OpenedTarget {
    /// The target, with the first file.
    pub prepared: Prepared,
    /// The other files; only a directory has any.
    others: Vec<File>,
}

/// The files of the streams between two walls.
pub(super) struct Handles {
    /// Files of each stream, opened for this stream alone.
    pub of: Vec<Vec<File>>,
    /// True if the page cache is bypassed by all of them.
    pub direct: bool,
}

impl OpenedTarget {
    /// A target whose other files are not created yet.
    pub(super) fn new(prepared: Prepared) -> OpenedTarget {
        OpenedTarget {
            prepared,
            others: Vec::new(),
        }
    }

    /// Creates the files in a directory and writes them fully.
    pub(super) fn lay_out(
        &mut self,
        session: &Session<'_>,
        plan: &FioPlan,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let path = self.prepared.target.path.clone();
        for _ in 1..plan.files.len() {
            let file = testfile::create(Path::new(&path)).midway()?;
            // As for the first file; whether the file system refuses direct I/O is known from that.
            let _ = set_direct(&file).midway()?;
            self.others.push(file);
        }
        for (file, size) in plan.files.iter().enumerate() {
            layout::fill(
                session.engine,
                self.file(file),
                &Layout {
                    most: *size,
                    fixed: true,
                    contents: None,
                },
                session.seed,
                session.interrupt,
                progress,
            )
            .map_err(|error| {
                anyhow::Error::new(error).context(format!(
                    "the test files in {path} could not be laid out; they are removed"
                ))
            })
            .midway()?;
            if session.interrupt.load(Relaxed) {
                return Err(Failure::Midway(anyhow!(
                    "interrupted while the test files were laid out; they are removed, and nothing \
                     was measured"
                )));
            }
        }
        self.prepared.target.size = Bytes(plan.files.iter().map(|size| size.0).sum());
        Ok(())
    }

    fn file(&self, number: usize) -> &File {
        match number
            .checked_sub(1)
            .and_then(|other| self.others.get(other))
        {
            Some(file) => file,
            None => &self.prepared.file,
        }
    }

    /// Opens the files of the streams between two walls, for each stream its own and when its wall begins, as in fio,
    /// whose jobs open them themselves: the advice on a file and its read-ahead belong to a descriptor, and data that
    /// was written or read before a wall must not be in memory after it.
    ///
    /// # Errors
    /// When the kernel refuses another descriptor, or a device cannot be synced.
    pub(super) fn handles(&self, streams: &[Stream]) -> io::Result<Handles> {
        let mut handles = Handles {
            of: Vec::new(),
            direct: true,
        };
        for stream in streams {
            let mut files = Vec::new();
            for file in &stream.files {
                let opened = self.reopen(*file, stream.sync_io)?;
                // Trims always bypass the page cache.
                handles.direct &=
                    stream.workload.trims() || (stream.direct && set_direct(&opened)?);
                if !stream.direct {
                    self.advise(&opened, stream)?;
                }
                files.push(opened);
            }
            handles.of.push(files);
        }
        Ok(handles)
    }

    /// Opens another descriptor of a file, if possible without its path.
    fn reopen(&self, number: usize, sync: SyncIo) -> io::Result<File> {
        let access = match self.prepared.writable {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        let sync = match sync {
            SyncIo::None => OFlags::empty(),
            SyncIo::Full => OFlags::SYNC,
            SyncIo::Data => OFlags::DSYNC,
        };
        let file = open_again(self.file(number), access | sync)?;
        keep_access_time(&file);
        Ok(file)
    }

    /// Gives the page cache the advice that fio would give. The kernel may ignore it; correctness does not depend on
    /// it.
    fn advise(&self, file: &File, stream: &Stream) -> io::Result<()> {
        if stream.invalidate {
            // fio drops a device's pages with BLKFLSBUF, which first writes back dirty ones. Of a file only clean
            // pages are dropped.
            if self.prepared.target.kind == TargetKind::Block {
                file.sync_data()?;
            }
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
        if stream.advise {
            let advice = match stream.workload.pattern {
                Pattern::Random => Advice::Random,
                Pattern::Sequential => Advice::Sequential,
            };
            let _ = fadvise(file, 0, None, advice);
        }
        Ok(())
    }
}
