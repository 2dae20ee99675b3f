//! Building and undoing arrays with simulated programs on a simulated tree.

mod repair;
mod replace;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use linux::Root;
use linux::block::DeviceNumber;
use linux::exec::{self, Exec, ProgramEnd, ProgramOutput};
use tempfile::TempDir;

use super::building::CheckedMember;
use super::create::steps;
use super::host::ArrayHost;
use super::plan::ArrayPlan;
use super::plan::tests::plan;
use super::programs::Programs;
use super::{steps as work, stop};
use crate::args::{ArrayArgs, ArrayVerb};
use domain::raid::Level;
use ui::exit::Failure;

/// A host with the disks vdb, vdc and vdd, and programs with the visible effects of the real ones.
struct FakeHost {
    folder: TempDir,
    lines: Vec<String>,
    /// The program that fails, by the beginning of its command line.
    fails: &'static str,
    /// Members of which mdadm makes the array, whatever its command line names.
    takes: &'static [&'static str],
    uuid: String,
    /// The disks that carry a superblock, and whose.
    superblocks: BTreeMap<String, String>,
    /// Number of steps in time after which the working process is killed.
    life: Rc<Cell<Option<u32>>>,
    /// True if md has copied to a replacement by the time that this is examined. Otherwise a signal comes first.
    copies: bool,
    /// The signal.
    signal: Rc<AtomicBool>,
}

/// Payload with which a killed process unwinds.
struct Killed;

/// Takes a step in time at which a kill may come.
fn moment(life: &Cell<Option<u32>>) {
    match life.get() {
        None => {}
        // Past everything that would be undone; and no hook reports it.
        Some(0) => std::panic::resume_unwind(Box::new(Killed)),
        Some(left) => life.set(Some(left - 1)),
    }
}

impl FakeHost {
    fn new(fails: &'static str) -> FakeHost {
        let folder = TempDir::new().unwrap();
        for (name, number) in [("vdb", "254:16"), ("vdc", "254:32"), ("vdd", "254:48")] {
            disk(folder.path(), name, number);
            let node = folder.path().join("dev").join(name);
            fs::create_dir_all(node.parent().unwrap()).unwrap();
            fs::write(node, vec![0; 1 << 20]).unwrap();
        }
        let proc = folder.path().join("proc/self");
        fs::create_dir_all(&proc).unwrap();
        fs::write(
            proc.join("mountinfo"),
            "22 27 0:21 / /proc rw - proc proc rw\n",
        )
        .unwrap();
        fs::write(
            folder.path().join("proc/swaps"),
            "Filename Type Size Used Priority\n",
        )
        .unwrap();
        fs::create_dir_all(folder.path().join("etc/mdadm")).unwrap();
        fs::create_dir_all(folder.path().join("etc/udev/rules.d")).unwrap();
        fs::write(folder.path().join("etc/fstab"), "# mine").unwrap();
        FakeHost {
            folder,
            lines: Vec::new(),
            fails,
            takes: &["vdb", "vdc"],
            uuid: plan(Level::Zero, &[]).uuid,
            superblocks: BTreeMap::new(),
            life: Rc::default(),
            copies: true,
            signal: Rc::default(),
        }
    }

    fn root(&self) -> Root {
        Root::under(self.folder.path())
    }

    fn etc(&self, name: &str) -> PathBuf {
        self.folder.path().join("etc").join(name)
    }

    fn array(&self) -> PathBuf {
        self.folder.path().join("sys/class/block/md127")
    }

    /// The array's device, before it has members.
    fn make_hollow(&self) {
        disk(self.folder.path(), "md127", "9:127");
        fs::write(self.array().join("size"), "0").unwrap();
        fs::create_dir_all(self.array().join("md")).unwrap();
    }

    fn assemble(&self) {
        self.make_hollow();
        fs::write(self.array().join("size"), "4194304").unwrap();
        fs::write(self.array().join("md/level"), "raid0\n").unwrap();
        // What is on it stays on its members when it is stopped.
        let node = self.folder.path().join("dev/md127");
        fs::create_dir_all(node.parent().unwrap()).unwrap();
        let open = fs::OpenOptions::new().append(true).create(true).open(node);
        open.unwrap().set_len(1 << 20).unwrap();
        for name in self.takes {
            let disk = self.folder.path().join("sys/class/block").join(name);
            symlink(&disk, self.array().join("slaves").join(name)).unwrap();
            symlink(self.array(), disk.join("holders/md127")).unwrap();
        }
    }

