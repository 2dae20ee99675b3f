//! Cold volumes in the lab's machine, whose own count of cold blocks says what is true.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::support::lab::in_lab;
use crate::support::{Place, ProgramOutput, number};
use crate::{MIB, codes, set};

/// A file on an array of two volumes.
const ON_AN_ARRAY: &str = r#"
mdadm --create /dev/md0 --run --level 0 --chunk 256K --raid-devices 2 /dev/vda /dev/vdb >&2 || exit 9
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md0 && mkdir -p /srv/data && mount /dev/md0 /srv/data || exit 9
dd if=/dev/urandom of=/srv/data/file bs=1M count=6 2>/dev/null; sync
disksmith warm /dev/md0 >&2; [ $? = 2 ] || exit 9
disksmith warm /dev/vda /dev/vdb --first /srv/data/file --only-used --json
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_file_on_an_array_comes_first_on_each_of_its_volumes() {
    let place = Place::new();
    let volumes = ["--volumes", "2xcold:200MiB"];
    let Some(said) = in_lab(&place, &volumes, ON_AN_ARRAY) else {
        return;
    };
    let said = said.ends_with(0);
    let named = "Name the volumes that it lies on: disksmith warm /dev/vda /dev/vdb";
    assert!(said.err.contains(named), "{said:#?}");
    let document = said.json();
    for volume in document["volumes"].as_array().unwrap() {
        // Half of the file each, in whole blocks.
        assert!(
            (3 * MIB..5 * MIB).contains(&set(volume, "first")),
            "{volume}"
        );
        assert!(number(&volume["left_out_bytes"]) > 100 * MIB, "{volume}");
        assert_eq!(codes(volume), ["left-cold"]);
    }
}

/// Runs a command in the machine, with its name before what it prints and its status behind it.
const TRY: &str = r#"
try() { echo "== $1"; shift; "$@"; echo "== status $?"; }
"#;

/// Output of the commands of [`TRY`], and their statuses, by their names.
fn tried(said: &ProgramOutput) -> HashMap<&str, (&str, i32)> {
    let mut parts = said.out.split("== ").skip(1);
    let mut tried = HashMap::new();
    while let (Some(part), Some(status)) = (parts.next(), parts.next()) {
        let (name, printed) = part.split_once('\n').unwrap();
        let status = status.trim().strip_prefix("status ").unwrap();
        tried.insert(name, (printed, status.parse().unwrap()));
    }
    tried
}

fn volume_of(printed: &str) -> Value {
    let document: Value = serde_json::from_str(printed).unwrap();
    document["volumes"][0].clone()
}

