//! Zoned block devices.

use crate::block::Device;
use crate::root::{Root, attribute};

/// The model of a zoned block device, such as `host-managed`; `None` of a device without zones
/// (`queue/zoned`, Documentation/ABI/stable/sysfs-block). A partition has the queue of its disk.
pub fn model(root: &Root, device: &Device) -> Option<String> {
    let folder = root.sys.join("class/block").join(device.sysfs_name());
    let mut queues = ["queue", "../queue"].into_iter();
    let model = queues.find_map(|queue| attribute(&folder.join(queue).join("zoned")))?;
    (model != "none").then_some(model)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::block::Devices;

    #[test]
    fn devices_with_zones_are_told_from_those_without() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        fs::create_dir_all(&root.proc).unwrap();
        for (name, number, zoned) in [
            ("sda", 0, Some("none\n")),
            ("sdb", 16, Some("host-managed\n")),
            ("sdc", 32, None),
        ] {
            let disk = root.sys.join("class/block").join(name);
            fs::create_dir_all(disk.join("queue")).unwrap();
            fs::create_dir_all(disk.join("slaves")).unwrap();
            fs::write(disk.join("dev"), format!("8:{number}\n")).unwrap();
            fs::write(disk.join("size"), "2048\n").unwrap();
            if let Some(zoned) = zoned {
                fs::write(disk.join("queue/zoned"), zoned).unwrap();
            }
        }
        let devices = Devices::read(&root).unwrap();
        let of = |name| model(&root, devices.named(name).unwrap());
        assert_eq!(of("sda"), None);
        assert_eq!(of("sdb").as_deref(), Some("host-managed"));
        assert_eq!(of("sdc"), None);
    }
}
