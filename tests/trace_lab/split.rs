//! `trace record` of md and dm themselves, which split what reaches beyond a part of theirs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::Place;
use super::support::lab::in_lab;

/// Length of the reads and writes, which md and dm split in three or more.
const SECTORS: u64 = 1536;
/// Numbers of them on each device: reads one at a time, reads of so many programs at once, and writes with a flush at
/// their end.
const READS: u64 = 20;
const PROGRAMS: u64 = 4;
const WRITES: u64 = 10;

/// Records stripes of 64 KiB by md, and pieces of 256 KiB in changed order by dm; prints the summary, and after a line of
/// its own the trace in blkparse's form.
fn script() -> String {
    format!(
        "set -e
         modprobe dm_mod || true
         mdadm --create /dev/md0 --run --level 0 --chunk 64 --raid-devices 2 /dev/vda /dev/vdb >&2
         for n in $(seq 0 255); do
             echo \"$((n * 512)) 512 linear /dev/vdc $(((n ^ 1) * 512))\"
         done | dmsetup create --noudevsync pieces >&2
         dmsetup mknodes >&2
         devices='/dev/md0 /dev/mapper/pieces'
         disksmith trace record $devices -o /run/lab.dst >&2 & recorder=$!
         while [ ! -s /run/lab.dst ]; do kill -0 $recorder; sleep 0.1; done
         read_from() {{ dd if=$1 of=/dev/null bs={SECTORS}b count=$3 skip=$2 iflag=direct status=none; }}
         for device in $devices; do
             read_from $device 0 {READS}
             readers=
             for n in $(seq 0 {last}); do read_from $device $((n * {READS})) {READS} & readers=\"$readers $!\"; done
             for reader in $readers; do wait $reader; done
             dd if=/dev/zero of=$device bs={SECTORS}b count={WRITES} oflag=direct conv=fsync,notrunc status=none
         done
         sleep 1
         kill -INT $recorder; wait $recorder
         disksmith trace convert /run/lab.dst /run/lab.txt --to blkparse >&2
         disksmith trace show /run/lab.dst --json
         echo; echo in full; cat /run/lab.txt",
        last = PROGRAMS - 1,
    )
}

/// Numbers of events of each device, by action, letters and sectors.
fn counted(text: &str) -> BTreeMap<(&str, &str, &str, &str), u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if fields[5] == "D" || fields[5] == "C" {
            let sectors = match fields.get(8) {
                Some(&"+") => fields[9],
                _ => "",
            };
            let event = (fields[0], fields[5], fields[6], sectors);
            *counts.entry(event).or_default() += 1;
        }
    }
    counts
}

#[test]
#[ignore = "a minute in an emulated machine; make prove"]
fn with_qemu_bios_that_md_and_dm_split_are_one_io_each_with_its_completion() {
    let place = Place::new();
    let options = ["--volumes", "3xnvme:64MiB"];
    let Some(said) = in_lab(&place, &options, &script()) else {
        return;
    };
    let said = said.ends_with(0);
    let (summary, text) = said.out.split_once("\nin full\n").unwrap();
    let summary: Value = serde_json::from_str(summary).unwrap();
    for key in ["lost_events", "ambiguous_pairs", "failed"] {
        assert_eq!(summary[key], 0, "{key}: {summary:#}");
    }
    assert_eq!(summary["verdict"], "trusted", "{summary:#}");
    let counts = counted(text);
    let sectors = SECTORS.to_string();
    for number in 0..2 {
        let of = |action: &str, operation: &str, sectors: &str| -> u64 {
            let of_it = counts.iter().filter(|((device, an, letters, length), _)| {
                device.ends_with(&format!(",{number}"))
                    && *an == action
                    && letters.starts_with(operation)
                    && *length == sectors
            });
            of_it.map(|(_, count)| count).sum()
        };
        for action in ["D", "C"] {
            let reads = of(action, "R", &sectors);
            assert_eq!(reads, READS * (1 + PROGRAMS), "{action}: {counts:#?}");
            assert_eq!(of(action, "W", &sectors), WRITES, "{action}: {counts:#?}");
            assert!(of(action, "F", "") > 0, "{action}: {counts:#?}");
        }
    }
    // Nothing else is left without an end either.
    let all = |action: &str| -> u64 {
        let of_it = counts.iter().filter(|((_, an, ..), _)| *an == action);
        of_it.map(|(_, count)| count).sum()
    };
    assert_eq!(all("D"), all("C"), "{counts:#?}");
}
