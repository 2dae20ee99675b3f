//! Loop devices over a disk of which a partition is in use.

use crate::loops::{Loop, Mounted, digest, run};
use crate::support::Place;
use crate::{MIB, row};

use std::fs::File;

/// The kernel claims a disk for its partition, and neither for a loop device over it.
#[test]
fn with_root_a_partition_is_refused_that_is_mounted_by_a_loop_device_over_its_disk() {
    let place = Place::new();
    let file = place.path("disk.img");
    File::create(&file).unwrap().set_len(32 * MIB).unwrap();
    let Ok(disk) = Loop::on(&file) else {
        return crate::support::skipped("no loop device");
    };
    let partition = disk.add_partition();
    partition.mkfs();
    let over = Loop::part_of(&disk.node, &["--offset", "1048576"]).unwrap();
    let consent = format!("{}=ext4", partition.node);
    let _mounted = Mounted::new(over.path());
    run("sync", &[]);
    let before = digest(&file);
    for verb in ["bench", "zero"] {
        let said = place.run(&[verb, &partition.node, "--destroy", &consent]);
        run("sync", &[]);
        let fails = said.status != Some(2) || digest(&file) != before;
        let state = format!("{verb}, a partition mounted by a loop device over its disk");
        row(&state, "refusal", &said, fails);
        assert!(!fails, "{state}: {said:#?}");
        said.refuses(&["is mounted at"]);
    }
}