    /// Actions of other programs than mdadm on the array.
    fn use_array(&self, line: &str) {
        let node = self.folder.path().join("dev/md127");
        let mounts = self.folder.path().join("proc/self/mountinfo");
        let others = "22 27 0:21 / /proc rw - proc proc rw\n";
        if line.starts_with("mkfs.xfs") {
            let uuid = line.split_once("uuid=").unwrap().1;
            write_xfs(&node, uuid.split(' ').next().unwrap(), 3);
        } else if line.starts_with("wipefs") && line.ends_with("md127") {
            fs::write(&node, vec![0; 1 << 20]).unwrap();
        } else if line.starts_with("mount ") {
            let point = line.rsplit(' ').next().unwrap();
            let ours = format!("40 27 9:127 / {point} rw - xfs /dev/md127 rw\n");
            fs::write(mounts, format!("{others}{ours}")).unwrap();
        } else if line.starts_with("umount ") {
            fs::write(mounts, others).unwrap();
        }
    }

    fn disassemble(&self) {
        fs::remove_dir_all(self.array()).unwrap();
        for name in self.takes {
            let disk = self.folder.path().join("sys/class/block").join(name);
            // A hollow array holds nothing.
            let _ = fs::remove_file(disk.join("holders/md127"));
        }
    }

    /// Runs work on this host, and returns the result and the shown text.
    fn with<T>(&mut self, work: impl FnOnce(&mut ArrayHost) -> T) -> (T, String) {
        let (root, etc) = (self.root(), self.folder.path().join("etc"));
        let mut shown = String::new();
        let life = Rc::clone(&self.life);
        let mut report = |text: &str| {
            moment(&life);
            shown.push_str(text);
        };
        let mut host = ArrayHost {
            root,
            etc,
            programs: self,
            report: &mut report,
            claims: Vec::new(),
            array: None,
            journal: None,
        };
        let result = work(&mut host);
        (result, shown)
    }

    fn build(
        &mut self,
        plan: &ArrayPlan,
        persist: bool,
    ) -> (Result<(), work::FailedBuild>, String) {
        let members = [("vdb", 16), ("vdc", 32)].map(|(name, minor)| CheckedMember {
            path: Path::new("/dev").join(name),
            number: DeviceNumber::new(254, minor),
            signed: name == "vdc",
        });
        self.with(|host| {
            let mut steps = steps(plan, &members, persist, &host.etc);
            work::run(&mut steps, host, &AtomicBool::new(false), |_| ())
        })
    }

    fn plan(&self) -> ArrayPlan {
        let mut plan = plan(Level::Zero, &["/dev/vdb", "/dev/vdc"]);
        if let Some(fs) = &mut plan.fs {
            fs.mount = Some(self.folder.path().join("a/data"));
        }
        plan
    }
}

/// `array stop` with these arguments.
fn stop_array(host: &mut FakeHost, arguments: &[&str]) -> (Result<String, Failure>, String) {
    let words = ["array", "stop"].iter().chain(arguments);
    let ArrayVerb::Stop(args) = parse(words) else {
        panic!("{arguments:?}");
    };
    let never = AtomicBool::new(false);
    host.with(|host| stop::stop(&args, host, None, &never))
}

fn parse<'a>(words: impl Iterator<Item = &'a &'a str>) -> ArrayVerb {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ArrayArgs,
    }
    <Line as clap::Parser>::try_parse_from(words)
        .unwrap()
        .args
        .verb
}

/// Writes the beginning of an XFS with so many inodes in use.
fn write_xfs(node: &Path, uuid: &str, used: u64) {
    let mut image = vec![0; 1 << 20];
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    image[..4].copy_from_slice(b"XFSB");
    for (place, byte) in image[32..48].iter_mut().enumerate() {
        let pair = digits.get(place * 2..place * 2 + 2);
        *byte = pair.map_or(0, |pair| u8::from_str_radix(pair, 16).unwrap());
    }
    image[128..136].copy_from_slice(&64_u64.to_be_bytes());
    image[136..144].copy_from_slice(&(64 - used).to_be_bytes());
    fs::write(node, image).unwrap();
}

