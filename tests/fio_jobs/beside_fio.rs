//! The same job file, on the same loop device that a limit holds at 400 IOPS, by fio and by
//! disksmith: the figures must be the same within 3 %.

#![allow(clippy::print_stdout, reason = "a comparison says what it has seen")]

use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::loops::{Loop, Throttle, fill, skipped};
use crate::support::Place;

const LIMIT: u64 = 400;

/// A device held at the limit.
struct Limited {
    // In this order they are taken down: the group first, since nothing of it may use the device.
    throttle: Throttle,
    device: Loop,
    place: Place,
}

/// What one of the two measured: requests a second that read, and that write.
type Rates = [f64; 2];

impl Limited {
    fn new() -> Option<Limited> {
        if Command::new("fio").arg("--version").output().is_err() {
            skipped("fio is not installed");
            return None;
        }
        let device = Loop::new(64)?;
        fill(device.path(), 64);
        let throttle = Throttle::on(&device)?;
        throttle.limit_iops(LIMIT);
        Some(Limited {
            throttle,
            device,
            place: Place::new(),
        })
    }

    fn output(&self, command: &Command) -> String {
        let output = self.throttle.hold(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn by_fio(&self) -> Rates {
        let mut fio = Command::new("fio");
        fio.arg("--output-format=json")
            .arg(self.place.path("job.fio"));
        fio.env("DEV", self.device.path())
            .current_dir(self.place.path("."));
        let text = self.output(&fio);
        let document: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        // Jobs between two walls run together: what they do adds up.
        let jobs = document["jobs"].as_array().unwrap();
        ["read", "write"].map(|way| {
            jobs.iter()
                .map(|job| job[way]["iops"].as_f64().unwrap())
                .sum()
        })
    }

    fn by_disksmith(&self) -> Rates {
        let path = self.device.path();
        let mut command = self.place.command(&[
            "bench",
            path,
            "--fio",
            "job.fio",
            "--json",
            "--no-ledger",
            "--destroy",
            path,
        ]);
        command.env("DEV", path);
        let document: Value = serde_json::from_str(&self.output(&command)).unwrap();
        let phases = document["phases"].as_array().unwrap();
        ["read", "write"].map(|way| {
            let rate = |phase: &Value| {
                let ops = phase[way]["ops"].as_f64().unwrap_or(0.0);
                ops / phase["seconds"].as_f64().unwrap()
            };
            phases.iter().map(rate).sum()
        })
    }

    /// Whether both have the same figure within `within`, by the median over `tries.start()` tries,
    /// or more where that is not so yet: a host without an idle processor does not hold a device at
    /// its limit, and then either of them is too low. Prints what was seen.
    fn agree(&self, name: &str, job: &str, within: f64, tries: RangeInclusive<usize>) -> bool {
        std::fs::write(self.place.path("job.fio"), job).unwrap();
        let mut ratios = Vec::new();
        for tried in 1..=*tries.end() {
            let (fio, ours) = (self.by_fio(), self.by_disksmith());
            ratios.push((ours[0] + ours[1]) / (fio[0] + fio[1]));
            println!(
                "{name:<10} fio {:6.1} read {:6.1} write   disksmith {:6.1} read {:6.1} write   \
                 ratio {:.3}",
                fio[0],
                fio[1],
                ours[0],
                ours[1],
                ratios[tried - 1]
            );
            if tried >= *tries.start() && (median(&ratios) - 1.0).abs() < within {
                return true;
            }
        }
        false
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

const GLOBAL: &str = "[global]\nfilename=${DEV}\ndirect=1\nioengine=libaio\nruntime=4\ntime_based\n\
    ramp_time=1\ngroup_reporting\n";

#[test]
fn with_root_a_job_at_a_limit_has_the_figure_that_fio_has() {
    let Some(limited) = Limited::new() else {
        return;
    };
    let job = format!("{GLOBAL}[pages]\nrw=randread\nbs=16k\niodepth=8\n");
    assert!(limited.agree("randread", &job, 0.03, 1..=3));
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_a_grid_of_jobs_has_the_figures_that_fio_has() {
    let Some(limited) = Limited::new() else {
        return;
    };
    let began = Instant::now();
    let mut apart = Vec::new();
    for (name, lines) in [
        ("randread", "[j]\nrw=randread\nbs=16k\niodepth=16\n"),
        (
            "randwrite",
            "[j]\nrw=randwrite\nbs=4k\niodepth=8\nioengine=io_uring\n",
        ),
        ("randrw", "[j]\nrw=randrw\nrwmixread=70\nbs=8k\niodepth=8\n"),
        ("read", "[j]\nrw=read\nbs=64k\niodepth=4\n"),
        (
            "psync",
            "[j]\nrw=randread\nbs=4k\nioengine=psync\nnumjobs=4\n",
        ),
        (
            "bssplit",
            "[j]\nrw=randread\nbssplit=4k/50:16k/30:64k/20\niodepth=8\n",
        ),
        (
            "zipf",
            "[j]\nrw=randread\nbs=4k\niodepth=8\nrandom_distribution=zipf:1.2\n",
        ),
        (
            "rate",
            "[j]\nrw=randread\nbs=4k\niodepth=8\nrate_iops=200\n",
        ),
        (
            "poisson",
            "[j]\nrw=randread\nbs=4k\niodepth=32\nrate_iops=200\nrate_process=poisson\n",
        ),
        ("numjobs", "[j]\nrw=randread\nbs=4k\niodepth=2\nnumjobs=3\n"),
        (
            "two jobs",
            "[a]\nrw=randread\nbs=4k\niodepth=4\n[b]\nrw=write\nbs=16k\niodepth=4\n",
        ),
        (
            "size",
            "[j]\nrw=randread\nbs=16k\nsize=24m\nruntime=0\nramp_time=0\ntime_based=0\niodepth=8\n",
        ),
        (
            "ios",
            "[j]\nrw=randread\nbs=4k\nnumber_ios=2000\nruntime=0\nramp_time=0\ntime_based=0\niodepth=8\n",
        ),
    ] {
        // 800 Poisson arrivals by each: a deviation of 5 % between them is chance.
        let within = if name == "poisson" { 0.15 } else { 0.03 };
        if !limited.agree(name, &format!("{GLOBAL}{lines}"), within, 3..=7) {
            apart.push(name);
        }
    }
    println!("{:.0} s", began.elapsed().as_secs_f64());
    assert!(apart.is_empty(), "not the same figure: {apart:?}");
}
