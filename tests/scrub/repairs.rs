//! `scrub --repair` where the members tell which one of them is wrong: that one is written anew.

use serde_json::Value;

use crate::in_lab;
use crate::support::{Place, ProgramOutput, number};

/// A RAID 6 of four members with chunks of 64 KiB, full of one file. At its stripes 4n and 4n + 1 the second
/// member holds data, at 4n + 2 it holds P and at 4n + 3 Q (left-symmetric, md(4)).
const SETUP: &str = r#"
make() {
    level=$1; shift
    destroy=; for disk in "$@"; do destroy="$destroy --destroy $disk=unknown"; done
    disksmith array create --name data --level $level --assume-clean $chunk --fs ext4 --mount /srv/data \
        --members "$(echo "$*" | tr ' ' ,)" $destroy >&2 || exit 8
    find_md
    offset=$((512 * $(cat "$md/dev-vdb/offset")))
    dd if=/dev/urandom of=/srv/data/file bs=64k 2>/dev/null
    sync; sum=$(sum); before=$(tunables)
}
drop() { sync; echo 3 >/proc/sys/vm/drop_caches; }
sum() { drop; sha256sum </srv/data/file; }
tunables() {
    for tunable in sync_action sync_min sync_max sync_speed_min sync_speed_max stripe_cache_size suspend_lo \
        suspend_hi; do
        [ ! -e "$md/$tunable" ] || cat "$md/$tunable"
    done | tr '\n' ' '
}
# Changes one bit of a byte of a member's data, which its own cache must not have.
flip() {
    drop; blockdev --flushbufs "$1"
    byte=$(dd if="$1" bs=1 skip="$2" count=1 2>/dev/null | od -An -tu1)
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc,fsync 2>/dev/null
    blockdev --flushbufs "$1"
}
# The byte 12345 of the chunk of a stripe, on a member.
at() { echo $((offset + $1 * 65536 + 12345)); }
"#;

fn script(script: &str) -> String {
    format!("{SETUP}{script}")
}

const VOLUMES: [&str; 2] = ["--volumes", "4xlatency=100us:32MiB"];

/// One byte of data twice, one of P and one of Q; md has all of it in memory as it was. Then two members at
/// the same place.
const SIX: &str = r#"
chunk="--chunk 64k"
make 6 /dev/vda /dev/vdb /dev/vdc /dev/vdd
for stripe in 200 205 202 207; do flip /dev/vdb $(at $stripe); done
[ "$(sum)" != "$sum" ]; is $? 0 "the file is damaged"
disksmith scrub data >&2; is $? 1 "a check finds it"
# md keeps what it has checked last in memory.
echo 25600 >"$md/sync_min"; echo 26752 >"$md/sync_max"; echo check >"$md/sync_action"
wait_for "grep -q '^26752 ' $md/sync_completed"
echo idle >"$md/sync_action"; wait_for "[ \$(cat $md/sync_action) = idle ]"
echo 0 >"$md/sync_min"; echo max >"$md/sync_max"
is "$(tunables)" "$before" "before the repair"
disksmith scrub data --locate --repair --json; is $? 1 "a repair has found it too"
is "$(tunables)" "$before" "after the repair"
is "$(sum)" "$sum" "the file is whole again"
disksmith scrub --status >&2; is $? 0 "nothing is left"
# A part of the same stripe is written, which must not take parity from what was there before.
block=$((401 * 16 + 3))
dd if=/dev/md/data of=/dev/md/data bs=4k skip=$block seek=$block count=1 iflag=direct oflag=direct \
    conv=notrunc 2>/dev/null
disksmith scrub data >&2; is $? 0 "all agrees"
is "$(sum)" "$sum" "the file is whole"

# Two members in one block, which nothing can tell, and one alone elsewhere.
for disk in vdb vdc; do
    dd if=/dev/urandom of=/dev/$disk bs=512 seek=$(((offset + 208 * 65536) / 512)) count=1 conv=fsync 2>/dev/null
    blockdev --flushbufs /dev/$disk
