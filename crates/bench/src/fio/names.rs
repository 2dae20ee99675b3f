//! Files of the jobs. The target on the command line decides which files are used; a job file can only name the same.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use fiojob::{FioError, Job, JobFileErrors};

/// Files of the jobs and their clones, by number.
pub(super) struct Names {
    /// Numbers of the files by job and clone.
    pub of: Vec<Vec<Vec<usize>>>,
    /// Number of files.
    pub count: usize,
}

/// The files of `jobs` on the target `path`.
///
/// # Errors
/// When a job names something that is not the target, or a file in it that already exists.
pub(super) fn of(jobs: &[Job], path: &Path) -> Result<Names, JobFileErrors> {
    let mut known = BTreeMap::new();
    let directory = path.is_dir();
    let mut of = Vec::new();
    let mut errors = Vec::new();
    for job in jobs {
        let clones = 0..job.numjobs;
        let files = if directory {
            clones
                .map(|clone| in_directory(job, clone, path, &mut known))
                .collect::<Result<Vec<_>, _>>()
        } else {
            check_existing(job, path).map(|()| clones.map(|_| vec![0]).collect())
        };
        match files {
            Ok(files) => of.push(files),
            Err(error) => errors.push(error),
        }
    }
    let names = Names {
        of,
        count: if directory { known.len() } else { 1 },
    };
    JobFileErrors::or(errors, names)
}

/// Checks a job on a file or device: it may name the target, and nothing else.
fn check_existing(job: &Job, path: &Path) -> Result<(), FioError> {
    if job.nrfiles > 1 {
        return Err(job.error(
            "nrfiles",
            format!(
                "several files need a directory, and {} is none",
                path.display()
            ),
        ));
    }
    let named = match &job.filename[..] {
        [] => {
            return match &job.directory {
                None => Ok(()),
                Some(directory) => Err(job.error(
                    "directory",
                    format!(
                        "the job lays out its files in {directory}, and the target is {}; name \
                         the directory as the target",
                        path.display()
                    ),
                )),
            };
        }
        [name] => named(job, name),
        _ => {
            return Err(job.error(
                "filename",
                "several files or devices in one job are not supported on a file or device; run it on \
                 one after another, or in a directory",
            ));
        }
    };
    if is_same(&named, path) {
        return Ok(());
    }
    Err(job.error(
        "filename",
        format!(
            "the job is about {}, and the target is {}; give as the target the file or device to \
             measure",
            named.display(),
            path.display()
        ),
    ))
}

/// A name as fio combines it with the directory.
fn named(job: &Job, name: &str) -> PathBuf {
    match &job.directory {
        Some(directory) => Path::new(directory).join(name),
        None => name.into(),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else {
        return false;
    };
    if one.file_type().is_block_device() && other.file_type().is_block_device() {
        return one.rdev() == other.rdev();
    }
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files in a directory: one for each name that fio would use. They have no names here; the names only decide which
/// jobs and clones share a file.
fn in_directory(
    job: &Job,
    clone: u32,
    path: &Path,
    known: &mut BTreeMap<PathBuf, usize>,
) -> Result<Vec<usize>, FioError> {
    if let Some(directory) = &job.directory
        && !is_same(Path::new(directory), path)
    {
        return Err(job.error(
            "directory",
            format!(
                "the job is about {directory}, and the target is {}; give as the target the file \
                 or device to measure",
                path.display()
            ),
        ));
    }
    let names: Vec<PathBuf> = match (&job.filename[..], &job.filename_format) {
        ([], None) => {
            let own = |file| PathBuf::from(format!("{}.{clone}.{file}", job.name));
            (0..job.nrfiles).map(own).collect()
        }
        ([], Some(format)) => (0..job.nrfiles)
            .map(|file| {
                let name = format
                    .replace("$jobname", &job.name)
                    .replace("$jobnum", &clone.to_string())
                    .replace("$filenum", &file.to_string())
                    .replace("$clientuid", "");
                own_name(job, "filename_format", &name, path)
            })
            .collect::<Result<_, _>>()?,
        (names, _) => names
            .iter()
            .map(|name| own_name(job, "filename", name, path))
            .collect::<Result<_, _>>()?,
    };
    if names.len() > MAX_FILES {
        return Err(job.error(
            "filename",
            format!("at most {MAX_FILES} files are used by a job"),
        ));
    }
    let numbers = names.into_iter().map(|name| {
        let next = known.len();
        *known.entry(name).or_insert(next)
    });
    Ok(numbers.collect())
}

/// Maximum number of files that are opened for one job.
const MAX_FILES: usize = 1024;

/// The name that `option` of a job gives to a new file, relative to the target.
///
/// # Errors
/// When it is outside of the target, or a file with this name already exists, which belongs to another program.
fn own_name(job: &Job, option: &str, name: &str, path: &Path) -> Result<PathBuf, FioError> {
    let name = Path::new(name);
    let inside = match (name.is_absolute(), name.parent()) {
        (false, Some(parent)) if parent.as_os_str().is_empty() => true,
        (_, Some(parent)) => is_same(parent, path),
        (_, None) => false,
    };
    let Some(last) = name.file_name().filter(|_| inside) else {
        return Err(job.error(
            option,
            format!(
                "{} is not in the target {}; give as the target the file or device to measure",
                name.display(),
                path.display()
            ),
        ));
    };
    if path.join(last).symlink_metadata().is_ok() {
        return Err(job.error(
            option,
            format!(
                "{} exists, and in a directory only files of disksmith's own are read and \
                 written; name the file as the target, or another file in the job",
                path.join(last).display()
            ),
        ));
    }
    Ok(last.into())
}
