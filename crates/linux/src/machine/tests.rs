use std::fs;

use super::*;

/// A captured tree with these files.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::under(folder.path());
    (folder, root)
}

fn model(cpuinfo: &str) -> String {
    let (_folder, root) = tree(&[("proc/cpuinfo", cpuinfo)]);
    cpu::model(&root)
}

#[test]
fn the_processor_is_named() {
    let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC  9R14   Processor\n";
    assert_eq!(model(x86), "AMD EPYC 9R14 Processor");
    let power = "processor\t: 0\ncpu\t\t: POWER9 (architected)\n";
    assert_eq!(model(power), "POWER9 (architected)");
    assert_eq!(model("nothing to see\n"), "");
}

#[test]
fn an_arm_processor_is_named_by_its_numbers() {
    let core = |implementer: &str, part: &str| {
        format!("processor\t: 0\nCPU implementer\t: {implementer}\nCPU part\t: {part}\n\n")
    };
    let graviton3 = core("0x41", "0xd40").repeat(4);
    assert_eq!(model(&graviton3), "Arm Neoverse-V1");
    let compat = "model name\t: ARMv8 Processor rev 1 (v8l)\n".to_owned() + &graviton3;
    assert_eq!(model(&compat), "Arm Neoverse-V1");
    assert_eq!(model(&core("0xc0", "0xac3")), "Ampere Ampere1");
    assert_eq!(model(&core("0x41", "0xfff")), "Arm part 0xfff");
    assert_eq!(model(&core("0x99", "0x1")), "implementer 0x99 part 0x1");
    let two = core("0x41", "0xd03") + &core("0x41", "0xd08") + &core("0x41", "0xd03");
    assert_eq!(model(&two), "Arm Cortex-A53 + Arm Cortex-A72");
}

const MEMINFO: (&str, &str) = (
    "proc/meminfo",
    "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\n",
);

#[test]
fn all_memory_and_what_is_available_are_told_apart() {
    let (_folder, root) = tree(&[MEMINFO]);
    assert_eq!(memory(&root), Some(Bytes::kib(16_000_000)));
    assert_eq!(available_memory(&root), Some(Bytes::kib(8_000_000)));
}

#[test]
fn processors_that_are_online_are_counted() {
    for (list, count) in [
        ("0-1", Some(2)),
        ("0", Some(1)),
        ("0-3,8,10-11\n", Some(7)),
        ("?", None),
    ] {
        let (_folder, root) = tree(&[("sys/devices/system/cpu/online", list)]);
        assert_eq!(online_processors(&root), count, "{list}");
    }
}

const V2: &str = "23 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

#[test]
fn the_tightest_limit_of_the_groups_counts() {
    let (_folder, root) = tree(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/system.slice/db.service\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/system.slice/memory.max", "4294967296\n"),
        ("sys/fs/cgroup/system.slice/db.service/memory.max", "max\n"),
        (
            "sys/fs/cgroup/system.slice/db.service/memory.high",
            "8589934592\n",
        ),
    ]);
    assert_eq!(facts(&root, None, None).memory_limit, Some(Bytes::gib(4)));
}

#[test]
fn memory_high_is_a_limit_too() {
    let (_folder, root) = tree(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/memory.max", "2147483648\n"),
        ("sys/fs/cgroup/memory.high", "1073741824\n"),
    ]);
    assert_eq!(facts(&root, None, None).memory_limit, Some(Bytes::gib(1)));
}

#[test]
fn a_limit_of_version_1_is_found() {
    let mounts = "30 1 0:29 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                  31 1 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let (_folder, root) = tree(&[
        MEMINFO,
        ("proc/self/cgroup", "4:memory:/docker/abc\n0::/\n"),
        ("proc/self/mountinfo", mounts),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
    ]);
    assert_eq!(facts(&root, None, None).memory_limit, Some(Bytes::mib(512)));
}

#[test]
fn a_container_that_sees_only_its_own_group_has_its_limit() {
    let (_folder, root) = tree(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/../../pod7\n"),
        ("proc/self/mountinfo", V2),
        ("sys/fs/cgroup/memory.max", "1073741824\n"),
    ]);
    assert_eq!(facts(&root, None, None).memory_limit, Some(Bytes::gib(1)));
}

