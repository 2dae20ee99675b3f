//! Sweeps over what is itself made of volumes: striped volumes of LVM, and dm-integrity, which md corrects from
//! another member; and over the layouts of the copies of RAID 10. They run in the lab's machine, which has all of them.

use super::support::Place;
use super::support::documents;
use super::support::lab::in_lab;

const VOLUMES: [&str; 2] = ["--volumes", "8xiops=400:512MiB"];

/// The sweep of two devices, alone and together; the table of what it tried goes to stdout.
const SCRIPT: &str = r#"
is() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2': $3" >&2; exit 9; }; }
sweep() {
    one=$1 two=$2 carries=$3 level=$4; shift 4
    disksmith sweep --devices $one,$two --destroy $one=$carries --destroy $two=$carries --members 1,2 \
        --level $level --chunk 64k --fs ext4 --workload pattern=random,read=0.5,block=16k,depth=32 \
        --seconds 500ms --size 16M --blocks 2 --json "$@"
}

# Two volumes of LVM, each striped over two.
lvm pvcreate -q -y /dev/vda /dev/vdb /dev/vdc /dev/vdd >&2; is $? 0 pvcreate
lvm vgcreate -q data /dev/vda /dev/vdb /dev/vdc /dev/vdd >&2; is $? 0 vgcreate
lvm lvcreate -q -y -Zn -i 2 -I 64k -L 480M -n one data /dev/vda /dev/vdb >&2; is $? 0 "one"
lvm lvcreate -q -y -Zn -i 2 -I 64k -L 480M -n two data /dev/vdc /dev/vdd >&2; is $? 0 "two"
is "$(dmsetup table data-one | cut -d ' ' -f 3-5)" "striped 2 128" stripes
# No udev makes their nodes here.
dmsetup mknodes; ls -l /dev/mapper >&2
disksmith devices >&2
disksmith sweep --devices /dev/vda,/dev/vdb --destroy /dev/vda=LVM2_member \
    --destroy /dev/vdb=LVM2_member --dry-run >&2; is $? 2 "below a volume"
sweep /dev/mapper/data-one /dev/mapper/data-two unknown 0; is $? 0 "sweep of LVM"
lvm vgremove -q -y data >&2; is $? 0 "nothing is left on them"

# Two disks with dm-integrity: without it, a mirror does not know which copy is wrong.
for disk in e f; do
    integritysetup format -q --no-wipe /dev/vd$disk >&2; is $? 0 format
    integritysetup open --integrity-recalculate /dev/vd$disk sure-$disk >&2; is $? 0 open
done
dmsetup mknodes
sweep /dev/mapper/sure-e /dev/mapper/sure-f unknown 1; is $? 0 "sweep of dm-integrity"
for disk in e f; do
    integritysetup close sure-$disk; is $? 0 "nothing holds it"
done

# What md says that it has built is seen while it is measured.
while sleep 0.1; do cat /proc/mdstat; done >/tmp/seen & seen=$!
sweep /dev/vdg /dev/vdh unknown 10 --layout n2,f2,o2; is $? 0 "sweep of RAID 10"
kill $seen
for layout in near far offset; do grep -q "2 $layout-copies" /tmp/seen; is $? 0 "$layout copies"; done
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_volumes_of_lvm_and_of_dm_integrity_and_copies_of_raid_10_are_swept() {
    let place = Place::new();
    let Some(said) = in_lab(&place, &VOLUMES, SCRIPT) else {
        return;
    };
    let said = said.ends_with(0);
    let [striped, sure, copied] = &documents::all(&said.out)[..] else {
        panic!("{said:#?}");
    };
    for (document, device, level) in [
        (striped, "/dev/mapper/data-one", "0"),
        (sure, "/dev/mapper/sure-e", "1"),
    ] {
        let text = document.to_string();
        assert!(text.contains(device), "{text}");
        let layouts = document["layouts"].as_array().unwrap();
        let levels: Vec<&str> = layouts
            .iter()
            .filter_map(|layout| layout["level"].as_str())
            .collect();
        assert_eq!(levels, [level], "{text}");
        assert_eq!(layouts.len(), 2, "{text}");
    }
    let layouts = copied["layouts"].as_array().unwrap();
    let names: Vec<&str> = layouts
        .iter()
        .map(|layout| layout["name"].as_str().unwrap())
        .collect();
    let expected = [
        "one disk, ext4",
        "RAID 10 of 2, 64 KiB, ext4",
        "RAID 10 f2 of 2, 64 KiB, ext4",
        "RAID 10 o2 of 2, 64 KiB, ext4",
    ];
    assert_eq!(names, expected);
    for (layout, word) in layouts.iter().skip(1).zip(["n2", "f2", "o2"]) {
        assert_eq!(
            (&layout["level"], &layout["layout"]),
            (&"10".into(), &word.into())
        );
        assert!(layout["objective"]["mean"].as_f64().is_some(), "{layout:#}");
    }
}
