//! The verb `import` and the option `--format`, through the real program, against the real tools.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Place, SHORT, Words, has_program, output_of};

fn fixture(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../formats/fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

/// The document of the newest run.
fn shown(place: &Place) -> Value {
    place.run("show last --json").ends_with(0).json()
}

/// True if a tool is installed; reports a skip if not.
fn has(tool: &str) -> bool {
    let found = has_program(tool);
    if !found {
        skip::skipped(&format!("{tool} is not installed"));
    }
    found
}

/// Runs a tool in the place's folder, and gives what it printed.
fn printed(place: &Place, tool: &str, arguments: &(impl Words + ?Sized)) -> String {
    let mut command = Command::new(tool);
    let out = command
        .args(arguments.words())
        .current_dir(place.data())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{tool} {:?}: {out:?}",
        arguments.words()
    );
    String::from_utf8(out.stdout).unwrap()
}

fn import(place: &Place, name: &str, text: &str) -> Value {
    std::fs::write(place.path(name), text).unwrap();
    let said = place.run(&["import", name, "--json"]).ends_with(0);
    said.json()["runs"][0].clone()
}

#[test]
fn what_is_imported_is_listed_shown_and_drawn_as_imported() {
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    let measured = place.runs().remove(0);
    let said = place
        .run(&["import", &fixture("fio-3.33.json")])
        .ends_with(0);
    assert!(said.out.starts_with("fio 3.33 from "), "{said:#?}");

    let listed = place.run("runs --suite fio --json").ends_with(0).json();
    let run = &listed["runs"][0];
    assert_eq!(run["origin"]["imported"]["tool"], "fio 3.33");
    assert_eq!(
        (&run["hostname"], &run["target"]),
        (&Value::Null, &"fio.dat".into())
    );
    let id = run["run"].as_str().unwrap();

    let text = place.run(&["show", id]).ends_with(0);
    text.fits(100);
    text.prints(&[
        "measured by fio 3.33",
        "10,143",
        "warning: imported",
        "Verdict: doubtful",
    ]);
    let document = place.run(&["show", id, "--json"]).ends_with(0).json();
    let read = &document["phases"][0]["read"];
    assert_eq!(read["iops"]["mean"], 10142.857143);
    assert!(read["iops"]["low"].is_null());
    assert_eq!(read["latency_ns"]["p99"], 1_662_976.0);
    assert!(document["phases"][0]["write"].is_null());

    place
        .run(&format!("report {measured} {id} -o page.html"))
        .ends_with(0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("no interval") && page.contains("fio 3.33"));
    place.run(&["runs", "remove", id]).ends_with(0);
}

#[test]
fn a_comparison_with_an_imported_run_decides_nothing() {
    let place = Place::new();
    place
        .bench("--size 4M --seconds 1s --phase page-read")
        .ends_with(0);
    let measured = place.runs().remove(0);
    let text = std::fs::read_to_string(fixture("fio-3.33.json")).unwrap();
    // One request a second is slower than whatever this machine does.
    import(&place, "fio.json", &text.replace("10142.857143", "1.0"));
    for (a, b) in [(measured.as_str(), "fio"), ("fio", measured.as_str())] {
        let id = place.run("runs --suite fio --json").ends_with(0).json();
        let id = id["runs"][0]["run"].as_str().unwrap().to_owned();
        let word = |word: &str| {
            if word == "fio" {
                id.clone()
            } else {
                word.to_owned()
            }
        };
        let (a, b) = (word(a), word(b));
        let words = format!("compare {a} {b} --fail-if-slower 5%");
        let said = place.run(&words).ends_with(1);
        said.prints(&[
            "no interval",
            "did not do the same work",
            "It is unknown whether",
        ]);
        let document = place.run(&format!("{words} --json")).ends_with(1).json();
        assert!(document["slower"].is_null(), "{document:#}");
        assert_eq!(document["inconclusive"], true);
        place
            .run(&format!("{words} --allow-inconclusive"))
            .ends_with(0);
    }
}

/// A text in UTF-16 with a byte order mark, little or big end first.
fn utf16(text: &str, is_little: bool) -> Vec<u8> {
    let unit = |unit: u16| match is_little {
        true => unit.to_le_bytes(),
        false => unit.to_be_bytes(),
    };
    format!("\u{FEFF}{text}")
        .encode_utf16()
        .flat_map(unit)
        .collect()
}

