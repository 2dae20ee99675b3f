//! Corrupt data below mirrors and below two parities: counted once over interruptions, located, and
//! written anew. One parity is tested beside this.

use serde_json::{Value, json};

use crate::support::{Place, ProgramOutput, number};
use crate::{SPOILT, in_lab};

/// Places of the second volume, in pieces of [`WIDE`] bytes.
const PLACES: [u64; 3] = [300, 1100, 2500];
/// Corrupt bytes at each; a chunk too where there are chunks.
const WIDE: u64 = 64 << 10;

/// A level, and what it can say.
struct Level {
    number: &'static str,
    members: &'static str,
    options: &'static str,
    /// Which one is wrong, if that can be told: with two copies it cannot.
    odd: Option<&'static str>,
    /// Where md counts a byte of the second member, by the bytes of its data before it.
    position: fn(u64) -> u64,
    /// True if that is also its position in the array.
    is_of_array: bool,
}

impl Level {
    /// A script for an array of it, with these places spoilt.
    fn script(&self, script: &str, places: [u64; 3]) -> String {
        script
            .replace("MEMBERS", self.members)
            .replace("LEVEL", self.number)
            .replace("OPTIONS", self.options)
            .replace("PLACES", &places.map(|at| at.to_string()).join(" "))
    }
}

const MIRROR: Level = Level {
    number: "1",
    members: "/dev/vda /dev/vdb",
    options: "",
    odd: None,
    position: |member| member,
    is_of_array: true,
};

const THREE_COPIES: Level = Level {
    members: "/dev/vda /dev/vdb /dev/vdc",
    odd: Some("/dev/vdb"),
    ..MIRROR
};

/// Each chunk lies on two members side by side (near copies, md(4)), so that the second of four has the even
/// ones.
const TEN: Level = Level {
    number: "10",
    members: "/dev/vda /dev/vdb /dev/vdc /dev/vdd",
    options: "--chunk 64k",
    odd: None,
    position: |member| member / WIDE * 2 * WIDE + member % WIDE,
    is_of_array: true,
};

const SIX: Level = Level {
    number: "6",
    odd: Some("/dev/vdb"),
    position: |member| member,
    is_of_array: false,
    ..TEN
};

/// A scrub that is ended by Ctrl-C, by its time and by a kill, and then comes to its end; where the mismatches
/// are; and their repair, which is refused on a degraded array.
const SCRIPT: &str = r#"
set -- MEMBERS
destroy=; for disk in "$@"; do destroy="$destroy --destroy $disk=unknown"; done
disksmith array create --name data --level LEVEL OPTIONS --assume-clean \
    --members "$(echo "$*" | tr ' ' ,)" $destroy >&2 || exit 8
find_md
spoil PLACES
echo "offset $(cat "$md/dev-vdb/offset")" >&2
before=$(tunables)

strike INT kept disksmith scrub data; is $? 3 "interrupted"
is "$(tunables)" "$before" "after Ctrl-C"
disksmith scrub data --for 4s >&2; is $? 3 "its time was up"
is "$(tunables)" "$before" "after its time"
strike 9 "checks && kept" disksmith scrub data; is $? 137 "killed"
wait_for restored
disksmith scrub data --locate --json; is $? 1 "mismatches"
is "$(tunables)" "$before" "at the end"
disksmith scrub --status >&2; is $? 1 "status"

disksmith scrub data --repair >&2; is $? 1 "a repair has found them too"
is "$(tunables)" "$before" "after a repair"
disksmith scrub --status >&2; is $? 0 "what was written anew is done"
disksmith scrub data >&2; is $? 0 "all agrees after a repair"

mdadm /dev/md/data --fail /dev/vdb >&2
disksmith scrub data --repair >&2; is $? 2 "a repair of a degraded array"
is "$(cat "$md/last_sync_action") $(cat "$md/sync_action") $(cat "$md/sync_max")" "check idle max" \
    "when it is refused"
"#;

fn assert_all_are_found(level: &Level) {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=12MiB:256MiB"];
    let script = level.script(SCRIPT, PLACES);
    let Some(said) = in_lab(&place, &volumes, &script) else {
        return;
    };
    let said = said.ends_with(0);
    let array = said.json()["arrays"][0].clone();
    assert_eq!(array["mismatched_sectors"], SPOILT, "{array:#}");
    assert_eq!(array["ended"], "done");
    assert_eq!(array["done_bytes"], array["of_bytes"]);
    // Of a start that was killed the ledger may have seen nothing yet.
    assert!(number(&array["starts"]) >= 3, "{array:#}");
    for words in ["it is degraded: 1 of its ", "members is missing"] {
        assert!(said.err.contains(words), "no '{words}' in {}", said.err);
    }
    assert_are_located(level, PLACES, &said, &array);
}

