//! Debian's cloud kernel and the tools, downloaded through apt and unpacked into a cache folder.
//! Nothing is installed. The folder is created once and reused; after it is removed, the packages are downloaded
//! again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::exec::{self, Exec};

use super::arch::Arch;
use super::{Error, Result};

/// Incremented when the list below changes, so that an older cache is not used as complete.
const FORM: u32 = 3;

/// Packages of the tools. The packages of their libraries are found by the dependencies.
const TOOLS: [&str; 14] = [
    "bash",
    "dash",
    "busybox-static",
    "mdadm",
    "e2fsprogs",
    "xfsprogs",
    "btrfs-progs",
    "util-linux",
    "mount",
    "udev",
    "lvm2",
    "dmsetup",
    "cryptsetup-bin",
    "libgcc-s1",
];

/// Maximum time for a download, for a slow connection.
const DOWNLOAD: Duration = Duration::from_secs(900);

/// Interval at which a download by another process is polled.
const POLL: Duration = Duration::from_millis(100);

/// An unpacked kernel with tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packages {
    /// The folder that the packages were unpacked into, as the root of a file system.
    pub tree: PathBuf,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// The folder of the kernel's modules.
    pub modules: PathBuf,
}

/// Folder of packages unless the user names one: `disksmith/lab` in the user's cache folder, by the XDG
/// rules.
pub fn default_cache(lookup: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let folder = |name| {
        lookup(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| PathBuf::from("/var/cache"));
    cache.join("disksmith/lab")
}

impl Packages {
    /// The packages in `cache`, downloaded if they do not exist yet; `notice` is called with a sentence before the
    /// download. If two processes call this at once, one downloads and the other waits.
    ///
    /// # Errors
    /// When apt is not available, or cannot download the packages.
    pub fn ensure(cache: &Path, notice: &mut dyn FnMut(&str)) -> Result<Packages> {
        Packages::ensure_unless(cache, notice, &AtomicBool::new(false))
    }

    /// As [`Packages::ensure`], unless `interrupt` becomes true before the packages are complete.
    ///
    /// # Errors
    /// As [`Packages::ensure`], and when it was interrupted.
    pub fn ensure_unless(
        cache: &Path,
        notice: &mut dyn FnMut(&str),
        interrupt: &AtomicBool,
    ) -> Result<Packages> {
        let arch = super::host_arch()?;
        let done = cache.join(format!("machine-{FORM}-{}", arch.debian));
        if done.is_dir() {
            return Packages::in_tree(done);
        }
        fs::create_dir_all(cache).map_err(|source| no_place(cache, cache, &source))?;
        let lock = cache.join("lock");
        let file = File::create(&lock).map_err(|source| no_place(cache, &lock, &source))?;
        loop {
            check_interrupt(interrupt)?;
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
                Err(TryLockError::Error(source)) => {
                    return Err(Error::file("locked", &lock, source));
                }
            }
        }
        if done.is_dir() {
            return Packages::in_tree(done);
        }
        notice(&format!(
            "Fetching a kernel and tools from Debian's archive into {}, once.",
            cache.display()
        ));
        // A unique name and a final rename: the folder is complete or does not exist.
        let new = cache.join(format!("new-{FORM}-{}", arch.debian));
        clear(&new)?;
        // Other users have no access until the unpacked files are harmless.
        DirBuilder::new()
            .mode(0o700)
            .create(&new)
            .map_err(|source| Error::file("created", &new, source))?;
        fetch(arch, &new, interrupt)?;
        let tree = new.join("tree");
        // Checked before it is renamed, so that a kernel without an image is not kept.
        Packages::in_tree(tree.clone())?;
        fs::rename(&tree, &done).map_err(|source| Error::file("renamed", &tree, source))?;
        clear(&new)?;
        Packages::in_tree(done)
    }

    fn in_tree(tree: PathBuf) -> Result<Packages> {
        let kernel = first_with_prefix(&tree.join("boot"), "vmlinuz-")?;
        // On a system with a merged /usr the package has the modules there.
        let modules = ["lib/modules", "usr/lib/modules"].map(|folder| tree.join(folder));
        let modules = modules.iter().find(|folder| folder.is_dir());
        let modules = first_with_prefix(modules.unwrap_or(&tree.join("lib/modules")), "")?;
        Ok(Packages {
            tree,
            kernel,
            modules,
        })
    }
}

fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("removed", folder, source))
        }
        _ => Ok(()),
    }
}

/// Path of the first entry of `folder` whose name begins with `beginning`; an error if there is no such entry.
fn first_with_prefix(folder: &Path, beginning: &str) -> Result<PathBuf> {
    let unreadable = |source| Error::file("read", folder, source);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().starts_with(beginning) {
            return Ok(entry.path());
        }
    }
    Err(Error::Unavailable(format!(
        "{} holds no {beginning}*: the cache is damaged; remove {} and start again",
        folder.display(),
        folder.parent().unwrap_or(folder).display()
    )))
}

