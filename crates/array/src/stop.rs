//! `array stop`: takes an array down that nothing uses.

use linux::block::{Device, Devices, Kind};
use linux::consent::Uses;
use linux::md;
use serde::Serialize;

use super::host::Host;
use super::{building, files, repair, teardown};
use job::Store;
use ui::exit::{ExitClass as _, Failure, listed};

/// Takes an array down, after what a killed `array create` has left.
pub(super) fn stop(word: &str, host: &mut Host, store: Option<Store>) -> Result<String, Failure> {
    let before = Uses::read(&host.root).refused()?;
    let named = md::find(&host.root, before.devices(), word).map(|array| array.number);
    if let Some(mut store) = store {
        repair::repair(host, &mut store, &[]);
    }
    let uses = Uses::read(&host.root).refused()?;
    let devices = uses.devices();
    let Some(array) = md::find(&host.root, devices, word) else {
        if named.is_some() {
            // It was one that was left half built, and the repair has taken it down.
            return Ok(document(word, &[]));
        }
        return Err(Failure::refused(unknown(word, devices)));
    };
    let label = array.label();
    let reasons = teardown::uses_of(&uses, array.number);
    if !reasons.is_empty() {
        return Err(Failure::refused(format!(
            "{label} is in use and not stopped:{}",
            listed(&reasons)
        )));
    }
    if !host.programs.has("mdadm") {
        return Err(Failure::refused(format!(
            "the program mdadm is not on the PATH; {}",
            linux::remedy::install("mdadm")
        )));
    }
    let members: Vec<String> = devices
        .parents(array.number)
        .iter()
        .map(|member| member.node().display().to_string())
        .collect();
    let lines = lines_for(host, devices, array);
    // mdadm stops an array or leaves it as it is, so nothing was touched when it fails.
    teardown::stop_with_retries(host, &array.node()).refused()?;
    let answer = document(&array.node().display().to_string(), &members);
    let (node, members) = (array.node(), members.join(" "));
    (host.report)(&format!(
        "{label} is stopped. Its members keep their content:\n  \
         mdadm --assemble {} {members}\nbrings it back, and\n  \
         mdadm --zero-superblock {members}\nends it for good.\n",
        node.display(),
    ));
    if !lines.is_empty() {
        let conf = building::mdadm_conf(&host.etc);
        (host.report)(&format!(
            "{} still has a line for it, and fstab may have one; take them out if it is not to \
             come back:\n{lines}",
            conf.display()
        ));
    }
    Ok(answer)
}

/// The document of `array stop --json`.
#[derive(Serialize)]
struct Document<'a> {
    /// The array, by its path or as it was named.
    stopped: &'a str,
    /// Paths of its members.
    members: &'a [String],
}

fn document(stopped: &str, members: &[String]) -> String {
    ui::json::document("array stop", &Document { stopped, members })
}

/// The lines of mdadm.conf that name an array.
fn lines_for(host: &Host, devices: &Devices, array: &Device) -> String {
    let conf = files::content(&building::mdadm_conf(&host.etc)).unwrap_or_default();
    let conf = String::from_utf8_lossy(&conf.unwrap_or_default()).into_owned();
    let names_it = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next() == Some("ARRAY")
            && words
                .next()
                .and_then(|node| md::find(&host.root, devices, node))
                .is_some_and(|named| named.number == array.number)
    };
    let lines = conf.lines().filter(names_it);
    lines.map(|line| format!("  {line}\n")).collect()
}

fn unknown(word: &str, devices: &Devices) -> String {
    let arrays: Vec<&str> = devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Raid { .. }))
        .map(|device| device.name.as_str())
        .collect();
    let there = match &arrays[..] {
        [] => "there is no array on this host".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    match devices.named(word.strip_prefix("/dev/").unwrap_or(word)) {
        Some(device) => format!("{} is not an array but a {}; {there}", word, device.title()),
        None => format!("there is no array {word}; {there}"),
    }
}
