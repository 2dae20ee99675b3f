//! Debian's cloud kernel and the tools, downloaded through apt and unpacked into a cache folder.
//! Nothing is installed. The folder is made once and used again; removing it fetches anew.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::exec::{self, Exec};

use super::arch::Arch;
use super::{Error, Result};

/// Raised when the list below changes, so that an older cache is not taken for a whole one.
const FORM: u32 = 1;

/// Where the tools come from. Their libraries are found by what the packages depend on.
const TOOLS: [&str; 10] = [
    "bash",
    "dash",
    "busybox-static",
    "mdadm",
    "e2fsprogs",
    "xfsprogs",
    "btrfs-progs",
    "util-linux",
    "mount",
    "libgcc-s1",
];

/// How long a download may take, over a slow line.
const DOWNLOAD: Duration = Duration::from_secs(900);

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

/// Where packages are kept unless the user says otherwise: `disksmith/lab` in the user's cache
/// folder, by the XDG rules.
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
    /// The packages in `cache`, fetched when they are not there yet: `tell` is given a sentence
    /// before that. Two processes may ask at once: one fetches, the other waits for it.
    ///
    /// # Errors
    /// When there is no apt, or it cannot give the packages.
    pub fn ensure(cache: &Path, tell: &mut dyn FnMut(&str)) -> Result<Packages> {
        let arch = super::host_arch()?;
        let done = cache.join(format!("machine-{FORM}-{}", arch.debian));
        if done.is_dir() {
            return Packages::in_tree(done);
        }
        fs::create_dir_all(cache).map_err(|source| Error::file("created", cache, source))?;
        let lock = cache.join("lock");
        let file = File::create(&lock).map_err(|source| Error::file("created", &lock, source))?;
        file.lock()
            .map_err(|source| Error::file("locked", &lock, source))?;
        if done.is_dir() {
            return Packages::in_tree(done);
        }
        tell(&format!(
            "Fetching a kernel and tools from Debian's archive into {}, once.",
            cache.display()
        ));
        // A name of its own and a rename at the end: the folder is whole or absent.
        let new = cache.join(format!("new-{FORM}-{}", arch.debian));
        clear(&new)?;
        fetch(arch, &new)?;
        let tree = new.join("tree");
        // Looked at before it gets its name, so that a kernel without an image is not kept.
        Packages::in_tree(tree.clone())?;
        fs::rename(&tree, &done).map_err(|source| Error::file("renamed", &tree, source))?;
        clear(&new)?;
        Packages::in_tree(done)
    }

    fn in_tree(tree: PathBuf) -> Result<Packages> {
        let kernel = only(&tree.join("boot"), "vmlinuz-")?;
        // On a system with a merged /usr the package has the modules there.
        let modules = ["lib/modules", "usr/lib/modules"].map(|folder| tree.join(folder));
        let modules = modules.iter().find(|folder| folder.is_dir());
        let modules = only(modules.unwrap_or(&tree.join("lib/modules")), "")?;
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

/// The one entry of a folder whose name begins so.
fn only(folder: &Path, beginning: &str) -> Result<PathBuf> {
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

fn fetch(arch: &Arch, new: &Path) -> Result<()> {
    let (debs, tree) = (new.join("debs"), new.join("tree"));
    for folder in [&debs, &tree] {
        fs::create_dir_all(folder).map_err(|source| Error::file("created", folder, source))?;
    }
    // The lists may be absent or name versions that are gone; they are asked for when it matters.
    if let Err(error) = download(arch, &debs) {
        Exec::new("apt-get")
            .args(["update", "-qq"])
            .limit(DOWNLOAD)
            .run()
            .map_err(|_| unavailable(error))?;
        download(arch, &debs).map_err(unavailable)?;
    }
    let unreadable = |source| Error::file("read", &debs, source);
    for entry in fs::read_dir(&debs).map_err(unreadable)? {
        let package = entry.map_err(unreadable)?.path();
        Exec::new("dpkg-deb")
            .arg("--extract")
            .args([&package, &tree])
            .run()?;
    }
    expand(&tree)
}

fn unavailable(error: exec::Error) -> Error {
    Error::Unavailable(format!(
        "the kernel and tools of the lab's machine cannot be fetched: {error}. They come from \
         Debian's archive through apt, so this needs Debian and a way to its archive; or name a \
         folder that was filled elsewhere with --cache"
    ))
}

fn download(arch: &Arch, debs: &Path) -> std::result::Result<(), exec::Error> {
    let mut packages = BTreeSet::from([kernel_package(arch)?]);
    let mut ask: Vec<String> = TOOLS.map(str::to_owned).to_vec();
    while !ask.is_empty() {
        let listed = depends(&ask)?;
        packages.extend(ask);
        let libraries = named(&listed).filter(|name| is_library(name));
        ask = libraries
            .filter(|name| !packages.contains(*name))
            .map(str::to_owned)
            .collect::<BTreeSet<String>>()
            .into_iter()
            .collect();
    }
    Exec::new("apt-get")
        // apt's own user cannot reach a folder in somebody's home, and says so at length.
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download"])
        .args(packages)
        .folder(debs)
        .limit(DOWNLOAD)
        .run()
        .map(drop)
}

/// The package that has the kernel: the one that the name without a version depends on.
fn kernel_package(arch: &Arch) -> std::result::Result<String, exec::Error> {
    let listed = depends(&[arch.kernel.to_owned()])?;
    let package = named(&listed).find(|name| name.starts_with("linux-image-"));
    Ok(package.unwrap_or(arch.kernel).to_owned())
}

fn depends(packages: &[String]) -> std::result::Result<String, exec::Error> {
    let listed = Exec::new("apt-cache")
        .args(["depends", "--important"])
        .args(packages)
        .run()?;
    Ok(listed.text())
}

/// The packages that are depended on in the answer of `apt-cache depends`; of alternatives the
/// first.
fn named(listed: &str) -> impl Iterator<Item = &str> {
    let mut alternative = false;
    listed.lines().filter_map(move |line| {
        let (kind, name) = line.trim_start().split_once("Depends: ")?;
        let first = !std::mem::replace(&mut alternative, kind.starts_with('|'));
        (first && !name.starts_with('<')).then(|| name.trim())
    })
}

/// Whether a package holds libraries. Tools that a package depends on besides are not used here.
fn is_library(package: &str) -> bool {
    package.starts_with("lib") || package.starts_with("zlib")
}

/// Kernels of newer releases have their modules compressed, and what a module depends on is written
/// inside of it.
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

    /// Answers of `apt-cache depends --important` in Debian 12, shortened.
    const LISTED: &str = "\
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
    fn what_a_package_depends_on_is_read_with_the_first_of_alternatives() {
        let names: Vec<&str> = named(LISTED).collect();
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
