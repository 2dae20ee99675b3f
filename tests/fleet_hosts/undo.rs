//! A verb that is interrupted on a host undoes what it had begun there.

use std::time::Instant;

use rustix::process::Signal;

use crate::net::{Disk, HostFault, HostSetup, Net};
use crate::support::Running;
use crate::{host, why};

#[test]
fn root_ends_a_sweep_and_the_host_takes_its_file_system_down() {
    let bare = HostSetup {
        disk: Disk::Bare(64),
        iops: None,
        more: &[],
        wrong: HostFault::Nothing,
    };
    let Some(net) = Net::new(&[bare]) else {
        return;
    };
    let sweep = "-- sweep --devices /run/disk --destroy /run/disk --members 1 --fs ext4 --blocks 2 \
                 --seconds 60s --precision 0 --size 8M --full \
                 --workload pattern=random,read=0.5,block=16k,depth=4";
    let words: Vec<&str> = sweep.split_whitespace().collect();
    let mounts = "grep ' /run/disksmith/' /proc/mounts || true";
    let mut command = net.fleet("run", "--yes --json", &words);
    let running = Running::start(&mut command);
    net.wait_on("h1", mounts);
    // It has written something that must reach the disk before it can be unmounted.
    net.wait_on("h1", &crate::moved("sweep", "write_bytes"));
    let asked = Instant::now();
    running.signal(Signal::INT);
    let ended = running.end().ends_with(3);
    assert!(asked.elapsed() < crate::support::TIMEOUT, "{ended:#?}");
    let answer = ended.json();
    assert_eq!(host(&answer, "h1")["came"], "interrupted", "{answer:#}");
    let entry = host(&answer, "h1").to_string();
    assert!(
        entry.contains("nothing is left assembled"),
        "{}: {entry}",
        why(&answer, "h1")
    );
    assert_eq!(net.on("h1", mounts), "");
    assert_eq!(net.on("h1", "wipefs /run/disk"), "");
    // The host's own ledger stays, by which the same sweep continues there, and nothing else.
    let files = "find /run/disksmith /var/lib/disksmith ! -type d ! -name 'ledger.db*'";
    assert_eq!(net.on("h1", files), "");
    assert_eq!(net.on("h1", "ps -eo args | grep '^disksmith' || true"), "");
}
