//! LVM groups of one disk that no device mapper has activated, with metadata that LVM's own tools write.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::loops::{Loop, run};
use crate::support::Place;
use crate::{MIB, noise};

/// A volume: its name, its segment's line of stripes, and what lies in its first one.
pub(crate) type Volume = (&'static str, &'static [u64], Inside);

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Inside {
    Nothing,
    Ext4,
    Noise,
}

const EXTENT: u64 = 4 * MIB;
/// Where the first extent begins.
const DATA: u64 = MIB;
const ID: &str = "fzqFlN-2Djf-qwE3-1S6f-pSv9-uXHa-ACCH9y";

/// Makes a group on a file of 64 MiB. Each volume has four extents in stripes from these on.
pub(crate) fn make(place: &Place, path: &Path, volumes: &[Volume]) -> Result<(), String> {
    let device = Loop::on(path)?;
    let text = place.path("group");
    std::fs::write(&text, metadata(volumes)).unwrap();
    let text = text.to_str().unwrap();
    // Only this device is examined, and nothing is written to /etc/lvm.
    let options = [
        "--devices",
        device.path(),
        "--config",
        "backup { backup=0 archive=0 }",
    ];
    let lvm = |program: &str, more: &[&str]| run(program, &[&options[..], more].concat());
    lvm(
        "pvcreate",
        &["-q", "--uuid", ID, "--restorefile", text, device.path()],
    );
    lvm("vgcfgrestore", &["-f", text, "group"]);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    for (_, stripes, inside) in volumes {
        let at = DATA + stripes[0] * EXTENT;
        match inside {
            Inside::Nothing => {}
            Inside::Noise => noise(&file, at, 1 << 20),
            Inside::Ext4 => {
                let part = Loop::part_of(
                    path,
                    &["--offset", &at.to_string(), "--sizelimit", "16777216"],
                )?;
                run("mkfs.ext4", &["-q", "-F", part.path()]);
            }
        }
    }
    drop(device);
    run("sync", &[]);
    Ok(())
}

/// Overwrites the metadata, but not the label.
pub(crate) fn damage(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0; 4096], 4096).unwrap();
}

fn metadata(volumes: &[Volume]) -> String {
    let volumes: String = volumes
        .iter()
        .enumerate()
        .map(|(number, (name, stripes, _))| {
            let id = format!("{number}{}", &ID[1..]);
            let places: Vec<String> = stripes.iter().map(|at| format!("\"pv0\", {at}")).collect();
            format!(
                "{name} {{\nid = \"{id}\"\nstatus = [\"READ\", \"WRITE\", \"VISIBLE\"]\nflags = []\n\
                 segment_count = 1\nsegment1 {{\nstart_extent = 0\nextent_count = 4\ntype = \"striped\"\n\
                 stripe_count = {}\nstripe_size = 128\nstripes = [{}]\n}}\n}}\n",
                stripes.len(),
                places.join(", ")
            )
        })
        .collect();
    let volumes = match volumes.as_str() {
        "" => String::new(),
        volumes => format!("logical_volumes {{\n{volumes}}}\n"),
    };
    format!(
        "contents = \"Text Format Volume Group\"\nversion = 1\ngroup {{\nid = \"{ID}\"\nseqno = 1\nformat = \"lvm2\"\n\
         status = [\"RESIZEABLE\", \"READ\", \"WRITE\"]\nflags = []\nextent_size = 8192\nmax_lv = 0\nmax_pv = 0\n\
         metadata_copies = 0\nphysical_volumes {{\npv0 {{\nid = \"{ID}\"\ndevice = \"/dev/none\"\n\
         status = [\"ALLOCATABLE\"]\nflags = []\ndev_size = 131072\npe_start = 2048\npe_count = 15\n}}\n}}\n\
         {volumes}}}\n"
    )
}
