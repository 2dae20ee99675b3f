//! `scrub`, through the real program. What needs real md runs in the lab's machine, since not every
//! host's kernel has it; where there is no machine to be had, that test says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "scrub/levels.rs"]
mod levels;
#[path = "scrub/repairs.rs"]
mod repairs;
mod support;

use serde_json::Value;
use support::{Place, ProgramOutput, lab};

/// Beginning of all scripts: an array of parity over four volumes, on one of which three places have
/// other content than the parity says, and its tunables as one text.
const SETUP: &str = r#"
is() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2': $3" >&2; exit 9; }; }
tunables() {
    for tunable in sync_action sync_min sync_max sync_speed_min sync_speed_max stripe_cache_size; do
        [ ! -e "$md/$tunable" ] || cat "$md/$tunable"
    done | tr '\n' ' '
}
# How long a thing takes is the host's matter.
wait_for() {
    tries=0
    until eval "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 6000 ] || { echo "for ten minutes it was not so: $1" >&2; exit 7; }
        sleep 0.1
    done
}
find_md() { md=/sys/block/$(basename "$(readlink -f /dev/md/data)")/md; }
restored() { [ "$(tunables)" = "$before" ]; }
# A check is under way, up to a sync_max before the end: from the last one it, and what follows it, would come to its end.
checks() {
    max=$(cat $md/sync_max) end=$(cat $md/sync_completed)
    [ "$(cat $md/sync_action)" = check ] && [ "$max" -gt 8192 ] && [ "$max" -lt "${end##* }" ]
}
at_sync_max() { wait_for checks; }
# A MB or more is done, and in the ledger.
kept() { disksmith scrub --status --json | grep -q '"done_bytes": [0-9]\{7,\}'; }
# Until none is left: one may just have started another.
kill_all() {
    program=$(readlink -f "$(command -v disksmith)")
    while :; do
        all=
        for process in /proc/[0-9]*; do
            [ "$(readlink "$process/exe")" != "$program" ] || all="$all ${process#/proc/}"
        done
        [ -n "$all" ] || return 0
        kill -9 $all
        # A process that ends has no program any more, and may still have its files open.
        for one in $all; do
            while grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$one/status"; do sleep 0.1; done
        done
    done
}
# Runs a scrub, and signals it once a condition is true while it is at work; its status is this one's. On a host on
# which it comes to its end first, since the volumes are as fast as ever, it is run again from its beginning.
strike() {
    signal=$1 condition=$2 anew=; shift 2
    for try in $(seq 20); do
        "$@" $anew >&2 & scrub=$!
        until eval "$condition" 2>/dev/null || ! kill -0 $scrub 2>/dev/null; do sleep 0.1; done
        kill -$signal $scrub 2>/dev/null
        wait $scrub; status=$?
        [ $status -le 1 ] || return $status
        anew=--anew
    done
    echo "it always came to its end before this was seen: $condition" >&2; exit 7
}
# Kills a scrub together with its guard, while a check stands at its sync_max.
strike_all() {
    for try in $(seq 20); do
        strike 9 "$1 && checks && kill_all" disksmith scrub data; is $? 137 "killed"
        ! checks || return 0
    done
    echo "the check was always done before it was killed" >&2; exit 7
}
exec 3>&2
make_array() {
    disksmith array create --name data --level 5 --chunk 64k --assume-clean \
        --members /dev/vda,/dev/vdb,/dev/vdc,/dev/vdd --destroy /dev/vda=unknown --destroy /dev/vdb=unknown \
        --destroy /dev/vdc=unknown --destroy /dev/vdd=unknown >&2 || exit 8
    find_md
}
# Below the array, so that md does not know: 64 KiB each.
spoil() {
    for at in "$@"; do
        dd if=/dev/urandom of=/dev/vdb bs=64k seek="$at" count=1 conv=fsync 2>/dev/null
    done
}
"#;