done
flip /dev/vdb $(at 220)
member() { blockdev --flushbufs $1; dd if=$1 bs=64k skip=$((offset / 65536 + 208)) count=1 2>/dev/null | sha256sum; }
old="$(member /dev/vda) $(member /dev/vdb) $(member /dev/vdc) $(member /dev/vdd)"
disksmith scrub data --repair >/tmp/two; is $? 1 "two members"
cat /tmp/two >&2
grep -q ' several .* ambiguous' /tmp/two; is $? 0 "it is said"
grep -q ' /dev/vdb .* restored' /tmp/two; is $? 0 "the other one is restored"
now="$(member /dev/vda) $(member /dev/vdb) $(member /dev/vdc) $(member /dev/vdd)"
is "$now" "$old" "nothing is written where nothing can be told"
is "$(tunables)" "$before" "after two members"
disksmith scrub --status >&2; is $? 1 "something is left"

mdadm /dev/md/data --fail /dev/vdd >&2
disksmith scrub data --repair >&2; is $? 2 "degraded"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_of_raid_6_the_member_that_is_wrong_is_written_anew_and_the_file_is_whole_again() {
    let place = Place::new();
    let Some(said) = in_lab(&place, &VOLUMES, &script(SIX)) else {
        return;
    };
    let said = said.ends_with(0);
    let array = said.json()["arrays"][0].clone();
    println!("{array:#}\n{}", said.err);
    assert_eq!(array["action"], "repair");
    assert_eq!(array["repaired"]["left_bytes"], 0);
    assert_eq!(array["repaired"]["restored_bytes"], 4 * 512);
    let mismatches = array["mismatches"].as_array().unwrap();
    assert_eq!(mismatches.len(), 4, "{array:#}");
    for (mismatch, stripe) in mismatches.iter().zip([200, 202, 205, 207]) {
        is_sector_of(mismatch, stripe);
    }
    for words in [
        "were written anew from the other members",
        "Where several members are wrong at once nothing was written",
        "1 of its 4 members is missing",
    ] {
        assert_contains(&said, words);
    }
}

fn assert_contains(said: &ProgramOutput, words: &str) {
    let prose = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(prose.contains(words), "no '{words}' in {}", said.err);
}

/// The sector with byte 12345 of a stripe is named, and no other byte.
fn is_sector_of(mismatch: &Value, stripe: u64) {
    let position = stripe * 65536 + 12345 / 512 * 512;
    let pair = |from: u64| serde_json::json!([from, from + 512]);
    assert_eq!(mismatch["position_bytes"], pair(position), "{mismatch:#}");
    assert_eq!(mismatch["odd_member"], "/dev/vdb");
    assert_eq!(mismatch["repair"], "restored");
    let device = mismatch["odd_member_device_bytes"][0].clone();
    assert_eq!(number(&device[1]) - number(&device[0]), 512);
    let array = mismatch["array_bytes"].as_array().unwrap();
    let files = mismatch["files"].as_array().unwrap();
    // P and Q hold nothing of the array.
    if stripe % 4 > 1 {
        assert!(array.is_empty() && files.is_empty(), "{mismatch:#}");
        return;
    }
    // The second member has the first chunk of stripe 4n, and of 4n + 1 the second.
    let from = stripe * 2 * 65536 + stripe % 4 * 65536 + 12345 / 512 * 512;
    assert_eq!(array[..], [pair(from)], "{mismatch:#}");
    assert_eq!(files[..], ["/srv/data/file"], "{mismatch:#}");
}

