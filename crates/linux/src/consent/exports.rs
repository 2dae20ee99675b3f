//! Disks and files that the kernel itself serves to other machines, without a claim on them: namespaces of its NVMe
//! target, disks of a USB gadget, and files of its SCSI target. They are configured through configfs.

use std::path::{Path, PathBuf};

use super::identity::Storage;
use crate::block::Devices;
use crate::root::{Root, attribute, names_in, path_attribute};

/// Storage that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) storage: Storage,
    /// Server, and the name under which it serves the storage.
    pub(super) server: String,
    /// Advice on ending that.
    pub(super) advice: &'static str,
}

/// All storage that is served now.
pub(super) fn exports(root: &Root, devices: &Devices) -> Vec<Export> {
    let configfs = root.sys.join("kernel/config");
    let found = [nvme(&configfs), gadgets(root), scsi(&configfs)];
    let found = found.into_iter().flatten();
    found
        .filter_map(|served| {
            Some(Export {
                storage: storage(root, devices, &served.path)?,
                server: served.server,
                advice: served.advice,
            })
        })
        .collect()
}

/// A path that is served.
struct ExportedPath {
    path: PathBuf,
    server: String,
    advice: &'static str,
}

fn storage(root: &Root, devices: &Devices, path: &Path) -> Option<Storage> {
    match devices.at_path(root, path) {
        Some(device) => Some(Storage::Device(device.number)),
        None => Storage::of(&std::fs::metadata(root.locate(path)).ok()?),
    }
}

/// The folders in a folder, with their names. What cannot be listed is taken for empty: without root configfs may not
/// be entered, and then nothing can be overwritten either.
fn folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let names = names_in(folder).unwrap_or_default();
    let named =
        |name: &std::ffi::OsString| (name.to_string_lossy().into_owned(), folder.join(name));
    names.iter().map(named).collect()
}

/// Namespaces of the NVMe target (drivers/nvme/target/configfs.c), which opens devices for writing, without a holder.
fn nvme(configfs: &Path) -> Vec<ExportedPath> {
    let mut found = Vec::new();
    for (subsystem, folder) in folders(&configfs.join("nvmet/subsystems")) {
        for (number, namespace) in folders(&folder.join("namespaces")) {
            if attribute(&namespace.join("enable")).as_deref() != Some("1") {
                continue;
            }
            found.extend(path_attribute(&namespace.join("device_path")).map(|path| ExportedPath {
                path,
                server: format!("the NVMe target as namespace {number} of {subsystem}"),
                advice: "disable the namespace first (echo 0 > enable, in its folder below /sys/kernel/config/nvmet)",
            }));
        }
    }
    found
}

/// Disks of USB gadgets (drivers/usb/gadget/function/f_mass_storage.c): configured through configfs, or of the older
/// g_mass_storage, which shows them below its controller.
fn gadgets(root: &Root) -> Vec<ExportedPath> {
    let configured = folders(&root.sys.join("kernel/config/usb_gadget"))
        .into_iter()
        .flat_map(|(_, gadget)| folders(&gadget.join("functions")));
    let older = folders(&root.sys.join("class/udc"))
        .into_iter()
        .flat_map(|(_, controller)| folders(&controller.join("device")))
        .filter(|(name, _)| name.starts_with("gadget"));
    let luns = configured
        .chain(older)
        .flat_map(|(_, owner)| folders(&owner))
        .filter(|(name, _)| name.starts_with("lun"));
    let served = luns.filter_map(|(_, lun)| {
        Some(ExportedPath {
            path: path_attribute(&lun.join("file"))?,
            server: "a USB gadget as mass storage".to_owned(),
            advice: "take the medium out first (write an empty line to its lun's file attribute), or unload g_mass_storage",
        })
    });
    served.collect()
}

/// Files of the SCSI target (drivers/target/target_core_file.c), which may be devices; its other backstores claim the
/// device. `info` has a line `File: PATH  Size: …`.
fn scsi(configfs: &Path) -> Vec<ExportedPath> {
    let adapters = folders(&configfs.join("target/core"));
    let files = adapters
        .into_iter()
        .filter(|(name, _)| name.starts_with("fileio_"))
        .flat_map(|(_, adapter)| folders(&adapter));
    let served = files.filter_map(|(name, store)| {
        let info = attribute(&store.join("info"))?;
        let (_, rest) = info.split_once("File: ")?;
        let (path, _) = rest.split_once("  Size: ")?;
        Some(ExportedPath {
            path: path.into(),
            server: format!("the SCSI target as {name}"),
            advice: "delete that backstore first (targetcli)",
        })
    });
    served.collect()
}