#[test]
fn no_limit_and_a_limit_above_memory_are_none() {
    for limit in ["max\n", "9223372036854771712\n", "16384000000\n"] {
        let (_folder, root) = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a/memory.max", limit),
        ]);
        assert_eq!(facts(&root, None, None).memory_limit, None, "{limit}");
    }
}

#[test]
fn the_kernel_says_who_it_is() {
    let (_folder, root) = tree(&[
        MEMINFO,
        ("proc/sys/kernel/hostname", "db-7\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-13-cloud-amd64\n"),
        ("proc/sys/kernel/arch", "aarch64\n"),
    ]);
    let machine = facts(&root, None, None);
    assert_eq!(machine.hostname, "db-7");
    assert_eq!(machine.kernel, "6.1.0-13-cloud-amd64");
    assert_eq!(machine.arch, "aarch64");
    assert_eq!(machine.memory, Bytes::kib(16_000_000));
    assert!(machine.cores > 0);
}

#[test]
fn the_options_of_mount_and_file_system_are_listed_once() {
    assert_eq!(
        options("rw,noatime", "rw,noatime,errors=remount-ro"),
        "rw,noatime,errors=remount-ro"
    );
    assert_eq!(options("rw,relatime", "ro"), "ro,relatime");
    assert_eq!(options("ro", "rw,discard"), "ro,discard");
    assert_eq!(options("", ""), "");
}

#[test]
fn the_file_system_of_the_target_is_read() {
    // A mount id that the machine running the test does not have.
    let mounts = "4000000001 1 8:1 / / rw,noatime - xfs /dev/sda1 rw,attr2\n";
    let (folder, root) = tree(&[("proc/self/mountinfo", mounts)]);
    let machine = facts(&root, None, Some(folder.path()));
    let expected = FilesystemFacts {
        kind: "xfs".into(),
        mount_point: "/".into(),
        options: "rw,noatime,attr2".into(),
    };
    assert_eq!(machine.filesystem, Some(expected));
}

#[test]
fn the_device_is_described() {
    let (_folder, root) = tree(&[
        ("sys/class/block/sda/dev", "8:0\n"),
        ("sys/class/block/sda/size", "4096\n"),
        ("sys/class/block/sda/queue/rotational", "1\n"),
        ("sys/class/block/sda/queue/read_ahead_kb", "128\n"),
        ("sys/class/block/sda/queue/write_cache", "write back\n"),
        (
            "sys/class/block/sda/queue/scheduler",
            "none [mq-deadline]\n",
        ),
    ]);
    let machine = facts(&root, Some("sda"), None);
    assert_eq!(machine.rotational, Some(true));
    assert_eq!(machine.read_ahead, Some(Bytes::kib(128)));
    assert_eq!(machine.write_cache.as_deref(), Some("write back"));
    assert_eq!(machine.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(facts(&root, Some("sdb"), None).scheduler, None);
}

#[test]
fn an_empty_tree_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::under(&folder.path().join("none"));
    let machine = facts(&root, Some("sda"), Some(Path::new("/no/such/path")));
    assert_eq!(machine.cpu, "");
    assert_eq!(machine.memory, Bytes(0));
    assert_eq!(machine.memory_limit, None);
    assert_eq!(machine.filesystem, None);
    assert_eq!(machine.scheduler, None);
    // These come from a system call, which no container hides.
    assert!(!machine.hostname.is_empty());
    assert!(!machine.kernel.is_empty());
    assert!(!machine.arch.is_empty());
}

/// Runs on any machine: facts that every Linux reports must be known.
#[test]
fn this_machine_has_facts() {
    let machine = facts(&Root::host(), None, Some(Path::new("/")));
    assert!(machine.memory > Bytes::mib(1));
    assert!(machine.cores > 0);
    assert!(!machine.cpu.is_empty());
    assert!(machine.filesystem.is_some());
    println!("{machine:#?}");
}
