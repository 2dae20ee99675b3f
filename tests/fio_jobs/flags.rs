//! fio's options on the command line of `bench`, and its logs.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{Place, run, skipped};

/// One job, as fio's users write it.
const OPTIONS: [&str; 10] = [
    "--name=pages",
    "--rw=randrw",
    "--rwmixread=70",
    "--bs=4k,16k",
    "--iodepth=8",
    "--numjobs=2",
    "--size=4M",
    "--io_size=8M",
    "--fsync=32",
    "--ioengine=libaio",
];

/// The same with blanks, which fio takes as well.
fn apart(options: &[&str]) -> Vec<String> {
    let words = options.iter().flat_map(|option| option.split('='));
    words.map(str::to_owned).collect()
}

/// A command line of fio as guides to measuring cloud disks print it, with a shorter run.
const COMMAND_LINE: [&str; 19] = [
    "--directory=data",
    "--name=pages",
    "--rw=randread",
    "--size=4M",
    "--bs=4K",
    "--time_based",
    "--runtime=1s",
    "--ramp_time=0",
    "--ioengine=libaio",
    "--direct=1",
    "--verify=0",
    "--iodepth=16",
    "--iodepth_batch_submit=16",
    "--iodepth_batch_complete_max=16",
    "--rate=4m",
    "--norandommap",
    "--thread",
    "--group_reporting=1",
    "--output-format=json",
];

#[test]
fn a_command_line_of_fio_is_run_as_it_is() {
    let place = Place::new();
    let words = [&["bench"], &COMMAND_LINE[..]].concat();
    let said = place.run(&words).ends_with(0);
    // It is answered in fio's form, and kept as every run.
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["jobs"][0]["jobname"], "pages");
    let kept = place.run(&["show", "last", "--json"]).ends_with(0).json();
    let phase = &kept["phases"][0];
    assert_eq!(phase["workload"]["rate_per_s"], 1024.0);
    assert_eq!(phase["workload"]["depth"], 16);
    assert!(kept["target"]["path"].as_str().unwrap().ends_with("data"));
    let notes = kept["notes"].to_string();
    for option in ["iodepth_batch_submit", "iodepth_batch_complete_max"] {
        assert!(
            notes.contains(&format!("{option} has no effect here")),
            "{notes}"
        );
    }
    place.assert_nothing_left();
}