/// A repair of many places that is killed again and again, also with its guard.
const KILLS: &str = r#"
chunk="--chunk 64k"
make 6 /dev/vda /dev/vdb /dev/vdc /dev/vdd
stripes="200 204 208 212 216 220 224 228 232 236 240 244"
damage() {
    for stripe in $stripes; do flip /dev/vdb $(at $stripe); done
    [ "$(sum)" != "$sum" ]; is $? 0 "the file is damaged"
}
damage
disksmith scrub data >&2; is $? 1 "a check finds it"
is_held() { read -r held <"$md/suspend_hi" && [ "$held" != 0 ]; }
# Begins a repair, stops it where writes wait, and kills what is to be killed. Where that was not seen before the repair
# came to its end, all is damaged again and it is begun anew.
begin() {
    for try in $(seq 20); do
        disksmith scrub data --repair >&2 & repair=$!
        until is_held || ! kill -0 $repair 2>/dev/null; do :; done
        if kill -STOP $repair 2>/dev/null && is_held && "$@"; then wait; return 0; fi
        kill -CONT $repair 2>/dev/null; wait
        disksmith scrub data --repair >&2; is "$(sum)" "$sum" "the repair came to its end"
        damage
        disksmith scrub data --anew >&2; is $? 1 "a check finds it again"
    done
    echo "it was never seen that writes waited" >&2; exit 7
}
kill_it() { kill -9 $repair; }
begin kill_it
tries=0
while [ "$(tunables)" != "$before" ] && [ $tries -lt 600 ]; do tries=$((tries + 1)); sleep 0.1; done
is "$(tunables)" "$before" "the guard has put all back"
# A write to these stripes does not wait any more. Beside what is damaged: what is read would be written.
for stripe in $stripes; do
    block=$((stripe * 32 + 5))
    dd if=/dev/md/data of=/dev/md/data bs=4k skip=$block seek=$block count=1 iflag=direct oflag=direct conv=notrunc \
        2>/dev/null
    is $? 0 "a write after the kill"
done

# Neither the repair nor its guard: the next start puts the tunables back, from the ledger.
kill_all_while_held() { kill_all; wait; is_held; }
begin kill_all_while_held
disksmith scrub --status >&2
wait_for "[ \$(cat $md/sync_action) = idle ]"
is "$(tunables)" "$before" "the next start has put all back"
disksmith scrub data --repair --json; status=$?
[ $status -le 1 ]; is $? 0 "it goes on"
is "$(sum)" "$sum" "the file is whole again"
is "$(tunables)" "$before" "at the end"
disksmith scrub data --anew >&2; is $? 0 "all agrees"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_repair_that_is_killed_lets_writes_go_on_and_is_gone_on_with() {
    let place = Place::new();
    let Some(said) = in_lab(&place, &VOLUMES, &script(KILLS)) else {
        return;
    };
    let said = said.ends_with(0);
    println!("{}", said.err);
    assert_contains(
        &said,
        "A repair was ended while it wrote to the member in slot 1",
    );
}

/// Three copies: the odd one is written anew, also where it is the first, which md would keep.
const THREE: &str = r#"
chunk=
make 1 /dev/vda /dev/vdb /dev/vdc
flip /dev/vda $((offset + 20000000)); flip /dev/vdc $((offset + 25000000))
disksmith scrub data --repair --json; is $? 1 "a repair has found it"
is "$(tunables)" "$before" "after the repair"
is "$(sum)" "$sum" "the file is whole again"
for disk in vda vdb vdc; do
    blockdev --flushbufs /dev/$disk
    data="$data $(dd if=/dev/$disk bs=64k skip=$((offset / 65536)) count=480 2>/dev/null | sha256sum | cut -c1-64)"
done
is "$(echo $data | tr ' ' '\n' | sort -u | wc -l | tr -d ' ')" 1 "the members are the same"
disksmith scrub data >&2; is $? 0 "all agrees"

# Of two copies md does not know which is right, and that is said.
umount /srv/data; disksmith array stop data >&2; mdadm --zero-superblock /dev/vda /dev/vdb /dev/vdc
make 1 /dev/vda /dev/vdb
flip /dev/vdb $((offset + 20000000))
disksmith scrub data --locate --repair >&2; is $? 2 "what cannot be told is no repair"
disksmith scrub data --repair >&2; is $? 1 "md's repair"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_of_three_copies_the_one_that_is_wrong_is_written_anew() {
    let place = Place::new();
    let Some(said) = in_lab(&place, &VOLUMES, &script(THREE)) else {
        return;
    };
    let said = said.ends_with(0);
    let array = said.json()["arrays"][0].clone();
    println!("{array:#}\n{}", said.err);
    let mismatches = array["mismatches"].as_array().unwrap();
    let odd: Vec<_> = mismatches.iter().map(|one| &one["odd_member"]).collect();
    assert_eq!(odd, ["/dev/vda", "/dev/vdc"]);
    assert_eq!(array["repaired"]["restored_bytes"], 1024);
    assert_contains(
        &said,
        "is repaired by md, which does not know what is wrong",
    );
    assert_contains(&said, "where that was the wrong one, the right one is gone");
}