#[test]
fn what_is_imported_again_is_the_same_run_whatever_the_file_is_called_or_encoded() {
    let place = Place::new();
    for name in ["fio-3.33.json", "sysbench-0.5.txt", "bonnie-2.00a.csv"] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let first = import(&place, "first", &text);
        assert_eq!(first["already_kept"], false);
        let before = place.runs();
        let around = format!("some line\n{text}\n");
        let forms = [
            text.clone().into_bytes(),
            around.into_bytes(),
            utf16(&text, true),
            utf16(&text, false),
        ];
        let mut documents = 0;
        for (number, bytes) in forms.iter().enumerate() {
            std::fs::write(place.path("again"), bytes).unwrap();
            let again = place.run("import again --json").ends_with(0).json();
            documents = again["runs"].as_array().unwrap().len();
            let again = &again["runs"][0];
            assert_eq!(again["already_kept"], true, "{name}, form {number}");
            assert_eq!(again["run"], first["run"], "{name}, form {number}");
        }
        let said = place.run("import again again").ends_with(0);
        assert_eq!(
            said.prose().matches("kept already, as run").count(),
            2 * documents,
            "{said:#?}"
        );
        assert_eq!(place.runs(), before, "{name}");
    }
    // Another figure is another run, and once removed it may come again.
    let text = std::fs::read_to_string(fixture("fio-3.33.json")).unwrap();
    let other = import(
        &place,
        "other",
        &text.replace("10142.857143", "10142.857144"),
    );
    assert_eq!(other["already_kept"], false);
    place
        .run(&["runs", "remove", other["run"].as_str().unwrap()])
        .ends_with(0);
    let again = place.run("import other --json").ends_with(0).json();
    assert_eq!(again["runs"][0]["already_kept"], false);
}

#[test]
fn last_is_what_was_added_last_whatever_its_date() {
    let place = Place::new();
    place.bench(&SHORT).ends_with(0);
    let text = std::fs::read_to_string(fixture("fio-2.21.json")).unwrap();
    let imported = import(&place, "old.json", &text);
    assert!(
        imported["started"].as_str().unwrap() < "2026",
        "{imported:#}"
    );
    let shown =
        |word: &str| place.run(&["show", word, "--json"]).ends_with(0).json()["run"].clone();
    assert_eq!(shown("last"), imported["run"]);
    assert_ne!(shown("last~1"), imported["run"]);
}

#[test]
fn text_in_utf_16_is_read_wherever_a_text_is_named() {
    let place = Place::new();
    let log = std::fs::read_to_string(fixture("iostat/12.6-x.txt")).unwrap();
    let job = "[job]\nrw=randread\nnosuch=1\n";
    let hosts = "db1 az=a type=i4i.large\ndb2 az=b type=i4i.large\n";
    let cases: [(&str, &[&str]); 3] = [
        (
            &log,
            &["watch", "--parse", "text", "--zone", "UTC", "--plain"],
        ),
        (job, &["bench", "data", "--fio", "text"]),
        (hosts, &["fleet", "hosts", "--list", "text"]),
    ];
    for (text, arguments) in cases {
        let mut answers = [
            text.as_bytes().to_vec(),
            utf16(text, true),
            utf16(text, false),
        ]
        .into_iter()
        .map(|bytes| {
            std::fs::write(place.path("text"), bytes).unwrap();
            let said = place.run(arguments);
            (said.status, said.out, said.err)
        });
        let plain = answers.next().unwrap();
        let (status, out, err) = &plain;
        assert!(*status == Some(0) || err.contains("nosuch"), "{out}{err}");
        for answer in answers {
            assert_eq!(answer, plain, "{arguments:?}");
        }
    }
}

#[test]
fn several_files_are_kept_or_none() {
    let place = Place::new();
    let (good, grid) = (
        fixture("bonnie-2.00a.csv"),
        fixture("sysbench-1.0.20-grid.txt"),
    );
    std::fs::write(
        place.path("cut.json"),
        "{\n  \"fio version\" : \"fio-3.33\",",
    )
    .unwrap();
    let refused = place.run(&["import", &good, "cut.json"]);
    refused.refuses(&["cut.json cannot be imported", "cut short"]);
    place
        .run("import missing")
        .refuses(&["missing cannot be imported"]);
    std::fs::write(place.path("words.txt"), "hello\n").unwrap();
    place.run("import words.txt").refuses(&["no known results"]);
    assert_eq!(place.runs().len(), 0);

    let dry = place
        .run(&format!("import --dry-run --json {good} {grid}"))
        .ends_with(0)
        .json();
    assert_eq!(dry["runs"].as_array().unwrap().len(), 5);
    assert!(dry["runs"][0]["run"].is_null());
    assert_eq!(place.runs().len(), 0);

    place.run(&["import", &good, &grid]).ends_with(0);
    assert_eq!(place.runs().len(), 5);
}

