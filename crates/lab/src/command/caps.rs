//! The caps of the lab's volumes as they are in force, told at the start.

use crate::server::Server;
use crate::spec::VolumeSpec;
use record::Bytes;

use crate::args::VolumesArgs;
use ui::format::number;

/// A line for each run of volumes with the same caps, one for the instance's, and whether they are scaled.
pub(super) fn lines(server: &Server, volumes: &VolumesArgs) -> Vec<String> {
    let each: Vec<(String, String)> = server
        .volumes()
        .iter()
        .map(|volume| (volume.serial().to_owned(), caps(&volume.spec())))
        .collect();
    let mut lines = vec![scaled(volumes.scale)];
    for group in each.chunk_by(|a, b| a.1 == b.1) {
        let names = match group {
            [(first, _), .., (last, _)] => format!("{first} to {last}, each"),
            [(only, _)] => only.clone(),
            [] => continue,
        };
        lines.push(format!("{names}: {}.", group[0].1));
    }
    let instance = (
        volumes.instance_iops.map(|iops| iops * volumes.scale),
        volumes
            .instance_throughput
            .map(|rate| Bytes((rate.0.0 as f64 * volumes.scale) as u64)),
    );
    if instance != (None, None) {
        let (iops, bytes) = instance;
        lines.push(format!("All volumes together: {}.", rates(iops, bytes)));
    }
    lines
}

fn scaled(scale: f64) -> String {
    if (scale - 1.0).abs() < f64::EPSILON {
        return "Caps are not scaled.".to_owned();
    }
    format!("Caps are scaled: IOPS and throughput are {scale} of the volumes' values.")
}

/// The caps of one volume: `3,000 IOPS, 125 MiB/s`, with its burst.
fn caps(spec: &VolumeSpec) -> String {
    let sustained = rates(spec.iops, spec.throughput);
    match spec.burst {
        None => sustained,
        Some(burst) => format!(
            "{sustained}, bursts of {} IOPS for {} credits",
            number(burst.iops),
            number(burst.credits)
        ),
    }
}

fn rates(iops: Option<f64>, bytes: Option<Bytes>) -> String {
    let iops = iops.map_or("no cap on IOPS".to_owned(), |iops| {
        format!("{} IOPS", number(iops).trim_end_matches(".0"))
    });
    let bytes = bytes.map_or("no cap on throughput".to_owned(), |rate| {
        format!("{rate}/s")
    });
    format!("{iops}, {bytes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::VolumeGroup;

    #[test]
    fn the_caps_in_force_are_told_with_their_units() {
        for (text, told) in [
            ("gp3:16GiB", "3,000 IOPS, 125 MiB/s"),
            ("iops=40:1GiB", "40 IOPS, no cap on throughput"),
            ("throughput=125B:1GiB", "no cap on IOPS, 125 B/s"),
            (
                "gp2:100GiB",
                "300 IOPS, 128 MiB/s, bursts of 3,000 IOPS for 5,400,000 credits",
            ),
        ] {
            let group: VolumeGroup = text.parse().unwrap();
            assert_eq!(caps(&group.spec), told);
        }
    }
}
