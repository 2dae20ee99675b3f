//! The whole life of an array on real md, in the lab's machine: a spare takes over, members are exchanged while it
//! is in use, its read-ahead outlives its assembly, and its members are blank in the end.

use serde_json::Value;

use super::support::Place;
use super::support::documents;
use super::support::lab::in_lab;

/// Six volumes, of which the machine calls the first vda, and a smaller one.
const VOLUMES: &str = "--volumes 6xiops=4000:128MiB --volumes iops=4000:64MiB";

const SCRIPT: &str = r#"
members=/dev/vda,/dev/vdb,/dev/vdc,/dev/vdd
consent() { for disk in $1; do echo "--destroy /dev/vd$disk$2"; done; }
is() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2': $3" >&2; exit 9; }; }
state() { cat /sys/block/md127/md/dev-$1/state 2>/dev/null; }
until_state() { until [ "$(state $1)" = "$2" ]; do sleep 0.1; done; }
until_idle() { until [ "$(cat /sys/block/md127/md/sync_action)" = idle ]; do sleep 0.1; done; }
replace() { disksmith array replace data "$@"; }
create() {
    disksmith array create --level 10 --layout o2 --chunk 64k --members $members --name data "$@"
}
mkdir -p /etc/udev/rules.d

# Spares and bitmaps that cannot be.
create $(consent "a b c d g") --spares /dev/vdg >&2; is $? 2 "small spare"
create $(consent "a b c d") --spares /dev/vde >&2; is $? 2 "spare without consent"
create $(consent "a b c d") --spares /dev/vda >&2; is $? 2 "member as spare"
create $(consent "a b c d") --bitmap lockless >&2; is $? 2 lockless
is "$(mdadm --examine /dev/vd? 2>/dev/null)" "" untouched

create $(consent "a b c d e") --spares /dev/vde --bitmap internal --fs ext4 --mount /srv/data \
    --persist --json; is $? 0 create
is "$(cat /sys/block/md127/queue/read_ahead_kb)" 512 "read-ahead"
until_idle
disksmith array list --json
mdadm --detail /dev/md/data >&2
dd if=/dev/urandom of=/srv/data/file bs=1M count=8 2>/dev/null
sum=$(sha256sum </srv/data/file)

# md itself puts the spare in the place of a member that fails.
mdadm --manage /dev/md/data --fail /dev/vdb >&2; is $? 0 fail
until_state vde in_sync
until_idle
disksmith array list --json

# Disks that cannot come, and members that cannot go.
mkfs.ext4 -q /dev/vdf
mkdir /tmp/f && mount /dev/vdf /tmp/f
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf=ext4 >&2; is $? 2 "disk in use"
umount /tmp/f
replace --member /dev/vda --with /dev/vdf >&2; is $? 2 "disk without consent"
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf >&2; is $? 2 "content not named"
replace --member /dev/vda --with /dev/vdg --destroy /dev/vdg >&2; is $? 2 "small disk"
replace --member /dev/vda --with /dev/vdc --destroy /dev/vdc >&2; is $? 2 "a member comes"
replace --member /dev/vdf --with /dev/vdg --destroy /dev/vdg >&2; is $? 2 "no member goes"
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf=ext4 --erase >&2; is $? 2 "erase"
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf=ext4 --dry-run >&2; is $? 0 "dry run"
is "$(mdadm --examine /dev/vdf 2>/dev/null | grep 'Raid Level')" "" "untouched disk"
is "$(state vda)" in_sync "untouched member"

# A member is exchanged under writes.
(while [ ! -e /tmp/end ]; do dd if=/dev/urandom of=/srv/data/other bs=64k count=4 2>/dev/null; sync; done) &
writer=$!
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf=ext4 --erase \
    --destroy /dev/vda=linux_raid_member --json; is $? 0 replace
touch /tmp/end; wait $writer
is "$(state vdf)" in_sync "the disk serves"
is "$(state vda)" "" "the member is out"
is "$(wipefs --noheadings /dev/vda)" "" "the member is blank"
is "$(sha256sum </srv/data/file)" "$sum" "content"

# The member that failed is exchanged too: its place is taken, and so the disk is a spare.
replace --member /dev/vdb --with /dev/vda --destroy /dev/vda=unknown >&2; is $? 0 "failed member"
is "$(state vda)" spare "the disk is a spare"

# Given up while md copies: at one KiB a second.
echo 1 >/proc/sys/dev/raid/speed_limit_min
echo 1 >/proc/sys/dev/raid/speed_limit_max
disksmith array replace data --member /dev/vdc --with /dev/vdb \
    --destroy /dev/vdb=linux_raid_member >&2 &
until [ "$(state vdb)" = spare,replacement ]; do sleep 0.1; done
kill -TERM $!; wait $!; is $? 3 "given up"
is "$(state vdb)" "" "the disk is out again"
is "$(state vdc)" in_sync "the member stays"
is "$(state vda)" spare "the spare still waits"
is "$(mdadm --examine /dev/vdb 2>/dev/null)" "" "the disk is blank again"
echo 200000 >/proc/sys/dev/raid/speed_limit_max
is "$(cat /sys/block/md127/md/degraded)" 0 degraded

# udev sets the read-ahead, after other changes and after another assembly.
ln -s /usr/sbin/udevadm /run/systemd-udevd && /run/systemd-udevd --daemon
echo 128 >/sys/block/md127/queue/read_ahead_kb
udevadm trigger --action=change /sys/block/md127 && udevadm settle
is "$(cat /sys/block/md127/queue/read_ahead_kb)" 512 "read-ahead by udev"