#[test]
fn what_is_too_long_for_any_results_is_refused() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("long.json")).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    place
        .run("import long.json")
        .refuses(&["long.json cannot be imported", "larger than 64 MiB"]);
}

#[test]
fn standard_input_is_read() {
    let place = Place::new();
    let file = std::fs::File::open(fixture("sysbench-0.4.8.txt")).unwrap();
    let mut command = place.command("import -");
    output_of(command.stdin(Stdio::from(file))).ends_with(0);
    let run = shown(&place);
    assert_eq!(run["origin"]["imported"]["tool"], "sysbench 0.4.8");
    assert_eq!(run["phases"][0]["read"]["iops"]["mean"], 400.0);
    assert!(run["target"]["path"].is_null());
}

const FIO: [&str; 10] = [
    "--name=page",
    "--filename=fio.dat",
    "--size=4M",
    "--bs=16k",
    "--rw=randrw",
    "--fdatasync=8",
    "--runtime=1",
    "--time_based",
    "--group_reporting",
    "--numjobs=2",
];

#[test]
fn what_fio_prints_today_is_imported_as_it_is() {
    if !has("fio") {
        return;
    }
    let place = Place::new();
    for format in ["json", "json+", "normal,json"] {
        let option = format!("--output-format={format}");
        let text = printed(&place, "fio", &[&FIO[..], &[&option]].concat());
        let from = text.find('{').unwrap();
        let mut documents = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
        let fio = documents.next().unwrap().unwrap();
        let ours = import(&place, "fio.txt", &text);
        let (job, phase) = (&fio["jobs"][0], &ours["phases"][0]);
        for direction in ["read", "write"] {
            let (theirs, ours) = (&job[direction], &phase[direction]);
            assert_eq!(theirs["total_ios"], ours["ops"], "{format}");
            assert_eq!(theirs["io_bytes"], ours["bytes"]);
            assert_eq!(theirs["iops"], ours["iops"]["mean"]);
            let latency = |key: &str| ours["latency_ns"][key].as_f64();
            let given = &theirs["clat_ns"];
            assert_eq!(given["percentile"]["99.000000"].as_f64(), latency("p99"));
            assert_eq!(given["percentile"]["99.990000"].as_f64(), latency("p99_99"));
            assert_eq!(given["max"].as_f64(), latency("max"));
            assert_eq!(given["mean"].as_f64(), latency("mean"));
        }
        let syncs = &job["sync"]["lat_ns"];
        assert_eq!(syncs["N"], phase["sync"]["ops"], "{format}");
        assert_eq!(phase["workload"]["threads"], 2);
        assert_eq!(phase["workload"]["sync_every"], 8);
        assert_eq!(ours["target"]["path"], "fio.dat");
    }
}

#[test]
fn what_sysbench_prints_today_is_imported_as_it_is() {
    if !has("sysbench") {
        return;
    }
    let place = Place::new();
    let files = ["fileio", "--file-num=2", "--file-total-size=4M"];
    printed(&place, "sysbench", &[&files[..], &["prepare"]].concat());
    let mut grid = String::new();
    for mode in ["rndrd", "rndwr", "rndrw", "seqrd"] {
        let mode = format!("--file-test-mode={mode}");
        let run = [mode.as_str(), "--time=1", "--threads=2", "run"];
        grid.push_str(&printed(&place, "sysbench", &[&files[..], &run].concat()));
    }
    let run = import(&place, "sysbench.txt", &grid);
    let phases = run["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rndrd", "rndwr", "rndrw", "seqrd"]);
    let line = |key: &str| -> Vec<f64> {
        let lines = grid
            .lines()
            .filter_map(|line| line.trim().strip_prefix(key));
        lines.map(|value| value.trim().parse().unwrap()).collect()
    };
    let means = |direction: &str| -> Vec<f64> {
        let mean = |phase: &Value| phase[direction]["iops"]["mean"].as_f64().unwrap_or(0.0);
        phases.iter().map(mean).collect()
    };
    assert_eq!(line("reads/s:"), means("read"));
    assert_eq!(line("writes/s:"), means("write"));
    for (phase, p95) in phases.iter().zip(line("95th percentile:")) {
        let all = ["all", "read"]
            .into_iter()
            .find(|key| !phase[key].is_null())
            .unwrap();
        let ours = phase[all]["latency_ns"]["p95"].as_f64().unwrap();
        assert!((ours - p95 * 1e6).abs() < 1.0, "{phase:#}");
        assert_eq!(phase["workload"]["threads"], 2);
        assert_eq!(phase["workload"]["block_bytes"], 16384);
    }
}

