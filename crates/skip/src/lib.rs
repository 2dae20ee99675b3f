//! Tests only: one way to skip what cannot be tested on a machine.
//!
//! A test needs root, a device or a program that does not exist. Alone (`cargo test`), it says so and passes.
//! With `DISKSMITH_TESTS=all`, as `make test` sets it, it fails: skipped is not passed.
//! `DISKSMITH_SKIPPED` names a file to which each reason is added, so that they can be counted: what a test
//! that passes prints is not shown.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::env;
use std::fs::File;
use std::io::Write as _;

/// Skips a test, or a part of one, for want of something that it needs.
///
/// # Panics
/// With `DISKSMITH_TESTS=all`, and when the file of `DISKSMITH_SKIPPED` cannot be written.
#[track_caller]
pub fn skipped(why: &str) {
    let all = env::var_os("DISKSMITH_TESTS").is_some_and(|tests| tests == "all");
    assert!(!all, "skipped, where DISKSMITH_TESTS=all forbids it: {why}");
    println!("skipped: {why}");
    if let Some(path) = env::var_os("DISKSMITH_SKIPPED") {
        let file = File::options().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{}", why.trim()));
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;
    use std::process::{Command, Output};

    /// Runs the test below by itself, with these variables alone.
    fn run(variables: &[(&str, &str)]) -> Output {
        Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "tests::skips_when_run_by_the_tests_beside_it",
                "--ignored",
                "--show-output",
            ])
            .env_remove("DISKSMITH_TESTS")
            .env_remove("DISKSMITH_SKIPPED")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    use super::*;

    #[test]
    #[ignore = "run by the tests beside it"]
    fn skips_when_run_by_the_tests_beside_it() {
        skipped("there is no such thing\n");
    }

    #[test]
    fn a_test_that_is_skipped_says_so_and_is_counted() {
        let path = env::temp_dir().join(format!("skipped-{}", std::process::id()));
        let variables = [("DISKSMITH_SKIPPED", path.to_str().unwrap())];
        for times in 1..=2 {
            let output = run(&variables);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}");
            assert!(text.contains("skipped: there is no such thing"), "{text}");
            let counted = fs::read_to_string(&path).unwrap();
            assert_eq!(counted, "there is no such thing\n".repeat(times));
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn where_nothing_may_be_skipped_it_fails() {
        let output = run(&[("DISKSMITH_TESTS", "all")]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success(), "{text}");
        assert!(text.contains("there is no such thing"), "{text}");
    }
}
