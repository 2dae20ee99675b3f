//! The bytes of real arrays are where `linux::mapping` computes them. The test runs itself again in the lab's machine;
//! if QEMU or Debian's packages are not available, it is skipped.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::machine::{
    Accel, Disk, DiskContent, Error, Machine, MachineOptions, Packages, check_emulator,
    default_cache,
};
use linux::Root;
use linux::block::Devices;
use linux::mapping::Map;
use record::{Bytes, Ranges};

/// Set in the machine that has the arrays.
const IN_THE_MACHINE: &str = "DISKSMITH_TEST_IN_THE_MACHINE";

/// The size of each of the machine's disks, in KiB. Those of the fourth and the last but two make the
/// second zone of their RAID 0 begin with an odd chunk, where the two forms of such an array differ.
const DISKS: [u64; 16] = [
    8192, 8192, 8192, 6208, 10240, 16384, 6144, 9220, 8192, 8192, 8192, 8204, 8192, 6208, 10240,
    16384,
];

/// The array, the number of copies of each byte, and its members.
const ARRAYS: [(&str, u64, &[&str]); 6] = [
    ("md0", 1, &["vda", "vdb", "vdc"]),
    ("md1", 1, &["vdd", "vde", "vdf"]),
    ("md2", 1, &["vdg", "vdh"]),
    ("md3", 2, &["vdi", "vdj", "vdk"]),
    ("md4", 2, &["vdl", "vdm"]),
    ("md5", 1, &["vdn", "vdo", "vdp"]),
];

/// Creates the arrays, and runs this test again.
const SCRIPT: &str = "set -e
    create() { mdadm --create \"$@\" >/tmp/said 2>&1 || { cat /tmp/said >&2; exit 1; }; }
    create /dev/md0 --run --level 0 --chunk 64 --raid-devices 3 /dev/vda /dev/vdb /dev/vdc
    create /dev/md1 --run --level 0 --layout original --chunk 64 --raid-devices 3 \
        /dev/vdd /dev/vde /dev/vdf
    create /dev/md2 --run --level linear --raid-devices 2 /dev/vdg /dev/vdh
    create /dev/md3 --run --level 10 --layout n2 --chunk 64 --assume-clean --raid-devices 3 \
        /dev/vdi /dev/vdj /dev/vdk
    create /dev/md4 --run --level 1 --assume-clean --raid-devices 2 /dev/vdl /dev/vdm
    create /dev/md5 --run --level 0 --layout alternate --chunk 64 --raid-devices 3 \
        /dev/vdn /dev/vdo /dev/vdp
    export DISKSMITH_TEST_IN_THE_MACHINE=1
    disksmith --exact mapped_arrays::with_qemu_arrays_have_their_bytes_where_the_map_says --nocapture";

/// A block of an array contains the names of the array and of the block. There are several blocks in a chunk; the
/// machine is emulated, which makes smaller blocks slow.
const BLOCK: u64 = 16 << 10;

fn block(array: u64, number: u64) -> Vec<u8> {
    let words = [array + 1, number].map(u64::to_le_bytes).concat();
    words.repeat(BLOCK as usize / words.len())
}

#[allow(
    clippy::print_stdout,
    reason = "the machine's test says how far it came"
)]
fn in_the_machine() {
    // Arrays of other machines are not written to, even if the variable is set there.
    assert!(Path::new("/lab/command").exists());
    let root = Root::host();
    let devices = Devices::read(&root).unwrap();
    for (array, (name, copies, members)) in (0..).zip(ARRAYS) {
        let device = devices.named(name).unwrap();
        let blocks = device.size.0 / BLOCK;
        let all: Vec<Vec<u8>> = (0..blocks).map(|number| block(array, number)).collect();
        let file = File::options().write(true).open(device.node()).unwrap();
        file.write_all_at(&all.concat(), 0).unwrap();
        file.sync_all().unwrap();
        // Drops the pages of the members, which the array bypasses.
        std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();

        let mut found = 0;
        for member in members {
            let member = devices.named(member).unwrap();
            let map = Map::down(&root, &devices, device.number, member.number).unwrap();
            let bytes = std::fs::read(member.node()).unwrap();
            for (number, content) in (0..).zip(&all) {
                let upper = number * BLOCK..(number + 1) * BLOCK;
                for lower in map.ranges(&upper.into()).iter() {
                    let held = &bytes[lower.start as usize..lower.end as usize];
                    assert!(held == content, "{name} {number}, {}", member.name);
                    found += BLOCK;
                }
            }
            let own = map.ranges(&Ranges::all(device.size));
            assert!(own.total() > Bytes::mib(4), "{name}, {}", member.name);
        }
        assert_eq!(found, copies * blocks * BLOCK, "{name}");
        println!("{name}: {found} bytes are where they should be");
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
fn with_qemu_arrays_have_their_bytes_where_the_map_says() {
    if std::env::var_os(IN_THE_MACHINE).is_some() {
        return in_the_machine();
    }
    let cache = default_cache(|name| std::env::var_os(name));
    let packages = match check_emulator().and_then(|()| Packages::ensure(&cache, &mut |_| {})) {
        Ok(packages) => packages,
        Err(Error::Unavailable(why)) => return skip::skipped(&why),
        Err(error) => panic!("{error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let disk = |(index, kib): (usize, u64)| {
        let path = folder.path().join(format!("disk{index}"));
        File::create(&path).unwrap().set_len(kib << 10).unwrap();
        let serial = format!("disk{index}");
        let source = DiskContent::File(path);
        Disk { source, serial }
    };
    let command = ["sh", "-c", SCRIPT].map(OsString::from).to_vec();
    let binary = std::env::current_exe().unwrap();
    let mut options = MachineOptions::new(packages, &cache, &binary, command);
    options.disks = DISKS.into_iter().enumerate().map(disk).collect();
    options.accel = Accel::Emulation;
    // A boot and its command, on a host of any speed.
    options.timeout = Some(Duration::from_secs(600));
    let said = [folder.path().join("out"), folder.path().join("err")];
    let [out, err] = said.clone().map(|path| File::create(path).unwrap());
    let ended = Machine::run(&options, out, err, &AtomicBool::new(false)).unwrap();
    let [out, err] = said.map(|path| std::fs::read_to_string(path).unwrap());
    println!("{out}");
    assert_eq!(ended.status, Some(0), "{out}{err}");
    for (name, ..) in ARRAYS {
        assert!(out.contains(&format!("{name}: ")), "{out}");
    }
}
