//! Databases of a test's own: MariaDB and PostgreSQL as they are installed, each on a socket in a folder of its own.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::{TIMEOUT, is_root};

/// A server of a test's own, on a socket in a folder of its own, which ends with the test.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // A shutdown that waits for nobody: SIGTERM to mariadbd, SIGQUIT to postgres.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until a command of a client succeeds.
    pub(crate) fn wait_for(&mut self, client: impl Fn() -> Command) {
        let began = Instant::now();
        loop {
            let tried = client()
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if tried.is_ok_and(|status| status.success()) {
                return;
            }
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(self.child.try_wait().unwrap().is_none(), "{}", log());
            assert!(began.elapsed() < TIMEOUT, "{}", log());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

pub(crate) fn done(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A MariaDB with these lines in its file.
pub(crate) fn mariadb(options: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let user = if is_root() {
        "--user=root"
    } else {
        "--skip-name-resolve"
    };
    done(
        Command::new("mariadb-install-db")
            // One that starts deletes the temporary tables in its folder for them, also those of another that runs.
            .env("TMPDIR", folder.path())
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                user,
            ])
            .arg(format!("--datadir={}", data.display())),
    );
    fs::write(folder.path().join("my.cnf"), format!("[mysqld]\n{options}")).unwrap();
    let mut server = Server {
        child: start_mariadb(folder.path()),
        folder,
    };
    let socket = server.path().join("sock");
    server.wait_for(|| client(&socket, "SELECT 1"));
    server
}

pub(crate) fn start_mariadb(folder: &Path) -> Child {
    let user = if is_root() {
        "--user=root"
    } else {
        "--skip-name-resolve"
    };
    let file = |name: &str| folder.join(name).display().to_string();
    Command::new("mariadbd")
        .env("TMPDIR", folder)
        .arg(format!("--defaults-file={}", file("my.cnf")))
        .args([user, "--skip-networking", "--innodb-fast-shutdown=2"])
        .arg(format!("--datadir={}", file("data")))
        .arg(format!("--socket={}", file("sock")))
        .arg(format!("--pid-file={}", file("pid")))
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("log")).unwrap())
        .spawn()
        .unwrap()
}

pub(crate) fn client(socket: &Path, statements: &str) -> Command {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--user=root"])
        .arg(format!("--socket={}", socket.display()))
        .arg(format!("--execute={statements}"));
    command
}

/// Programs of PostgreSQL, which Debian keeps apart.
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    folders.sort();
    folders
        .into_iter()
        .rev()
        .find(|folder| folder.join("initdb").exists())
}

/// A command as the user that may run PostgreSQL: not root.
pub(crate) fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program);
    command
}

pub(crate) fn id_of(option: &str) -> u32 {
    done(Command::new("id").args([option, "postgres"]))
        .trim()
        .parse()
        .unwrap()
}

pub(crate) fn postgres(programs: &Path, options: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    if is_root() {
        chown(folder.path(), Some(id_of("-u")), Some(id_of("-g"))).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let data = folder.path().join("data");
    done(
        as_postgres(&programs.join("initdb"))
            .current_dir(folder.path())
            .args(["-A", "trust", "-U", "postgres", "-N", "-D"])
            .arg(&data),
    );
    let file = data.join("postgresql.conf");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\nlisten_addresses = ''\n{options}")).unwrap();
    let child = as_postgres(&programs.join("postgres"))
        .current_dir(folder.path())
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut server = Server { folder, child };
    let url = url_of(&server);
    server.wait_for(|| psql(&url, "SELECT 1"));
    server
}

pub(crate) fn url_of(server: &Server) -> String {
    format!(
        "postgresql:///postgres?host={}&user=postgres",
        server.path().display()
    )
}

pub(crate) fn psql(url: &str, statements: &str) -> Command {
    let mut command = Command::new("psql");
    command.args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        url,
        "-c",
        statements,
    ]);
    command
}
