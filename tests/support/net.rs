//! Hosts on one machine: each in namespaces of its own (network, mounts, processes, name), with its
//! own sshd and host key, and with memory instead of every folder that it writes to. The machine's
//! own network, folders and processes are not touched, and all of it is gone when the first process
//! of each is killed, which the kernel does even where the test is killed.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::loops::{Loop, Throttle, run, try_run};
use crate::support::{Place, TIMEOUT, Words, behind, skipped};

/// Where Debian and most others have it.
const SSHD: &str = "/usr/sbin/sshd";

/// A file system that writes nothing later on its own.
const QUICK: &str = "lazy_itable_init=0,lazy_journal_init=0";

/// Special properties of a host.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostSetup {
    /// Its disk.
    pub disk: Disk,
    /// At most so many requests a second on that disk.
    pub iops: Option<u64>,
    /// More disks as large as the first, mounted at `/mnt/d2`, `/mnt/d3`, …, each with its most requests a
    /// second.
    pub more: &'static [u64],
    /// Its fault.
    pub wrong: HostFault,
}

/// A disk of so many mebibytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Disk {
    #[default]
    None,
    /// With ext4, mounted at `/mnt/data`.
    Mounted(u64),
    /// With nothing on it, called `/run/disk`.
    Bare(u64),
    /// The same with ext4 on it, not mounted.
    Signed(u64),
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HostFault {
    #[default]
    Nothing,
    /// It answers nothing: there is no host behind the address.
    Dead,
    /// It has another host key than the one that is known.
    Key,
    /// No folder has room.
    Full,
    /// No folder may be written.
    ReadOnly,
    /// No folder but one may execute, and that one is not the first.
    NoExec,
}

/// A network of hosts, and where the tests' user is in it.
pub(crate) struct Net {
    pub(crate) place: Place,
    /// The process that holds the network in which the user is.
    hub: Held,
    hosts: Vec<Host>,
    /// The data sent.
    binary: PathBuf,
    /// Holds a lock as long as the hosts are there.
    _devices: File,
}

struct Host {
    name: String,
    /// The first process in its namespaces; none of a dead host.
    first: Option<Held>,
    // In this order: the group can go when nobody is in it, and the disks then.
    throttle: Option<Throttle>,
    _disks: Vec<Loop>,
}

/// A process that is killed when this is dropped, or when the test is.
struct Held {
    child: Child,
}

impl Held {
    /// Starts it and waits for its first line.
    fn start(mut command: Command) -> Held {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut held = Held {
            child: child.unwrap(),
        };
        let mut line = String::new();
        let said = held.child.stdout.as_mut().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "a namespace could not be set up");
        held
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that the kernel kills with the thread that starts it.
fn mortal(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(words);
    command
}

/// The kernel cannot be asked beforehand what it allows.
fn can_have_hosts() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can make namespaces".to_owned());
    }
    if !Path::new(SSHD).exists() {
        return Err(format!("{SSHD} is not installed (openssh-server)"));
    }
    for (program, option) in [("ssh", "-V"), ("ip", "-V"), ("setpriv", "--version")] {
        try_run(program, &[option])?;
    }
    let all = ["--net", "--mount", "--uts", "--pid", "--fork", "--", "true"];
    try_run("unshare", &all)?;
    let link = [
        "--net", "--", "ip", "link", "add", "name", "wire", "type", "veth",
    ];
    try_run("unshare", &link).map(drop)
}

impl Net {
    /// Hosts h1, h2, … as they are wished for. `None`, with a note, where that cannot be.
    pub(crate) fn new(wishes: &[HostSetup]) -> Option<Net> {
        let devices = File::open("/dev").unwrap();
        devices.lock_shared().unwrap();
        Net::beside(devices, wishes)
    }

    /// The same, while no other test has hosts. They share the devices of this machine, and whoever lists devices
    /// reads a little of each: foreign I/O, on a disk that is being measured.
    pub(crate) fn undisturbed(wishes: &[HostSetup]) -> Option<Net> {
        let devices = File::open("/dev").unwrap();
        devices.lock().unwrap();
        Net::beside(devices, wishes)
    }

