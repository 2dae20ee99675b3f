//! Tests that blocks are read back as they were, within the stated error bounds.

mod arbitrary;
mod ledgers;
mod near;

use jiff::Timestamp;
use proptest::prelude::*;
use record::sample::{RecordedInterval, Sample};

use super::simulated::Host;
use super::*;
use near::assert_near;

fn recorded(samples: &[Sample]) -> Vec<RecordedInterval> {
    samples
        .iter()
        .cloned()
        .map(RecordedInterval::taken)
        .collect()
}

#[test]
fn counts_of_the_kernel_come_back_exactly_while_they_are_small() {
    let mut host = Host::new(2, 3, Timestamp::UNIX_EPOCH);
    let samples: Vec<Sample> = (0..20).map(|_| host.next()).collect();
    let back = block::unpack(&block::pack(&samples, PackingGoal::Room)).unwrap();
    for (was, is) in samples.iter().zip(&back) {
        assert_eq!((was.at, was.length), (is.at, is.length));
        for (was, is) in was.devices.iter().zip(&is.devices) {
            let count = |rate: Option<record::sample::PerSecond>, sample: &Sample| {
                (rate.unwrap().0 * sample.length.as_secs_f64()).round()
            };
            let seconds = &samples[0];
            let written = count(was.write.iops, seconds);
            assert!(written < 2048.0, "the host is not what this test is about");
            assert_eq!(was.write.merged, is.write.merged);
            assert_eq!(was.flush.wait, is.flush.wait);
            assert_eq!(was.in_flight, is.in_flight);
            assert_eq!(was.device, is.device);
        }
        assert_near(was, is);
    }
}

#[test]
fn a_busy_hour_of_sixteen_disks_takes_a_twentyfourth_of_20_mib() {
    let mut host = Host::new(16, 7, Timestamp::UNIX_EPOCH);
    let mut bytes = 0;
    // A third of an hour is enough to tell, and soon done.
    for _ in 0..3 {
        let samples: Vec<Sample> = (0..400).map(|_| host.next()).collect();
        bytes += block::pack(&samples, PackingGoal::Room).len();
    }
    let a_day = bytes as f64 * 72.0 / f64::from(1 << 20);
    println!("a day of 16 disks, their array and a partition: {a_day:.2} MiB");
    assert!(a_day < 20.0, "{a_day:.2} MiB");
}

#[test]
fn a_batch_is_the_same_whatever_was_packed_before_it() {
    let mut hosts = [2, 3].map(|disks| Host::new(disks, 7, Timestamp::UNIX_EPOCH));
    let mut last = block::LastHead::default();
    // The same devices, others, and those from before again.
    for which in [0, 0, 1, 1, 0] {
        let samples: Vec<Sample> = (0..5).map(|_| hosts[which].next()).collect();
        let packed = block::pack_after(&samples, PackingGoal::Time, &mut last);
        assert_eq!(packed, block::pack(&samples, PackingGoal::Time));
        let back = block::unpack(&packed).unwrap();
        assert_eq!(back[4].devices.len(), samples[4].devices.len());
    }
}

#[test]
fn a_partition_of_a_whole_disk_takes_next_to_nothing() {
    let mut host = Host::new(1, 7, Timestamp::UNIX_EPOCH);
    let with: Vec<Sample> = (0..300).map(|_| host.next()).collect();
    let mut without = with.clone();
    for sample in &mut without {
        sample.devices.retain(|one| one.device.name == "nvme0n1");
    }
    let (with, without) = (
        block::pack(&with, PackingGoal::Room).len(),
        block::pack(&without, PackingGoal::Room).len(),
    );
    assert!(with < without + without / 6, "{with} and {without}");
}

#[test]
fn a_block_that_is_damaged_is_refused() {
    let mut host = Host::new(1, 7, Timestamp::UNIX_EPOCH);
    let samples: Vec<Sample> = (0..5).map(|_| host.next()).collect();
    let whole = block::pack(&samples, PackingGoal::Room);
    for at in (0..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        assert!(block::unpack(&damaged).is_err(), "a bit of byte {at}");
        assert!(block::unpack(&whole[..at]).is_err(), "{at} bytes");
    }
}

