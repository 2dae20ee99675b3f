//! Tests with damaged logs: without headers, devices or line ends, or not logs at all.

use formats::disk_log::{FirstReport, LogError, LogReport, Options, Reader};
use record::Nanos;
use record::sample::{Flow, Sample};

use super::common::{device, fixture, flow, intervals, read, read_with};

#[test]
fn columns_are_guessed_where_grep_took_the_headers() {
    let (readings, notes) = read("10-xk-grep.txt");
    let guess = notes.guess.clone().unwrap();
    assert_eq!(guess.printed_by, "sysstat 10.1 to 11.4, -x");
    assert!(guess.columns.text().contains("rkB/s") && guess.held == guess.checked);
    assert!(notes.sentences()[0].contains("taken as 'Device rrqm/s wrqm/s r/s w/s rkB/s"));
    assert!(notes.interval_unknown);
    assert_eq!(readings.len(), 5);
    let nvme = device(&readings[1].sample, "nvme0n1");
    assert_eq!(flow(&nvme.read), (Some(341.6), Some(35042.4), Some(7.35)));

    // The lines of devices alone, of every column set of which there is a log with enough in it.
    for (name, printed_by) in [
        ("9-x.txt", "sysstat 6 to 10.0, -x"),
        ("9-xm.txt", "sysstat 6 to 10.0, -x"),
        ("5-x.txt", "sysstat 5, -x"),
        ("10-x.txt", "sysstat 10.1 to 11.4, -x"),
        ("12.0-x.txt", "sysstat 11.6 to 12.0, -x"),
        ("12.6-x.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-m.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-sectors.txt", "sysstat 12.3 and later, -x"),
        ("12.6-x-s.txt", "sysstat 12.1 and later, -x -s"),
    ] {
        let (with, _) = read(name);
        let disks = ["sd", "md", "vd", "loop", "mmc"];
        let text: String = fixture(name)
            .lines()
            .filter(|line| disks.iter().any(|disk| line.starts_with(disk)))
            .map(|line| format!("{line}\n"))
            .collect();
        let (without, notes) = read_with(&text, Options::default());
        assert_eq!(
            notes.guess.as_ref().unwrap().printed_by,
            printed_by,
            "{name}"
        );
        let with = with
            .iter()
            .filter(|reading| !reading.sample.devices.is_empty());
        let mut compared = 0;
        for (with, without) in with.zip(&without) {
            for (a, b) in with.sample.devices.iter().zip(&without.sample.devices) {
                assert_eq!(
                    (&a.device.name, a.read, a.all),
                    (&b.device.name, b.read, b.all)
                );
                compared += 1;
            }
        }
        assert!(compared >= 2, "{name}");
    }
}

#[test]
fn what_cannot_be_guessed_is_requested() {
    let text = "sda 18.89 209.75 135.41 995990159 642992550\n".repeat(50);
    let mut reader = Reader::new(text.as_bytes(), Options::default());
    let error = reader.find_map(Result::err).unwrap();
    let LogError::NoColumns {
        line,
        figures,
        candidates,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*line, *figures, candidates.len()), (1, 5, 6));
    assert!(error.to_string().contains("--columns"), "{error}");
    let options = Options {
        columns: Some("tps kB_read/s kB_wrtn/s kB_read kB_wrtn".parse().unwrap()),
        interval: Some(Nanos::from_secs(5)),
        first: FirstReport::Interval,
        ..Options::default()
    };
    let (readings, _) = read_with(&text, options);
    assert_eq!(readings.len(), 50);
    assert_eq!(
        flow(&device(&readings[0].sample, "sda").read).1,
        Some(209.75)
    );
}

#[test]
fn a_log_that_begins_within_a_report_takes_the_columns_that_follow() {
    let text = fixture("12.6-x.txt");
    let middle = text.find("vda").unwrap();
    let (readings, notes) = read_with(&text[middle..], Options::default());
    assert_eq!((notes.guess, notes.garbage.count), (None, 0));
    assert_eq!(readings.len(), 3);
    assert_eq!(readings[0].sample.devices.len(), 1);
}