fn check_interrupt(interrupt: &AtomicBool) -> Result<()> {
    match interrupt.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => Ok(()),
    }
}

fn fetch(arch: &Arch, new: &Path, interrupt: &AtomicBool) -> Result<()> {
    let (debs, tree) = (new.join("debs"), new.join("tree"));
    for folder in [&debs, &tree] {
        fs::create_dir_all(folder).map_err(|source| Error::file("created", folder, source))?;
    }
    // The lists may be absent or name versions that do not exist any more; they are updated if the download fails.
    let mut apt = Apt {
        folder: new.join("apt"),
        own_lists: false,
        interrupt,
    };
    if apt.download(arch, &debs).is_err() {
        check_interrupt(interrupt)?;
        apt.update().map_err(unavailable)?;
        apt.download(arch, &debs).map_err(unavailable)?;
    }
    let unreadable = |source| Error::file("read", &debs, source);
    for entry in fs::read_dir(&debs).map_err(unreadable)? {
        check_interrupt(interrupt)?;
        let package = entry.map_err(unreadable)?.path();
        Exec::new("dpkg-deb")
            .arg("--extract")
            .args([&package, &tree])
            .bound()
            .run()?;
    }
    disarm(&tree).map_err(|source| Error::file("made harmless", &tree, source))?;
    check_interrupt(interrupt)?;
    expand(&tree)
}

/// Removes the set-user-ID and set-group-ID bits, which `su` and `mount` need on a system: they have no use in a
/// cache, which gets no updates.
fn disarm(tree: &Path) -> std::io::Result<()> {
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Applies to the link itself, not to its target.
            let known = entry.metadata()?;
            let mode = known.permissions().mode();
            if known.is_dir() {
                folders.push(entry.path());
            } else if known.is_file() && mode & 0o6000 != 0 {
                fs::set_permissions(entry.path(), Permissions::from_mode(mode & 0o1777))?;
            }
        }
    }
    Ok(())
}

/// A file or folder of `cache` cannot be created, as without a home that this user may write to.
fn no_place(cache: &Path, path: &Path, error: &std::io::Error) -> Error {
    let is_default = cache == default_cache(|name| std::env::var_os(name));
    let remedy = match is_default {
        true => ", or for this shell: export XDG_CACHE_HOME=\"$(mktemp -d -p /var/tmp)\"",
        false => "",
    };
    Error::Unavailable(format!(
        "there is no place for the kernel and tools of the lab's machine: {} could not be created: {error}. Name \
         another folder with --cache{remedy}",
        path.display()
    ))
}

fn unavailable(error: exec::Error) -> Error {
    if matches!(error, exec::Error::Interrupted { .. }) {
        return Error::Interrupted;
    }
    Error::Unavailable(format!(
        "the kernel and tools of the lab's machine cannot be fetched: {error}. They come from \
         Debian's archive through apt, so this needs Debian and a way to its archive; or name a \
         folder that was filled elsewhere with --cache"
    ))
}

/// apt with the host's sources and keys. It writes only to a folder of the lab: the host's lists are read, and if they
/// are outdated the lab downloads its own.
struct Apt<'a> {
    folder: PathBuf,
    own_lists: bool,
    interrupt: &'a AtomicBool,
}

impl Apt<'_> {
    fn program(&self, name: &str) -> Exec {
        let option = |key: &str, folder: &str| {
            let mut value = OsString::from(format!("{key}="));
            value.push(self.folder.join(folder));
            [OsString::from("-o"), value]
        };
        // apt's own user cannot access a folder in a user's home, and prints long warnings about that.
        let mut program = Exec::new(name)
            .args(["-o", "APT::Sandbox::User=root"])
            .args(option("Dir::Cache", "cache"))
            .bound();
        if self.own_lists {
            program = program.args(option("Dir::State::Lists", "lists"));
        }
        program
    }

    fn run(&self, program: &Exec) -> std::result::Result<String, exec::Error> {
        let output = program.run_unless(self.interrupt)?;
        Ok(output.text())
    }

    /// Downloads the lab's own lists.
    fn update(&mut self) -> std::result::Result<(), exec::Error> {
        self.own_lists = true;
        let update = self.program("apt-get").args(["update", "-qq"]);
        self.run(&update.limit(DOWNLOAD)).map(drop)
    }

    fn download(&self, arch: &Arch, debs: &Path) -> std::result::Result<(), exec::Error> {
        // If these are missing, apt only warns in some versions.
        for folder in ["cache/archives/partial", "lists/partial"] {
            let _ = fs::create_dir_all(self.folder.join(folder));
        }
        let mut packages = BTreeSet::from([self.kernel_package(arch)?]);
        let mut ask: Vec<String> = TOOLS.map(str::to_owned).to_vec();
        while !ask.is_empty() {
            let listed = self.depends(&ask)?;
            packages.extend(ask);
            let libraries = named(&listed).filter(|name| is_library(name));
            ask = libraries
                .filter(|name| !packages.contains(*name))
                .map(str::to_owned)
                .collect::<BTreeSet<String>>()
                .into_iter()
                .collect();
        }
        let download = self.program("apt-get").args(["-qq", "download"]);
        let download = download.args(packages).folder(debs).limit(DOWNLOAD);
        self.run(&download).map(drop)
    }

    /// The package that contains the kernel: the package that the package without a version depends on.
    fn kernel_package(&self, arch: &Arch) -> std::result::Result<String, exec::Error> {
        let listed = self.depends(&[arch.kernel.to_owned()])?;
        let package = named(&listed).find(|name| name.starts_with("linux-image-"));
        Ok(package.unwrap_or(arch.kernel).to_owned())
    }

    fn depends(&self, packages: &[String]) -> std::result::Result<String, exec::Error> {
        let depends = self.program("apt-cache").args(["depends", "--important"]);
        self.run(&depends.args(packages))
    }
}