#[test]
fn a_minute_has_the_least_the_mean_and_the_most() {
    let mut host = Host::new(1, 7, Timestamp::UNIX_EPOCH);
    let samples: Vec<Sample> = (0..60).map(|_| host.next()).collect();
    let rates: Vec<f64> = samples
        .iter()
        .map(|sample| sample.devices[0].read.iops.unwrap().0)
        .collect();
    let minute = thin(&recorded(&samples)).unwrap();
    assert_eq!(minute.samples(), 60);
    let iops = |sample: &Sample| sample.devices[0].read.iops.unwrap().0;
    let mean = rates.iter().sum::<f64>() / 60.0;
    assert!((iops(&minute.sample) / mean - 1.0).abs() < 1e-3);
    assert_eq!(
        iops(minute.least()),
        rates.iter().copied().fold(f64::MAX, f64::min)
    );
    assert_eq!(
        iops(minute.most()),
        rates.iter().copied().fold(0.0, f64::max)
    );
    let length: u64 = samples.iter().map(|sample| sample.length.0).sum();
    assert_eq!(minute.sample.length.0, length);
    let packed = pack(MINUTES, std::slice::from_ref(&minute));
    let back = unpack(MINUTES, &packed).unwrap().remove(0);
    assert_eq!(back.samples(), 60);
    assert_near(&minute.sample, &back.sample);
    assert_near(minute.most(), back.most());
}

#[test]
fn samples_of_each_minute_do_not_grow_where_they_are_thinned_out_to_minutes() {
    let mut host = Host::new(4, 7, Timestamp::UNIX_EPOCH);
    let samples: Vec<Sample> = (0..60).map(|_| host.next()).collect();
    let alone = recorded(&samples);
    let thinned: Vec<RecordedInterval> = alone
        .iter()
        .filter_map(|one| thin(std::slice::from_ref(one)))
        .collect();
    assert_eq!(thinned, alone);
    let packed = pack(MINUTES, &thinned);
    assert!(packed.len() < pack(UNTHINNED, &alone).len() + 2 * samples.len());
    assert_eq!(
        unpack(MINUTES, &packed).unwrap(),
        unpack(UNTHINNED, &pack(UNTHINNED, &alone)).unwrap()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_samples_come_back_within_the_bounds(samples in arbitrary::samples()) {
        let back = block::unpack(&block::pack(&samples, PackingGoal::Room)).unwrap();
        prop_assert_eq!(back.len(), samples.len());
        for (was, is) in samples.iter().zip(&back) {
            assert_near(was, is);
        }
        prop_assert_eq!(block::unpack(&block::pack(&samples, PackingGoal::Time)).unwrap(), back);
    }

    #[test]
    fn any_bytes_are_refused_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut body = vec![1];
        body.extend_from_slice(&bytes::checksum(&bytes).to_le_bytes());
        body.extend_from_slice(&bytes);
        let _ = block::unpack(&body);
        let _ = unpack(MINUTES, &bytes);
    }

    #[test]
    fn thinning_keeps_the_mean_between_the_extremes(samples in arbitrary::samples()) {
        let Some(thinned) = thin(&recorded(&samples)) else {
            return Ok(());
        };
        for device in &thinned.sample.devices {
            let id = device.device.id;
            let (least, most) = (thinned.least().device(id), thinned.most().device(id));
            let figure = |one: &record::sample::DeviceSample| one.read.iops.map(|iops| iops.0);
            let (least, mean, most) = (least.and_then(figure), figure(device), most.and_then(figure));
            prop_assert_eq!(least.is_some(), mean.is_some());
            if let (Some(least), Some(mean), Some(most)) = (least, mean, most) {
                let slack = 1e-9 * most;
                prop_assert!(least <= mean + slack && mean <= most + slack);
            }
        }
    }
}