/// 64 KiB at three places, in sectors.
const SPOILT: u64 = 3 * 128;

/// Runs a script in a machine with four volumes.
fn in_lab(place: &Place, options: &[&str], script: &str) -> Option<ProgramOutput> {
    lab::in_lab(place, options, &format!("{SETUP}{script}"))
}

/// A scrub that is interrupted, goes on, is killed, goes on, and comes to its end; then what is
/// refused.
const SCRIPT: &str = r#"
make_array
spoil 300 1100 2500
before=$(tunables)

strike INT kept disksmith scrub data; is $? 3 "interrupted"
is "$(tunables)" "$before" "after a signal"

refused() { disksmith scrub data >&3 2>&3; [ $? = 2 ]; }
strike 9 "checks && kept && refused" disksmith scrub /dev/md/data; is $? 137 "killed while another was refused"
wait_for restored

# Neither the scrub nor its guard: the next start puts the tunables back, from the ledger.
strike_all kept
[ "$(tunables)" != "$before" ]; is $? 0 "the tunables are turned while a scrub runs"
disksmith scrub --status >&2
is "$(tunables)" "$before" "after a kill of both"

disksmith scrub data --json; is $? 1 "mismatches"
is "$(tunables)" "$before" "at the end"
disksmith scrub --status >&2; is $? 1 "status"

echo 65536 >"$md/sync_max"
disksmith scrub data >&2; is $? 2 "a sync_max that another program has set"
echo max >"$md/sync_max"
mdadm /dev/md/data --fail /dev/vdc >&2
disksmith scrub data >&2; is $? 2 "degraded"
is "$(tunables)" "$before" "when it is refused"
"#;

#[test]
fn with_qemu_a_scrub_finds_all_over_interruptions_and_puts_the_tunables_back() {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=12MiB:160MiB"];
    let Some(said) = in_lab(&place, &volumes, SCRIPT) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    assert_eq!(document["schema"], 1);
    let array = &document["arrays"][0];
    assert_eq!(array["mismatched_sectors"], SPOILT, "{array:#}");
    assert_eq!(array["ended"], "done");
    assert_eq!(array["done_bytes"], array["of_bytes"]);
    assert!(array["starts"].as_u64().unwrap() >= 2, "{array:#}");
    let whole = array["of_bytes"].as_u64().unwrap();
    assert!(array["bytes"].as_u64().unwrap() < whole, "{array:#}");
    for words in [
        "it was interrupted. All tunables are as they were. The same command continues from there",
        "another disksmith is scrubbing it already",
        "It resumes at ",
        "its sync_max is 65536",
        "1 of its 4 members is missing",
    ] {
        assert!(said.err.contains(words), "no '{words}' in {}", said.err);
    }
}

/// The same command after each boot.
const CUTS: &str = r#"
if [ "$DISKSMITH_LAB_BOOT" = 1 ]; then
    make_array
    spoil 300 9000 25000
else
    mdadm --assemble /dev/md/data /dev/vda /dev/vdb /dev/vdc /dev/vdd >&2 || exit 8
    find_md
fi
while [ "$(cat "$md/sync_action")" != idle ]; do sleep 0.2; done
disksmith scrub data --json; is $? 1 "mismatches"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_scrub_finds_all_though_the_machine_is_killed_ten_times() {
    let place = Place::new();
    let options = [
        "--volumes",
        "4xthroughput=8MiB:2GiB",
        "--cut-after",
        "10x16s..24s",
    ];
    let Some(said) = in_lab(&place, &options, CUTS) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    let array = &document["arrays"][0];
    println!("{} starts, {array:#}", array["starts"]);
    assert_eq!(array["mismatched_sectors"], SPOILT, "{array:#}");
    assert!(array["starts"].as_u64().unwrap() > 5, "{array:#}");
}