#[test]
fn garbage_is_counted_and_named_and_does_no_harm() {
    let text = fixture("12.6-xt-C.txt");
    let (clean, _) = read_with(&text, Options::default());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.insert(3, "Killed process 4711 (postgres)".to_owned());
    lines.insert(9, "\u{7}rm: cannot remove 'x': No such file".to_owned());
    lines.insert(15, "x".repeat(300_000));
    let (readings, notes) = read_with(&(lines.join("\n") + "\n"), Options::default());
    assert_eq!(notes.garbage.count, 3);
    assert_eq!(notes.garbage.first, [4, 10, 16]);
    assert!(notes.garbage.example.starts_with("Killed process 4711"));
    let figures = |readings: &[LogReport]| -> Vec<Sample> {
        readings
            .iter()
            .map(|reading| reading.sample.clone())
            .collect()
    };
    assert_eq!(figures(&readings), figures(&clean));
}

#[test]
fn lines_that_are_cut_off_give_what_they_have() {
    let text = fixture("12.6-x.txt");
    let narrow: String = text
        .lines()
        .map(|line| format!("{}\n", line.chars().take(76).collect::<String>()))
        .collect();
    let (readings, _) = read_with(&narrow, Options::default());
    let (clean, _) = read_with(&text, Options::default());
    for (cut, whole) in readings.iter().zip(&clean) {
        let (cut, whole) = (device(&cut.sample, "vda"), device(&whole.sample, "vda"));
        assert_eq!(cut.read, whole.read);
        assert_eq!(cut.busy, None);
    }
    // A log that ends within a number does not know that number.
    let end = text.trim_end().len();
    let (readings, notes) = read_with(&text[..end - 1], Options::default());
    assert_eq!(notes.cut.count, 1);
    let vda = device(&readings[2].sample, "vda");
    assert_eq!(
        (vda.busy, vda.read),
        (None, device(&clean[2].sample, "vda").read)
    );
    let whole = read_with(&text[..end], Options::default()).0;
    assert!(device(&whole[2].sample, "vda").busy.is_some());
}

#[test]
fn json_that_is_cut_anywhere_gives_the_reports_before() {
    let text = fixture("12.6-x.json");
    let (clean, _) = read_with(&text, Options::default());
    for end in 0..text.len() {
        let mut reader = Reader::new(&text.as_bytes()[..end], Options::default());
        let readings: Vec<LogReport> = reader.by_ref().filter_map(Result::ok).collect();
        for (reading, clean) in readings.iter().zip(&clean) {
            for device in &reading.sample.devices {
                let whole = clean.sample.device(device.device.id).unwrap();
                assert!(
                    device.read == whole.read
                        || device.read.wait.is_none()
                        || device.read.size.is_some()
                );
                assert!(device.busy.is_none() || device.busy == whole.busy, "{end}");
                assert!(
                    device.read.iops.is_none() || device.read.iops == whole.read.iops,
                    "{end}"
                );
            }
        }
    }
}

#[test]
fn devices_that_z_leaves_out_completed_nothing() {
    let device = |name: &str, iops: f64| {
        format!("{name} {iops:.2} {:.2} 1.00 4.00 1.00 40.00\n", iops * 4.0)
    };
    let header = "\nDevice tps kB/s rqm/s await areq-sz %util\n";
    let report = |names: &[&str]| -> String {
        let lines: Vec<String> = names.iter().map(|name| device(name, 10.0)).collect();
        format!("{header}{}", lines.concat())
    };
    let machine = "Linux 6.1.0 (h) \t01/01/26 \t_x86_64_\t(2 CPU)\n";
    let all = ["sda", "sdb"];
    let text = format!(
        "{machine}{}{}{}{}{}",
        report(&all),
        report(&all),
        report(&["sdb"]),
        report(&all),
        report(&["sda"])
    );
    let (readings, notes) = read_with(&text, Options::default());
    let samples = intervals(&readings);
    let sda = samples[1].named("sda").unwrap();
    assert_eq!(sda.all.iops.map(|iops| iops.0), Some(0.0));
    // A device that hangs is left out too, so nothing is reported of what was in flight.
    assert_eq!(
        (sda.busy, sda.mean_in_flight, sda.all.wait),
        (None, None, None)
    );
    assert!(sda.read.iops.is_none());
    // The last report may be cut off; there nothing is filled in.
    assert!(samples[3].named("sdb").is_none());
    assert_eq!(notes.missing, 1);
    // Where idle devices are printed, one that is missing is gone.
    let idle = format!("{header}sda 0.00 0.00 0.00 0.00 0.00 0.00\n");
    let text = format!(
        "{machine}{}{}{idle}{}",
        report(&all),
        report(&all),
        report(&["sdb"])
    );
    let (readings, notes) = read_with(&(text + &report(&all)), Options::default());
    assert!(intervals(&readings)[1].named("sdb").is_none());
    assert_eq!(notes.missing, 0);
}