/// The lab's own account of its volumes.
fn truths(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.path("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&text).unwrap();
    truth["volumes"].as_array().unwrap().clone()
}

/// All that is tried in one machine.
const COLD: &str = r#"
# A check calls a warm volume cold in one of a hundred cases by chance: the first of five that does not counts.
calm() {
    for number in 1 2 3 4 5; do
        "$@" >/tmp/checked; checked=$?
        grep -q '"is_cold": *true' /tmp/checked || break
    done
    cat /tmp/checked; return $checked
}
try by-text disksmith warm --check /dev/vda --ready-by 2100-01-01T18:00Z
# Each check warms what it reads, most of a small volume: this one is of another.
try by-json disksmith warm --check /dev/vdd --ready-by 2000-01-01T18:00Z --json
try warm disksmith warm /dev/vda --json
try check calm disksmith warm --check /dev/vda --json --ready-by 18:00
try again disksmith warm /dev/vda --json
try bad disksmith warm /dev/vdb
try bad-check calm disksmith warm --check /dev/vdb --json
# Sectors that were read of a disk: the third figure of its counters.
reads() { until [ "$(awk '{ print $3 }' "/sys/block/$1/stat")" -gt "$2" ]; do sleep 0.2; done; }
disksmith warm /dev/vdc --limit 4MiB/s & warming=$!
reads vdc 16384
echo 1 >"$(readlink -f /sys/block/vdc/device)/../remove"
try gone wait $warming
# Attached anew, it may be another one.
echo 1 >/sys/bus/pci/rescan
until [ -b /dev/vdc ]; do sleep 0.2; done
disksmith warm /dev/vdc --limit 4MiB/s --json >/tmp/anew & warming=$!
reads vdc 8192
kill -TERM $warming
wait $warming
try anew cat /tmp/anew
"#;

/// Two volumes that are held back by their instance.
const SHARED: &str = "disksmith warm /dev/vda /dev/vdb --json";

#[test]
#[ignore = "wants a processor that asks for all that the volumes give: make prove"]
fn with_qemu_a_limit_that_volumes_share_is_found() {
    let place = Place::new();
    let volumes = [
        "--volumes",
        "2xcold,throughput=4MiB:52MiB",
        "--instance-throughput",
        "5MiB",
    ];
    // The limits are low, so that an emulated machine beside other work asks for all that they give. Where it does
    // not, nothing is held by them: up to three attempts.
    for attempt in 1.. {
        let Some(said) = in_lab(&place, &volumes, SHARED) else {
            return;
        };
        let document = said.ends_with(0).json();
        for volume in document["volumes"].as_array().unwrap() {
            assert_eq!(number(&volume["read_bytes"]), 52 * MIB, "{volume}");
            assert!(codes(volume).is_empty(), "{volume}");
        }
        let found = codes(&document);
        if found == ["shared-cap"] {
            return;
        }
        assert!(
            found.is_empty() && attempt < 3,
            "attempt {attempt}: {document:#}"
        );
    }
}

#[test]
fn with_qemu_a_cold_volume_is_warm_after_it_and_a_check_says_what_is_true() {
    let place = Place::new();
    let volumes = [
        "--volumes",
        "cold,throughput=80MiB:256MiB",
        "--volumes",
        // Of 400 blocks a check reads each.
        "cold,error=1MiB+4KiB:200MiB",
        "--volumes",
        "2xcold:64MiB",
        "--truth",
        "truth.json",
    ];
    let Some(said) = in_lab(&place, &volumes, &[TRY, COLD].concat()) else {
        return;
    };
    let said = said.ends_with(0);
    let tried = tried(&said);
    let ended = |name: &str, status: i32| {
        let (printed, seen) = tried[name];
        assert_eq!(seen, status, "{name}: {said:#?}");
        printed
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

    let text = words(ended("by-text", 1));
    for part in [
        "% is cold (95 %:",
        "To be warm at 2100-01-01 18:00:00 UTC, begin at 2100-01-01 17:5",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    let document: Value = serde_json::from_str(ended("by-json", 1)).unwrap();
    assert_eq!(document["schedule"]["late"], true, "{document:#}");
    assert_eq!(document["schedule"]["ready_by"], "2000-01-01T18:00:00Z");
    let begin = document["schedule"]["begin_at"].as_str().unwrap();
    assert!(begin.starts_with("2000-01-01T17:5"), "{document:#}");
    let forecast = &document["volumes"][0]["forecast"];
    assert!(forecast["high_s"].as_f64().unwrap() > 0.4, "{forecast}");

    let volume = volume_of(ended("warm", 0));
    assert_eq!(volume["ended"], "done");
    assert_eq!(number(&volume["read_bytes"]), 256 * MIB);
    assert_eq!(number(&volume["before_bytes"]), 0);
    // By the check and by the lab alike, nothing is cold.
    let document: Value = serde_json::from_str(ended("check", 0)).unwrap();
    let volume = &document["volumes"][0];
    assert_eq!(volume["is_cold"], false, "{volume:#}");
    assert_eq!(number(&volume["places_failed"]), 0, "{volume:#}");
    assert_eq!(document["schedule"], Value::Null, "nothing is to begin");
    let left: Vec<Value> = truths(&place)
        .iter()
        .map(|truth| truth["cold_blocks_left"].clone())
        .collect();
    assert_eq!(left[..2], [0, 0], "{left:?}");

    // The disk may be another one tomorrow: it has no name of its own.
    let volume = volume_of(ended("again", 0));
    assert_eq!(number(&volume["before_bytes"]), 0, "{volume:#}");
    assert_eq!(number(&volume["read_bytes"]), 256 * MIB);

    let text = words(ended("bad", 1));
    let place_named = "4 KiB in 1 extents cannot be read. As byte offset and length: 1048576+4096.";
    assert!(text.contains(place_named), "{text}");
    let volume = volume_of(ended("bad-check", 1));
    assert_eq!(volume["is_cold"], false, "{volume:#}");
    assert_eq!(number(&volume["places_failed"]), 1, "{volume:#}");

    ended("gone", 3);
    assert!(said.out.contains("gone, "), "{said:#?}");
    let prose = words(&said.err);
    assert!(
        prose.contains("/dev/vdc: the device went away with"),
        "{said:#?}"
    );
    assert!(prose.contains("The same command begins anew"), "{prose}");
    let volume = volume_of(ended("anew", 0));
    assert_eq!(volume["ended"], "interrupted", "{volume:#}");
    assert_eq!(codes(&volume), ["not-kept"], "{volume:#}");
    assert_eq!(number(&volume["before_bytes"]), 0, "{volume:#}");

    let left = left[2].as_u64().unwrap();
    assert!((1..128).contains(&left), "it had begun: {left}");
}

/// Warm volumes are checked many times, of which one in a hundred may call them cold by chance.
const WARM: &str = r#"
disksmith warm /dev/vda >&2 || exit 9
for number in $(seq 40); do try $number disksmith warm --check /dev/vda --json; done
"#;

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_warm_volume_is_hardly_ever_called_cold() {
    let place = Place::new();
    let volumes = ["--volumes", "cold:256MiB", "--truth", "truth.json"];
    let Some(said) = in_lab(&place, &volumes, &[TRY, WARM].concat()) else {
        return;
    };
    let said = said.ends_with(0);
    let tried = tried(&said);
    let wrong = tried.values().filter(|(_, status)| *status != 0).count();
    println!(
        "{wrong} of {} checks of a warm volume called it cold",
        tried.len()
    );
    assert_eq!(tried.len(), 40);
    // Of 40 with a chance of 1 in 100 each, 4 or more come less than once in 1,000 times.
    assert!(wrong < 4, "{wrong}");
    assert_eq!(truths(&place)[0]["cold_blocks_left"], 0);
}
