//! External programs that list hosts: `ansible-inventory` and `aws`.

use std::time::Duration;

use linux::exec::Exec;

/// Time limit for `ansible-inventory` or one page of `aws`: both query a cloud.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Output of a program, which is killed when this process ends.
///
/// # Errors
/// A sentence, if it is not installed, fails or exceeds its time limit.
pub(crate) fn run(program: &Exec) -> Result<Vec<u8>, String> {
    let output = program.clone().die_with_parent().run();
    output
        .map(|output| output.stdout)
        .map_err(|why| why.to_string())
}