fn disk(root: &Path, name: &str, number: &str) {
    let folder = root.join("sys/class/block").join(name);
    for part in ["holders", "slaves", "queue"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join("dev"), number).unwrap();
    fs::write(folder.join("size"), "4194304").unwrap();
}

impl Programs for FakeHost {
    fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        let line = program.line();
        self.lines.push(line.clone());
        let mut stdout = Vec::new();
        if !self.fails.is_empty() && line.starts_with(self.fails) {
            return Err(exec::Error::Failed {
                command: line,
                status: ProgramEnd(ExitStatus::from_raw(1 << 8)),
                stderr: "no luck".to_owned(),
            });
        }
        moment(&self.life);
        let last = line
            .rsplit(['/', ' '])
            .next()
            .unwrap_or_default()
            .to_owned();
        if line.starts_with("mdadm --create") {
            self.make_hollow();
            for name in self.takes {
                moment(&self.life);
                self.superblocks
                    .insert((*name).to_owned(), self.uuid.clone());
            }
            moment(&self.life);
            self.assemble();
        } else if line.starts_with("mdadm --assemble") {
            self.assemble();
        } else if line.starts_with("mdadm --stop") {
            self.disassemble();
        } else if line.starts_with("mdadm --zero-superblock") {
            self.superblocks.remove(&last);
        } else if line.starts_with("mdadm --manage") {
            self.manage(&line);
        } else if line.starts_with("mdadm --examine") {
            let uuid = self.superblocks.get(&last);
            stdout = uuid
                .map_or(String::new(), |uuid| format!("MD_UUID={uuid}\n"))
                .into();
        } else if line.contains("--export") && last == "md127" {
            stdout = format!("MD_LEVEL=raid0\nMD_UUID={}\n", self.uuid).into_bytes();
        } else {
            self.use_array(&line);
        }
        moment(&self.life);
        Ok(ProgramOutput {
            status: ExitStatus::from_raw(0),
            stdout,
            stderr: Vec::new(),
        })
    }

    fn has(&self, _: &str) -> bool {
        true
    }
}

#[test]
fn an_array_is_built_and_every_command_is_shown() {
    let mut host = FakeHost::new("");
    let plan = host.plan();
    let (built, shown) = host.build(&plan, true);
    built.unwrap();
    let point = host.folder.path().join("a/data");
    assert!(point.is_dir());
    let wanted = [
        "+ wipefs --all --force --quiet /dev/vdc".to_owned(),
        format!("+ {}", plan.mdadm().line()),
        "+ echo 1024 > /sys/class/block/md127/queue/read_ahead_kb".to_owned(),
        "+ mkfs.xfs -q -f -m uuid=u-1 -d su=256k,sw=2 /dev/md127".to_owned(),
        format!("+ mkdir -p {}", point.display()),
        format!("+ mount -t xfs -o noatime /dev/md127 {}", point.display()),
    ];
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..6], wanted);
    assert_eq!(
        fs::read_to_string(host.array().join("queue/read_ahead_kb")).unwrap(),
        "1024"
    );
    let fstab = fs::read_to_string(host.etc("fstab")).unwrap();
    assert_eq!(fstab, format!("# mine\n{}\n", plan.fstab_line().unwrap()));
    assert_eq!(
        fs::read_to_string(host.etc("fstab.before-disksmith")).unwrap(),
        "# mine"
    );
    let conf = fs::read_to_string(host.etc("mdadm/mdadm.conf")).unwrap();
    assert_eq!(conf, format!("{}\n", plan.conf_line()));
    let rules = host.etc("udev/rules.d/65-disksmith-read-ahead.rules");
    assert_eq!(
        fs::read_to_string(rules).unwrap(),
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", \
         ENV{MD_UUID}==\"01234567:89abcdef:01234567:89abcdef\", ATTR{queue/read_ahead_kb}=\"1024\"\n"
    );
}

