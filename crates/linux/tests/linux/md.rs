//! Arrays, on captured and modelled trees.

use crate::support::Tree;
use linux::block::DeviceNumber;
use linux::md::{self, Array};
use record::Bytes;
use record::raid::Level;

fn array(tree: &Tree, name: &str) -> Array {
    let arrays = md::arrays(&tree.root, &tree.devices()).unwrap();
    arrays.into_iter().find(|array| array.name == name).unwrap()
}

#[test]
fn an_array_that_rebuilds_onto_a_spare_is_described() {
    let tree = Tree::unpack("captured-md-6.1");
    assert!(md::is_supported(&tree.root));
    let data = array(&tree, "md127");
    assert_eq!(data.number, DeviceNumber::new(9, 127));
    assert_eq!(data.names, ["data"]);
    assert_eq!(data.level, Some(Level::Ten.into()));
    assert_eq!(data.layout.as_deref(), Some("n2"));
    assert_eq!(data.chunk, Some(Bytes::kib(256)));
    assert_eq!(data.metadata.as_deref(), Some("1.2"));
    assert_eq!((data.wanted, data.degraded), (Some(4), Some(1)));
    assert_eq!(data.action.as_deref(), Some("recover"));
    let (done, of) = data.position.unwrap();
    assert!(done > Bytes(0) && done < of, "{done} of {of}");
    let members: Vec<(&str, Option<u32>, &str)> = data
        .members
        .iter()
        .map(|member| (member.name.as_str(), member.slot, member.state[0].as_str()))
        .collect();
    assert_eq!(
        members,
        [
            ("vda", Some(0), "in_sync"),
            ("vdg", Some(1), "spare"),
            ("vdc", Some(2), "in_sync"),
            ("vdd", Some(3), "in_sync"),
            ("vdb", None, "faulty"),
            ("vdh", None, "spare"),
        ]
    );
    assert_eq!(data.spares(), 1);
    assert_eq!(data.bitmap, None);
    assert_eq!(data.members[0].number, Some(DeviceNumber::new(254, 0)));
    assert_eq!(data.members[0].used, Some(Bytes::mib(1022)));
    assert_eq!(data.members[0].errors, Some(0));
}

#[test]
fn a_mirror_has_neither_chunks_nor_a_layout() {
    let tree = Tree::unpack("captured-md-6.1");
    let log = array(&tree, "md126");
    assert_eq!(log.level, Some(Level::One.into()));
    assert_eq!((log.chunk, log.layout), (None, None));
    assert_eq!(log.action.as_deref(), Some("resync"));
}

#[test]
fn an_array_is_found_by_each_of_its_names() {
    let tree = Tree::unpack("captured-md-6.1");
    let devices = tree.devices();
    for word in ["data", "md127", "/dev/md127", "/dev/md/data"] {
        let found = md::find(&tree.root, &devices, word).unwrap();
        assert_eq!(found.name, "md127", "{word}");
    }
    for word in ["vda", "/dev/vda", "nothing", "", "/dev/md/nothing"] {
        assert_eq!(md::find(&tree.root, &devices, word), None, "{word}");
    }
}

#[test]
fn a_kernel_that_says_little_leaves_gaps_and_no_error() {
    let tree = Tree::unpack("md-raid10-xfs");
    let array = array(&tree, "md0");
    assert_eq!(array.state.as_deref(), Some("clean"));
    assert_eq!((array.chunk, array.position), (None, None));
    assert!(array.members.is_empty());
    assert!(!md::is_supported(&tree.root));
}
