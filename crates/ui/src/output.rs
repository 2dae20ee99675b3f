//! Files that the user names as outputs: which existing files they may replace, and how they are written.
//!
//! Every page, list, document and trace that an option names goes through [`OutputFile`]:
//!
//! - A regular file is replaced only when it is empty, when it is an earlier output of the same
//!   [`OutputFormat`], which a marker in it tells, or with `--force`.
//! - A symbolic link is never followed. It is refused, or with `--force` replaced itself; what it leads
//!   to stays as it is.
//! - Devices and sockets are refused, also with `--force`. A stream is written to: a pipe, `/dev/null`,
//!   and an open descriptor of this process (`/dev/stdout`, `/dev/fd/N`) that is a pipe, a socket, a
//!   terminal or a regular file. A trace goes to a file only.
//! - The output is written to a new file in the same folder, which then takes the place: it is there as a
//!   whole, or the earlier one still is.
//!
//! All of this is checked before any work begins ([`OutputFile::check`]), and the place once more when it
//! is taken.

mod kind;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::{CWD, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::exit::{ExitClass as _, Failure};
use kind::ExistingOutput;
pub use kind::{HOST_LIST_MARK, MAN_PAGE_MARK, OutputFormat, generator};

/// Maximum number of names that are tried for a new file: a killed process may have left some.
const NAME_ATTEMPTS: u32 = 100;

/// An output that was checked, and is to be written.
#[derive(Debug)]
pub struct OutputFile {
    /// The path as it was given.
    path: PathBuf,
    format: OutputFormat,
    force: bool,
    place: OutputPlace,
}

/// Where an output is written.
#[derive(Debug)]
enum OutputPlace {
    /// A file in this folder.
    File { folder: PathBuf },
    /// A stream, which has no contents: a pipe, a terminal, `/dev/null`.
    Stream,
}

impl OutputFile {
    /// Checks that an output of this format can be written to `path`, and changes nothing there. With
    /// `force` it may replace a file of any content.
    ///
    /// # Errors
    /// Refused, if it would replace a file of another kind, or cannot be written.
    pub fn check(path: &Path, format: OutputFormat, force: bool) -> Result<OutputFile, Failure> {
        let refused = || format!("{} {} cannot be written", format.noun(), path.display());
        let checked = OutputPlace::of(path).and_then(|place| {
            let output = OutputFile {
                path: path.to_path_buf(),
                format,
                force,
                place,
            };
            match &output.place {
                OutputPlace::File { folder } => {
                    output.existing()?;
                    drop(NewFile::in_folder(folder).with_context(|| {
                        format!("no file can be made in the folder {}", folder.display())
                    })?);
                }
                OutputPlace::Stream if format == OutputFormat::Trace => {
                    bail!("it is no regular file. Name a file");
                }
                OutputPlace::Stream => {}
            }
            Ok(output)
        });
        checked.with_context(refused).refused()
    }

    /// The same, where the option was given.
    ///
    /// # Errors
    /// As [`OutputFile::check`].
    pub fn check_if_any(
        path: Option<&PathBuf>,
        format: OutputFormat,
        force: bool,
    ) -> Result<Option<OutputFile>, Failure> {
        path.map(|path| OutputFile::check(path, format, force))
            .transpose()
    }