    fn beside(devices: File, wishes: &[HostSetup]) -> Option<Net> {
        if let Err(why) = can_have_hosts() {
            skipped(&format!("no hosts can be made here: {why}"));
            return None;
        }
        let place = Place::new();
        keygen(&place.path("key"));
        let hub = Held::start(mortal(&[
            "unshare",
            "--net",
            "sh",
            "-c",
            "ip link set lo up && echo ready && exec sleep infinity",
        ]));
        let binary = stripped(&place);
        let mut net = Net {
            place,
            hub,
            hosts: Vec::new(),
            binary,
            _devices: devices,
        };
        let mut config = format!(
            "Host *\n  User root\n  IdentityFile {0}\n  IdentitiesOnly yes\n  UserKnownHostsFile {1}\n  \
             GlobalKnownHostsFile /dev/null\n  UpdateHostKeys no\n",
            net.path("key"),
            net.path("known_hosts"),
        );
        let (mut known, mut list) = (String::new(), String::from("# all of them\n"));
        for (at, (wish, disks)) in wishes.iter().zip(disks_of_all(wishes)).enumerate() {
            let number = at + 1;
            let host = net.host(number, wish, disks?)?;
            let key = fs::read_to_string(net.place.path(&format!("{}.known.pub", host.name)));
            known.push_str(&format!("{},10.77.{number}.2 {}", host.name, key.unwrap()));
            config.push_str(&format!(
                "Host {0}\n  HostName 10.77.{number}.2\n  HostKeyAlias {0}\n",
                host.name
            ));
            list.push_str(&format!("{} az=zone-{}\n", host.name, number % 3));
            net.hosts.push(host);
        }
        fs::write(net.place.path("config"), config).unwrap();
        fs::write(net.place.path("known_hosts"), known).unwrap();
        fs::write(net.place.path("hosts"), list).unwrap();
        Some(net)
    }

    fn path(&self, name: &str) -> String {
        self.place.path(name).to_str().unwrap().to_owned()
    }

    fn host(&self, number: usize, wish: &HostSetup, disks: Vec<Loop>) -> Option<Host> {
        let name = format!("h{number}");
        let folder = self.place.path(&format!("host-{name}"));
        fs::create_dir(&folder).unwrap();
        keygen(&folder.join("key"));
        let known = self.place.path(&format!("{name}.known"));
        if wish.wrong == HostFault::Key {
            keygen(&known);
        } else {
            fs::copy(folder.join("key.pub"), known.with_extension("known.pub")).unwrap();
        }
        fs::copy(self.place.path("key.pub"), folder.join("authorized_keys")).unwrap();
        fs::write(folder.join("sshd_config"), SSHD_CONFIG).unwrap();
        let mut disks = disks.into_iter();
        let disk = disks.next();
        let node = disk.as_ref().map_or("", |disk| disk.path());
        let is_mounted = matches!(wish.disk, Disk::Mounted(_));
        let [mounted, bare] = if is_mounted { [node, ""] } else { ["", node] };
        let throttle = match (&disk, wish.iops) {
            (Some(disk), Some(iops)) => {
                let throttle = Throttle::on(disk)?;
                throttle.limit_iops(iops);
                Some(throttle)
            }
            _ => None,
        };
        let others: Vec<Loop> = disks.collect();
        for (other, iops) in others.iter().zip(wish.more) {
            throttle.as_ref().unwrap().also_limit_iops(other, *iops);
        }
        let nodes: Vec<&str> = others.iter().map(Loop::path).collect();
        let memory = match wish.wrong {
            HostFault::Full => "size=512k",
            HostFault::ReadOnly => "ro",
            _ => "size=200m",
        };
        let script = self.path("host.sh");
        fs::write(&script, HOST).unwrap();
        let mut command = mortal(&["unshare", "--net", "--mount", "--uts", "--pid", "--fork"]);
        command
            .args(["--kill-child=KILL", "--", "sh", &script])
            .args([name.as_str(), folder.to_str().unwrap(), memory])
            .args([mounted, bare])
            .arg(if wish.wrong == HostFault::NoExec {
                "noexec"
            } else {
                "exec"
            })
            .arg(nodes.join(" "))
            .arg(&self.binary);
        let command = match &throttle {
            Some(throttle) => throttle.hold(&command),
            None => command,
        };
        let first = (wish.wrong != HostFault::Dead).then(|| Held::start(command));
        self.connect(number, first.as_ref());
        Some(Host {
            name,
            first,
            throttle,
            _disks: disk.into_iter().chain(others).collect(),
        })
    }

    /// A wire between the user and a host; one that is dead has only the user's end.
    fn connect(&self, number: usize, host: Option<&Held>) {
        let near = format!("h{number}");
        let (user, address) = (
            format!("10.77.{number}.1/30"),
            format!("10.77.{number}.2/30"),
        );
        let pid = host.map_or(self.hub.pid(), Held::pid).to_string();
        let far = if host.is_some() {
            "wire".to_owned()
        } else {
            format!("d{number}")
        };
        self.ip(&[
            "link", "add", &near, "type", "veth", "peer", "name", &far, "netns", &pid,
        ]);
        self.ip(&["addr", "add", &user, "dev", &near]);
        self.ip(&["link", "set", &near, "up"]);
        if let Some(host) = host {
            inside(host, &["ip", "addr", "add", &address, "dev", "wire"]);
            inside(host, &["ip", "link", "set", "wire", "up"]);
        } else {
            self.ip(&["link", "set", &far, "up"]);
        }
    }