/// A byte of a file is changed below the array; after a scrub the file is found without a new one.
const LOCATE: &str = r#"
make_array
mkfs.ext4 -q "/dev/md/data" && mkdir -p /mnt && mount /dev/md/data /mnt || exit 8
yes "these lines are the file that is looked for" | head -c 3145728 >/mnt/known
sync; echo 3 >/proc/sys/vm/drop_caches
lines() { dd if=/dev/vdb bs="$1" skip="$2" count=1 2>/dev/null | grep -c "are the file"; }
# A MiB with much of the file, and a chunk of it that holds nothing else.
mib=0
while [ $mib -lt 16 ] && [ "$(lines 1M $mib)" -lt 7000 ]; do mib=$((mib + 1)); done
chunk=$((mib * 16))
while [ "$(lines 64k $chunk)" -lt 1450 ]; do chunk=$((chunk + 1)); done
[ $chunk -lt $((mib * 16 + 16)) ] || exit 7
printf Z | dd of=/dev/vdb bs=1 seek=$((chunk * 65536 + 100)) conv=notrunc,fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches
yes "these lines are the file that is looked for" | head -c 3145728 | cmp - /mnt/known >&2
before=$(tunables)
disksmith scrub data >&2; is $? 1 "mismatches"
is "$(tunables)" "$before" "at the end"
disksmith scrub data --locate --json; is $? 1 "mismatches, and no new scrub"
is "$(tunables)" "$before" "after a search"
disksmith scrub --all --every 28d >&2; is $? 0 "not due"
disksmith scrub --status >&2; is $? 1 "status"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_scrub_names_the_file_in_which_a_byte_was_changed() {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=100MiB:16MiB"];
    let Some(said) = in_lab(&place, &volumes, LOCATE) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    let array = &document["arrays"][0];
    assert_eq!(array["mismatched_sectors"], 8, "{array:#}");
    assert_eq!(array["bytes"], 0, "no new scrub: {array:#}");
    let mismatches = array["mismatches"].as_array().unwrap();
    assert_eq!(mismatches.len(), 1, "{array:#}");
    assert_eq!(mismatches[0]["files"], serde_json::json!(["/mnt/known"]));
    assert_eq!(mismatches[0]["odd"], "untold");
    // As cmp says it: "- /mnt/known differ: char 65540, line 1490".
    let (_, byte) = said.err.split_once("/mnt/known differ: char ").unwrap();
    let byte: u64 = byte.split(',').next().unwrap().trim().parse().unwrap();
    let owners = array["located"]["owners"].as_array().unwrap();
    let file = owners.iter().find(|owner| owner["kind"] == "file").unwrap();
    let parts = file["file_bytes"].as_array().unwrap();
    let holds =
        |part: &Value| (part[0].as_u64().unwrap()..part[1].as_u64().unwrap()).contains(&(byte - 1));
    assert!(parts.iter().any(holds), "{byte} is not in {parts:?}");
    for words in [
        "it is not scrubbed again (--anew would)",
        "locating the mismatches: ",
        "is not due (--every)",
        "Nothing checks the arrays of this host on a schedule",
    ] {
        assert!(said.err.contains(words), "no '{words}' in {}", said.err);
    }
}

/// A file system on the array, with the ledger on it: its journal, and what is kept of the scrub, are
/// requests to the array that is scrubbed.
const OWN: &str = r#"
make_array
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md/data && mkdir -p /mnt &&
    mount /dev/md/data /mnt || exit 8
