//! The column sets of the versions of sysstat before 12.6.

use formats::disk_log::{FirstReport, Options};
use record::sample::Flow;
use record::{Bytes, Nanos};

use super::common::{device, flow, intervals, read, read_with};

#[test]
fn sysstat_5_has_sectors_and_kilobytes() {
    let (readings, notes) = read("5-x.txt");
    let sdc = device(&readings[0].sample, "sdc");
    assert_eq!(flow(&sdc.read), (Some(267.1), Some(34176.0), None));
    assert_eq!(sdc.all.wait, Some(Nanos(7_290_000)));
    assert_eq!(
        sdc.all.size,
        Some(Bytes((255.9_f64 * 512.0).round() as u64))
    );
    assert_eq!(sdc.read.merged.unwrap().0, 8276.9);
    assert_eq!(sdc.mean_in_flight, Some(1.95));
    assert_eq!((sdc.busy.unwrap().percent() * 100.0).round(), 10_002.0);
    let cpu = readings[0].sample.host.cpu.unwrap();
    let hundredths = |share: record::sample::Fraction| (share.0 * 10_000.0).round();
    assert_eq!(
        (hundredths(cpu.system), hundredths(cpu.iowait), cpu.steal.0),
        (2185.0, 5855.0, 0.0)
    );
    assert!(notes.garbage.count == 0 && notes.cut.count == 0);
}

#[test]
fn sysstat_9_has_one_await_and_sizes_in_sectors() {
    let (readings, _) = read("9-x.txt");
    assert!(readings[0].since_boot);
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(170.11), Some(10923.92), None));
    assert_eq!(
        sda.write.size,
        Some(Bytes((134.89_f64 * 512.0 / 6.64).round() as u64))
    );
    assert_eq!(flow(&sda.all), (Some(176.75), Some(10991.365), Some(11.65)));
    let (readings, notes) = read("9-x-comma.txt");
    assert_eq!(readings.len(), 3);
    let sda = device(&readings[1].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(1.0), Some(8.0), None));
    assert_eq!(flow(&sda.all), (Some(1.0), Some(8.0), Some(1.0)));
    // The last report has no devices in it: the log was cut off there.
    assert!(readings[2].sample.devices.is_empty());
    assert_eq!(notes.garbage.count, 0);
}

#[test]
fn sysstat_9_counts_in_megabytes_and_tells_of_nfs() {
    let (readings, _) = read("9-xm.txt");
    let sda = device(intervals(&readings)[0], "sda");
    assert_eq!(flow(&sda.write), (Some(149.5), Some(34.52 * 1024.0), None));
    assert_eq!(sda.all.wait, Some(Nanos(261_660_000)));
    let (readings, notes) = read("9-xmn.txt");
    assert_eq!(readings[0].sample.devices.len(), 3);
    assert_eq!(notes.garbage.count, 0);
}

#[test]
fn amounts_tell_how_long_the_interval_was() {
    let (readings, notes) = read("9-basic-comma.txt");
    let [sample] = intervals(&readings)[..] else {
        panic!("{readings:?}")
    };
    assert_eq!(sample.length, Nanos::from_secs(10));
    assert!(!notes.interval_unknown);
    let xvdf = device(sample, "xvdf");
    assert_eq!(flow(&xvdf.read), (None, Some(924.4), None));
    assert_eq!(flow(&xvdf.all), (Some(56.2), Some(946.8), None));
}

#[test]
fn sysstat_10_has_await_for_reads_and_writes() {
    let (readings, _) = read("10-x.txt");
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.read), (Some(0.03), Some(0.605), Some(1.07)));
    assert_eq!(flow(&sda.write), (Some(1.04), Some(29.14), Some(12.48)));
    assert_eq!(sda.all.wait, Some(Nanos(12_120_000)));
    // Requests so rare that their rate is printed as zero still took their time.
    let sdb = device(&readings[0].sample, "sdb");
    assert_eq!(flow(&sdb.read), (Some(0.0), Some(0.0), Some(0.28)));
    assert_eq!(sdb.write.wait, None);
    let (readings, _) = read("10-xkd.txt");
    let samples = intervals(&readings);
    assert_eq!(
        flow(&device(samples[1], "sda").write),
        (Some(8.0), Some(44.0), Some(11.0))
    );
    assert_eq!(device(samples[0], "sda").read.wait, None);
    let (readings, _) = read("10-basic-m.txt");
    let vdc = device(&readings[0].sample, "vdc");
    assert_eq!(vdc.write.bytes.unwrap().0, 2.62 * 1024.0 * 1024.0);
    assert_eq!(vdc.all.iops.unwrap().0, 71.84);
}

#[test]
fn sysstat_12_0_has_sizes_in_kilobytes() {
    let (readings, _) = read("12.0-x.txt");
    let card = device(intervals(&readings)[0], "mmcblk0");
    assert_eq!(
        flow(&card.write),
        (Some(33.0), Some(16896.0), Some(2931.67))
    );
    assert_eq!(card.write.size, Some(Bytes::kib(512)));
    assert_eq!(card.mean_in_flight, Some(2.67));
    assert_eq!(
        (card.discard, card.flush),
        (Flow::default(), Flow::default())
    );
    let (readings, notes) = read("12.0-x-s-z.txt");
    let sdf = device(&readings[0].sample, "sdf");
    assert_eq!(flow(&sdf.all), (Some(1354.0), Some(10832.0), Some(0.71)));
    assert_eq!(
        (sdf.mean_in_flight, sdf.all.size),
        (Some(0.96), Some(Bytes::kib(8)))
    );
    // The name of the host is missing in its first line.
    assert_eq!(notes.garbage.first, [1]);
}

