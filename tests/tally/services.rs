//! Servers of a test's own: gearmand and MariaDB on sockets in its place.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) use super::support::ports::free_port;
use super::support::{Place, TIMEOUT, has_program};

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let began = Instant::now();
    while !ready() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that ends with this.
pub(crate) struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(command: &mut Command) -> Daemon {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Daemon(command.spawn().unwrap())
}

/// A gearmand; `None` where it is not installed.
pub(crate) fn gearmand(place: &Place) -> Option<(Daemon, String)> {
    if !has_program("gearmand") {
        return None;
    }
    let port = free_port();
    let daemon = quiet(
        Command::new("gearmand")
            .args(["--listen=127.0.0.1", "--log-file=stderr"])
            .arg(format!("--port={port}"))
            .arg(format!(
                "--pid-file={}",
                place.path("gearmand.pid").display()
            )),
    );
    wait_until("gearmand does not listen", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some((daemon, format!("gearman://127.0.0.1:{port}/events")))
}

/// A MariaDB with the database `sums`.
pub(crate) struct MariaDb {
    folder: PathBuf,
    daemon: Option<Daemon>,
    /// Options beside those of every test.
    options: Vec<String>,
}

impl MariaDb {
    /// Starts one; `None` where it is not installed.
    pub(crate) fn start(place: &Place) -> Option<MariaDb> {
        MariaDb::with(place, &["--skip-networking"])
    }

    /// Starts one with these options.
    pub(crate) fn with(place: &Place, options: &[&str]) -> Option<MariaDb> {
        if !has_program("mariadbd") || !has_program("mariadb-install-db") {
            return None;
        }
        let folder = place.path("mariadb");
        fs::create_dir(&folder).unwrap();
        let installed = with_own_temporaries(&mut Command::new("mariadb-install-db"), &folder)
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", folder.display()))
            .args(user())
            .output()
            .unwrap();
        assert!(installed.status.success(), "{installed:?}");
        let mut server = MariaDb {
            folder,
            daemon: None,
            options: options.iter().map(|option| option.to_string()).collect(),
        };
        server.begin();
        server.run("CREATE DATABASE sums");
        Some(server)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// Starts it, also after an end.
    pub(crate) fn begin(&mut self) {
        self.daemon = Some(quiet(
            with_own_temporaries(&mut Command::new("mariadbd"), &self.folder)
                .args(["--no-defaults", "--innodb-buffer-pool-size=64M"])
                .args(&self.options)
                .arg(format!("--datadir={}", self.folder.display()))
                .arg(format!("--socket={}", self.socket().display()))
                .arg(format!("--pid-file={}", self.folder.join("pid").display()))
                .args(user()),
        ));
        wait_until("MariaDB does not answer", || {
            self.client("SELECT 1").status.success()
        });
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.daemon = None;
    }

    fn client(&self, sql: &str) -> std::process::Output {
        Command::new("mariadb")
            .args([
                "--no-defaults",
                "--user=root",
                "--batch",
                "--skip-column-names",
                "--execute",
                sql,
            ])
            .arg(format!("--socket={}", self.socket().display()))
            .output()
            .unwrap()
    }

    /// The output of a statement.
    pub(crate) fn run(&self, sql: &str) -> String {
        let output = self.client(sql);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Its address as a store.
    pub(crate) fn store(&self) -> String {
        self.store_of("root")
    }

    /// Its address as a store of a user.
    pub(crate) fn store_of(&self, user: &str) -> String {
        format!(
            "mysql://{user}@localhost/sums?socket={}",
            self.socket().display()
        )
    }
}

/// A MariaDB that starts deletes the temporary tables in its folder for them, also those of another that runs.
fn with_own_temporaries<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.env("TMPDIR", folder)
}

fn user() -> &'static [&'static str] {
    match rustix::process::geteuid().is_root() {
        true => &["--user=root"],
        false => &[],
    }
}
