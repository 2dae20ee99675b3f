//! The effective caps of the lab's volumes, reported at the start, with notes on caps that no cloud sells.

use crate::model::Caps;
use crate::server::Server;
use crate::spec::{Profile, VolumeSpec};
use record::Bytes;

use super::prepared::{options, specs};
use crate::args::VolumesArgs;
use ui::format::number;

/// A line for each group of volumes with the same caps, one for the instance, and a note if they are scaled.
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
    let instance = options(volumes).instance.scaled(volumes.scale);
    if !instance.is_open() {
        lines.push(format!(
            "All volumes together: {}.",
            describe_caps(&instance)
        ));
    }
    lines.extend(not_sold(&specs(volumes)));
    lines
}

/// A note for each figure of volumes of a cloud's type that the cloud does not sell, once.
fn not_sold(specs: &[VolumeSpec]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for spec in specs {
        let Some(Profile::Sold(sold)) = spec.profile else {
            continue;
        };
        for sentence in sold.outside(spec.size, spec.iops, spec.throughput) {
            let note = format!("note: {sentence}; the lab makes it all the same.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// The caps of an instance: `3,000 IOPS, 81.2 MiB/s, up to 18,750 IOPS for 30.0 min`.
fn describe_caps(caps: &Caps) -> String {
    let mut text = rates(caps.iops, caps.throughput);
    let burst = caps.burst;
    if let Some(iops) = caps.most_iops {
        text.push_str(&format!(", up to {} IOPS for {burst}", format_iops(iops)));
    }
    if let Some(rate) = caps.most_throughput {
        text.push_str(&format!(", up to {rate}/s for {burst}"));
    }
    text
}

fn scaled(scale: f64) -> String {
    if (scale - 1.0).abs() < f64::EPSILON {
        return "Caps are not scaled.".to_owned();
    }
    format!("Caps are scaled: IOPS and throughput are {scale} of the volumes' values.")
}

/// The caps of one volume: `3,000 IOPS, 125 MiB/s`, with its burst.
fn caps(spec: &VolumeSpec) -> String {
    let mut text = rates(spec.iops, spec.throughput);
    if let Some(burst) = spec.burst {
        let (iops, credits) = (number(burst.iops), number(burst.credits));
        text.push_str(&format!(", bursts of {iops} IOPS for {credits} credits"));
    }
    if let Some(burst) = spec.throughput_burst {
        let (rate, credits) = (burst.throughput, burst.credits);
        text.push_str(&format!(", bursts of {rate}/s for credits of {credits}"));
    }
    text
}

fn rates(iops: Option<f64>, bytes: Option<Bytes>) -> String {
    let iops = iops.map_or("no cap on IOPS".to_owned(), |iops| {
        format!("{} IOPS", format_iops(iops))
    });
    let bytes = bytes.map_or("no cap on throughput".to_owned(), |rate| {
        format!("{rate}/s")
    });
    format!("{iops}, {bytes}")
}

fn format_iops(iops: f64) -> String {
    number(iops).trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::VolumeGroup;
    use record::Nanos;

    #[test]
    fn what_no_cloud_sells_is_noted_once() {
        let notes = |groups: &[&str]| {
            let groups = groups
                .iter()
                .map(|text| text.parse::<VolumeGroup>().unwrap());
            let specs: Vec<VolumeSpec> = groups
                .flat_map(|group| group.volumes().collect::<Vec<_>>())
                .collect();
            not_sold(&specs)
        };
        assert_eq!(
            notes(&["8xgp3,iops=400:1GiB", "gp3,iops=400:2GiB", "gp3:1GiB"]),
            [
                "note: a volume of type gp3 has at least 3000 IOPS, not 400; the lab makes it all the same."
            ]
        );
        let small = notes(&["2xst1:1GiB", "io2,iops=50:1MiB"]);
        assert_eq!(small.len(), 3, "{small:#?}");
        // The lab's own kinds are not compared with sold types.
        let own = [
            "nvme:1MiB",
            "cold:1MiB",
            "iops=1:1MiB",
            "gp3,iops=none:1GiB",
        ];
        assert_eq!(notes(&own), [""; 0]);
    }

    #[test]
    fn the_caps_in_force_are_shown_with_their_units() {
        for (text, expected) in [
            ("gp3:16GiB", "3,000 IOPS, 125 MiB/s"),
            ("iops=40:1GiB", "40 IOPS, no cap on throughput"),
            ("throughput=125B:1GiB", "no cap on IOPS, 125 B/s"),
            (
                "gp2:100GiB",
                "300 IOPS, 128 MiB/s, bursts of 3,000 IOPS for 5,400,000 credits",
            ),
            (
                "st1:1TiB",
                "500 IOPS, 40 MiB/s, bursts of 250 MiB/s for credits of 1 TiB",
            ),
        ] {
            let group: VolumeGroup = text.parse().unwrap();
            assert_eq!(caps(&group.spec), expected);
        }
        let instance = Caps {
            iops: Some(3_600.0),
            most_iops: Some(20_000.0),
            burst: Nanos::from_secs(1800),
            ..Caps::default()
        };
        assert_eq!(
            describe_caps(&instance),
            "3,600 IOPS, no cap on throughput, up to 20,000 IOPS for 30.0 min"
        );
    }
}
