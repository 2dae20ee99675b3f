//! The kernel modules to load, and their order: each after the modules that it depends on, as listed in the module
//! itself. Thus the unpacked kernel package needs no depmod.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::{Error, Result};

/// Modules loaded before the command runs: the ring before the bus that uses it, both before the devices on it, and
/// modules that load fast and are often used.
pub(super) const EARLY_MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci",
    "virtio_mmio",
    "virtio_console",
    "virtio_blk",
    "md_mod",
    "linear",
    "raid0",
    "raid1",
    "raid10",
    "loop",
];

/// Modules loaded when the kernel or the command requests them: under emulation, each takes a large part of a second.
pub(super) const ON_DEMAND: &[&str] = &[
    "raid456",
    "ext4",
    "xfs",
    "btrfs",
    "kyber_iosched",
    "bfq",
    "dm_mod",
    "dm_delay",
    "dm_flakey",
    "dm_integrity",
    "nbd",
];

/// The `key=value` pairs of a module.
type Facts = Vec<(String, String)>;

/// Modules by name.
#[derive(Debug, Default)]
pub(super) struct Modules {
    files: BTreeMap<String, PathBuf>,
}

impl Modules {
    /// Finds the modules below a folder such as `lib/modules/6.1.0-13-cloud-amd64`.
    pub(super) fn below(folder: &Path) -> Result<Modules> {
        let mut modules = Modules::default();
        modules.search(folder)?;
        Ok(modules)
    }

    fn search(&mut self, folder: &Path) -> Result<()> {
        let unreadable = |source| Error::file("read", folder, source);
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                self.search(&path)?;
            } else if path.extension().is_some_and(|end| end == "ko")
                && let Some(stem) = path.file_stem()
            {
                self.files.insert(plain(&stem.to_string_lossy()), path);
            }
        }
        Ok(())
    }

    /// The requested modules and their dependencies, each after its dependencies. Built-in modules and missing ones
    /// are left out: a command that needs a missing module reports that.
    pub(super) fn in_order(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        order(wanted, |name| {
            let Some(facts) = self.facts(name)? else {
                return Ok(None);
            };
            let path = self.files.get(name).cloned();
            Ok(path.map(|path| (path, depends(&facts))))
        })
    }

    /// The names by which the kernel requests a module, such as `md_level_5`; no patterns.
    pub(super) fn aliases(&self, name: &str) -> Result<Vec<String>> {
        let facts = self.facts(name)?.unwrap_or_default();
        let aliases = facts.into_iter().filter(|(key, _)| key == "alias");
        let plainly = aliases.map(|(_, alias)| plain(&alias));
        Ok(plainly
            .filter(|alias| !alias.contains(['*', '?', '[']))
            .collect())
    }

    fn facts(&self, name: &str) -> Result<Option<Facts>> {
        let Some(path) = self.files.get(name) else {
            return Ok(None);
        };
        let bytes = fs::read(path).map_err(|source| Error::file("read", path, source))?;
        Ok(Some(
            Elf::new(&bytes).map(Elf::module_facts).unwrap_or_default(),
        ))
    }
}

/// A module's name in the kernel: file names may have a dash instead of an underscore.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Dependencies of a module: those of its symbols, and those that it requests to be loaded before it.
fn depends(facts: &Facts) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in facts {
        match key.as_str() {
            "depends" => names.extend(value.split(',').filter(|n| !n.is_empty()).map(plain)),
            "softdep" => {
                let before = value.strip_prefix("pre:").unwrap_or_default();
                let before = before.split("post:").next().unwrap_or_default();
                names.extend(before.split_whitespace().map(plain));
            }
            _ => {}
        }
    }
    names
}

/// Orders the items, each once and after its dependencies. `find` returns an item and its dependencies, or `None` if
/// it does not exist.
fn order<T>(
    wanted: &[&str],
    mut find: impl FnMut(&str) -> Result<Option<(T, Vec<String>)>>,
) -> Result<Vec<T>> {
    enum Step<T> {
        Visit(String),
        Emit(T),
    }
    let mut ordered = Vec::new();
    let mut seen = BTreeSet::new();
    let mut steps: Vec<Step<T>> = wanted.iter().rev().map(|n| Step::Visit(plain(n))).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Emit(item) => ordered.push(item),
            // An item that depends on itself, directly or indirectly, is visited once, so that this ends.
            Step::Visit(name) if seen.insert(name.clone()) => {
                if let Some((item, depends)) = find(&name)? {
                    steps.push(Step::Emit(item));
                    steps.extend(depends.into_iter().rev().map(Step::Visit));
                }
            }
            Step::Visit(_) => {}
        }
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(wanted: &[&str], depends: &[(&str, &[&str])]) -> Vec<String> {
        order(wanted, |name| {
            let found = depends.iter().find(|(module, _)| *module == name);
            Ok(found.map(|(module, needs)| {
                let needs = needs.iter().map(ToString::to_string).collect();
                (module.to_string(), needs)
            }))
        })
        .unwrap()
    }

    #[test]
    fn a_module_comes_after_what_it_depends_on() {
        let order = ordered(
            &["raid456", "xfs"],
            &[
                ("md_mod", &[]),
                ("raid456", &["md_mod", "async_xor", "libcrc32c"]),
                ("async_xor", &["xor", "async_tx"]),
                ("async_tx", &[]),
                ("xor", &[]),
                ("libcrc32c", &[]),
                ("xfs", &["libcrc32c"]),
            ],
        );
        let wanted = [
            "md_mod",
            "xor",
            "async_tx",
            "async_xor",
            "libcrc32c",
            "raid456",
            "xfs",
        ];
        assert_eq!(order, wanted);
    }

    #[test]
    fn modules_that_are_built_in_are_passed_over() {
        assert_eq!(
            ordered(&["ext4", "loop"], &[("loop", &["cdrom"])]),
            ["loop"]
        );
    }

    #[test]
    fn soft_dependencies_of_a_module_count() {
        let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let facts = vec![
            fact("softdep", "pre: crypto-crc32c sha256 post: later"),
            fact("softdep", "post: much-later"),
            fact("depends", "raid6_pq,xor"),
            fact("depends", ""),
        ];
        assert_eq!(
            depends(&facts),
            ["crypto_crc32c", "sha256", "raid6_pq", "xor"]
        );
    }

    #[test]
    fn a_circle_ends() {
        let circle: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["a"])];
        assert_eq!(ordered(&["a"], circle), ["b", "a"]);
    }

    #[test]
    fn a_dash_and_an_underscore_name_the_same_module() {
        assert_eq!(ordered(&["md-mod"], &[("md_mod", &[])]), ["md_mod"]);
    }
}