#[test]
fn several_names_are_several_jobs_and_verified_writes_are_synced() {
    let place = Place::new();
    let words = [
        "bench",
        "--filename=data/own",
        "--bs=64k",
        "--size=1m",
        "--sync=dsync",
        "--name=w",
        "--rw=write",
        "--verify=crc32c",
        "--name=r",
        "--stonewall",
        "--rw",
        "read",
        "--json",
        "--no-ledger",
    ];
    let document = place.run(&words).ends_with(0).json();
    let names: Vec<_> = [0, 1]
        .map(|at| document["phases"][at]["name"].clone())
        .to_vec();
    assert_eq!(names, ["w", "r"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("w: 16 blocks were read back"), "{notes}");
    assert_eq!(document["phases"][1]["read"]["ops"], 16);
    place.assert_nothing_left();
}

#[test]
fn data_that_compresses_is_compared_with_random_data_behind_the_jobs() {
    let place = Place::new();
    let run = |size: &str, more: &str| {
        let words = [
            "bench",
            "data",
            "--rw=write",
            "--bs=1m",
            "--name=w",
            "--io_size=4m",
            "--json",
            "--no-ledger",
        ];
        let words = [&words[..], &[size, more, "--dedupe=0.25"]].concat();
        place.run(&words).ends_with(0).json()
    };
    let document = run("--size=64m", "--compressible=50%");
    let phases = document["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 13);
    for (phase, shaped) in [(0, true), (1, true), (2, false), (12, false)] {
        let contents = &phases[phase]["workload"]["details"]["contents"];
        assert_eq!(
            contents["compressible"] == 0.5,
            shaped,
            "{phase}: {contents}"
        );
        assert_eq!(contents["repeated"] == 0.25, shaped, "{phase}: {contents}");
    }
    assert!(
        document["notes"]
            .to_string()
            .contains("random data were written in turn")
    );
    // Not where a disk's cache may take it, and not where a later run may look for what was written.
    for (size, more) in [
        ("--size=32m", "--direct=1"),
        ("--size=64m", "--verify=crc32c"),
    ] {
        let document = run(size, more);
        assert_eq!(
            document["phases"].as_array().unwrap().len(),
            1,
            "{size} {more}"
        );
    }
    place.assert_nothing_left();
}

fn workload(document: &Value) -> Value {
    document["phases"][0]["workload"].clone()
}

#[test]
fn options_do_what_a_job_file_with_them_does() {
    let place = Place::new();
    let lines: Vec<&str> = OPTIONS.iter().map(|option| &option[2..]).collect();
    let job = format!("[j]\n{}\ndirect=1\ngroup_reporting=1\n", lines.join("\n"));
    let by_file = run(&place, "data", &job, &["--json"]).ends_with(0).json();
    for options in [OPTIONS.map(str::to_owned).to_vec(), apart(&OPTIONS)] {
        let words: Vec<&str> = ["bench", "data", "--json"]
            .into_iter()
            .chain(options.iter().map(String::as_str))
            .collect();
        let by_options = place.run(&words).ends_with(0).json();
        assert_eq!(workload(&by_options), workload(&by_file));
        assert_eq!(by_options["phases"][0]["name"], "pages");
        assert_eq!(by_options["suite"], "fio");
    }
    place.assert_nothing_left();
}

/// Requests of each job in an answer in fio's form.
fn requests(out: &str) -> Vec<(String, u64)> {
    let document: Value = serde_json::from_str(out).unwrap();
    let jobs = document["jobs"].as_array().unwrap().iter();
    let job = |job: &Value| {
        let name = job["jobname"].as_str().unwrap().to_owned();
        (name, job["write"]["total_ios"].as_u64().unwrap())
    };
    jobs.map(job).collect()
}

#[test]
fn options_beside_a_job_file_hold_where_they_do_in_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let place = Place::new();
    let job = "[global]\nrw=write\nsize=1m\n[a]\n[b]\nbs=32k\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let words = [
        "--bs=16k",
        "--size=8m",
        "--directory=data",
        "--direct=1",
        "--name=x",
        "--rw=write",
        "--output-format=json",
    ];
    let said = place
        .run(&[&["bench", "--fio", "job.fio"], &words[..]].concat())
        .ends_with(0);
    let mut fio = Command::new("fio");
    fio.arg("job.fio").args(words).current_dir(place.path(""));
    let of_fio = String::from_utf8(fio.output().unwrap().stdout).unwrap();
    assert_eq!(requests(&said.out), requests(&of_fio));
    let kept = place.run(&["show", "last", "--json"]).ends_with(0).json();
    let notes = kept["notes"].to_string();
    for note in [
        "a: the job file has values of its own for size, which",
        "b: the job file has values of its own for bs, size, which",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
}

/// As in fio a section that is named holds for the names behind it too; what fio would leave out is refused.
#[test]
fn a_section_is_of_the_file_and_of_the_names_behind_it_as_in_fio() {
    let place = Place::new();
    let job = "[global]\nrw=write\nsize=1m\n[a]\n[b]\nbs=32k\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let common = ["--directory=data", "--direct=1", "--output-format=json"];
    let x = ["--name=x", "--rw=write", "--size=1m", "--bs=64k"];
    let section = ["--section=b"];
    let here = |words: &[&[&str]]| {
        place.run(
            &[
                &["bench", "--fio", "job.fio"],
                &common[..],
                &words.concat()[..],
            ]
            .concat(),
        )
    };
    let behind = here(&[&section, &x]).ends_with(2);
    assert!(
        behind
            .err
            .contains("the command line: name: fio would not run this job, x"),
        "{behind:#?}"
    );
    let none = here(&[&["--section=c"]]).ends_with(2);
    assert!(none.err.contains("it has these: a, b"), "{none:#?}");
    let before = here(&[&x, &section]).ends_with(0);
    let names = |said: &[(String, u64)]| -> Vec<String> {
        said.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&requests(&before.out)), ["x", "b"]);
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let by_fio = |words: &[&[&str]]| {
        let mut fio = Command::new("fio");
        fio.args(common).args(words.concat()).arg("job.fio");
        let said = fio.current_dir(place.path("")).output().unwrap().stdout;
        requests(&String::from_utf8(said).unwrap())
    };
    assert_eq!(requests(&before.out), by_fio(&[&x, &section]));
    assert_eq!(names(&by_fio(&[&section, &x])), ["b"]);
}

/// fio itself takes the same words, and means the same by them.
#[test]
fn the_options_are_spelled_as_fio_spells_them() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    for options in [
        OPTIONS.map(str::to_owned).to_vec(),
        apart(&OPTIONS),
        COMMAND_LINE.map(str::to_owned).to_vec(),
    ] {
        let mut fio = Command::new("fio");
        let output = fio.arg("--parse-only").args(&options).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
    let help = Command::new("fio").arg("--cmdhelp=all").output().unwrap();
    let known = String::from_utf8_lossy(&help.stdout);
    let place = Place::new();
    let here = place.run(&["bench", "--help"]).ends_with(0).out;
    let (_, ours) = here.split_once("fio's options:").unwrap();
    let names: Vec<&str> = ours
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--"))
        .filter_map(|line| line.split([' ', '[', '=']).next())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let is_known = known
            .lines()
            .any(|line| line.split_whitespace().next() == Some(name));
        assert!(is_known, "fio has no option {name}");
    }
}

