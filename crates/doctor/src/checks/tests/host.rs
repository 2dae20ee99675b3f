//! Tests of the checks of the host.

use std::fs;

use super::*;

#[test]
fn a_host_that_is_set_well_has_no_finding() {
    let rows = judged(&Tree::with(&[]).facts());
    assert_eq!(found(&rows), []);
    // Each host check has judged, but those that need a recording or a run.
    let judged: Vec<&str> = rows
        .iter()
        .filter(|row| row.result() == CheckResult::Ok)
        .map(|row| row.check.name)
        .collect();
    let unknown = [
        "dirty-memory",
        "cold-volume",
        "degraded-volume",
        "burst-credit",
        "volume-cap",
        "instance-cap",
    ];
    for check in all().filter(|check| check.area == Area::Host) {
        let expected = !unknown.contains(&check.name);
        assert_eq!(judged.contains(&check.name), expected, "{}", check.name);
    }
}

#[test]
fn each_thing_that_is_set_wrong_on_the_host_is_found_alone() {
    use CheckResult::{Consider, Fix};
    let mountinfo = |xfs: &str, ext4: &str| {
        format!(
            "30 1 9:0 / /data rw,noatime - xfs /dev/md0 rw,{xfs}\n31 1 8:1 / /other rw,relatime - ext4 /dev/sda1 rw{ext4}\n"
        )
    };
    let unaligned = mountinfo("sunit=96,swidth=192", "");
    let barrier = mountinfo("sunit=128", ",nobarrier");
    let discard = mountinfo("sunit=128", ",discard");
    let unknown_stripe = mountinfo("noquota", "");
    let limits = |files: &str| {
        format!("Max processes 63704 63704 processes\nMax open files {files} 524288 files\n")
    };
    let few_files = limits("1024");
    let table: &[(&str, CheckResult, Pairs<'_>)] = &[
        ("file-limit", Consider, &[("proc/77/limits", &few_files)]),
        (
            "file-limit",
            Consider,
            &[(
                "etc/systemd/system/db.service.d/files.conf",
                "[Service]\nLimitNOFILE=200000",
            )],
        ),
        (
            "nofile-above-nr-open",
            Fix,
            &[("etc/security/limits.d/db.conf", "mysql hard nofile 2000000")],
        ),
        (
            "nofile-above-nr-open",
            Fix,
            &[("etc/security/limits.conf", "* - nofile unlimited")],
        ),
        (
            "nofile-above-nr-open",
            Consider,
            &[
                ("etc/security/limits.conf", "* - nofile unlimited"),
                ("etc/pam.d/sshd", "# pam_limits.so"),
            ],
        ),
        ("file-max", Fix, &[("proc/sys/fs/file-nr", "900\t0\t1000")]),
        (
            "threads",
            Fix,
            &[("sys/fs/cgroup/db.service/pids.max", "45")],
        ),
        ("threads", Fix, &[("proc/sys/kernel/threads-max", "41")]),
        ("aio-max-nr", Fix, &[("proc/sys/fs/aio-nr", "1048000")]),
        (
            "scheduler",
            Consider,
            &[("sys/class/block/nvme1n1/queue/scheduler", "none [bfq]")],
        ),
        (
            "scheduler",
            Consider,
            &[("sys/class/block/sda/queue/scheduler", "none [kyber]")],
        ),
        (
            "read-ahead",
            Consider,
            &[("sys/class/block/sda/queue/read_ahead_kb", "8192")],
        ),
        (
            "read-ahead",
            Consider,
            &[("sys/class/block/sda/queue/rotational", "1")],
        ),
        (
            "nomerges",
            Consider,
            &[("sys/class/block/sda/queue/nomerges", "2")],
        ),
        (
            "write-cache",
            Fix,
            &[("sys/class/block/sda/queue/write_cache", "write through")],
        ),
        (
            "nvme-io-timeout",
            Fix,
            &[("sys/module/nvme_core/parameters/io_timeout", "30")],
        ),
        ("swappiness", Consider, &[("proc/sys/vm/swappiness", "60")]),
        ("swappiness", Consider, &[("proc/sys/vm/swappiness", "0")]),
        (
            "transparent-huge-pages",
            Consider,
            &[(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            )],
        ),
        ("numa", Fix, &[("proc/sys/vm/zone_reclaim_mode", "1")]),
        (
            "clock-source",
            Consider,
            &[(
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "xen",
            )],
        ),
        ("mount-barriers", Fix, &[("proc/self/mountinfo", &barrier)]),
        (
            "mount-discard",
            Consider,
            &[("proc/self/mountinfo", &discard)],
        ),
        (
            "mount-atime",
            Consider,
            &[(
                "proc/self/mountinfo",
                "31 1 8:1 / /other rw - ext4 /dev/sda1 rw\n",
            )],
        ),
        ("alignment", Fix, &[("proc/self/mountinfo", &unaligned)]),
        (
            "alignment",
            Consider,
            &[("proc/self/mountinfo", &unknown_stripe)],
        ),
        ("alignment", Fix, &[("sys/class/block/sda1/start", "63")]),
        (
            "alignment",
            Consider,
            &[("sys/class/block/sda1/start", "64")],
        ),
        (
            "md-degraded",
            Fix,
            &[("sys/class/block/md0/md/degraded", "1")],
        ),
        (
            "md-mismatches",
            Fix,
            &[("sys/class/block/md0/md/mismatch_cnt", "128")],
        ),
        (
            "md-bitmap",
            Consider,
            &[("sys/class/block/md0/md/bitmap/location", "none")],
        ),
        (
            "md-stripe-cache",
            Consider,
            &[("sys/class/block/md0/md/stripe_cache_size", "256")],
        ),
    ];
    for (name, result, files) in table {
        let tree = Tree::with(files);
        let rows = judged(&tree.facts());
        assert_eq!(found(&rows), [(*name, *result)], "{files:?}");
    }
    let no_swap = Tree::with(&[
        ("proc/sys/vm/swappiness", "60"),
        ("proc/swaps", "Filename\tType"),
    ]);
    assert_eq!(found(&judged(&no_swap.facts())), []);
    let unchecked = Tree::with(&[]);
    fs::remove_file(unchecked.path().join("etc/cron.d/mdadm")).unwrap();
    assert_eq!(
        found(&judged(&unchecked.facts())),
        [("md-check-scheduled", Consider)]
    );
}
