//! Services: their units, their configuration, and a verb that runs by it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use support::{Place, Running, TIMEOUT, has_program, names_in, output_of, skipped};

/// Folder of what is packaged.
fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

#[test]
fn the_configuration_that_is_packaged_is_well() {
    let files = packaging().join("config");
    let files: Vec<String> = names_in(&files)
        .iter()
        .map(|name| files.join(name).display().to_string())
        .collect();
    assert_eq!(files.len(), 4, "{files:?}");
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    let place = Place::new();
    let checked = place
        .run(&[&["config", "check"], &words[..]].concat())
        .ends_with(0);
    assert_eq!(checked.out.matches(": well\n").count(), 4, "{checked:#?}");
    let words = [&["config", "check", "--json"], &words[..]].concat();
    let document = place.run(&words).ends_with(0).json();
    assert_eq!(document["problems"].as_array().unwrap().len(), 0);
}

/// Mistakes in the file of a service for which its start is refused: the verb; the line of the mistake, if it has
/// one; the lines of the file; a part of the reason.
const WRONG: [(&str, Option<u64>, &str, &str); 40] = [
    (
        "watch",
        Some(3),
        "record = true\n\nintervall = '1s'",
        "'intervall' is not an option",
    ),
    (
        "watch",
        Some(2),
        "record = true\ninterval = 'soon'",
        "invalid value 'soon'",
    ),
    ("watch", Some(1), "record = maybe", "line 1"),
    ("watch", Some(1), "record = 'yes'", "true or false"),
    ("watch", None, "record-limit = '1GiB'", "--record"),
    (
        "watch",
        Some(2),
        "record = true\nrecord-limit = '1MiB'",
        "is too little room",
    ),
    (
        "watch",
        Some(2),
        "record = true\ndevices = ['nosuch']",
        "nosuch is not a block device",
    ),
    (
        "watch",
        Some(2),
        "prometheus = 9187\nweb-config = 'missing.yml'",
        "missing.yml",
    ),
    (
        "watch",
        Some(2),
        "prometheus = 9187\nweb-config = 'wrong.yml'",
        "wrong.yml",
    ),
    (
        "watch",
        Some(1),
        "report = 'nowhere/page.html'",
        "nowhere/page.html cannot be written",
    ),
    (
        "watch",
        Some(2),
        "check = true\nwarning = 'await=20'\ncritical = 'await=10'",
        "lies beyond its critical threshold",
    ),
    ("tally", None, "follow = true", "--from"),
    (
        "tally",
        Some(1),
        "from = ['missing.log']",
        "missing.log cannot be read",
    ),
    (
        "tally",
        None,
        "from = ['-']\nfollow = true\n[stores]\na = 'sqlite:a.db'",
        "'stores' is not an option",
    ),
    (
        "tally",
        Some(1),
        "from = ['pipe']",
        "pipe is no regular file",
    ),
    ("tally", Some(1), "from = ['gopher://h']", "is no source"),
    (
        "tally",
        Some(2),
        "from = ['-']\nstore = 'b.db'",
        "is no store",
    ),
    (
        "tally",
        Some(1),
        "store = ['sqlite:a.db', 'sqlite:a.db']\nfrom = '-'",
        "is named twice",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nstore = 'sqlite:kept.db'\nclasses = '1,2'",
        "leave --classes out",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nstore = 'sqlite:kept.db'\ntimezone = 'Europe/Berlin'",
        "leave --timezone out",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nconfig = 'missing-routes.toml'",
        "missing-routes.toml cannot be read",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nconfig = 'routes.toml'",
        "routes.toml, line 3: there is no store 'b'",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nconfig = 'routes.toml'\nstore = 'sqlite:a.db'",
        "cannot be used with",
    ),
    (
        "tally",
        Some(1),
        "from = 'http://0.0.0.0:9999/events'",
        "is reached from other hosts",
    ),
    (
        "tally",
        Some(2),
        "from = 'http://127.0.0.1:9999/events'\ntoken-file = 'empty'",
        "empty has no token",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\ntoken-file = 'no-token'",
        "no-token cannot be read",
    ),
    (
        "tally",
        Some(2),
        "from = '-'\nmax-size = 'much'",
        "invalid value 'much'",
    ),
    (
        "serve",
        Some(1),
        "listen = '0.0.0.0:9188'",
        "others can reach 0.0.0.0:9188",
    ),
    ("serve", Some(1), "listen = 'here'", "invalid value 'here'"),
    (
        "serve",
        Some(2),
        "listen = '127.0.0.1:0'\nslot = '1500ms'",
        "--slot is a whole number of seconds",
    ),
    (
        "serve",
        Some(1),
        "tally = ['sqlite:a.db', 'sqlite:a.db']",
        "is named twice",
    ),
    (
        "serve",
        Some(1),
        "token-file = 'no-token'",
        "no-token is not there",
    ),
    (
        "serve",
        Some(1),
        "token-file = 'empty'",
        "empty has no token",
    ),
    (
        "serve",
        Some(2),
        "tls-key = 'empty'\ntls-cert = 'empty'",
        "the certificate cannot be read",
    ),
    ("serve", None, "series = 'a=b'", "--prometheus"),
    (
        "scrub",
        Some(2),
        "all = true\nby = '2020-01-01'",
        "--by has passed",
    ),
    (
        "scrub",
        Some(2),
        "all = true\ndry-run = true",
        "--dry-run is for --install-timer",
    ),
    (
        "scrub",
        Some(2),
        "all = true\nwindow = '1-6'",
        "is not a window",
    ),
    (
        "scrub",
        Some(2),
        "all = true\nreport = 'nowhere/page.html'",
        "nowhere/page.html cannot be written",
    ),
    ("scrub", None, "scheduled = true", "<ARRAY>"),
];