    /// The user's configuration of ssh.
    pub(crate) fn config(&self) -> String {
        self.path("config")
    }

    /// The program as the hosts see it, wherever this checkout is.
    pub(crate) const PROGRAM: &str = "/run/host/program";

    /// A command in the network where the user is, which is killed with the thread that starts it.
    pub(crate) fn near(&self, words: &[&str]) -> Command {
        let net = format!("--net=/proc/{}/ns/net", self.hub.pid());
        mortal(&[&["nsenter", &net, "--"], words].concat())
    }

    fn ip(&self, words: &[&str]) {
        inside(&self.hub, &[&["ip"], words].concat());
    }

    /// Cuts a host off, without a word to either side.
    pub(crate) fn cut(&self, name: &str) {
        self.ip(&["link", "set", name, "down"]);
    }

    /// Lets it back.
    pub(crate) fn mend(&self, name: &str) {
        self.ip(&["link", "set", name, "up"]);
    }

    /// Holds a host's first disk to so many requests a second from now on.
    pub(crate) fn slow_down(&self, name: &str, iops: u64) {
        let host = self.hosts.iter().find(|host| host.name == name).unwrap();
        host.throttle.as_ref().unwrap().limit_iops(iops);
    }

    /// The program, where the user is, on all hosts.
    pub(crate) fn fleet(
        &self,
        verb: &str,
        words: &(impl Words + ?Sized),
        after: &(impl Words + ?Sized),
    ) -> Command {
        self.fleet_of(["--list", "./hosts"], verb, words, after)
    }

    /// The same, on the hosts of another source.
    pub(crate) fn fleet_of(
        &self,
        source: [&str; 2],
        verb: &str,
        words: &(impl Words + ?Sized),
        after: &(impl Words + ?Sized),
    ) -> Command {
        let mut all = vec!["fleet", verb, source[0], source[1], "--connect", "20s"];
        let (config, binary) = (self.path("config"), self.binary.to_str().unwrap());
        all.extend(["--ssh-config", &config, "--binary", binary]);
        all.extend(words.words());
        all.extend(after.words());
        let own = self.place.command(&all);
        let mut command = mortal(&["nsenter", &format!("--net=/proc/{}/ns/net", self.hub.pid())]);
        command.arg("--");
        behind(command, &own)
    }

    /// Output of a command that runs on a host.
    pub(crate) fn on(&self, name: &str, script: &str) -> String {
        let host = self.hosts.iter().find(|host| host.name == name).unwrap();
        let first = host.first.as_ref().unwrap();
        // The first process is the one that made the namespaces, and its child is in all of them.
        let children = format!("/proc/{0}/task/{0}/children", first.pid());
        let child = fs::read_to_string(children).unwrap();
        let all = ["--all", "--target", child.trim(), "--", "sh", "-c", script];
        run("nsenter", &all)
    }

