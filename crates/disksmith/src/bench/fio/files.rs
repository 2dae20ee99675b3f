//! The files of a job file: opened, laid out, and given to the streams as they want them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::anyhow;
use linux::consent::open_again;
use record::Bytes;
use rustix::fs::{Advice, OFlags, fadvise};

use super::plan::{Plan, Stream};
use crate::bench::progress::Progress;
use crate::bench::target::{Prepared, keep_access_time, set_direct};
use crate::bench::{Session, layout, testfile};
use crate::failure::{Failure, Standing as _};

/// A target with all files that the jobs need there.
pub(super) struct Opened {
    /// The target, with the first of the files.
    pub prepared: Prepared,
    /// The others, which are in a directory.
    others: Vec<File>,
}

/// Open files by number, and by whether the page cache is bypassed.
pub(super) type Handles = BTreeMap<(usize, bool), File>;

impl Opened {
    /// A target whose other files are made when it is laid out.
    pub(super) fn new(prepared: Prepared) -> Opened {
        Opened {
            prepared,
            others: Vec::new(),
        }
    }

    /// Makes the files in a directory and writes them fully.
    pub(super) fn lay_out(
        &mut self,
        session: &Session<'_>,
        plan: &Plan,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let path = self.prepared.target.path.clone();
        for _ in 1..plan.files.len() {
            let file = testfile::create(Path::new(&path)).midway()?;
            // As the first one; where the file system refuses it, it is known from that.
            let _ = set_direct(&file).midway()?;
            self.others.push(file);
        }
        for (file, size) in plan.files.iter().enumerate() {
            layout::fill(
                session.engine,
                self.file(file),
                *size,
                true,
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

    /// Opens each file as the streams want it, and says in the target whether the page cache is
    /// bypassed throughout.
    pub(super) fn handles(&mut self, plan: &Plan) -> Result<Handles, Failure> {
        let mut handles = Handles::new();
        for stream in plan.walls.iter().flatten() {
            for file in &stream.files {
                let key = (*file, stream.direct);
                if handles.contains_key(&key) {
                    continue;
                }
                let opened = self.reopen(*file).midway()?;
                if stream.direct {
                    self.prepared.target.direct &= set_direct(&opened).midway()?;
                } else {
                    self.prepared.target.direct = false;
                    advise(&opened, stream);
                }
                handles.insert(key, opened);
            }
        }
        Ok(handles)
    }

    /// Another descriptor of a file, which does not go through its path, if it has one.
    fn reopen(&self, number: usize) -> std::io::Result<File> {
        let access = match self.prepared.writable {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        let file = open_again(self.file(number), access)?;
        keep_access_time(&file);
        Ok(file)
    }
}

/// Tells the page cache what fio would. The kernel may not heed it, and nothing depends on that.
fn advise(file: &File, stream: &Stream) {
    if stream.invalidate {
        let _ = fadvise(file, 0, None, Advice::DontNeed);
    }
    if stream.advise {
        let advice = match stream.workload.pattern {
            record::Pattern::Random => Advice::Random,
            record::Pattern::Sequential => Advice::Sequential,
        };
        let _ = fadvise(file, 0, None, advice);
    }
}