/// The check and the start have one way through a file, and one sentence for what is wrong there.
#[test]
fn the_check_refuses_what_a_start_refuses_by_file_line_and_reason() {
    let place = Place::new();
    for (name, text) in [
        ("wrong.yml", "other: 1\n"),
        ("empty", ""),
        (
            "routes.toml",
            "[stores]\na = \"sqlite:a.db\"\n[[route]]\nstore = \"b\"\n",
        ),
    ] {
        fs::write(place.path(name), text).unwrap();
    }
    output_of(Command::new("mkfifo").arg(place.path("pipe"))).ends_with(0);
    place
        .run("tally --from - --store sqlite:kept.db")
        .ends_with(0);
    // Beside the ledger, a 'tally.toml' has the routes.
    fs::create_dir(place.path("etc")).unwrap();
    for (verb, line, lines, reason) in WRONG {
        let text = format!("{lines}\n");
        let file = format!("etc/{verb}.toml");
        fs::write(place.path(&file), &text).unwrap();
        let checked = place.run(&["config", "check", &file]).ends_with(1);
        let begins = match line {
            Some(line) => format!("{file}:{line}: "),
            None => format!("{file}: "),
        };
        assert!(checked.out.starts_with(&begins), "{text}: {checked:#?}");
        assert!(checked.out.contains(reason), "{text}: {checked:#?}");
        let words = format!("config check {file} --json");
        let document = place.run(&words).ends_with(1).json();
        assert_eq!(document["problems"].as_array().unwrap().len(), 1);
        assert_eq!(document["problems"][0]["line"].as_u64(), line, "{text}");
        let started = place
            .run(&["service", verb, "--config", &file])
            .refuses(&[]);
        let sentence = format!("the service {verb} does not start: {}", checked.out);
        assert_eq!(started.err, format!("disksmith: {sentence}"), "{text}");
    }
    // Nothing was made, and nothing of what is there was changed.
    assert!(!place.path("a.db").exists() && !place.path("tally.routes").exists());
    fs::write(place.path("what.toml"), "").unwrap();
    let checked = place.run("config check what.toml").ends_with(1);
    checked.prints(&["no service is named 'what'"]);
    place
        .run("config check missing.toml")
        .refuses(&["missing.toml cannot be read", ": ls ."]);
    // The other files are checked all the same.
    fs::write(place.path("etc/watch.toml"), "record = true\n").unwrap();
    let checked = place
        .run("config check missing.toml etc/watch.toml lost.toml what.toml")
        .ends_with(2);
    let answer = "what.toml: no service is named 'what'; the files are \
                  watch.toml, scrub.toml, tally.toml, serve.toml\netc/watch.toml: well\n";
    assert_eq!(checked.out, answer);
    checked.warns(&["missing.toml cannot be read", "lost.toml cannot be read"]);
    let checked = place
        .run("config check missing.toml what.toml --json")
        .ends_with(2);
    checked.warns(&["missing.toml cannot be read"]);
    assert_eq!(checked.json()["files"], serde_json::json!(["what.toml"]));
}