/// fio takes a value apart from its option unless the option may stand alone. Both must split the same words alike.
#[test]
fn options_that_stand_alone_are_those_that_do_in_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let mut known = 0;
    for row in fiojob::OPTIONS {
        let asked = ["--cmdhelp=", "--enghelp=io_uring,", "--enghelp=libaio,"].map(|question| {
            let mut fio = Command::new("fio");
            let output = fio.arg(format!("{question}{}", row.name)).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
        // Asked for a word that it does not know, fio tells of the one that is most like it.
        let topic = asked.iter().find(|help| {
            let name = help.trim_start().split(':').next();
            name == Some(row.name)
        });
        let Some(kind) = topic.and_then(|help| {
            help.lines()
                .find(|line| line.trim_start().starts_with("type:"))
        }) else {
            continue;
        };
        known += 1;
        assert_eq!(
            row.is_switch(),
            kind.contains("empty or"),
            "{}: {kind}",
            row.name
        );
    }
    assert!(known > 100, "{known}");
}

#[test]
fn what_fio_would_not_take_is_refused_with_the_option() {
    let place = Place::new();
    for (options, expected) in [
        (
            &["--rw", "randread", "--size", "1m", "--bs", "4kq"][..],
            "the command line: bs: ",
        ),
        (
            &["--rw", "sideways", "--size", "1m"],
            "the command line: rw: ",
        ),
        (&["--rw", "read"], "the command line: size: it is missing"),
        (&["--bs", "4k"], "--rw"),
        (&["--rw", "read", "--depth", "3"], "--depth"),
        (&["--rw", "read", "--threads", "3"], "--threads"),
        (&["--rw", "read", "--rate", "x"], "the command line: rate: "),
        (&["--rate", "1m"], "'1m' for '--rate <PER_SECOND>'"),
        (
            &[
                "--rw",
                "read",
                "--size",
                "1m",
                "--minimal",
                "--client",
                "db1",
            ],
            "the command line: client: other hosts are measured by: disksmith fleet run",
        ),
        (
            &["--rw", "read", "--size=1m", "--section=b", "--name=x"],
            "the command line: section: it selects sections of a job file",
        ),
        (
            &["--rw", "read", "--size", "1m", "--trim_percentage=10"],
            "the command line: trim_percentage: disksmith does not support this",
        ),
        (
            &["--rw", "read", "--filename", "/dev/null", "--size", "1m"],
            "filename: ",
        ),
    ] {
        let words: Vec<&str> = ["bench", "data"].iter().chain(options).copied().collect();
        let said = place.run(&words).ends_with(2);
        assert!(said.err.contains(expected), "{options:?}: {said:#?}");
    }
    place.assert_nothing_left();
    assert!(!place.ledger().exists());
}

/// The lines of a log, which all have the form that fio gives averages.
fn log(place: &Place, name: &str) -> Vec<[f64; 5]> {
    let text = fs::read_to_string(place.path(name)).unwrap();
    let line = |line: &str| {
        let fields: Vec<f64> = line
            .split(", ")
            .map(|field| field.parse().unwrap())
            .collect();
        fields.try_into().unwrap()
    };
    text.lines().map(line).collect()
}

#[test]
fn windows_are_written_as_fio_writes_its_logs_and_phases_as_csv() {
    let place = Place::new();
    let options = [
        "bench",
        "data",
        "--rw",
        "randwrite",
        "--size",
        "4m",
        "--runtime",
        "2",
        "--time_based",
        "--rate_iops",
        "50",
        "--logs",
        "first",
        "--json",
    ];
    let document = place.run(&options).ends_with(0).json();
    let ops = document["phases"][0]["write"]["ops"].as_f64().unwrap();
    let [iops, bandwidth, latency] =
        ["iops", "bw", "lat"].map(|kind| log(&place, &format!("first_{kind}.1.log")));
    assert!(iops.len() >= 2 && iops.len() == bandwidth.len() && iops.len() == latency.len());
    let mut before = 0.0;
    let mut counted = 0.0;
    for (iops, bandwidth) in iops.iter().zip(&bandwidth) {
        counted += iops[1] * (iops[0] - before) / 1e3;
        assert_eq!((iops[2], iops[3], iops[4]), (1.0, 0.0, 0.0));
        assert!((bandwidth[1] - 4.0 * iops[1]).abs() <= 4.0);
        before = iops[0];
    }
    assert!(
        (counted - ops).abs() <= 1.0 + iops.len() as f64,
        "{counted} and {ops}"
    );
    // A log is not replaced unasked.
    let refused = place.run(&options).ends_with(2);
    assert!(refused.err.contains("first_iops.1.log"), "{refused:#?}");
    let words: Vec<&str> = options
        .into_iter()
        .filter(|word| *word != "--json")
        .collect();
    let said = place
        .run(&[&words[..], &["--force", "--format", "csv"]].concat())
        .ends_with(0);
    let mut lines = said
        .out
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let (header, row) = (lines.next().unwrap(), lines.next().unwrap());
    let field = |name| row[header.iter().position(|column| *column == name).unwrap()];
    assert_eq!((field("kind"), field("phase")), ("write", "randwrite"));
    assert_eq!(field("block_bytes"), "4096");
    assert!(field("ops").parse::<u64>().unwrap() > 0);
    // The last field of a line too, for a reader that splits at line feeds.
    assert!(row.last().unwrap().parse::<u64>().unwrap() > 0);
    let id = field("run").to_owned();
    let again = place.run(&["show", &id, "--format", "csv"]).ends_with(0);
    assert_eq!(again.out, said.out);
}
