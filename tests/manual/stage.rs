//! The host of the manual: its folders, files, disks and ledger, in a place of a test's own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::database::{Server, done, mariadb, postgres, postgres_programs};
use crate::loops::{Loop, Mounted, make};
use crate::needs::{self, Need};
use crate::support::{Place, ProgramOutput, Running, output_of, skipped};

/// Files that commands of the manual name, and those that stand for them.
const FILES: [(&str, &str); 12] = [
    ("fio.json", "crates/formats/fixtures/fio-3.33.json"),
    ("sysbench.txt", "crates/formats/fixtures/sysbench-1.1.txt"),
    ("bonnie.csv", "crates/formats/fixtures/bonnie-2.00a.csv"),
    ("iostat.log", "crates/formats/fixtures/iostat/12.6-x.txt"),
    ("iostat.json", "crates/formats/fixtures/iostat/12.6-x.json"),
    (
        "prometheus.json",
        "crates/formats/fixtures/sysstat/prometheus.json",
    ),
    ("sa24", "crates/formats/fixtures/sysstat/sar-d.txt"),
    ("mysql.trace", "crates/trace/fixtures/small.dst"),
    ("mysql.load.gz", "tests/traces/linux-mysql.load.gz"),
    ("mysql.dst", "crates/trace/fixtures/small.dst"),
    ("sda.blktrace.0", "crates/trace/fixtures/small.blktrace"),
    ("linux-mysql.load.gz", "tests/traces/linux-mysql.load.gz"),
];

/// A job file, a list of hosts, events, statements, a trace of two disks, a race, and what EC2 says of a type of instances.
const TEXTS: [(&str, &str); 8] = [
    ("both.trace", "1,R,8192,4096,1000\n2,W,16384,4096,2000\n"),
    ("nightly.fio", "[a]\nrw=randread\nsize=8m\nruntime=1\n"),
    ("burnin", "db1\ndb2\nspare1\n"),
    ("events.log", "login:1|c\n"),
    ("app.log", "api.get:12.5|ms\n"),
    (
        "race.json",
        r#"{"command": "fleet race", "figure": "page-write.iops", "hosts": [
        {"host": "db1", "zone": "a", "figure": {"value": 12000}, "decision": "keep"},
        {"host": "db2", "zone": "b", "figure": {"value": 8000}, "decision": "cull"}]}"#,
    ),
    ("slow.log", "SELECT 1;\n"),
    (
        "types.json",
        r#"{"InstanceTypes": [{"InstanceType": "r6i.2xlarge", "EbsInfo": {"EbsOptimizedInfo": {"BaselineIops": 12000,
        "BaselineThroughputInMBps": 312.5, "MaximumIops": 40000, "MaximumThroughputInMBps": 1250}}}]}"#,
    ),
];

/// Size of a disk in MiB.
const DISK: u64 = 64;

/// The host of the manual.
pub(crate) struct Stage {
    place: Place,
    disks: Vec<Loop>,
    /// The database's, on a disk of its own. Unmounted before the disk goes.
    files: Mounted,
    files_disk: Loop,
    /// MariaDB and PostgreSQL, where they are installed.
    databases: Option<(Server, Server)>,
}