#[test]
fn files_that_are_named_in_a_configuration_are_taken_where_they_are_well() {
    let place = Place::new();
    place
        .run("serve token read --token-file tokens")
        .ends_with(0);
    fs::write(place.path("token"), "secret\n").unwrap();
    let routes =
        "[stores]\na = \"sqlite:a.db\"\n[[route]]\nstore = \"a\"\n[off]\nsources = [\"file\"]\n";
    fs::write(place.path("routes.toml"), routes).unwrap();
    fs::create_dir(place.path("etc")).unwrap();
    for (file, text) in [
        // A source that is switched off need not be there.
        (
            "etc/tally.toml",
            "from = [\"missing.log\", \"http://0.0.0.0:1/events\"]\nconfig = \"routes.toml\"\ntoken-file = \"token\"\n",
        ),
        ("etc/serve.toml", "token-file = \"tokens\"\nslot = \"5m\"\n"),
        ("etc/watch.toml", "record = true\nreport = \"page.html\"\n"),
        (
            "etc/scrub.toml",
            "all = true\nscheduled = true\nby = \"sunday\"\n",
        ),
    ] {
        fs::write(place.path(file), text).unwrap();
        let checked = place.run(&["config", "check", file]).ends_with(0);
        assert_eq!(checked.out, format!("{file}: well\n"));
    }
    assert!(!place.path("a.db").exists() && !place.path("page.html").exists());
}

/// systemd's side of `Type=notify`.
struct Manager(UnixDatagram);

impl Manager {
    fn at(path: &Path) -> Manager {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Manager(socket)
    }

