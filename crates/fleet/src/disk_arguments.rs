//! Arguments that name disks of a host; each accepts the id of an EBS volume in place of a path.

use std::ffi::OsString;
use std::path::PathBuf;

use linux::Root;
use linux::volume_id::name_disk;
use ui::exit::{ExitClass as _, Failure};

/// Value of an argument that names a disk, or consents to overwriting one.
pub(crate) enum DiskArgument<'a> {
    /// A word of the command line.
    Word(&'a mut OsString),
    /// A parsed argument, as text.
    Text(&'a mut String),
}

/// Arguments that are paths.
pub(crate) fn paths<'a>(
    paths: impl IntoIterator<Item = &'a mut PathBuf>,
) -> impl Iterator<Item = DiskArgument<'a>> {
    paths
        .into_iter()
        .map(|path| DiskArgument::Word(path.as_mut_os_string()))
}

/// Disks, and the consents to overwrite them.
pub(crate) fn with_consents<'a>(
    disks: impl IntoIterator<Item = &'a mut PathBuf>,
    consents: &'a mut [OsString],
) -> Vec<DiskArgument<'a>> {
    let consents = consents.iter_mut().map(DiskArgument::Word);
    paths(disks).chain(consents).collect()
}

/// Replaces the ids of volumes with the paths of their disks.
///
/// # Errors
/// If a volume is not a disk of this host.
pub(crate) fn name_disks(arguments: Vec<DiskArgument<'_>>, root: &Root) -> Result<(), Failure> {
    for argument in arguments {
        match argument {
            DiskArgument::Word(word) => name_disk(word, root).refused()?,
            DiskArgument::Text(text) => {
                let mut word = OsString::from(&*text);
                name_disk(&mut word, root).refused()?;
                // The node of a disk has the kernel's name, which is ASCII.
                *text = word.to_string_lossy().into_owned();
            }
        }
    }
    Ok(())
}