export DISKSMITH_LEDGER=/mnt/ledger.db
# What a host writes that is at rest: its logs.
while date >>/mnt/log; do sleep 1; done & logs=$!
disksmith scrub data --json; is $? 0 "all agrees"
kill $logs; wait $logs
[ -s /mnt/ledger.db ]; is $? 0 "the ledger is on the array"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_file_system_at_rest_and_the_ledger_on_the_array_are_no_foreground() {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=12MiB:384MiB"];
    let Some(said) = in_lab(&place, &volumes, OWN) else {
        return;
    };
    let document: Value = said.ends_with(0).json();
    let array = &document["arrays"][0];
    println!("{array:#}");
    assert_eq!(array["ended"], "done", "{array:#}");
    assert_eq!(array["kept"], true, "{array:#}");
    // Whoever is met is measured, and then there is a target.
    let target = &array["foreground"]["keep_p99_ns"];
    assert!(target.is_null(), "{array:#}");
    // Of 12 MiB/s, with the wait at the beginning; a check that is held for the journal has less than half.
    let rate = array["bytes"].as_f64().unwrap() / array["seconds"].as_f64().unwrap();
    assert!(rate > 0.65 * 12.0 * 1048576.0, "{rate}: {array:#}");
}

/// The same while the members are read.
const OWN_READ: &str = r#"
make_array
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md/data && mkdir -p /mnt &&
    mount /dev/md/data /mnt || exit 8
export DISKSMITH_LEDGER=/mnt/ledger.db
disksmith scrub --read /dev/md/data --json; is $? 0 "all can be read"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_reading_is_not_its_own_foreground_where_the_ledger_is_on_the_array() {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=12MiB:384MiB"];
    let Some(said) = in_lab(&place, &volumes, OWN_READ) else {
        return;
    };
    let document: Value = said.ends_with(0).json();
    let array = &document["read"][0];
    println!("{array:#}");
    assert_eq!(array["ended"], "done", "{array:#}");
    let target = &array["foreground"]["keep_p99_ns"];
    assert!(target.is_null(), "{array:#}");
}

/// An array with a spare, and members that fail.
const SPARE: &str = r#"
make_array
mdadm -q /dev/md/data --add /dev/vde || exit 8
before=$(tunables)
settings() { tunables | cut -d ' ' -f 2-; }
begin() { disksmith scrub data >&2 & scrub=$!; at_sync_max; }
# The first is taken out, and comes back as the next spare when the array is whole.
fails() { mdadm -q /dev/md/data --fail "$1" >&2; sleep 0.5; }
recovers() {
    wait_for "[ \$(cat $md/degraded) = 0 ] && [ \$(cat $md/sync_action) = idle ]"
    is "$(cat $md/degraded)" 0 "recovery $2"
    mdadm -q /dev/md/data --remove "$1" && mdadm -q --zero-superblock "$1" &&
        mdadm -q /dev/md/data --add "$1" || exit 8
}
"#;

/// A member fails when the scrub was killed together with its guard.
const KILLED: &str = r#"
strike_all true; fails /dev/vdd
# A check that stands at its sync_max does not end, and a recovery goes no further.
place() { cat $md/sync_action $md/sync_completed; }
tries=0; was=
while [ "$was" != "$(place)" ] && [ $tries -lt 15 ]; do was=$(place); tries=$((tries + 1)); sleep 2; done
[ "$(cat $md/sync_action)" != idle ]; is "$? $(cat $md/degraded)" "0 1" "without help it stands there"
disksmith scrub --status >&2
recovers /dev/vdd "after a kill"
disksmith scrub --status >&2
is "$(tunables)" "$before" "after a kill of both, and a recovery"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_recovery_gets_past_what_a_killed_scrub_has_left() {
    let place = Place::new();
    let volumes = ["--volumes", "5xthroughput=8MiB:64MiB"];
    let Some(said) = in_lab(&place, &volumes, &[SPARE, KILLED].concat()) else {
        return;
    };
    said.ends_with(0);
}

/// A member fails while the scrub runs, and while it is stopped; and checks of others, which are left
/// alone.
const OTHERS: &str = r#"
begin; fails /dev/vdb
wait $scrub; is $? 3 "a member failed"
recovers /dev/vdb "beside a scrub"
wait_for "[ \$(cat $md/sync_min) = 0 ]"
is "$(tunables)" "$before" "its guard has waited for the recovery"