#[test]
fn long_names_stand_on_a_line_of_their_own() {
    let text = "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n\
        VolGroup00-LogVol00\n                  0.00     0.00    1.00    2.00     8.00    16.00     8.00     0.00    1.00   1.00   0.30\n\
        sda               0.00     0.00    1.00    2.00     8.00    16.00     8.00     0.00    \
        1.00   1.00   0.30\n";
    let (readings, notes) = read_with(text, Options::default());
    assert_eq!(notes.garbage.count, 0);
    assert_eq!(readings[0].sample.devices.len(), 2);
    let volume = device(&readings[0].sample, "VolGroup00-LogVol00");
    assert_eq!(volume.read, device(&readings[0].sample, "sda").read);
}

#[test]
fn a_counter_that_went_back_leaves_rates_unknown() {
    let text = "Device r/s w/s rkB/s wkB/s %util\nsda 1.00 2.00 4.00 18014398509481984.00 1.00\n";
    let (readings, _) = read_with(text, Options::default());
    let sda = device(&readings[0].sample, "sda");
    assert!(sda.reset && sda.read == Flow::default() && sda.busy.is_none());
}

#[test]
fn what_is_no_log_is_refused() {
    let error = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, Options::default());
        reader.find_map(Result::err).unwrap().to_string()
    };
    assert!(error(b"").contains("in none of its 0 lines"));
    assert!(error(b"hello\nworld\n").contains("2 lines"));
    assert!(error(b"\x1f\x8b\x08\x00").contains("zcat"));
}