#[test]
fn what_bonnie_prints_today_is_imported_as_it_is() {
    if !has("bonnie++") {
        return;
    }
    let place = Place::new();
    let line = printed(&place, "bonnie++", "-d . -s 16 -r 8 -n 1 -u root -q -m box");
    let run = import(&place, "bonnie.csv", &line);
    assert_eq!(run["machine"]["hostname"], "box");
    let fields: Vec<&str> = line.trim().split(',').collect();
    assert_eq!(fields.len(), 50, "{line}");
    let phases = run["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 12);
    for (index, phase) in phases.iter().enumerate() {
        let at = if index < 6 {
            9 + 2 * index
        } else {
            26 + 2 * (index - 6)
        };
        let flow = ["read", "write", "all", "create", "stat", "delete"]
            .into_iter()
            .find(|key| !phase[key].is_null())
            .unwrap();
        let flow = &phase[flow];
        match fields[at].parse::<f64>() {
            Ok(rate) if index < 5 => assert_eq!(flow["bytes_per_s"]["mean"], rate * 1024.0),
            Ok(rate) => assert_eq!(flow["iops"]["mean"], rate),
            Err(_) => assert_eq!((fields[at], &flow["too_fast"]), ("+++++", &true.into())),
        }
    }
    // And Bonnie++'s own reader takes the line that we write of it.
    let written = place.run("show last --format bonnie").ends_with(0);
    assert_eq!(written.out.trim().split(',').count(), 50);
    if has_program("bon_csv2txt") {
        std::fs::write(place.path("ours.csv"), &written.out).unwrap();
        let file = std::fs::File::open(place.path("ours.csv")).unwrap();
        let mut reader = Command::new("bon_csv2txt");
        let read = output_of(reader.stdin(Stdio::from(file))).ends_with(0);
        read.prints(&["box"]);
    }
}

/// A run of two phases: what is written of it in another tool's format is read with the figures
/// that this program shows of it.
#[test]
fn what_is_written_is_read_again_with_the_same_figures() {
    let place = Place::new();
    let run = "--size 4M --seconds 300ms --phase page-read --phase page-mixed";
    let json = place
        .bench(&format!("{run} --format fio-json"))
        .ends_with(0);
    let original = shown(&place);
    let shown_again = place.run("show last --format fio-json").ends_with(0);
    assert_eq!(json.out, shown_again.out);
    let sysbench = place.run("show last --format sysbench").ends_with(0);
    let bonnie = place.run("show last --format bonnie").ends_with(0);

    let back = import(&place, "fio.json", &json.out);
    for (ours, theirs) in phases(&original).zip(phases(&back)) {
        assert_eq!(ours["name"], theirs["name"]);
        for key in [
            "pattern",
            "block_bytes",
            "threads",
            "depth",
            "read_fraction",
        ] {
            assert_eq!(ours["workload"][key], theirs["workload"][key], "{key}");
        }
        for direction in ["read", "write"] {
            assert_eq!(ours[direction]["ops"], theirs[direction]["ops"]);
            assert_eq!(ours[direction]["bytes"], theirs[direction]["bytes"]);
            for key in ["p50", "p90", "p95", "p99", "p99_9", "p99_99", "min", "max"] {
                let figure = |phase: &Value| phase[direction]["latency_ns"][key].as_f64();
                assert_eq!(figure(ours), figure(theirs), "{direction} {key}");
            }
        }
    }

    let back = import(&place, "sysbench.txt", &sysbench.out);
    for (ours, theirs) in phases(&original).zip(phases(&back)) {
        assert_eq!(ours["name"], theirs["name"]);
        let rate = |phase: &Value, key: &str| phase["read"][key].as_f64();
        let ours = rate(ours, "ops").unwrap() / ours["seconds"].as_f64().unwrap();
        let theirs = theirs["read"]["iops"]["mean"].as_f64().unwrap();
        assert!((ours - theirs).abs() < 0.01, "{ours} {theirs}");
    }

    let back = import(&place, "bonnie.csv", &bonnie.out);
    assert_eq!(back["phases"][0]["name"], "seeks");

    let refused = place.run("show last --format bonnie --json");
    refused.refuses(&["cannot be used with"]);
}

fn phases(run: &Value) -> impl Iterator<Item = &Value> {
    run["phases"].as_array().unwrap().iter()
}

/// A reader of fio's JSON in a few lines, as people's scripts have it: run on what fio wrote and on
/// what we wrote.
const READER: &str = r#"
import json, sys
for job in json.load(open(sys.argv[1]))["jobs"]:
    options = job["job options"]
    assert options["rw"] and int(options["iodepth"]) > 0 and int(options["numjobs"]) > 0
    for way in ("read", "write", "trim"):
        flow = job[way]
        for key in ("io_bytes io_kbytes bw_bytes bw runtime total_ios short_ios drop_ios bw_min"
                    " bw_max bw_samples iops_min iops_max iops_samples").split():
            assert isinstance(flow[key], int), key
        for key in "iops bw_agg bw_mean bw_dev iops_mean iops_stddev".split():
            assert isinstance(flow[key], float), key
        for key in ("slat_ns", "clat_ns", "lat_ns"):
            assert set(flow[key]) >= {"min", "max", "mean", "stddev", "N"}
        if flow["total_ios"]:
            assert {"50.000000", "99.000000", "99.990000"} <= set(flow["clat_ns"]["percentile"])
            assert sum(flow["clat_ns"]["bins"].values()) == flow["clat_ns"]["N"] > 0
            assert abs(flow["total_ios"] / flow["runtime"] * 1000 / flow["iops"] - 1) < 0.02
    shares = [v for key in ("latency_ns", "latency_us", "latency_ms") for v in job[key].values()]
    assert abs(sum(shares) - 100) < 0.5, sum(shares)
    assert job["error"] == 0 and job["sync"]["lat_ns"]["N"] >= 0
    assert job["usr_cpu"] + job["sys_cpu"] >= 0 and job["job_runtime"] > 0
print("ok")
"#;

#[test]
fn the_reader_that_reads_fios_json_reads_ours() {
    if !has("python3") {
        return;
    }
    let place = Place::new();
    let bench = "--size 4M --seconds 300ms --phase page-mixed";
    let ours = place
        .bench(&format!("{bench} --format fio-json"))
        .ends_with(0);
    std::fs::write(place.path("ours.json"), &ours.out).unwrap();
    let mut files = vec!["ours.json"];
    if has("fio") {
        let options = ["--iodepth=1", "--output-format=json+"];
        let theirs = printed(&place, "fio", &[&FIO[..], &options].concat());
        std::fs::write(place.path("theirs.json"), theirs).unwrap();
        files.push("theirs.json");
    }
    for file in files {
        let mut python = Command::new("python3");
        let read = output_of(python.args(["-c", READER]).arg(place.path(file))).ends_with(0);
        assert_eq!(read.out, "ok\n", "{file}");
    }
}

/// fio-plot draws what `--logs` and `--format fio-json` write, by the names that it looks for.
#[test]
#[ignore = "fio-plot is of PyPI: make prove"]
fn fio_plot_draws_the_logs_and_the_documents_of_several_depths() {
    if !has("fio-plot") {
        return;
    }
    let place = Place::new();
    for depth in ["1", "4"] {
        let prefix = format!("randread-iodepth-{depth}-numjobs-2");
        let job = format!(
            "bench data --rw randread --bs 4k --iodepth {depth} --numjobs 2 --size 4m --runtime 3 --time_based \
             --no-ledger --format fio-json --logs {prefix}"
        );
        let job: Vec<&str> = job.split_whitespace().collect();
        let document = place.run(&job).ends_with(0).out;
        fs::write(place.path(&format!("randread-{depth}-2.json")), document).unwrap();
    }
    for kind in [
        "-g -t iops lat bw -d 1 4",
        "-l -d 1 4",
        "-L -t iops -d 1 4",
        "-H -d 4",
    ] {
        let picture = place.path("picture.png");
        let mut fio_plot = Command::new("fio-plot");
        fio_plot.current_dir(place.path(""));
        fio_plot.args("-i . -T title -r randread -n 2 -o picture.png".split(' '));
        output_of(fio_plot.args(kind.split(' '))).ends_with(0);
        let drawn = fs::read(&picture).unwrap_or_default();
        assert!(drawn.starts_with(b"\x89PNG"), "{kind}");
        fs::remove_file(&picture).unwrap();
    }
}
