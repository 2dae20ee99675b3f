//! Linux software RAID.

use linux::md::{Array, mismatches};
use linux::root::names_in;
use record::raid::{Level, MdLevel};

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;

/// Minimum size of the stripe cache, in entries, with which writes rarely wait for it.
const MIN_STRIPE_CACHE: u64 = 4096;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "md-degraded",
        area: Area::Host,
        reads: "/sys/block/mdX/md/degraded",
        rule: "An array has all its members.",
        source: "Linux, Documentation/admin-guide/md.rst, degraded",
        basis: Basis::Documented,
        playbook: "array-degraded",
        judge: |facts| each_array(facts, degraded),
    },
    Check {
        name: "md-mismatches",
        area: Area::Host,
        reads: "/sys/block/mdX/md/mismatch_cnt",
        rule: "The last check found no difference between copies or parity.",
        source: "Linux, Documentation/admin-guide/md.rst, mismatch_cnt",
        basis: Basis::Documented,
        playbook: "array-mismatches",
        judge: |facts| each_array(facts, differences),
    },
    Check {
        name: "md-bitmap",
        area: Area::Host,
        reads: "/sys/block/mdX/md/bitmap/location",
        rule: "An array with copies or parity has a bitmap, so that after a crash only what was written is resynchronized.",
        source: "md(4), BITMAP WRITE-INTENT LOGGING",
        basis: Basis::Documented,
        playbook: "array-resync",
        judge: |facts| each_array(facts, bitmap),
    },
    Check {
        name: "md-stripe-cache",
        area: Area::Host,
        reads: "/sys/block/mdX/md/stripe_cache_size",
        rule: "RAID 5 and 6 have a stripe cache of 4,096 entries or more; the default of 256 makes writes wait for it.",
        source: "Linux, Documentation/admin-guide/md.rst, stripe_cache_size",
        basis: Basis::Inferred,
        playbook: "array-writes-slow",
        judge: |facts| each_array(facts, stripe_cache),
    },
    Check {
        name: "md-check-scheduled",
        area: Area::Host,
        reads: "systemd's timers and /etc/cron.d",
        rule: "Arrays with copies or parity are checked regularly: a block that cannot be read is found before a member fails.",
        source: "md(4), SCRUBBING AND MISMATCHES",
        basis: Basis::Documented,
        playbook: "array-unchecked",
        judge: scheduled,
    },
];

fn each_array(facts: &Facts, judge: fn(&Facts, &Array) -> Option<Judgement>) -> Vec<Judgement> {
    let arrays = facts.host.concerned_arrays().into_iter();
    arrays.filter_map(|array| judge(facts, array)).collect()
}

fn level(array: &Array) -> Option<Level> {
    array.level.as_ref()?.raid()
}

/// True if the level has copies or parity.
fn is_redundant(array: &Array) -> bool {
    level(array).is_some_and(Level::is_redundant)
}

fn attribute(facts: &Facts, array: &Array, name: &str) -> Option<String> {
    let device = facts.host.devices.get(array.number)?;
    facts.host.attribute(device, &format!("md/{name}"))
}

fn degraded(_: &Facts, array: &Array) -> Option<Judgement> {
    let missing = array.degraded?;
    let level = array.level.as_ref().map_or("md", MdLevel::name);
    Some(match missing {
        0 => Judgement::ok(format!("{} ({level}): complete", array.name)),
        _ => Judgement::fix(
            format!(
                "{} ({level}): {missing} of {} members missing",
                array.name,
                array.wanted.unwrap_or(0)
            ),
            "Put a new member in. Until it is rebuilt, one more failure can lose the data.",
        )
        .command(format!("mdadm /dev/{} --add /dev/NEW", array.name)),
    })
}

fn differences(facts: &Facts, array: &Array) -> Option<Judgement> {
    let count = mismatches(&facts.host.root, &array.name)?;
    let value = format!("{}: {count} sectors differ", array.name);
    let has_parity = level(array).is_some_and(Level::has_parity);
    Some(match count {
        0 => Judgement::ok(value),
        _ if has_parity => Judgement::fix(value, "A rebuild would write wrong data. Find the places and the files in them.")
            .command(format!("disksmith scrub /dev/{}", array.name)),
        _ => Judgement::consider(
            value,
            "Copies of memory that changed while it was written, as of swap, may differ harmlessly. See which files it is.",
        )
        .command(format!("disksmith scrub /dev/{}", array.name)),
    })
}

fn bitmap(facts: &Facts, array: &Array) -> Option<Judgement> {
    let location = attribute(facts, array, "bitmap/location").filter(|_| is_redundant(array))?;
    let value = format!("{}: bitmap {location}", array.name);
    Some(match location == "none" {
        true => Judgement::consider(
            value,
            "Without one the whole array is resynchronized after a crash, for hours.",
        )
        .command(format!(
            "mdadm --grow --bitmap=internal --bitmap-chunk=128M /dev/{}",
            array.name
        )),
        false => Judgement::ok(value),
    })
}

fn stripe_cache(facts: &Facts, array: &Array) -> Option<Judgement> {
    let entries: u64 = attribute(facts, array, "stripe_cache_size")?.parse().ok()?;
    let value = format!("{}: {entries} entries", array.name);
    let memory = (MIN_STRIPE_CACHE * 4096 * u64::from(array.wanted.unwrap_or(1))) >> 20;
    Some(match entries < MIN_STRIPE_CACHE {
        true => Judgement::consider(
            value,
            format!("{MIN_STRIPE_CACHE} entries take {memory} MiB of memory. Measure before and after with 'disksmith bench'."),
        )
        .command(format!("echo {MIN_STRIPE_CACHE} > /sys/block/{}/md/stripe_cache_size", array.name)),
        false => Judgement::ok(value),
    })
}

fn scheduled(facts: &Facts) -> Vec<Judgement> {
    let arrays: Vec<&str> = facts
        .host
        .concerned_arrays()
        .into_iter()
        .filter(|array| is_redundant(array))
        .map(|array| array.name.as_str())
        .collect();
    if arrays.is_empty() {
        return Vec::new();
    }
    let system = facts.host.root.system();
    let enabled = system.join("etc/systemd/system");
    let timers = names_in(&enabled)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| {
            name.to_string_lossy().ends_with(".timer.wants")
                || name.to_string_lossy().ends_with(".wants")
        })
        .flat_map(|name| names_in(&enabled.join(name)).unwrap_or_default());
    let timers = timers.map(|name| name.to_string_lossy().into_owned());
    let found = timers
        .chain(
            names_in(&system.join("etc/cron.d"))
                .unwrap_or_default()
                .iter()
                .map(|name| name.to_string_lossy().into_owned()),
        )
        .find(|name| {
            [
                "mdcheck_start.timer",
                "raid-check.timer",
                "mdadm",
                "raid-check",
            ]
            .contains(&name.as_str())
                || name.starts_with("disksmith-scrub")
        });
    vec![match found {
        Some(name) => Judgement::ok(format!("{}: checked by {name}", arrays.join(", "))),
        None => Judgement::consider(
            format!("{}: no check is scheduled", arrays.join(", ")),
            "Check them every month, at the rate that their users leave.",
        )
        .command("disksmith scrub --install-timer"),
    }]
}
