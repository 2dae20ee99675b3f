//! Facts about the machine and the device below a target, saved with every run.
//!
//! Containers hide parts of `/sys` and `/proc`, so nothing here is an error: values that cannot be read stay unknown.

mod cgroup;
mod cpu;

pub use cpu::online as online_processors;

use std::path::Path;

use record::{Bytes, FilesystemFacts, Machine};

use crate::block::{Devices, place_of};
use crate::mounts::Mount;
use crate::root::{Root, attribute};

/// Facts about this machine, about `device` by its name (`sda1`, `md0`), and about the file system of `target`. The
/// cloud is not included, since its query takes time: see [`cloud::detect`](crate::cloud::detect).
pub fn facts(root: &Root, device: Option<&str>, target: Option<&Path>) -> Machine {
    let devices = match (device, target) {
        (None, None) => Devices::default(),
        _ => Devices::read(root).unwrap_or_default(),
    };
    let device = device.and_then(|name| devices.named(name));
    let filesystem = target
        .and_then(|path| place_of(root, &devices, path).ok()?.mount)
        .map(|mount| filesystem(&mount));
    let memory = memory(root);
    let uname = rustix::system::uname();
    Machine {
        hostname: hostname(root),
        kernel: kernel(root),
        arch: of_kernel(root, "arch", uname.machine()),
        cpu: cpu::model(root),
        cores: cpu::usable(root),
        memory: memory.unwrap_or_default(),
        memory_limit: cgroup::memory_limit(root)
            .filter(|limit| memory.is_none_or(|memory| *limit < memory)),
        filesystem,
        scheduler: device.and_then(|device| device.scheduler.clone()),
        read_ahead: device.and_then(|device| device.read_ahead),
        rotational: device.and_then(|device| device.rotational),
        write_cache: device.and_then(|device| device.write_cache.clone()),
        cloud: None,
    }
}

/// The kernel's release, such as `6.1.0-13-amd64` (uname(2)).
pub fn kernel(root: &Root) -> String {
    of_kernel(root, "osrelease", rustix::system::uname().release())
}

/// The host's name (uname(2)).
pub fn hostname(root: &Root) -> String {
    of_kernel(root, "hostname", rustix::system::uname().nodename())
}

/// A name from `/proc/sys/kernel`, or, if that is hidden, from uname(2).
fn of_kernel(root: &Root, name: &str, from_uname: &std::ffi::CStr) -> String {
    attribute(&root.proc.join("sys/kernel").join(name))
        .unwrap_or_else(|| from_uname.to_string_lossy().into_owned())
}

/// `MemTotal` of `/proc/meminfo` (proc(5)): the machine's memory without that reserved by the kernel and the firmware.
pub fn memory(root: &Root) -> Option<Bytes> {
    of_meminfo(root, "MemTotal:")
}

/// `MemAvailable` of `/proc/meminfo` (proc(5)): the kernel's estimate of the memory that can be allocated without
/// swapping.
pub fn available_memory(root: &Root) -> Option<Bytes> {
    of_meminfo(root, "MemAvailable:")
}

fn of_meminfo(root: &Root, key: &str) -> Option<Bytes> {
    let meminfo = attribute(&root.proc.join("meminfo"))?;
    let size = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

fn filesystem(mount: &Mount) -> FilesystemFacts {
    FilesystemFacts {
        kind: mount.kind.clone(),
        mount_point: mount.point.to_string_lossy().into_owned(),
        options: options(&mount.options, &mount.super_options),
    }
}

/// The options of the mount, then those of the file system that are not among them. Both lists have `rw` or `ro`, and
/// the mount's own takes precedence.
fn options(mount: &str, filesystem: &str) -> String {
    let mut all: Vec<&str> = mount.split(',').filter(|word| !word.is_empty()).collect();
    for option in filesystem.split(',').filter(|word| !word.is_empty()) {
        if !all.contains(&option) && !matches!(option, "rw" | "ro") {
            all.push(option);
        }
    }
    // A file system that is read-only is so on every mount, whatever the mount says.
    if filesystem.split(',').any(|option| option == "ro")
        && let Some(access) = all.iter_mut().find(|option| **option == "rw")
    {
        *access = "ro";
    }
    all.join(",")
}

#[cfg(test)]
mod tests;
