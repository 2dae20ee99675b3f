//! Times of requests from issue to completion, as classic histograms of Prometheus.

use std::collections::BTreeMap;

use record::sample::{FlowKind, Latencies, Sample};

use super::text::Text;

/// Upper bounds of the buckets, in nanoseconds and as Prometheus' text in seconds.
const BOUNDS: [(u64, &str); 20] = [
    (10_000, "1e-05"),
    (25_000, "2.5e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (30_000_000_000, "30"),
];

const NAME: &str = "disksmith_disk_request_duration_seconds";

/// Counts of a device's requests of one kind.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Number of requests up to each bound.
    at_most: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Counts {
    fn add(&mut self, times: &Latencies) {
        let histogram = times.histogram();
        for (sum, (bound, _)) in self.at_most.iter_mut().zip(BOUNDS) {
            *sum += histogram.count_at_most(bound);
        }
        self.count += times.count;
        self.seconds += histogram.sum() as f64 / 1e9;
    }
}

/// Times of requests since the watch began, by device and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestTimes {
    counts: BTreeMap<(String, &'static str), Counts>,
    cpu_seconds: f64,
    lost: u64,
    is_traced: bool,
}

impl RequestTimes {
    /// Adds the requests of a sample, and removes devices that are gone.
    pub(crate) fn add(&mut self, sample: &Sample) {
        let Some(tracing) = sample.host.tracing else {
            return;
        };
        self.is_traced = true;
        self.cpu_seconds += tracing.cpu.as_secs_f64();
        self.lost += tracing.lost;
        for device in &sample.devices {
            let Some(latency) = &device.latency else {
                continue;
            };
            for kind in FlowKind::ALL {
                if let Some(times) = latency.kind(kind) {
                    let key = (device.device.name.clone(), kind.name());
                    self.counts.entry(key).or_default().add(times);
                }
            }
        }
        let is_there = |name: &str| sample.named(name).is_some();
        self.counts.retain(|(name, _), _| is_there(name));
    }
}

/// Writes the metrics of the traced requests.
pub(super) fn families(times: &RequestTimes, text: &mut Text) {
    if !times.is_traced {
        return;
    }
    let help = "Time of requests from issue to completion.";
    text.family(NAME, "histogram", help);
    let bucket = format!("{NAME}_bucket");
    for ((device, kind), counts) in &times.counts {
        let labels = [("device", device.as_str()), ("op", *kind)];
        let [first, second] = labels;
        for (sum, (_, bound)) in counts.at_most.iter().zip(BOUNDS) {
            text.value(&bucket, &[first, second, ("le", bound)], *sum as f64);
        }
        let all = counts.count as f64;
        text.value(&bucket, &[first, second, ("le", "+Inf")], all);
        text.value(&format!("{NAME}_sum"), &labels, counts.seconds);
        text.value(&format!("{NAME}_count"), &labels, all);
    }
    let name = "disksmith_tracing_cpu_seconds_total";
    text.family(name, "counter", "Processor time that tracing took.");
    text.value(name, &[], times.cpu_seconds);
    let name = "disksmith_tracing_lost_events_total";
    text.family(name, "counter", "Events that the kernel could not keep.");
    text.value(name, &[], times.lost as f64);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::Histogram;
    use record::sample::{
        Device, DeviceId, DeviceSample, HostSample, LatencySample, SampleTime, TracingSample,
    };

    use super::*;

    #[test]
    fn buckets_are_cumulative_and_add_up_over_samples() {
        let mut kinds: [Histogram; 4] = Default::default();
        kinds[0].record_many(80_000, 99);
        kinds[0].record(40_000_000_000);
        let device = Device::by_name(DeviceId(0), "vdb", SampleTime::default());
        let mut device = DeviceSample::unknown(Arc::new(device));
        device.latency = Some(Arc::new(LatencySample::of(&kinds)));
        let sample = Sample {
            devices: vec![device],
            host: HostSample {
                tracing: Some(TracingSample::default()),
                ..HostSample::default()
            },
            ..Sample::default()
        };
        let mut times = RequestTimes::default();
        times.add(&sample);
        times.add(&sample);
        let mut text = Text::default();
        families(&times, &mut text);
        let series = |le: &str| format!("{NAME}_bucket{{device=\"vdb\",op=\"read\",le=\"{le}\"}}");
        for line in [
            format!("{} 0", series("5e-05")),
            format!("{} 198", series("0.0001")),
            format!("{} 198", series("30")),
            format!("{} 200", series("+Inf")),
            format!("{NAME}_count{{device=\"vdb\",op=\"read\"}} 200"),
        ] {
            assert!(text.0.lines().any(|one| one == line), "{line}: {}", text.0);
        }
        assert!(!text.0.contains("op=\"write\""));
        times.add(&Sample {
            devices: Vec::new(),
            ..sample
        });
        assert!(times.counts.is_empty());
    }
}
