//! Choice between KVM and emulation for the machine.
//!
//! An existing /dev/kvm that can be opened proves little: inside another virtual machine it may stop at the first
//! guest. Therefore a kernel is started on it; KVM works if that kernel reports that it has no root file system.

use std::fs;
use std::path::Path;
use std::time::Duration;

use linux::exec::Exec;

use super::arch::Arch;
use super::packages::Packages;
use super::qemu::{self, Accelerator};

/// Maximum time for that kernel, which natively needs about a second.
const LIMIT: Duration = Duration::from_secs(10);

/// Message of a kernel that ran and found no root file system.
const KERNEL_STARTED_MESSAGE: &str = "Unable to mount root";

/// Requested accelerator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accel {
    /// KVM if a guest really runs on it, otherwise emulation.
    #[default]
    Auto,
    /// KVM, without a test.
    Kvm,
    /// Emulation by QEMU (TCG), which works on any host.
    Emulation,
}

impl Accel {
    pub(super) fn choose(self, cache: &Path, arch: &Arch, packages: &Packages) -> Accelerator {
        match self {
            Accel::Kvm => Accelerator::Kvm,
            Accel::Emulation => Accelerator::Emulation,
            Accel::Auto if kvm_works(cache, arch, packages) => Accelerator::Kvm,
            Accel::Auto => Accelerator::Emulation,
        }
    }
}

/// True if KVM works. The answer is stored, and valid until the next boot.
fn kvm_works(cache: &Path, arch: &Arch, packages: &Packages) -> bool {
    let opened = fs::File::options().read(true).write(true).open("/dev/kvm");
    if opened.is_err() {
        return false;
    }
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let kept = cache.join("kvm");
    let known = fs::read_to_string(&kept).unwrap_or_default();
    match known.strip_prefix(start.trim()).map(str::trim) {
        Some("works") if !start.is_empty() => return true,
        Some("fails") if !start.is_empty() => return false,
        _ => {}
    }
    let works = a_kernel_runs(arch, packages);
    let word = if works { "works" } else { "fails" };
    // If the answer cannot be stored, it is determined again next time.
    let _ = fs::write(&kept, format!("{} {word}\n", start.trim()));
    works
}

fn a_kernel_runs(arch: &Arch, packages: &Packages) -> bool {
    let arguments = qemu::bare(arch, Accelerator::Kvm, &packages.kernel);
    let output = Exec::new(arch.qemu)
        .args(arguments)
        .limit(LIMIT)
        .bound()
        .output();
    output.is_ok_and(|output| output.text().contains(KERNEL_STARTED_MESSAGE))
}