#[test]
fn when_mounting_fails_the_folders_the_array_and_the_superblocks_go_again() {
    let mut host = FakeHost::new("mount ");
    let (built, _) = host.build(&host.plan(), false);
    let text = built.unwrap_err().to_string();
    for words in [
        "mounting the file system failed: mount -t xfs",
        "no luck",
        "the array /dev/md127 was stopped",
        "the superblock on /dev/vdb was erased",
        "the superblock on /dev/vdc was erased",
        "Left: the signatures that --destroy named are erased on /dev/vdc.",
    ] {
        assert!(text.contains(words), "no '{words}' in {text}");
    }
    assert!(!host.array().exists());
    assert!(!host.folder.path().join("a").exists());
}

#[test]
fn when_a_file_cannot_be_written_the_one_before_is_as_it_was() {
    let mut host = FakeHost::new("");
    // A folder of that name cannot be replaced by a file.
    fs::remove_file(host.etc("fstab")).unwrap();
    fs::create_dir(host.etc("fstab")).unwrap();
    fs::write(host.etc("mdadm/mdadm.conf"), "MAILADDR root\n").unwrap();
    let (built, _) = host.build(&host.plan(), true);
    let text = built.unwrap_err().to_string();
    assert!(text.contains("fstab cannot be read"), "{text}");
    assert!(text.contains("mdadm.conf is as it was"), "{text}");
    let conf = fs::read_to_string(host.etc("mdadm/mdadm.conf")).unwrap();
    assert_eq!(conf, "MAILADDR root\n");
    let left: Vec<_> = fs::read_dir(host.etc("mdadm")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(!host.array().exists());
}

#[test]
fn an_array_of_other_devices_than_were_checked_is_taken_back() {
    let mut host = FakeHost::new("");
    host.takes = &["vdb", "vdd"];
    let (built, _) = host.build(&host.plan(), false);
    let text = built.unwrap_err().to_string();
    assert!(
        text.contains("/dev/md127 was made of /dev/vdb, /dev/vdd, which are not the devices"),
        "{text}"
    );
    assert!(text.contains("/dev/md127 was stopped"), "{text}");
    assert!(!host.lines.iter().any(|line| line.starts_with("mkfs")));
}

#[test]
fn foreign_arrays_are_not_stopped_nor_erased() {
    let mut host = FakeHost::new("mkfs");
    host.uuid = "another".to_owned();
    let (built, _) = host.build(&host.plan(), false);
    built.unwrap_err();
    let touches = |line: &String| line.contains("--stop") || line.contains("--zero");
    assert!(!host.lines.iter().any(touches), "{:?}", host.lines);
}

#[test]
fn a_member_whose_path_leads_elsewhere_now_is_not_handed_over() {
    let mut host = FakeHost::new("");
    let dev = host.folder.path().join("sys/class/block/vdc/dev");
    fs::write(dev, "254:99").unwrap();
    let (built, _) = host.build(&host.plan(), false);
    let text = built.unwrap_err().to_string();
    assert!(text.contains("/dev/vdc no longer leads to"), "{text}");
    assert_eq!(host.lines, [""; 0]);
}

#[test]
fn an_array_that_is_used_is_not_stopped_and_its_user_is_named() {
    let mut host = FakeHost::new("");
    host.assemble();
    let mounts = host.folder.path().join("proc/self/mountinfo");
    fs::write(mounts, "40 27 9:127 / /data rw - xfs /dev/md127 rw\n").unwrap();
    let (outcome, _) = stop_array(&mut host, &["md127"]);
    let Err(Failure::Refused(error)) = outcome else {
        panic!("{outcome:?}");
    };
    let text = error.to_string();
    assert!(
        text.contains("/dev/md127 (raid0 array) is in use"),
        "{text}"
    );
    assert!(text.contains("/data"), "{text}");
    assert_eq!(host.lines, [""; 0]);
}

#[test]
fn an_array_that_nothing_uses_is_stopped() {
    let mut host = FakeHost::new("");
    host.assemble();
    let conf = "ARRAY /dev/md127 UUID=1\nARRAY /dev/md/other UUID=2\n";
    fs::write(host.etc("mdadm/mdadm.conf"), conf).unwrap();
    let rules = host.etc("udev/rules.d/65-disksmith-read-ahead.rules");
    fs::write(rules, "ENV{MD_UUID}==\"1\"\nENV{MD_UUID}==\"2\"\n").unwrap();
    let (outcome, shown) = stop_array(&mut host, &["/dev/md127"]);
    outcome.unwrap();
    assert_eq!(host.lines, ["mdadm --stop /dev/md127"]);
    assert!(
        shown.contains("mdadm --zero-superblock /dev/vdb /dev/vdc\nends it"),
        "{shown}"
    );
    assert!(
        shown.contains("mdadm.conf: ARRAY /dev/md127 UUID=1\n"),
        "{shown}"
    );
    assert!(shown.contains("rules: ENV{MD_UUID}==\"1\""), "{shown}");
    assert!(
        !shown.contains("UUID=2") && !shown.contains("\"2\""),
        "{shown}"
    );
    let (outcome, _) = stop_array(&mut host, &["data"]);
    assert!(matches!(outcome, Err(Failure::Refused(_))));
}

#[test]
fn a_dry_run_of_a_stop_runs_nothing() {
    let mut host = FakeHost::new("");
    host.assemble();
    let (outcome, shown) = stop_array(&mut host, &["md127", "--dry-run"]);
    let document: serde_json::Value = serde_json::from_str(&outcome.unwrap()).unwrap();
    assert_eq!(host.lines, [""; 0]);
    assert!(shown.contains("+ mdadm --stop /dev/md127\n"), "{shown}");
    assert_eq!(document["dry_run"], true);
    assert_eq!(document["erased"], serde_json::json!([]));
}

/// A mirror of vdb and vdc.
fn mirror(host: &mut FakeHost) {
    host.assemble();
    for (file, text) in [
        ("level", "raid1"),
        ("raid_disks", "2"),
        ("degraded", "0"),
        ("array_state", "active"),
        ("sync_action", "idle"),
        ("metadata_version", "1.2"),
        ("component_size", "1024"),
    ] {
        fs::write(host.array().join("md").join(file), text).unwrap();
    }
    host.put("vdb", "0", "in_sync");
    host.put("vdc", "1", "in_sync");
}

#[test]
fn superblocks_are_erased_only_where_every_member_is_there_and_named() {
    let named = ["--destroy", "/dev/vdb", "--destroy", "/dev/vdc"];
    let erase = |host: &mut FakeHost, destroy: &[&str]| {
        let words = [&["md127", "--erase"], destroy].concat();
        let (outcome, _) = stop_array(host, &words);
        let Err(Failure::Refused(error)) = outcome else {
            panic!("{outcome:?}");
        };
        let touches = |line: &String| !line.contains("--detail");
        assert!(!host.lines.iter().any(touches), "{:?}", host.lines);
        error.to_string()
    };
    let mut host = FakeHost::new("");
    mirror(&mut host);
    let text = erase(&mut host, &["--destroy", "/dev/vdd"]);
    for words in [
        "--destroy names /dev/vdd, which is not among the members",
        "the superblock of /dev/vdb is erased only if that is named too",
        "the superblock of /dev/vdc is erased only if that is named too",
    ] {
        assert!(text.contains(words), "no '{words}' in {text}");
    }

    // One that has failed is still there; one that was taken out is not.
    host.put("vdc", "none", "faulty");
    let (outcome, shown) = stop_array(
        &mut host,
        &[&["md127", "--erase", "--dry-run"], &named[..]].concat(),
    );
    outcome.unwrap();
    assert!(
        shown.contains("+ wipefs --all --force --quiet /dev/vdc\n"),
        "{shown}"
    );
    fs::remove_dir_all(host.array().join("md/dev-vdc")).unwrap();
    let text = erase(&mut host, &named[..2]);
    assert!(text.contains("1 of its members is not here"), "{text}");

    fs::write(host.array().join("md/metadata_version"), "external:imsm").unwrap();
    let text = erase(&mut host, &named[..2]);
    assert!(
        text.contains("(external:imsm), which mdmon keeps"),
        "{text}"
    );

    let mounts = host.folder.path().join("proc/self/mountinfo");
    fs::write(mounts, "40 27 9:127 / /data rw - xfs /dev/md127 rw\n").unwrap();
    let text = erase(&mut host, &named);
    assert!(text.contains("is in use and not stopped"), "{text}");
}