impl Stage {
    /// The host, with a ledger of three runs, a recording and roll-ups; `None` without loop devices.
    pub(crate) fn new(repository: &Path) -> Option<Stage> {
        let place = Place::new();
        for (name, from) in FILES {
            fs::copy(repository.join(from), place.path(name)).unwrap();
        }
        for (name, text) in TEXTS {
            fs::write(place.path(name), text).unwrap();
        }
        for folder in ["backup", "plots"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        let disks: Option<Vec<Loop>> = (0..2).map(|_| Loop::new(DISK)).collect();
        let files_disk = Loop::new(DISK)?;
        let files = database_files(&files_disk);
        let databases = databases(&place);
        let stage = Stage {
            place,
            disks: disks?,
            files,
            files_disk,
            databases,
        };
        let brief = "--size 8M --seconds 200ms --phase page-read --phase page-mixed";
        for line in [
            "bench data --size 8M --seconds 200ms --phase page-read",
            &format!("bench data {brief}"),
            &format!("bench data {brief}"),
            "watch --record --plain --count 12 --interval 100ms",
            "tally --from events.log --from app.log",
            "serve token read --token-file tokens",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            stage.place.run(&words).ends_with(0);
        }
        fs::copy(stage.place.ledger(), stage.place.path("prepared.db")).unwrap();
        certificate(&stage.place);
        // A round of a race that was measured by others.
        let round = stage.place.path("rounds/1");
        fs::create_dir_all(&round).unwrap();
        for host in ["db1", "db2", "spare1"] {
            let line = "bench data --size 8M --seconds 200ms --phase page-read --json --no-ledger";
            let words: Vec<&str> = line.split(' ').collect();
            let said = stage.place.run(&words).ends_with(0);
            fs::write(round.join(format!("{host}.json")), said.out).unwrap();
        }
        Some(stage)
    }

    /// True where the servers of databases are installed.
    pub(crate) fn has_databases(&self) -> bool {
        self.databases.is_some()
    }

    fn mysql(&self) -> &Server {
        &self.databases.as_ref().unwrap().0
    }

    /// A word of a command about the database's files.
    fn word_of_files(&self, word: &str) -> String {
        let point = self.files.point.display();
        match word {
            "/dev/nvme1n1" | "/dev/vda" => self.files_disk.path().to_owned(),
            "/data" => point.to_string(),
            word => ["/var/lib/mysql", "/srv"]
                .iter()
                .fold(word.to_owned(), |word, folder| {
                    word.replacen(folder, &point.to_string(), 1)
                }),
        }
    }

    /// The disk that stands for one of the manual's, which differ in their last letter, or an array.
    fn disk(&self, path: &str) -> &Loop {
        &self.disks[usize::from(path.ends_with(['b', 'f', 'h']) || path.contains("md"))]
    }

    /// A word of a verb of the manual as it is on this host. A disk that is to be overwritten carries what the word names.
    fn word(&self, verb: &str, word: &str) -> String {
        let is_disk = ["/dev/nvme", "/dev/sd", "/dev/vd", "/dev/md", "nvme", "md0"]
            .iter()
            .any(|begin| word.starts_with(begin));
        match word {
            "/data" | "/mnt/data" => "data".to_owned(),
            // A free port.
            "9187" => "0".to_owned(),
            "127.0.0.1:10809" => "127.0.0.1:0".to_owned(),
            // Another program's output.
            "-" if verb == "import" => "sysbench.txt".to_owned(),
            "-" => "iostat.log".to_owned(),
            // Ends of the ids of runs.
            "5c9j" => "last~1".to_owned(),
            "3" if verb == "cost" => "last~2".to_owned(),
            "--directory=/data" => "--directory=data".to_owned(),
            word if word.starts_with("mysql://") => {
                let socket = self.mysql().path().join("sock");
                word.replace(
                    "?socket=/run/mysqld/mysqld.sock",
                    &format!("root@?socket={}", socket.display()),
                )
            }
            word if is_disk && !word.contains(':') => {
                let (path, carried) = word.split_once('=').unwrap_or((word, ""));
                let disk = self.disk(path);
                if !carried.is_empty() {
                    assert!(make(carried, disk), "{word}");
                }
                word.replacen(path, disk.path(), 1)
            }
            word if word.starts_with(['/', 't']) && word.contains('/') => {
                word.rsplit('/').next().unwrap_or(word).to_owned()
            }
            word => word.to_owned(),
        }
    }

    /// The host as it was when it was made.
    fn reset(&self) {
        fs::copy(self.place.path("prepared.db"), self.place.ledger()).unwrap();
        for disk in &self.disks {
            let mut node = fs::File::options().write(true).open(&disk.node).unwrap();
            let zeros = vec![0; (DISK << 20) as usize];
            node.write_all(&zeros).unwrap();
            node.sync_all().unwrap();
        }
    }

    /// Runs a command of the manual, for a short time where it takes one.
    pub(crate) fn run(&self, words: &[String]) -> ProgramOutput {
        self.reset();
        let is_given = |option: &str| words.iter().any(|word| word == option);
        let need = needs::of(words);
        let word = |word: &String| match need {
            Need::Files => self.word_of_files(word),
            _ => self.word(&words[0], word),
        };
        let mut line: Vec<String> = words.iter().map(word).collect();
        let mut add = |option: &str, value: &str| {
            let at = line.iter().position(|word| word == option);
            match at {
                Some(at) => line[at + 1] = value.to_owned(),
                None => line.extend([option.to_owned(), value.to_owned()]),
            }
        };
        match words[0].as_str() {
            // Its work is of a fixed size, and not of a fixed time.
            "bench" if is_given("bonnie") => {
                add("--size", "16M");
                add("--files", "256");
            }
            // By fio's own options.
            "bench" if words.iter().any(|word| word.starts_with("--rw")) => {
                shorten_fio(&mut line);
            }
            "bench" if !is_given("--fio") && !is_given("--replay") => {
                add("--seconds", "200ms");
                if ["/data", "/mnt/data", "."].iter().any(|one| is_given(one)) {
                    add("--size", "16M");
                }
            }
            "trace" if need == Need::Files => add("--for", "500ms"),
            "serve" if need == Need::Interrupt => add("--listen", "127.0.0.1:0"),
            "cost" if is_given("--instance") => add("--instances", "types.json"),
            // What was recorded a moment ago.
            "watch" if is_given("--at") => {
                add("--at", "-1h");
                add("--for", "1h");
            }
            "watch" if !["--parse", "--check"].iter().any(|one| is_given(one)) => {
                add("--count", "2");
                add("--interval", "100ms");
            }
            _ => {}
        }
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        if let Some(at) = words.iter().position(|word| *word == "-o") {
            let _ = fs::remove_file(self.place.path(words[at + 1]));
        }
        let mut command = self.place.command(&words);
        command
            .env("HOME", self.place.path("."))
            .env("PGSERVICEFILE", self.place.path("services"))
            .env("PGHOST", self.place.path("postgres"))
            .env("PGUSER", "postgres");
        if need != Need::Interrupt {
            return output_of(&mut command);
        }
        let mut running = Running::start(&mut command);
        running.wait_for_handler(Signal::INT);
        running.signal(Signal::INT);
        running.end()
    }
}

/// A file system with files of a database.
fn database_files(disk: &Loop) -> Mounted {
    disk.mkfs();
    let mounted = Mounted::new(disk.path());
    fs::create_dir(mounted.point.join("app")).unwrap();
    for name in ["ibdata1", "t1.ibd", "app/accounts.ibd"] {
        fs::write(mounted.point.join(name), vec![1; 1 << 20]).unwrap();
    }
    mounted
}

/// MariaDB and PostgreSQL, and the files by which their clients find them. `None` without them.
fn databases(place: &Place) -> Option<(Server, Server)> {
    let Some(programs) = postgres_programs() else {
        skipped("PostgreSQL is not installed");
        return None;
    };
    if !crate::support::has_program("mariadb-install-db") {
        return None;
    }
    let (mysql, postgres) = (mariadb(""), postgres(&programs, ""));
    let socket = mysql.path().join("sock");
    let group = format!("[client]\nuser=root\nsocket={}\n", socket.display());
    fs::write(place.path(".my.cnf"), group).unwrap();
    let service = format!(
        "[app]\nhost={}\nuser=postgres\ndbname=postgres\n",
        postgres.path().display()
    );
    fs::write(place.path("services"), service).unwrap();
    // The folder of its socket.
    symlink(postgres.path(), place.path("postgres")).unwrap();
    Some((mysql, postgres))
}

/// Gives fio's options of a small job that ends soon, where there are such.
fn shorten_fio(line: &mut [String]) {
    for (option, value) in [("--runtime", "1"), ("--size", "8m")] {
        let joined = format!("{option}=");
        for at in 0..line.len() {
            if line[at].starts_with(&joined) {
                line[at] = format!("{joined}{value}");
            } else if line[at] == option {
                line[at + 1] = value.to_owned();
            }
        }
    }
}

/// A certificate of its own, and its key.
fn certificate(place: &Place) {
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -keyout key.pem \
                 -out cert.pem";
    done(
        Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(place.path(".")),
    );
}
