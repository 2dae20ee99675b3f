//! A tool and disksmith at the same work at the same time, each on a device of its own that the kernel
//! holds at a limit: the figures must be the same within 3 %.
//!
//! The devices lie in memory, so that a flush costs nothing and the limit alone sets the rate. Both
//! run at once, since a busy host takes from what a device gives, and then it takes from both alike.
//! The number of attempts is fixed, and their median decides: to repeat until one is close enough
//! would find one for any work.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses its own part of this, and is a crate to which pub means nothing"
)]
#![allow(clippy::print_stdout, reason = "a comparison says what it has seen")]

use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::loops::{Loop, Mounted, Throttle, fill, make, skipped};
use crate::support::behind;

/// Requests a second, of reads and of writes each.
pub const LIMIT: u64 = 400;
/// Allowed difference of the figures.
pub const WITHIN: f64 = 0.03;
/// Real-time scheduling (sched(7)): what else runs on the host is not what is compared.
const PRECEDENCE: [&str; 3] = ["chrt", "--rr", "1"];

/// A device in memory, held at the limit.
pub struct Limited {
    // In this order they are taken down: the group first, since nothing of it may use the device.
    pub throttle: Throttle,
    mounted: Option<Mounted>,
    pub device: Loop,
    _memory: tempfile::TempDir,
}

impl Limited {
    /// One of `mib` mebibytes, full of data that is not zero. `None`, with a note, where that
    /// cannot be.
    pub fn new(mib: u64) -> Option<Limited> {
        let memory = tempfile::tempdir_in("/dev/shm")
            .map_err(|error| skipped(&format!("no device can lie in memory here ({error})")))
            .ok()?;
        let image = memory.path().join("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(mib << 20).unwrap();
        let device = Loop::on(&image)
            .map_err(|why| skipped(&format!("no loop device can be attached here ({why})")))
            .ok()?;
        fill(device.path(), mib);
        let throttle = Throttle::on(&device)?;
        throttle.limit_iops(LIMIT);
        Some(Limited {
            throttle,
            mounted: None,
            device,
            _memory: memory,
        })
    }

    /// One with ext4 on it.
    pub fn with_files(mib: u64) -> Option<Limited> {
        let mut limited = Limited::new(mib)?;
        if !make("ext4", &limited.device) {
            return None;
        }
        limited.mounted = Some(Mounted::new(limited.device.path()));
        Some(limited)
    }

    /// Where the file system is mounted, or else the device.
    pub fn path(&self) -> &str {
        let point = self.mounted.as_ref().map(|mounted| &mounted.point);
        point.map_or(self.device.path(), |point| point.to_str().unwrap())
    }

    /// Output of a command that runs under the limit, and with priority over other programs of the host.
    pub fn output(&self, command: &Command) -> String {
        let mut first = Command::new(PRECEDENCE[0]);
        first.args(&PRECEDENCE[1..]);
        let held = self.throttle.hold(&behind(first, command)).output();
        let output = held.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The document in that, behind messages where there are any.
    pub fn document(&self, command: &Command) -> Value {
        let text = self.output(command);
        serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
    }
}

/// True if a tool is installed and may run with priority over other programs; reports a skip if not.
pub fn can_run(tool: &str, asks: &str) -> bool {
    if Command::new(tool).arg(asks).output().is_err() {
        skipped(&format!("{tool} is not installed"));
        return false;
    }
    let mut precedence = Command::new(PRECEDENCE[0]);
    let allowed = precedence.args(&PRECEDENCE[1..]).arg("true").output();
    let allowed = allowed.is_ok_and(|output| output.status.success());
    if !allowed {
        skipped("real-time scheduling is not allowed here");
    }
    allowed
}

/// Both at the same time, so many times: the tool's figures first.
pub fn tries<T: Send>(
    times: usize,
    tool: impl Fn() -> T + Sync,
    ours: impl Fn() -> T,
) -> Vec<[T; 2]> {
    let one = || {
        thread::scope(|scope| {
            let tool = scope.spawn(&tool);
            let ours = ours();
            [tool.join().unwrap(), ours]
        })
    };
    (0..times).map(|_| one()).collect()
}

/// Checks by the median of the attempts that both have the same figure. Where the tool itself is not at `limit` within
/// what is allowed, the host is too busy to hold it, and nothing is decided: that is said, and is not the same.
pub fn same(what: &str, limit: Option<f64>, tries: &[[f64; 2]]) -> bool {
    let tool = median(tries.iter().map(|[tool, _]| *tool));
    let own = median(tries.iter().map(|[_, own]| *own));
    let ratio = median(tries.iter().map(|[tool, own]| own / tool));
    println!("{what}: the tool {tool:.1}, disksmith {own:.1}, ratio {ratio:.3}");
    let held = limit.map_or(1.0, |limit| tool / limit);
    if (held - 1.0).abs() > WITHIN {
        println!(
            "the host is too busy to hold a device at its limit; the tool has {held:.3} of it"
        );
        return false;
    }
    (ratio - 1.0).abs() <= WITHIN
}

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}