    fn state(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

#[test]
fn a_service_reports_that_it_is_ready_reads_its_file_again_and_ends() {
    let place = Place::new();
    let config = place.path("watch.toml");
    fs::write(&config, "record = true\ninterval = \"100ms\"\n").unwrap();
    // Its path is short, as a socket's has to be.
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::at(&folder.path().join("notify"));
    let mut command = place.command("service watch --config watch.toml");
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let mut running = Running::start(&mut command);
    assert_eq!(manager.state(), "READY=1");

    // The same process goes on, with the options of now.
    fs::write(
        &config,
        "record = true\njson = true\ninterval = \"100ms\"\n",
    )
    .unwrap();
    running.signal(Signal::HUP);
    assert_eq!(manager.state(), "RELOADING=1");
    assert_eq!(manager.state(), "READY=1");
    running.wait_for_text("\"kind\":\"sample\"");

    running.signal(Signal::INT);
    running.end().ends_with(0);
    let document = place.run("runs recordings --json").ends_with(0).json();
    // The first may have ended before its first sample.
    assert!(!document["recordings"].as_array().unwrap().is_empty());
}

/// It reads its routes again without an end, so that a later end is one.
#[test]
fn a_tally_that_has_reloaded_ends_all_the_same() {
    let place = Place::new();
    fs::write(place.path("events.log"), "").unwrap();
    let config = "from = [\"events.log\"]\nfollow = true\nstore = \"sqlite:tally.db\"\n";
    fs::write(place.path("tally.toml"), config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::at(&folder.path().join("notify"));
    let mut command = place.command("service tally --config tally.toml");
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let running = Running::start(&mut command);
    assert_eq!(manager.state(), "READY=1");
    running.signal(Signal::HUP);
    running.signal(Signal::INT);
    running.end().ends_with(0);
    manager.0.set_nonblocking(true).unwrap();
    assert!(manager.0.recv(&mut [0]).is_err());
}

/// Runs a service whose standard error leads to a journal, and returns its status and the entries. The journal's socket
/// is one of this test, in a mount namespace of the service's own.
fn entries_of(place: &Place, verb: &str) -> (Option<i32>, Vec<String>) {
    // Its path is short, as a socket's has to be.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let script = "mount --bind \"$socket\" journal.socket
        mount -t tmpfs none /run; mkdir -p /run/systemd/journal; : >/run/systemd/journal/socket
        mount --bind journal.socket /run/systemd/journal/socket
        exec 2>errors; export JOURNAL_STREAM=$(stat -L -c %d:%i errors)
        exec \"$disksmith\" service $verb --config etc/$verb.toml";
    fs::write(place.path("journal.socket"), "").unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-ec", script])
        .current_dir(place.path(""))
        .env("socket", &path)
        .env("verb", verb)
        .env("disksmith", assert_cmd::cargo::cargo_bin!("disksmith"))
        .env("DISKSMITH_LEDGER", place.ledger())
        .stdin(std::process::Stdio::null());
    let ended = output_of(&mut command);
    let mut entries = Vec::new();
    let mut buffer = [0; 65536];
    while let Ok(length) = socket.recv(&mut buffer) {
        entries.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    (ended.status, entries)
}

#[test]
fn with_root_what_services_report_is_in_the_journal_with_fields() {
    if !support::is_root() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("etc")).unwrap();
    fs::write(place.path("events.log"), "login:2|c\nnonsense\n").unwrap();
    for (verb, text, status, wanted) in [
        (
            "tally",
            "from = \"events.log\"\nstore = \"sqlite:a.db\"\n",
            0,
            &[
                "PRIORITY=5",
                "SYSLOG_IDENTIFIER=disksmith",
                "DISKSMITH_SOURCE=events.log",
                "DISKSMITH_EVENTS=1",
                "DISKSMITH_REJECTED=1",
            ][..],
        ),
        (
            "serve",
            "token-file = \"missing\"\n",
            2,
            &["PRIORITY=3", "SYSLOG_IDENTIFIER=disksmith"],
        ),
        (
            "scrub",
            "all = true\nby = \"2020-01-01\"\n",
            2,
            &["PRIORITY=3", "SYSLOG_IDENTIFIER=disksmith"],
        ),
    ] {
        fs::write(place.path(&format!("etc/{verb}.toml")), text).unwrap();
        let (ended, entries) = entries_of(&place, verb);
        assert_eq!(ended, Some(status), "{verb}: {entries:#?}");
        let has_all = |entry: &&String| {
            let mut fields = wanted.iter();
            fields.all(|field| entry.lines().any(|line| line == *field))
        };
        assert!(
            entries.iter().any(|entry| has_all(&entry)),
            "{verb}: {entries:#?}"
        );
        // Nothing is said twice.
        assert_eq!(fs::read_to_string(place.path("errors")).unwrap(), "");
    }
}

/// Exposure of a unit as systemd judges it: 0 (none) to 10.
fn exposure(unit: &Path) -> f64 {
    let mut command = Command::new("systemd-analyze");
    let judged = output_of(
        command
            .args(["security", "--offline=true", "--no-pager"])
            .arg(unit),
    );
    let line = judged
        .out
        .lines()
        .find(|line| line.contains("Overall exposure level"));
    let line = line.unwrap_or_else(|| panic!("{judged:#?}"));
    let (_, level) = line.split_once("service: ").unwrap();
    level.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn services_that_need_no_device_have_no_right_but_to_the_kernels_log() {
    if !has_program("systemd-analyze") {
        return skipped("systemd-analyze");
    }
    let folder = packaging().join("systemd");
    for (name, capabilities) in [
        ("watch", "CapabilityBoundingSet=CAP_SYSLOG"),
        ("tally", "CapabilityBoundingSet="),
        ("serve", "CapabilityBoundingSet="),
    ] {
        let unit = folder.join(format!("disksmith-{name}.service"));
        let level = exposure(&unit);
        assert!(level <= 3.0, "{name}: {level}");
        let text = fs::read_to_string(&unit).unwrap();
        for line in [
            "Type=notify",
            "DynamicUser=yes",
            capabilities,
            "Restart=on-failure",
        ] {
            assert!(text.lines().any(|found| found == line), "{name}: no {line}");
        }
    }
    // It reads members and steers md; with root's rights alone it would be 9.
    assert!(exposure(&folder.join("disksmith-scrub.service")) <= 5.0);
}

#[test]
fn systemd_understands_the_units() {
    if !has_program("systemd-analyze") {
        return skipped("systemd-analyze");
    }
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("disksmith")
        .display()
        .to_string();
    let mut copies = Vec::new();
    for name in names_in(&packaging().join("systemd")) {
        let text = fs::read_to_string(packaging().join("systemd").join(&name)).unwrap();
        let copy = place.path(&name);
        // The program of the package may not be installed here.
        fs::write(&copy, text.replace("/usr/bin/disksmith", &program)).unwrap();
        copies.push(copy);
    }
    let mut command = Command::new("systemd-analyze");
    command
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(copies);
    let verified = output_of(&mut command).ends_with(0);
    let ours: Vec<&str> = verified
        .err
        .lines()
        .filter(|line| line.contains("disksmith"))
        .collect();
    assert_eq!(ours, [""; 0]);
}

/// systemd is booted in namespaces of its own, with what 'make install' puts there.
#[test]
fn with_root_the_services_run_under_systemd() {
    if !support::is_root() {
        return;
    }
    for needed in ["/lib/systemd/systemd", "/dev/loop-control", "/dev/kmsg"] {
        if !Path::new(needed).exists() {
            return skipped(&format!("there is no {needed}"));
        }
    }
    // The kernel cannot be asked beforehand what it allows, as in a container.
    let mut mount = Command::new("unshare");
    mount.args(
        "--mount --cgroup --pid --net --uts --ipc --fork mount -t cgroup2 none /mnt".split(' '),
    );
    let mounted = output_of(&mut mount);
    if mounted.status != Some(0) {
        return skipped(&format!("root may not mount here: {}", mounted.err));
    }
    let root = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("disksmith");
    let mut stage = Command::new(packaging().join("stage"));
    output_of(stage.arg(program).arg(root.path()).arg("/opt")).ends_with(0);
    let mut boot = Command::new(packaging().join("boot"));
    let tried = output_of(boot.arg(root.path()).arg(packaging().join("try-services")));
    tried
        .ends_with(0)
        .prints(&["start, reload, report and end"]);
}

#[test]
fn ansible_understands_the_role() {
    if !has_program("ansible-playbook") {
        return skipped("ansible-playbook");
    }
    let mut command = Command::new("ansible-playbook");
    let folder = packaging().join("ansible");
    command
        .args(["--syntax-check", "-i", "localhost,", "site.yml"])
        .current_dir(folder);
    output_of(&mut command).ends_with(0);
}
