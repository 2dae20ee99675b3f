//! Bitmaps that a level, mdadm or the kernel does not have.

use linux::exec::Exec;
use linux::root::read_text;

use super::super::bitmap::Bitmap;
use super::super::host::ArrayHost;
use domain::raid::Level;

/// Least versions with lockless bitmaps: of mdadm (CHANGELOG.md, 4.6), and of Linux (drivers/md/md-llbitmap.c).
const MDADM_LOCKLESS: (u32, u32) = (4, 6);
const LINUX_LOCKLESS: (u32, u32) = (6, 18);

/// Reasons against a bitmap, as sentences.
pub(super) fn problems(chosen: Option<Bitmap>, level: Level, host: &mut ArrayHost) -> Vec<String> {
    let Some(chosen) = chosen else {
        return Vec::new();
    };
    if !level.is_redundant() {
        return vec![format!(
            "--bitmap is for levels with copies or parity, and {} has neither; leave it out",
            level.title()
        )];
    }
    if chosen != Bitmap::Lockless {
        return Vec::new();
    }
    let mdadm = mdadm_version(host);
    let linux = read_text(&host.root.proc.join("sys/kernel/osrelease")).ok();
    let parts = [
        ("mdadm", mdadm, MDADM_LOCKLESS),
        ("Linux", linux, LINUX_LOCKLESS),
    ];
    parts
        .into_iter()
        .filter_map(|(what, found, least)| too_old(what, found.as_deref(), least))
        .collect()
}

/// Version that mdadm reports of itself, such as `4.2`.
fn mdadm_version(host: &mut ArrayHost) -> Option<String> {
    if !host.programs.has("mdadm") {
        // That is a reason of its own.
        return None;
    }
    let output = host.ask(&Exec::new("mdadm").arg("--version")).ok()?;
    // Older ones tell it on standard error.
    let text = format!(
        "{} {}",
        output.text(),
        String::from_utf8_lossy(&output.stderr)
    );
    let version = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'))?;
    Some(version.to_owned())
}

fn too_old(what: &str, found: Option<&str>, (major, minor): (u32, u32)) -> Option<String> {
    let here = match found {
        Some(found) if version(found).is_some_and(|known| known >= (major, minor)) => return None,
        Some(found) => format!("{found} is installed"),
        None => "its version here is not known".to_owned(),
    };
    Some(format!(
        "a lockless bitmap needs {what} {major}.{minor}, and {here}; use --bitmap internal"
    ))
}

/// First two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_compared_by_its_first_two_numbers() {
        for (found, is_enough) in [
            ("4.6", true),
            ("4.10-2", true),
            ("5.0", true),
            ("4.2", false),
            ("4.5.1", false),
            ("unknown", false),
        ] {
            let reason = too_old("mdadm", Some(found), MDADM_LOCKLESS);
            assert_eq!(reason.is_none(), is_enough, "{found}");
        }
        let reason = too_old("Linux", Some("6.1.0-56-cloud-amd64"), LINUX_LOCKLESS).unwrap();
        assert!(
            reason.contains("needs Linux 6.18, and 6.1.0-56"),
            "{reason}"
        );
        assert!(
            too_old("mdadm", None, MDADM_LOCKLESS)
                .unwrap()
                .contains("not known")
        );
    }
}