begin; kill -STOP $scrub; fails /dev/vdc
recovers /dev/vdc "beside a scrub that is stopped"
kill -CONT $scrub; wait $scrub; is $? 3 "a member failed meanwhile"
wait_for "[ \$(cat $md/sync_min) = 0 ]"
is "$(tunables)" "$before" "after a scrub that was stopped"

# Somebody puts back by hand what was left, and begins a check of his own.
strike_all true
echo idle >$md/sync_action; echo 0 >$md/sync_min; echo max >$md/sync_max
echo 3000 >$md/sync_speed_max; echo check >$md/sync_action
disksmith scrub --status >&2; disksmith scrub data >&2; is $? 2 "somebody's check"
is "$(cat $md/sync_action) $(cat $md/sync_speed_max)" "check 3000 (local)" "somebody's check"
echo system >$md/sync_speed_max; echo idle >$md/sync_action
# The same after the guard has put it back; the ledger was not told.
begin; kill -9 $scrub; wait $scrub; wait_for "[ -e /run/disksmith/scrub-back-* ]"
is "$(settings | cut -d ' ' -f 2-)" "$(echo "$before" | cut -d ' ' -f 3-)" "its guard"
echo check >$md/sync_action; echo 65536 >$md/sync_max 2>/dev/null
disksmith scrub --status >&2
is "$(cat $md/sync_action)" check "somebody's check after the guard"
echo idle >$md/sync_action; echo 0 >$md/sync_min; echo max >$md/sync_max

# What md could not read is no mismatch, and is told all the same.
begin; echo 24 >$md/dev-vda/errors
wait $scrub; is $? 1 "a member could not be read"
disksmith scrub --status --json; is $? 1 "status"
is "$(tunables)" "$before" "at the end"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_recovery_and_a_check_of_others_get_past_a_scrub() {
    let place = Place::new();
    let volumes = ["--volumes", "5xthroughput=8MiB:64MiB"];
    let Some(said) = in_lab(&place, &volumes, &[SPARE, OTHERS].concat()) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    let array = &document["arrays"][0];
    assert_eq!(array["scrub"], "done", "{array:#}");
    assert_eq!(array["mismatched_sectors"], 0, "{array:#}");
    let unreadable = serde_json::json!([
        { "member": "/dev/vda", "unreadable_sectors": 24, "bad_blocks_bytes": 0 }
    ]);
    assert_eq!(array["unreadable"], unreadable, "{array:#}");
    for words in [
        "a member failed, so that the check ended",
        "until md has done what it does now, and is put back then",
        "24 sectors of /dev/vda could not be read",
    ] {
        assert!(said.err.contains(words), "no '{words}' in {}", said.err);
    }
}

/// Two arrays on the same two disks. While the first is scrubbed, a member of the second is replaced: md works
/// on one array of a disk at a time, and a check that is paced could hold it back for days. Then a member of
/// the first is to be replaced.
const BESIDE: &str = r#"
for disk in vda vdb vdc; do
    printf 'n\np\n1\n\n+50M\nn\np\n2\n\n\nw\n' | fdisk /dev/$disk >/dev/null 2>&1
done
create() { mdadm -q --create "$1" --run --level 1 --raid-devices 2 --assume-clean --bitmap none $2 $3 >&2 || exit 8; }
create /dev/md1 /dev/vda1 /dev/vdb1
create /dev/md2 /dev/vda2 /dev/vdb2
md=/sys/block/md1/md
second=/sys/block/md2/md
before=$(tunables)
disksmith scrub --all --json & scrub=$!
at_sync_max
mdadm -q /dev/md2 --fail /dev/vdb2 >&2 && mdadm -q /dev/md2 --add /dev/vdc2 >&2 || exit 8
wait $scrub; is $? 3 "a recovery beside it"
wait_for "[ \$(cat $second/degraded) = 0 ]"
is "$(cat $second/degraded) $(cat $md/sync_action)" "0 idle" "the other array is whole"
is "$(tunables)" "$before" "at the end"