/// Where the mismatches are said to be is where they were made.
fn assert_are_located(level: &Level, places: [u64; 3], said: &ProgramOutput, array: &Value) {
    let mut lines = said.err.lines();
    let offset = lines.find_map(|line| line.strip_prefix("offset ")).unwrap();
    let offset = 512 * offset.trim().parse::<u64>().unwrap();
    let wanted = places.map(|at| {
        let begins = (level.position)(at * WIDE - offset);
        [begins, begins + WIDE]
    });
    let mismatches = array["mismatches"].as_array().unwrap();
    let positions = mismatches.iter().map(|one| &one["position_bytes"]);
    assert_eq!(joined(positions), wanted, "{array:#}");
    if level.is_of_array {
        let of_array = mismatches.iter().map(|one| &one["array_bytes"]);
        let ranges = of_array.flat_map(|ranges| ranges.as_array().unwrap());
        assert_eq!(joined(ranges), wanted, "{array:#}");
    }
    for mismatch in mismatches {
        let word = level.odd.map_or("untold", |_| "member");
        assert_eq!(mismatch["odd"], word, "{array:#}");
        assert_eq!(mismatch["odd_member"], json!(level.odd), "{array:#}");
    }
}

/// Ranges of bytes, as one where they touch.
fn joined<'a>(ranges: impl Iterator<Item = &'a Value>) -> Vec<[u64; 2]> {
    let mut all: Vec<[u64; 2]> = ranges
        .map(|range| [number(&range[0]), number(&range[1])])
        .collect();
    all.sort_unstable();
    let mut joined: Vec<[u64; 2]> = Vec::new();
    for range in all {
        match joined.last_mut() {
            Some(last) if last[1] >= range[0] => last[1] = last[1].max(range[1]),
            _ => joined.push(range),
        }
    }
    joined
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_what_differs_below_a_mirror_is_counted_found_and_repaired() {
    assert_all_are_found(&MIRROR);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_of_three_copies_the_one_that_differs_is_named() {
    assert_all_are_found(&THREE_COPIES);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_what_differs_below_raid_10_is_counted_found_and_repaired() {
    assert_all_are_found(&TEN);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_of_raid_6_the_member_that_differs_is_named_and_written_anew() {
    assert_all_are_found(&SIX);
}

/// An array that others use without a pause: its members are compared directly. md checks only what is suspected, and is
/// idle otherwise. What is written all the time is not taken for a mismatch.
const BUSY: &str = r#"
set -- MEMBERS
destroy=; for disk in "$@"; do destroy="$destroy --destroy $disk=unknown"; done
disksmith array create --name data --level LEVEL OPTIONS --assume-clean \
    --members "$(echo "$*" | tr ' ' ,)" $destroy >&2 || exit 8
find_md
spoil PLACES
echo "offset $(cat "$md/dev-vdb/offset")" >&2
before=$(tunables)
# A log of 512 KiB that is written over and over, and readers of everything, both without an end of their own: how
# long the rest takes is the host's matter.
(while :; do dd if=/dev/urandom of=/dev/md/data bs=64k count=8 oflag=direct 2>/dev/null; sleep 0.1; done) &
log=$!
disksmith bench /dev/md/data --no-ledger --precision 0 --seconds 1d \
    --workload pattern=random,read=1,block=4k,depth=8,rate=80 >/dev/null 2>&1 &
load=$!
wait_for "[ \$(awk '{ print \$1 }' $md/../stat) -gt 300 ]"

# It compares the members directly: but for what is suspected, md is idle, and nothing is in the way of a recovery.
compares_directly() { kept && [ "$(cat $md/sync_action) $(cat $md/sync_max)" = "idle max" ]; }
strike 9 compares_directly disksmith scrub data --anew; is $? 137 "killed in direct compare"
wait_for restored
disksmith scrub data --locate --json; is $? 1 "mismatches"
is "$(tunables)" "$before" "at the end"
kill -0 $load; is $? 0 "others used it all the time"
kill $load $log; wait
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_busy_raid_10_is_read_past_md_and_all_is_found() {
    assert_all_are_found_past_md(&TEN);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_busy_raid_5_is_read_past_md_and_all_is_found() {
    // With mdadm's own chunk, which is larger than what is read at once.
    let five = Level {
        number: "5",
        options: "--chunk 512k",
        odd: None,
        ..SIX
    };
    assert_all_are_found_past_md(&five);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_busy_raid_6_is_read_past_md_and_all_is_found() {
    assert_all_are_found_past_md(&SIX);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_busy_mirror_is_read_past_md_and_all_is_found() {
    assert_all_are_found_past_md(&THREE_COPIES);
}

fn assert_all_are_found_past_md(level: &Level) {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=16MiB:32MiB"];
    let places = [100, 200, 400];
    let script = level.script(BUSY, places);
    let Some(said) = in_lab(&place, &volumes, &script) else {
        return;
    };
    let said = said.ends_with(0);
    let array = said.json()["arrays"][0].clone();
    assert_eq!(array["mismatched_sectors"], SPOILT, "{array:#}");
    assert_eq!(array["ended"], "done");
    assert_eq!(array["done_bytes"], array["of_bytes"]);
    assert_are_located(level, places, &said, &array);
}
