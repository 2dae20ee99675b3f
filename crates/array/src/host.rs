//! The host of the steps: its files, its programs, and the steps' results for each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::consent::DestroyTarget;
use linux::exec::{self, Exec, ProgramOutput};

use super::building::BuildStage;
use super::journal::Journal;
use super::programs::Programs;

/// The host on which an array is built: its files, its programs, and how commands are shown.
pub struct ArrayHost<'a> {
    /// The kernel's files.
    pub root: Root,
    /// `/etc`.
    pub etc: PathBuf,
    /// Programs of the host.
    pub programs: &'a mut dyn Programs,
    /// Shows a command to the user.
    pub report: &'a mut dyn FnMut(&str),
    /// The claims on the members, held until mdadm takes them over.
    pub claims: Vec<DestroyTarget>,
    /// The array; `None` until it is built.
    pub array: Option<BuiltArray>,
    /// Journal in the ledger, so that a kill can be repaired.
    pub journal: Option<Journal>,
}

/// An array that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltArray {
    /// Device number of the array.
    pub number: DeviceNumber,
    /// Device node of the array, `/dev/mdN`.
    pub node: PathBuf,
    /// Name of the array in sysfs.
    pub sysfs_name: String,
}

impl ArrayHost<'_> {
    /// Shows a command and runs it.
    pub fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        (self.report)(&format!("+ {}\n", program.line()));
        self.programs.run(program)
    }

    /// Shows a command and runs it, again after each failure but the last attempt's: what holds an array or a member
    /// may be gone a moment later.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub(crate) fn run_with_retries(
        &mut self,
        program: &Exec,
        attempts: u32,
        pause: Duration,
    ) -> Result<(), exec::Error> {
        let mut outcome = self.run(program);
        for _ in 1..attempts {
            if outcome.is_ok() {
                break;
            }
            std::thread::sleep(pause);
            outcome = self.ask(program);
        }
        outcome.map(|_| ())
    }

    /// Runs a command that changes nothing, without showing it.
    pub(crate) fn ask(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        self.programs.run(program)
    }

    /// Notes in the ledger that a step begins. A step that cannot be noted is not begun: the ledger would have
    /// another state than the host.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn note(&mut self, stage: BuildStage) -> anyhow::Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.note(stage)?;
        }
        Ok(())
    }

    /// The array that an earlier step has built.
    ///
    /// # Errors
    /// When it has not.
    pub fn built(&self) -> anyhow::Result<BuiltArray> {
        let none = || anyhow::anyhow!("there is no array to work on");
        self.array.clone().ok_or_else(none)
    }
}

/// The number of the block device that a path leads to now.
pub fn number_at(root: &Root, devices: &Devices, path: &Path) -> Option<DeviceNumber> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    match std::fs::metadata(root.locate(path)) {
        Ok(found) if found.file_type().is_block_device() => {
            Some(DeviceNumber::from_raw(found.rdev()))
        }
        _ => devices.at_path(root, path).map(|device| device.number),
    }
}
