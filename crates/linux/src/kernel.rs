//! The kernel's version, and a warning about old versions.

use crate::machine;
use crate::root::Root;

/// Oldest supported version of Linux.
const MIN_LINUX_VERSION: (u32, u32) = (5, 10);

/// A sentence about an older kernel, which ends in a command to type; `None` for later versions, and if the version is
/// unknown.
pub fn reservation(root: &Root) -> Option<String> {
    of_release(&machine::kernel(root))
}

fn of_release(release: &str) -> Option<String> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let version = (number()?, number()?);
    (version < MIN_LINUX_VERSION).then(|| {
        let (major, minor) = MIN_LINUX_VERSION;
        format!(
            "this kernel is Linux {release}, and disksmith is made for {major}.{minor} and later: where an older one lacks \
             a call, a verb fails or leaves something out. Boot a later one, or measure with threads instead of io_uring: \
             disksmith bench --engine sync ."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_old_before_5_10() {
        for old in [
            "5.9.16-050916-generic",
            "4.19.0-27-amd64",
            "3.10.0-1160.el7.x86_64",
            "5.4",
        ] {
            let sentence = of_release(old).unwrap();
            assert!(sentence.contains(&format!("Linux {old},")), "{sentence}");
            assert!(
                sentence.ends_with(": disksmith bench --engine sync ."),
                "{sentence}"
            );
        }
        for other in [
            "5.10.0-32-amd64",
            "5.15",
            "6.1.0",
            "10.0-rc1",
            "",
            "6",
            "x.y",
        ] {
            assert_eq!(of_release(other), None, "{other}");
        }
    }
}