    /// Checks that the output would not take the place of `other`, which may be missing.
    ///
    /// # Errors
    /// Refused, when both are one file.
    pub fn is_not(&self, other: &Path) -> Result<(), Failure> {
        let (Ok(own), Ok(other)) = (fs::metadata(&self.path), fs::metadata(other)) else {
            return Ok(());
        };
        if (own.dev(), own.ino()) != (other.dev(), other.ino()) {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "{} {} would be written over the target; name another file",
            self.format.noun(),
            self.path.display()
        )))
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the output, as a whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written, or something else has come to its place meanwhile.
    pub fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        self.prepare(content)?.put()
    }

    /// Writes the content to a new file in the same folder, where a full disk is detected, and leaves the existing
    /// file unchanged.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare<'a>(&'a self, content: &'a [u8]) -> anyhow::Result<PreparedFile<'a>> {
        let new = match &self.place {
            OutputPlace::Stream => None,
            OutputPlace::File { folder } => {
                let written = NewFile::in_folder(folder).and_then(|mut new| {
                    new.file.write_all(content)?;
                    new.file.sync_all()?;
                    Ok(new)
                });
                Some(written.with_context(|| self.failed())?)
            }
        };
        Ok(PreparedFile {
            output: self,
            content,
            new,
        })
    }

    /// A new file next to the place of an output that is no stream, for content that is written in parts.
    ///
    /// # Errors
    /// When none can be made.
    pub fn begin(&self) -> anyhow::Result<NewFile> {
        match &self.place {
            OutputPlace::File { folder } => Ok(NewFile::in_folder(folder)?),
            OutputPlace::Stream => bail!("it is no regular file"),
        }
    }

    /// Moves a file that was begun to the path of the output.
    ///
    /// # Errors
    /// When that fails, or another file was created there meanwhile.
    pub fn put(&self, new: NewFile) -> anyhow::Result<()> {
        let there = self.existing()?;
        Ok(new.take_place(&self.path, there.as_ref())?)
    }

    fn failed(&self) -> String {
        let noun = self.format.noun();
        format!("{noun} {} could not be written", self.path.display())
    }

    /// Metadata of the file at the place of an output, which this output may replace; `None` where there is
    /// none.
    fn existing(&self) -> anyhow::Result<Option<fs::Metadata>> {
        match ExistingOutput::at(&self.path, self.format)? {
            ExistingOutput::Nothing => Ok(None),
            ExistingOutput::Own(facts) => Ok(Some(facts)),
            ExistingOutput::Foreign(facts) if self.force => Ok(Some(facts)),
            ExistingOutput::Link(facts) if self.force => Ok(Some(facts)),
            ExistingOutput::Foreign(_) => bail!(
                "{}. Name another file, or replace that one with --force",
                self.format.foreign()
            ),
            ExistingOutput::Link(_) => bail!(
                "it is a symbolic link, which is not followed. Name the file itself, or replace the \
                 link with --force"
            ),
            ExistingOutput::Never(what) => bail!("it is {what}. Name a file"),
        }
    }
}

impl OutputPlace {
    fn of(path: &Path) -> anyhow::Result<OutputPlace> {
        if kind::is_stream(path)? {
            return Ok(OutputPlace::Stream);
        }
        if path.is_dir() {
            bail!("{} is a folder; name a file in it", path.display());
        }
        if path.as_os_str().as_bytes().ends_with(b"/") {
            bail!("{} names a folder, by the / at its end", path.display());
        }
        if path.file_name().is_none() {
            bail!("it names no file");
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match fs::metadata(folder) {
            Ok(facts) if facts.is_dir() => Ok(OutputPlace::File {
                folder: folder.to_path_buf(),
            }),
            Ok(_) => Err(anyhow!("{} is not a folder", folder.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(anyhow!(
                "the folder {} does not exist; create it first",
                folder.display()
            )),
            Err(error) => Err(error).with_context(|| folder.display().to_string()),
        }
    }
}

/// An output that is written next to its place, and removed unless it takes it.
#[derive(Debug)]
pub struct PreparedFile<'a> {
    output: &'a OutputFile,
    content: &'a [u8],
    new: Option<NewFile>,
}

impl PreparedFile<'_> {
    /// Lets the output take its place.
    ///
    /// # Errors
    /// When it cannot, or something else has come there meanwhile.
    pub fn put(self) -> anyhow::Result<()> {
        let put = match self.new {
            None => kind::write_to_stream(&self.output.path, self.content),
            Some(new) => self.output.put(new),
        };
        put.with_context(|| self.output.failed())
    }
}

/// A new file without content under a name of its own, which goes when this is dropped.
#[derive(Debug)]
pub struct NewFile {
    /// The open file.
    pub file: File,
    path: PathBuf,
}

impl NewFile {
    /// Creates a new file in a folder.
    fn in_folder(folder: &Path) -> io::Result<NewFile> {
        let mut attempt = 0;
        loop {
            let name = format!(".disksmith-output-{}-{attempt}", std::process::id());
            let path = folder.join(name);
            let made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&path);
            match made {
                Ok(file) => return Ok(NewFile { file, path }),
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists && attempt < NAME_ATTEMPTS =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the place of what is at `path`, in the same folder: of nothing, or of the file with these facts, whose
    /// permissions it has then. An error where there is something where nothing was.
    fn take_place(self, path: &Path, there: Option<&fs::Metadata>) -> io::Result<()> {
        match there {
            Some(facts) => {
                if facts.is_file() {
                    self.file
                        .set_permissions(Permissions::from_mode(facts.mode() & 0o7777))?;
                }
                fs::rename(&self.path, path)
            }
            None => {
                match rustix::fs::renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE)
                {
                    // File systems that do not know the flag, such as NFS. It was just seen that nothing is there.
                    Err(Errno::INVAL | Errno::NOSYS) => fs::rename(&self.path, path),
                    renamed => Ok(renamed?),
                }
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Where it took its place it does not exist any more.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