# Erased only when nothing uses it, and every member is named.
erase() { disksmith array stop data --erase "$@"; }
now="a c d e f"
erase $(consent "$now" =linux_raid_member) >&2; is $? 2 "erase in use"
umount /srv/data
erase >&2; is $? 2 "erase without consent"
erase $(consent "$now") >&2; is $? 2 "content of members not named"
erase $(consent "a c d e" =linux_raid_member) >&2; is $? 2 "a member not named"
erase $(consent "$now b" =linux_raid_member) >&2; is $? 2 "a stranger named"
mdadm --manage /dev/md127 --fail /dev/vdf >&2 && until_state vda in_sync
until mdadm --manage /dev/md127 --remove /dev/vdf >&2; do sleep 0.5; done
mdadm --manage /dev/md127 --fail /dev/vda >&2
until mdadm --manage /dev/md127 --remove /dev/vda >&2; do sleep 0.5; done
erase $(consent "c d e" =linux_raid_member) >&2; is $? 2 "a member is missing"
mdadm --manage /dev/md127 --add /dev/vda >&2 && until_state vda in_sync
until_idle

# A member that fails without a spare is rebuilt on another disk.
mdadm --manage /dev/md127 --fail /dev/vda >&2
until_state vda faulty
until_idle
replace --member /dev/vda --with /dev/vdf --destroy /dev/vdf=linux_raid_member --json
is $? 0 "rebuilt"
is "$(state vdf)" in_sync "the disk serves again"
is "$(state vda)" "" "the failed member is out"
is "$(cat /sys/block/md127/md/degraded)" 0 degraded

mdadm --stop /dev/md127 >&2; is $? 0 "stop by hand"
mdadm --assemble --scan >&2; is $? 0 assemble
udevadm settle
until [ "$(cat /sys/block/md127/queue/read_ahead_kb)" = 512 ]; do sleep 0.1; done

now="c d e f"
erase $(consent "$now" =linux_raid_member) --dry-run >&2; is $? 0 "dry run of erasing"
grep -q ^md127 /proc/mdstat; is $? 0 "still there"
erase $(consent "$now" =linux_raid_member) --json; is $? 0 erase
is "$(grep -c ^md /proc/mdstat)" 0 arrays
for disk in $now; do
    is "$(mdadm --examine /dev/vd$disk 2>/dev/null)$(wipefs --noheadings /dev/vd$disk)" "" "blank $disk"
done
udevadm control --exit
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_an_array_lives_with_a_spare_exchanges_and_an_erasing_stop() {
    let place = Place::new();
    let Some(said) = in_lab(&place, VOLUMES, SCRIPT) else {
        return;
    };
    let said = said.ends_with(0);
    let prose = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "/dev/vdg has 64 MiB, and the smallest member 128 MiB",
        "/dev/vde is not overwritten:",
        "/dev/vda is named twice among the members and spares",
        "a lockless bitmap needs mdadm 4.6, and 4.",
        "a lockless bitmap needs Linux 6.18, and 6.",
        "Layout : offset=2",
        "Intent Bitmap : Internal",
        "/dev/vdf is not overwritten: - /dev/vdf is mounted at /tmp/f",
        "it is not named with --destroy; if all that is on it may be lost, add --destroy /dev/vdf",
        "--destroy /dev/vdf=ext4",
        "/dev/vdg has 64 MiB, and the members of md127 use",
        "/dev/vdc is a member of md127 already, in slot 2",
        "/dev/vdf is not a member of md127",
        "the superblock of /dev/vda is erased only if that is named too",
        "+ mdadm --manage /dev/md127 --replace /dev/vda --with /dev/vdf",
        "/dev/vda is a hot spare of /dev/md127: a spare has taken the place of /dev/vdb before",
        "/dev/vdb was taken out of the array; the superblock on /dev/vdb was erased",
        "is in use and not stopped",
        "/dev/vda carries linux_raid_member, and all of that must be named",
        "--destroy names /dev/vdb, which is not among the members",
        "1 of its members is not here",
        "+ wipefs --all --force --quiet /dev/vde",
        "/dev/md127 (raid10 array) is stopped, and the superblocks of",
        "65-disksmith-read-ahead.rules: ACTION==",
    ] {
        assert!(prose.contains(words), "no '{words}' in {}", said.err);
    }
    let [built, whole, taken_over, replaced, rebuilt, erased] = &documents::all(&said.out)[..]
    else {
        panic!("{said:#?}");
    };
    assert_eq!(built["layout"], "o2");
    assert_eq!(built["bitmap"], "internal");
    assert_eq!(built["spares"], serde_json::json!(["/dev/vde"]));
    let rule = built["udev_rule"].as_str().unwrap();
    assert!(rule.contains(built["uuid"].as_str().unwrap()), "{rule}");
    let roles = |listed: &Value| {
        let array = &listed["arrays"][0];
        assert_eq!(array["layout"], "o2");
        assert_eq!(array["bitmap"], "internal");
        assert_eq!(array["degraded"], 0);
        let members = array["members"].as_array().unwrap().iter();
        let faulty = members.filter(|member| member["state"][0] == "faulty");
        (array["spares"].as_u64().unwrap(), faulty.count())
    };
    assert_eq!(roles(whole), (1, 0));
    assert_eq!(roles(taken_over), (0, 1));
    assert_eq!(
        (&replaced["slot"], &replaced["erased"]),
        (&0.into(), &true.into())
    );
    assert_eq!(
        (&rebuilt["with"], &rebuilt["erased"]),
        (&"/dev/vdf".into(), &false.into())
    );
    assert_eq!(erased["erased"].as_array().unwrap().len(), 4);
}
