//! Memory: swapping, dirty pages, huge pages, NUMA; and the clock.

use linux::root::{attribute, names_in};

use crate::check::{Area, Basis, Check, Judgement};
use crate::facts::Facts;
use record::Bytes;
use ui::format::number;

/// Maximum swappiness at which the kernel drops cached files rather than swaps programs out.
const MAX_SWAPPINESS: u64 = 10;
/// Maximum duration of a stall that is acceptable, in seconds.
const MAX_STALL_S: f64 = 10.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "swappiness",
        area: Area::Host,
        reads: "vm.swappiness, /proc/swaps",
        rule: "Where there is swap at most 10, and above 0, with which the kernel ends programs rather than swap.",
        source: "MariaDB documentation, \"Configuring Swappiness\"; Linux, Documentation/admin-guide/sysctl/vm.rst",
        basis: Basis::Documented,
        playbook: "memory-pressure",
        judge: swappiness,
    },
    Check {
        name: "dirty-memory",
        area: Area::Host,
        reads: "/proc/vmstat (nr_dirty_threshold): what vm.dirty_ratio or vm.dirty_bytes come to",
        rule: "Memory that may wait to be written is written in at most 10 s at the rate that the disk was measured to \
               sustain.",
        source: "Linux, Documentation/admin-guide/sysctl/vm.rst, dirty_bytes",
        basis: Basis::Inferred,
        playbook: "write-stalls",
        judge: dirty_memory,
    },
    Check {
        name: "transparent-huge-pages",
        area: Area::Host,
        reads: "/sys/kernel/mm/transparent_hugepage/enabled",
        rule: "Not 'always': compacting memory for huge pages makes threads wait. 'madvise' leaves it to the program.",
        source: "MongoDB manual, Redis and TokuDB documentation; Linux, Documentation/admin-guide/mm/transhuge.rst",
        basis: Basis::Inferred,
        playbook: "memory-pressure",
        judge: huge_pages,
    },
    Check {
        name: "numa",
        area: Area::Host,
        reads: "vm.zone_reclaim_mode, /sys/devices/system/node",
        rule: "vm.zone_reclaim_mode is 0: a node does not throw away cached files to keep memory near.",
        source: "Linux, Documentation/admin-guide/sysctl/vm.rst, zone_reclaim_mode",
        basis: Basis::Documented,
        playbook: "memory-pressure",
        judge: numa,
    },
    Check {
        name: "clock-source",
        area: Area::Host,
        reads: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        rule: "The clock is read without a system call (tsc, kvm-clock, arch_sys_counter, Hyper-V's), not xen, hpet or \
               acpi_pm.",
        source: "AWS re:Post, \"How do I manage the clock source for EC2 instances running Linux?\"",
        basis: Basis::Documented,
        playbook: "slow-clock",
        judge: clock,
    },
];

fn swappiness(facts: &Facts) -> Vec<Judgement> {
    let Some(now) = facts.host.sysctl_number("vm.swappiness") else {
        return Vec::new();
    };
    let value = format!("vm.swappiness: {now}");
    let swaps = attribute(&facts.host.root.proc.join("swaps")).unwrap_or_default();
    // The first line is the header.
    if swaps.lines().count() < 2 {
        return vec![Judgement::ok(format!("{value}; there is no swap"))];
    }
    vec![match now {
        1..=MAX_SWAPPINESS => Judgement::ok(value),
        0 => Judgement::consider(
            value,
            "With 0 the kernel swaps only to save itself; 1 is safer.",
        )
        .command("sysctl -w vm.swappiness=1"),
        _ => Judgement::consider(
            value,
            "The server's memory may be swapped for cached files; lower it.",
        )
        .command("sysctl -w vm.swappiness=1"),
    }]
}