#[test]
fn sysstat_12_2_has_discards() {
    let (readings, _) = read("12.2-dx.txt");
    let vda = device(&readings[0].sample, "vda");
    assert_eq!(flow(&vda.discard), (Some(0.06), Some(716.09), Some(1.37)));
    assert_eq!(vda.flush, Flow::default());
    let (readings, _) = read("12.2-xm.txt");
    let sda = device(&readings[0].sample, "sda");
    assert_eq!(flow(&sda.discard).1, Some(19927.04));
    assert_eq!(sda.discard.size, Some(Bytes((38626.5_f64 * 1024.0) as u64)));
}

/// Half a request of 4 KiB a second is 0.00 MB/s, and no request of nothing.
#[test]
fn mean_sizes_are_those_printed_and_none_where_rounding_leaves_nothing_to_tell_them_by() {
    const KIB: u64 = 1024;
    for (header, figures, size) in [
        (
            "r/s w/s rMB/s wMB/s rareq-sz wareq-sz %util",
            "0.00 0.50 0.00 0.00 0.00 4.00 2.25",
            Some(4 * KIB),
        ),
        (
            "r/s w/s rMB/s wMB/s rareq-sz wareq-sz %util",
            "1.00 3.00 0.00 0.02 4.00 8.00 2.25",
            Some(7 * KIB),
        ),
        (
            "r/s w/s rMB/s wMB/s avgrq-sz await %util",
            "0.00 1.00 0.00 0.00 8.00 1.00 0.10",
            Some(4 * KIB),
        ),
        (
            "r/s w/s rMB/s wMB/s %util",
            "0.00 1.00 0.00 0.00 0.10",
            None,
        ),
        (
            "r/s w/s rMB/s wMB/s %util",
            "0.00 1.00 0.00 0.01 0.10",
            None,
        ),
        (
            "r/s w/s rMB/s wMB/s %util",
            "100.00 60.00 12.50 7.50 90.00",
            Some(128 * KIB),
        ),
        (
            "tps MB_read/s MB_wrtn/s MB_read MB_wrtn",
            "13.10 0.01 0.00 0 0",
            None,
        ),
        (
            "tps MB_read/s MB_wrtn/s MB_read MB_wrtn",
            "160.00 12.50 7.50 12 7",
            Some(128 * KIB),
        ),
        // Flushes that an old kernel counts as writes move nothing, and are exact in sectors.
        (
            "r/s w/s rsec/s wsec/s %util",
            "0.00 100.00 0.00 0.00 5.00",
            None,
        ),
    ] {
        let report = format!("Device {header}\nsda {figures}\n\n");
        let options = Options {
            first: FirstReport::Interval,
            ..Options::default()
        };
        let (readings, _) = read_with(&report.repeat(2), options);
        let sda = device(&readings[0].sample, "sda");
        assert_eq!(sda.all.size, size.map(Bytes), "{header}: {figures}");
    }
}

#[test]
fn sysstat_12_7_may_count_in_gigabytes() {
    let options = || Options {
        first: FirstReport::Interval,
        ..Options::default()
    };
    for (header, figures) in [
        (
            "tps GB_read/s GB_wrtn/s GB_dscd/s GB_read GB_wrtn GB_dscd",
            "8.59 1.50 0.25 0.00 1 0 0",
        ),
        (
            "r/s rGB/s rrqm/s %rrqm r_await rareq-sz w/s wGB/s wrqm/s %wrqm w_await wareq-sz aqu-sz %util",
            "8.00 1.50 0.00 0.00 1.00 8.00 0.59 0.25 0.00 0.00 1.00 8.00 0.10 10.00",
        ),
    ] {
        let report = format!("Device {header}\nsda {figures}\n\n");
        let (readings, notes) = read_with(&report.repeat(2), options());
        let sda = device(&readings[0].sample, "sda");
        let bytes = [sda.read.bytes, sda.write.bytes].map(|bytes| bytes.unwrap().0);
        assert_eq!(
            bytes,
            [1.5, 0.25].map(|of| of * 1024_f64.powi(3)),
            "{header}"
        );
        assert_eq!(notes.unknown_columns, [""; 0], "{header}");
    }
}

/// sysstat 7 called the mounts of NFS devices too.
#[test]
fn the_table_of_nfs_is_passed_over() {
    let log = "Linux 2.6.18-194.el5 (db1) \t2011年04月18日\n\n\
               avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           1.18    0.02    0.25    0.20    0.00   98.36\n\n\
               Device:            tps   Blk_read/s   Blk_wrtn/s   Blk_read   Blk_wrtn\n\
               sda               1.23         4.12        20.54    1315919    6564262\n\n\
               Device:                  rBlk_nor/s   wBlk_nor/s   rBlk_dir/s   wBlk_dir/s   rBlk_svr/s   wBlk_svr/s    rops/s    wops/s\n\
               10.7.0.1:/var/ftp/pub/RHEL/X86-64/S55         0.00         0.00         0.00         0.00         0.00         0.00      0.03      0.03\n\n";
    let (readings, notes) = read_with(&log.repeat(2), Options::default());
    let names = |reading: &formats::disk_log::LogReport| {
        let devices = reading.sample.devices.iter();
        devices
            .map(|device| device.device.name.clone())
            .collect::<Vec<_>>()
    };
    assert!(readings.iter().all(|reading| names(reading) == ["sda"]));
    assert_eq!((readings.len(), notes.garbage.count), (2, 0), "{notes:#?}");
}