    /// Waits until a command on a host says something.
    pub(crate) fn wait_on(&self, name: &str, script: &str) -> String {
        let began = Instant::now();
        loop {
            let said = self.on(name, script);
            if !said.is_empty() {
                return said;
            }
            assert!(
                began.elapsed() < TIMEOUT,
                "'{script}' says nothing on {name}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Panics if anything of an agent is left on the hosts: a process, a file.
    pub(crate) fn assert_nothing_left(&self) {
        let search = "ps -eo args | grep -E '[d]isksmith (agent|bench)|[s]ay counted' || true; \
                    find /tmp /var/tmp /run /dev/shm /root /home /var/lib /mnt -name '*disksmith*' || true";
        for host in self.hosts.iter().filter(|host| host.first.is_some()) {
            let began = Instant::now();
            let mut left = self.on(&host.name, search);
            // An agent that was just told to end may need a moment on a busy machine.
            while !left.is_empty() && began.elapsed() < TIMEOUT {
                std::thread::sleep(Duration::from_millis(200));
                left = self.on(&host.name, search);
            }
            assert_eq!(left, "", "left on {}", host.name);
        }
    }
}

/// The disks of all hosts, host by host. They are made at the same time, since each waits for what it writes;
/// `None` where one cannot be.
fn disks_of_all(wishes: &[HostSetup]) -> Vec<Option<Vec<Loop>>> {
    std::thread::scope(|scope| {
        let started: Vec<_> = wishes
            .iter()
            .map(|wish| scope.spawn(|| disks_of(wish)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// The disks of a host, with the file systems that are wished for.
fn disks_of(wish: &HostSetup) -> Option<Vec<Loop>> {
    let (Disk::Mounted(mib) | Disk::Bare(mib) | Disk::Signed(mib)) = wish.disk else {
        return Some(Vec::new());
    };
    let has_files = matches!(wish.disk, Disk::Mounted(_) | Disk::Signed(_));
    let is_mounted = matches!(wish.disk, Disk::Mounted(_));
    assert!(
        is_mounted || wish.more.is_empty(),
        "only disks that are mounted can be several"
    );
    let make = || {
        let disk = Loop::new(mib)?;
        // Through the page cache no figure is the disk's, and no host is ranked by it.
        run("losetup", &["--direct-io=on", disk.path()]);
        if has_files {
            run("mkfs.ext4", &["-q", "-F", "-E", QUICK, disk.path()]);
        }
        Some(disk)
    };
    (0..=wish.more.len()).map(|_| make()).collect()
}

/// Runs a command in the network of a process.
fn inside(held: &Held, words: &[&str]) {
    let net = format!("--net=/proc/{}/ns/net", held.pid());
    run("nsenter", &[&[net.as_str(), "--"], words].concat());
}

fn keygen(path: &Path) {
    let path = path.to_str().unwrap();
    run(
        "ssh-keygen",
        &["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path],
    );
}

/// The program without what only a debugger wants, which would take long to send; as it is where
/// nothing can take that out.
fn stripped(place: &Place) -> PathBuf {
    let whole = assert_cmd::cargo::cargo_bin!("disksmith").to_owned();
    let small = place.path("disksmith");
    let words = ["-o", small.to_str().unwrap(), whole.to_str().unwrap()];
    match try_run("strip", &words) {
        Ok(_) => small,
        Err(_) => whole,
    }
}

const SSHD_CONFIG: &str = "\
ListenAddress 0.0.0.0
HostKey /run/host/key
AuthorizedKeysFile /run/host/authorized_keys
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
SetEnv PATH=/run/host/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
";

/// The first command in a host's namespaces: NAME FOLDER MEMORY MOUNTED BARE exec|noexec MORE PROGRAM.
const HOST: &str = r#"
set -e
name=$1 folder=$2 memory=$3 mounted=$4 bare=$5 exec=$6 more=$7 program=$8
mount --make-rprivate /
mount -t proc proc /proc
# File systems that other tests have mounted at this moment came along, and stay in use until this host is gone. That
# of the program, if it is one, is in use and stays.
for point in $(awk '$1 ~ "^/dev/loop" { print $2 }' /proc/mounts | tac); do umount "$point" 2> /dev/null || true; done
hostname "$name"
ip link set lo up
mount -t tmpfs -o mode=755 host /run
mkdir /run/sshd /run/host
cp "$folder"/* /run/host/
chmod 600 /run/host/key
: > /run/host/program
mount --bind "$program" /run/host/program
# An account without a password may be locked, which sshd without PAM takes to mean everybody.
sed 's/^root:[^:]*:/root:*:/' /etc/shadow > /run/host/shadow
mount --bind /run/host/shadow /etc/shadow
# And one who is not root.
echo 'op:*:20000::::::' >> /run/host/shadow
cp /etc/passwd /run/host/passwd
echo 'op:x:12345:12345::/home/op:/bin/sh' >> /run/host/passwd
mount --bind /run/host/passwd /etc/passwd
mount -t tmpfs -o mode=755 host /home
mkdir /home/op
chown 12345:12345 /home/op
mount -t tmpfs host /mnt
mkdir /mnt/data
if [ -n "$mounted" ]; then mount "$mounted" /mnt/data; fi
number=2
for disk in $more; do
    mkdir "/mnt/d$number"
    mount "$disk" "/mnt/d$number"
    number=$((number + 1))
done
if [ -n "$bare" ]; then ln -s "$bare" /run/disk; fi
for place in /var/tmp /dev/shm /root /var/lib; do mount -t tmpfs -o "mode=1777,$memory,$exec" host "$place"; done
mount -t tmpfs -o "mode=1777,$memory,$exec" host /tmp
if [ "$exec" = noexec ]; then mount -o remount,exec /var/tmp; fi
# Where sshd keeps its own is none of the places that a program could be sent to.
if [ "$memory" != size=200m ] || [ "$exec" = noexec ]; then
    mount -o remount,ro /run
fi
/usr/sbin/sshd -t -f /run/host/sshd_config
echo ready
exec /usr/sbin/sshd -D -e -f /run/host/sshd_config > /dev/null 2>&1
"#;
