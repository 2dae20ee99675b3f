//! Processors, priorities and memory of the threads that issue I/O.

#![allow(unsafe_code)]

use std::io;

use record::{MemoryMode, MemoryPolicy, Priority, ThreadSettings};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Applies settings to the calling thread.
///
/// # Errors
/// The kernel's error, with the refused setting.
pub(crate) fn apply(settings: &ThreadSettings) -> io::Result<()> {
    if !settings.cpus.is_empty() {
        bind(&settings.cpus).map_err(|error| refused("the processors of a job", &error))?;
    }
    if let Some(nice) = settings.nice {
        renice(nice).map_err(|error| refused("the nice value of a job", &error))?;
    }
    if let Some(priority) = settings.priority {
        prioritize(priority).map_err(|error| refused("the I/O priority of a job", &error))?;
    }
    if let Some(policy) = &settings.memory {
        set_memory_policy(policy).map_err(|error| refused("the memory nodes of a job", &error))?;
    }
    Ok(())
}

/// Value of a request's or thread's priority in the kernel's calls (ioprio.h).
pub(crate) fn packed(priority: Priority) -> u16 {
    u16::from(priority.class) << 13 | (priority.hint & 0x3ff) << 3 | u16::from(priority.level & 7)
}

fn refused(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} cannot be set: {error}"))
}

fn bind(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let number = *cpu as usize;
        if number >= CpuSet::MAX_CPU {
            let why = format!(
                "processor {cpu} is beyond the largest, {}",
                CpuSet::MAX_CPU - 1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        set.set(number);
    }
    Ok(sched_setaffinity(None, &set)?)
}

fn renice(nice: i32) -> io::Result<()> {
    // In Linux a nice value belongs to a thread; 0 is the calling one (setpriority(2), "C library/kernel
    // differences").
    // SAFETY: the call only takes numbers.
    checked(i64::from(unsafe {
        libc::setpriority(libc::PRIO_PROCESS as _, 0, nice)
    }))
}

fn prioritize(priority: Priority) -> io::Result<()> {
    /// IOPRIO_WHO_PROCESS: a thread; 0 is the calling one.
    const THREAD: libc::c_int = 1;
    // SAFETY: the call only takes numbers.
    checked(unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            THREAD,
            0,
            libc::c_int::from(packed(priority)),
        )
    })
}

/// Number of nodes in a mask.
const MAX_NUMA_NODES: usize = 1024;

fn set_memory_policy(policy: &MemoryPolicy) -> io::Result<()> {
    let mut mask = [0_u64; MAX_NUMA_NODES / 64];
    for node in &policy.nodes {
        let Some(word) = mask.get_mut(*node as usize / 64) else {
            let why = format!("node {node} is beyond the largest, {}", MAX_NUMA_NODES - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        *word |= 1 << (node % 64);
    }
    // Numbers of mempolicy.h.
    let mode: libc::c_int = match policy.mode {
        MemoryMode::Default => 0,
        MemoryMode::Prefer => 1,
        MemoryMode::Bind => 2,
        MemoryMode::Interleave => 3,
        MemoryMode::Local => 4,
    };
    let (mask, bits) = match policy.nodes.is_empty() {
        true => (std::ptr::null(), 0),
        false => (mask.as_ptr(), MAX_NUMA_NODES + 1),
    };
    // SAFETY: the mask has as many bits as the call is passed, or there is none, and it is copied.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) })
}

fn checked(result: i64) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` on a separate thread, since the settings belong to a thread.
    fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    fn status(key: &str) -> String {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line[key.len() + 1..].trim().to_owned()
    }

    #[test]
    fn settings_apply_to_one_thread_only() {
        let first: u32 = {
            let all = status("Cpus_allowed_list");
            all.split([',', '-']).next().unwrap().parse().unwrap()
        };
        let before = status("Cpus_allowed_list");
        let settings = ThreadSettings {
            cpus: vec![first],
            nice: Some(7),
            priority: Some(Priority {
                class: 2,
                level: 6,
                hint: 0,
            }),
            memory: None,
        };
        let (cpus, nice, priority) = on_a_thread(|| {
            apply(&settings).unwrap();
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            // The nice value is field 19, and the state, which follows the name, field 3.
            let nice = fields.split(' ').nth(16).unwrap().to_owned();
            // SAFETY: the call takes numbers alone.
            let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
            (status("Cpus_allowed_list"), nice, priority)
        });
        assert_eq!((cpus, nice.as_str()), (first.to_string(), "7"));
        assert_eq!(priority, 2 << 13 | 6);
        assert_eq!(status("Cpus_allowed_list"), before);
    }

    #[test]
    fn a_missing_processor_is_refused_by_its_number() {
        let settings = ThreadSettings {
            cpus: vec![CpuSet::MAX_CPU as u32 - 1],
            ..ThreadSettings::default()
        };
        let error = on_a_thread(|| apply(&settings)).unwrap_err().to_string();
        assert!(
            error.contains("the processors of a job cannot be set"),
            "{error}"
        );
    }
}
