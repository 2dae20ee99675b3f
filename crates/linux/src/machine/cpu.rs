//! The processor, and the number of processors that this process may use.

use crate::root::{Root, attribute};

/// The processor's model from `/proc/cpuinfo`; empty if it is not there.
///
/// x86 has "model name" (arch/x86/kernel/cpu/proc.c), MIPS and LoongArch "cpu model" and "Model Name", POWER "cpu",
/// RISC-V "uarch". arm64 only has numbers (arch/arm64/kernel/cpuinfo.c), which the tables below translate.
pub(super) fn model(root: &Root) -> String {
    let Some(cpuinfo) = attribute(&root.proc.join("cpuinfo")) else {
        return String::new();
    };
    // A 32-bit kernel on Arm has a "model name" too, which says only "ARMv8 Processor".
    if values(&cpuinfo, "CPU implementer").next().is_some() {
        return arm(&cpuinfo);
    }
    let named = ["model name", "Model Name", "cpu model", "cpu", "uarch"]
        .into_iter()
        .find_map(|key| values(&cpuinfo, key).find(|value| !value.is_empty()));
    // Some makers pad the name with blanks.
    let words: Vec<&str> = named.unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

/// Number of processors that the scheduler may run this thread on (sched_getaffinity(2)); all that cpuinfo lists if
/// that cannot be read, as on a machine with more than the 1024 of a cpu_set_t.
pub(super) fn usable(root: &Root) -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        Err(_) => {
            let cpuinfo = attribute(&root.proc.join("cpuinfo")).unwrap_or_default();
            u32::try_from(values(&cpuinfo, "processor").count()).unwrap_or(0)
        }
    }
}

/// Number of online processors in a list such as `0-3,8` (Documentation/admin-guide/cputopology.rst).
pub fn online(root: &Root) -> Option<usize> {
    let list = attribute(&root.sys.join("devices/system/cpu/online"))?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').map(count).sum()
}

/// The values of a key, one for each processor.
fn values<'a>(cpuinfo: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Names of the pairs of "CPU implementer" and "CPU part". A machine with two kinds of cores has both names.
fn arm(cpuinfo: &str) -> String {
    let implementers = values(cpuinfo, "CPU implementer");
    let parts = values(cpuinfo, "CPU part");
    let mut names: Vec<String> = Vec::new();
    for (implementer, part) in implementers.zip(parts) {
        let name = arm_name(implementer, part);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

fn arm_name(implementer: &str, part: &str) -> String {
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let maker = number(implementer);
    let maker_name = IMPLEMENTERS
        .iter()
        .find(|(id, _)| Some(*id) == maker)
        .map_or_else(
            || format!("implementer {implementer}"),
            |(_, name)| (*name).to_owned(),
        );
    let part_name = PARTS
        .iter()
        .find(|(of, id, _)| Some(*of) == maker && Some(*id) == number(part));
    match part_name {
        Some((_, _, name)) => format!("{maker_name} {name}"),
        None => format!("{maker_name} part {part}"),
    }
}

/// arch/arm64/include/asm/cputype.h, ARM_CPU_IMP_*.
const IMPLEMENTERS: &[(u32, &str)] = &[
    (0x41, "Arm"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4E, "NVIDIA"),
    (0x50, "Applied Micro"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0x6D, "Microsoft"),
    (0xC0, "Ampere"),
];

/// The same file, *_CPU_PART_*, and the reference manuals of Arm's cores (register MIDR_EL1): the
/// ones that clouds rent out. Neoverse-N1 is in Graviton2 and Ampere Altra, V1 in Graviton3, N2 in
/// Cobalt 100, V2 in Graviton4, Axion and Grace.
const PARTS: &[(u32, u32, &str)] = &[
    (0x41, 0xD03, "Cortex-A53"),
    (0x41, 0xD05, "Cortex-A55"),
    (0x41, 0xD07, "Cortex-A57"),
    (0x41, 0xD08, "Cortex-A72"),
    (0x41, 0xD09, "Cortex-A73"),
    (0x41, 0xD0A, "Cortex-A75"),
    (0x41, 0xD0B, "Cortex-A76"),
    (0x41, 0xD0C, "Neoverse-N1"),
    (0x41, 0xD40, "Neoverse-V1"),
    (0x41, 0xD41, "Cortex-A78"),
    (0x41, 0xD49, "Neoverse-N2"),
    (0x41, 0xD4F, "Neoverse-V2"),
    (0x41, 0xD83, "Neoverse-V3AE"),
    (0x41, 0xD84, "Neoverse-V3"),
    (0x41, 0xD8E, "Neoverse-N3"),
    (0x43, 0x0A1, "ThunderX"),
    (0x43, 0x0AF, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xD01, "Kunpeng 920"),
    (0x61, 0x022, "M1 (Icestorm)"),
    (0x61, 0x023, "M1 (Firestorm)"),
    (0x6D, 0xD49, "Cobalt 100"),
    (0xC0, 0xAC3, "Ampere1"),
    (0xC0, 0xAC4, "Ampere1A"),
];
