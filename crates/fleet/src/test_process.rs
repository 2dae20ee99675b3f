//! Cost of a test in a separate process: memory and processor time are measured for a whole process.

use std::process::Command;

/// Tells the process that it runs a single test.
const SINGLE_TEST_VARIABLE: &str = "DISKSMITH_TEST_ALONE";

/// Runs an otherwise ignored test in a separate process, and returns its output.
#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
pub(crate) fn run_alone(name: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(SINGLE_TEST_VARIABLE, "1")
        .output()
        .unwrap();
    let test_output = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{test_output}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(test_output.contains("1 passed"), "{test_output}");
    test_output
}

/// True in such a process.
pub(crate) fn is_alone() -> bool {
    std::env::var_os(SINGLE_TEST_VARIABLE).is_some()
}

/// Present memory of this process, in MiB (proc_pid_status(5)).
pub(crate) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// Processor time of this process, in seconds (proc_pid_stat(5), fields 14 and 15).
pub(crate) fn used() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at - 3].parse::<f64>().unwrap();
    (ticks(14) + ticks(15)) / rustix::param::clock_ticks_per_second() as f64
}