# A member that is to be replaced: nothing is degraded, and md begins nothing before the check has ended.
mdadm -q /dev/md1 --add /dev/vdc1 >&2 || exit 8
disksmith scrub md1 >&2 & scrub=$!
at_sync_max
mdadm -q /dev/md1 --replace /dev/vdb1 >&2 || exit 8
wait $scrub; is $? 3 "a replacement"
wait_for "[ \$(cat $md/sync_action) = recover ]"
is "$(cat $md/sync_action) $(cat $md/sync_max)" "recover max" "the replacement"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_scrub_lets_an_array_on_the_same_disks_recover() {
    let place = Place::new();
    let volumes = ["--volumes", "3xthroughput=4MiB:66MiB"];
    let Some(said) = in_lab(&place, &volumes, BESIDE) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    let array = &document["arrays"][0];
    assert_eq!(array["array"], "/dev/md1", "{array:#}");
    assert_eq!(array["ended"], "recovery", "{array:#}");
    assert!(
        array["done_bytes"].as_u64() < array["of_bytes"].as_u64(),
        "{array:#}"
    );
    let why = array["why"].as_str().unwrap();
    assert!(why.contains("has to do a recover of /dev/md2"), "{why}");
    assert!(
        said.err
            .contains("to replace one of its members by a spare"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("by now /dev/md2 cannot be scrubbed: "),
        "{}",
        said.err
    );
}

/// mdadm freezes an array before it stops it.
const STOPPED: &str = r#"
make_array
before=$(tunables)
disksmith scrub data --json & scrub=$!
at_sync_max
mdadm -q --stop /dev/md/data >&2; is $? 0 "it can be stopped while it is scrubbed"
wait $scrub; is $? 3 "it was stopped"
mdadm -q --assemble --readonly /dev/md/data /dev/vda /dev/vdb /dev/vdc /dev/vdd >&2 || exit 8
md=/sys/block/$(basename "$(readlink -f /dev/md/data)")/md
is "$(tunables)" "$before" "of an array that was stopped"
disksmith scrub data >&2; is $? 2 "read-only"
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_an_array_can_be_stopped_while_it_is_scrubbed() {
    let place = Place::new();
    let volumes = ["--volumes", "4xthroughput=8MiB:64MiB"];
    let Some(said) = in_lab(&place, &volumes, STOPPED) else {
        return;
    };
    let said = said.ends_with(0);
    let document: Value = said.json();
    let array = &document["arrays"][0];
    assert_eq!(array["ended"], "gone", "{array:#}");
    assert!(said.err.contains("read-only"), "{}", said.err);
}

#[test]
fn what_cannot_be_scrubbed_is_refused_with_a_reason() {
    let place = Place::new();
    for (arguments, words) in [
        (&["/dev/no-such"][..], "not an array that the kernel lists"),
        (&["/dev/null"], "not an array that the kernel lists"),
        (&["md0", "--window", "soon"], "write it as 01:00-06:00"),
        (&["md0", "--by", "someday"], "is not a time"),
        (&["md0", "--deadline-wins"], "--by"),
        (&["md0", "--keep-p99", "fast"], "fast"),
        (&["--status", "--repair"], "cannot be used with"),
        (&[], "ARRAY"),
        (&["md0", "--all"], "cannot be used with"),
        (&["md0", "--dry-run"], "--dry-run is for --install-timer"),
        (&["no-such", "--install-timer"], "no-such is not an array"),
        (
            &["md0", "--install-timer", "--repair"],
            "cannot be used with",
        ),
        (
            &["--all", "--install-timer", "--by", "2027-01-01"],
            "give a weekday",
        ),
        (&["--uninstall-timer"], "there is no timer of this program"),
    ] {
        place
            .run(&[&["scrub"], arguments].concat())
            .refuses(&[words]);
    }
}