/// Disks of several hosts have the same names.
#[test]
fn a_log_of_several_hosts_is_refused_with_their_names_and_of_one_read_whatever_it_is_called() {
    let read = |log: &str| {
        let mut reader = Reader::new(log.as_bytes(), Options::default());
        reader.find_map(Result::err).map(|error| error.to_string())
    };
    let run = |host: &str| {
        format!(
            "Linux 6.1.0 ({host}) \t11/22/2026 \t_x86_64_\t(2 CPU)\n\n\
             Device r/s w/s rkB/s wkB/s await %util\nsda 1.00 2.00 3.00 4.00 5.00 6.00\n\n"
        )
    };
    let headless = "Device r/s w/s rkB/s wkB/s await %util\nsda 1.00 2.00 3.00 4.00 5.00 6.00\n\n";
    let front = |front: &str, log: &str| -> String {
        log.lines().map(|line| format!("{front}{line}\n")).collect()
    };
    let numbered = |word: &str, log: &str| -> String {
        let lines = log.lines().zip(1..);
        lines
            .map(|(line, number)| format!("{word}{number}: {line}\n"))
            .collect()
    };
    let with_cpu = format!("avg-cpu:  %user   %idle\n 1.00   99.00\n\n{headless}");
    let json = |host: &str| {
        format!(
            "{{\"sysstat\": {{\"hosts\": [{{\"nodename\": \"{host}\", \"statistics\": [{{\"disk\": \
             [{{\"disk_device\": \"sda\", \"tps\": 1.00}}]}}]}}]}}}}\n"
        )
    };
    let sadf = |host: &str| {
        format!(
            "# hostname;interval;timestamp;DEV;tps;await;%util\n{host};1;2026-11-24 19:20:32 UTC;sda;1.00;2.00;3.00\n"
        )
    };
    for log in [
        run("db1") + &run("db2"),
        // As pdsh and clush print it.
        front("db1: ", &run("db1")) + &front("db2: ", &run("db2")),
        front("db1: ", headless) + &front("db2: ", headless) + &front("db1: ", headless),
        front("db1: ", &run("db1")) + &front("db2: ", headless),
        json("db1") + &json("db2"),
        sadf("db1") + &sadf("db2"),
    ] {
        let error = read(&log).unwrap_or_else(|| panic!("read: {log}"));
        assert!(
            error.contains("is of the host db2, and those before it of db1"),
            "{error}: {log}"
        );
    }
    // Aliases, which the tool itself does not know, where it names its host next to one of them alone.
    let headed = |name: &str, log: &str| format!("{0}\n{name}\n{0}\n{log}", "-".repeat(16));
    for log in [
        front("node1: ", &run("db1")) + &front("node2: ", &headless.repeat(2)),
        front("node1: ", headless) + &front("node2: ", &run("db2")),
        headed("node1", &run("db1")) + &headed("node2", headless),
        headed("node1", headless) + &headed("node2", &run("db2")),
        headed("node1", headless) + &headed("node2", headless),
    ] {
        let error = read(&log).unwrap_or_else(|| panic!("read: {log}"));
        assert!(
            error.contains("is of the host node2, and those before it of node1"),
            "{error}: {log}"
        );
    }
    // Reports of the first host, before the log of another follows, are returned.
    for (log, complete) in [
        (run("db1") + headless + &run("db2"), 2),
        (json("db1") + &json("db2"), 1),
        (sadf("db1") + &sadf("db2"), 1),
        (headed("a", &run("db1")) + &headed("b", &run("db2")), 1),
    ] {
        let mut reader = Reader::new(log.as_bytes(), Options::default());
        let readings: Vec<bool> = reader.by_ref().map(|reading| reading.is_ok()).collect();
        let expected = [&vec![true; complete][..], &[false]].concat();
        assert_eq!(readings, expected, "{log}");
    }
    for log in [
        run("db1") + &run("db1.example.com") + &run("localhost"),
        front("db1: ", &(run("db1") + &run("db1"))),
        // A word that only counts runs is not a host.
        front("run1: ", &run("db1")) + &front("run2: ", &run("db1")),
        front("phase1: ", &run("db1"))
            + &front("phase2: ", &run("db1"))
            + &front("phase1: ", headless),
        front("phase1: ", &run("db1")) + &front("phase2: ", headless),
        // A number of each line, or of each report, whatever it is called, also where it starts again.
        numbered("seq", &(run("db1") + &headless.repeat(5))),
        numbered("seq", &(run("db1") + headless)) + &numbered("seq", &(run("db1") + headless)),
        front("msg1: ", &run("db1")) + &front("msg2: ", &with_cpu) + &front("msg3: ", &with_cpu),
        front("run1: ", headless) + &front("run2: ", headless) + &front("run3: ", headless),
        front("sample1: ", &run("db1")) + &front("sample2: ", headless),
        headed("before", &run("db1")) + &headed("after", &run("db1")),
        front("Nov 22 10:00:01 db1 iostat[7]: ", headless)
            + &front("Nov 22 10:00:02 db1 iostat[8]: ", headless),
        json("db1") + &json("db1"),
        sadf("db1") + &sadf("db1"),
    ] {
        assert_eq!(read(&log), None, "{log}");
    }
}

/// The log is generated as it is read, so that it cannot have been kept in memory.
#[test]
fn a_long_log_is_read_as_a_stream() {
    struct Endless {
        report: Vec<u8>,
        at: usize,
        left: usize,
        /// Bytes that were read so far.
        given: usize,
    }
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.at == self.report.len() {
                if self.left == 0 {
                    return Ok(0);
                }
                (self.at, self.left) = (0, self.left - 1);
            }
            let length = buffer.len().min(self.report.len() - self.at);
            buffer[..length].copy_from_slice(&self.report[self.at..self.at + length]);
            self.at += length;
            self.given += length;
            Ok(length)
        }
    }
    let text = fixture("12.6-x.txt");
    let report = text.as_bytes()[text.rfind("avg-cpu").unwrap()..].to_vec();
    let log = Endless {
        report,
        at: 0,
        left: 1_000,
        given: 0,
    };
    let mut input = std::io::BufReader::new(log);
    let mut reader = Reader::new(&mut input, Options::default());
    let mut last = 0;
    for (count, reading) in reader.by_ref().enumerate() {
        assert_eq!(reading.unwrap().sample.devices.len(), 2);
        last = count + 1;
    }
    assert_eq!(last, 1_001);
    assert!(input.buffer().is_empty());
    assert!(input.get_ref().given > 700_000);
}