/// The dependencies in the output of `apt-cache depends`; of alternatives, the first.
fn named(listed: &str) -> impl Iterator<Item = &str> {
    let mut alternative = false;
    listed.lines().filter_map(move |line| {
        let (kind, name) = line.trim_start().split_once("Depends: ")?;
        let first = !std::mem::replace(&mut alternative, kind.starts_with('|'));
        (first && !name.starts_with('<')).then(|| name.trim())
    })
}

/// True if a package contains libraries. Tools that a package also depends on are not used here.
fn is_library(package: &str) -> bool {
    package.starts_with("lib") || package.starts_with("zlib")
}

/// Kernels of newer releases have compressed modules, and the dependencies of a module are inside of it.
fn expand(tree: &Path) -> Result<()> {
    let mut folders = vec![tree.join("lib/modules"), tree.join("usr/lib/modules")];
    let mut packed = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".ko.xz") {
                packed.push(path);
            }
        }
    }
    for some in packed.chunks(200) {
        Exec::new("xz")
            .args(["--decompress", "--"])
            .args(some)
            .run()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `apt-cache depends --important` in Debian 12, shortened.
    const APT_CACHE_OUTPUT: &str = "\
util-linux
  PreDepends: libblkid1
  PreDepends: libsystemd0
    libelogind0
  Depends: util-linux-extra
mdadm
 |Depends: debconf
  Depends: <debconf-2.0>
    cdebconf
    debconf
 |Depends: libcurl4
  Depends: libcurl3
  Depends: libudev1
";

    #[test]
    fn dependencies_of_a_package_are_read_with_the_first_of_alternatives() {
        let names: Vec<&str> = named(APT_CACHE_OUTPUT).collect();
        let wanted = [
            "libblkid1",
            "libsystemd0",
            "util-linux-extra",
            "debconf",
            "libcurl4",
            "libudev1",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn nothing_in_the_cache_runs_as_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("usr/bin");
        fs::create_dir_all(&below).unwrap();
        for (name, before, after) in [
            ("su", 0o4755, 0o755),
            ("wall", 0o2755, 0o755),
            ("plain", 0o640, 0o640),
        ] {
            let path = below.join(name);
            File::create(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            disarm(folder.path()).unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, after, "{name}");
        }
    }

    #[test]
    fn an_interruption_ends_the_wait_for_the_packages() {
        let folder = tempfile::tempdir().unwrap();
        let interrupted =
            Packages::ensure_unless(folder.path(), &mut |_| {}, &AtomicBool::new(true));
        assert!(matches!(interrupted, Err(Error::Interrupted)));
        // An interrupted call does not wait for another downloading process either.
        let lock = File::create(folder.path().join("lock")).unwrap();
        lock.lock().unwrap();
        let interrupted =
            Packages::ensure_unless(folder.path(), &mut |_| {}, &AtomicBool::new(true));
        assert!(matches!(interrupted, Err(Error::Interrupted)));
    }

    #[test]
    fn the_cache_is_where_xdg_says() {
        let cache = |xdg: Option<&str>, home: Option<&str>| {
            default_cache(|name| match name {
                "XDG_CACHE_HOME" => xdg.map(OsString::from),
                _ => home.map(OsString::from),
            })
        };
        assert_eq!(cache(Some("/c"), Some("/h")), Path::new("/c/disksmith/lab"));
        let in_home = Path::new("/h/.cache/disksmith/lab");
        for xdg in [None, Some(""), Some("relative")] {
            assert_eq!(cache(xdg, Some("/h")), in_home);
        }
        assert_eq!(cache(None, None), Path::new("/var/cache/disksmith/lab"));
    }
}