fn dirty_memory(facts: &Facts) -> Vec<Judgement> {
    let path = facts.host.root.proc.join("vmstat");
    let counts = linux::pulse::MemoryCounts::parse(attribute(&path).unwrap_or_default().as_bytes());
    let Some(limit) = counts
        .limit
        .map(|pages| pages as f64 * rustix::param::page_size() as f64)
    else {
        return Vec::new();
    };
    let value = format!("{} may wait to be written", Bytes(limit as u64));
    let mut rates = facts
        .host
        .checked_devices()
        .into_iter()
        .filter_map(|device| facts.evidence.write_rate(&facts.host.names_below(device)));
    let Some(rate) = rates.next() else {
        return vec![Judgement::unknown(
            value,
            format!(
                "Measure the rate of writes: disksmith bench {} --phase load",
                facts.host.data_path()
            ),
        )];
    };
    let seconds = limit / rate.value;
    let evidence = rate.times(1.0 / (1 << 20) as f64).cite("MiB/s");
    let value = format!("{value}, which takes {} s", number(seconds));
    vec![
        match seconds > MAX_STALL_S {
            true => Judgement::consider(
                value,
                "A sync, or a program that reaches the limit, waits for all of it. Bound it to what the disk writes in \
                 some seconds.",
            )
            .command(format!(
                "sysctl -w vm.dirty_background_bytes={} vm.dirty_bytes={}",
                rate.value as u64,
                (rate.value * 4.0) as u64
            )),
            false => Judgement::ok(value),
        }
        .evidence(evidence),
    ]
}

fn huge_pages(facts: &Facts) -> Vec<Judgement> {
    let path = facts
        .host
        .root
        .sys
        .join("kernel/mm/transparent_hugepage/enabled");
    let Some(text) = attribute(&path) else {
        return Vec::new();
    };
    let chosen = text.split(['[', ']']).nth(1).unwrap_or(&text).to_owned();
    let value = format!("transparent_hugepage: {chosen}");
    vec![match chosen == "always" {
        true => Judgement::consider(value, "Let programs request huge pages.").command(format!(
            "echo madvise > {}",
            "/sys/kernel/mm/transparent_hugepage/enabled"
        )),
        false => Judgement::ok(value),
    }]
}

fn numa(facts: &Facts) -> Vec<Judgement> {
    let folder = facts.host.root.sys.join("devices/system/node");
    let is_node = |name: &str| {
        let digits = name.strip_prefix("node").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit())
    };
    let names = names_in(&folder).unwrap_or_default();
    let nodes = names
        .iter()
        .filter(|name| is_node(&name.to_string_lossy()))
        .count();
    let reclaim = facts
        .host
        .sysctl_number("vm.zone_reclaim_mode")
        .unwrap_or(0);
    if nodes < 2 {
        return Vec::new();
    }
    let value = format!("{nodes} nodes, vm.zone_reclaim_mode: {reclaim}");
    let interleave = facts
        .mysql
        .as_ref()
        .and_then(|mysql| mysql.is_on("innodb_numa_interleave"));
    vec![match () {
        () if reclaim != 0 => Judgement::fix(value, "Let all nodes give memory.")
            .command("sysctl -w vm.zone_reclaim_mode=0"),
        () if interleave == Some(false) => Judgement::consider(
            format!("{value}, innodb_numa_interleave: OFF"),
            "A buffer pool that fills one node makes that node swap while others have memory free. Set \
             innodb_numa_interleave = ON and restart.",
        ),
        () => Judgement::ok(value),
    }]
}

fn clock(facts: &Facts) -> Vec<Judgement> {
    let folder = facts
        .host
        .root
        .sys
        .join("devices/system/clocksource/clocksource0");
    let Some(now) = attribute(&folder.join("current_clocksource")) else {
        return Vec::new();
    };
    let others = attribute(&folder.join("available_clocksource")).unwrap_or_default();
    let value = format!("clock source: {now}");
    let is_slow = matches!(
        now.as_str(),
        "xen" | "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies"
    );
    let better = others
        .split_whitespace()
        .find(|one| matches!(*one, "tsc" | "kvm-clock"));
    vec![match (is_slow, better) {
        (false, _) => Judgement::ok(value),
        (true, Some(better)) => Judgement::consider(
            value,
            format!("Each reading of the clock is a system call; {better} is none."),
        )
        .command(format!(
            "echo {better} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        (true, None) => Judgement::consider(
            format!("{value}; no faster one is available"),
            "The kernel found the time-stamp counter unstable: look for 'tsc' in its log.",
        ),
    }]
}
