//! The commands of the manual that need md, one after the other in one machine of the lab, whose disks have the manual's names.

use super::support::lab::in_lab;
use super::support::{Place, ProgramOutput};

/// A member of each name in the manual, of which one carries what a command says that it destroys.
const SETUP: &str = r#"
n=0
for name in sdf sdg sdh sdi sdj nvme0n1; do
    n=$((n + 1))
    ln -sf "/dev/vd$(echo abcdef | cut -c $n)" "/dev/$name"
done
blank() {
    for mount in $(grep '/dev/md' /proc/mounts | cut -d ' ' -f 2); do umount "$mount"; done
    mdadm --stop --scan 2>/dev/null
    for name in sdf sdg sdh sdi sdj nvme0n1; do
        blkdiscard "$(readlink -f /dev/$name)" || exit 9
    done
    rm -f /dev/md0 /dev/md1 /etc/mdadm.conf /etc/mdadm/mdadm.conf
    : >/etc/fstab
}
has_ext4() { mkfs.ext4 -q "$(readlink -f /dev/sdi)"; }
has_array() {
    disksmith array create --level 10 --members /dev/sdf,/dev/sdg,/dev/sdh,/dev/sdi --destroy /dev/sdf \
        --destroy /dev/sdg --destroy /dev/sdh --destroy /dev/sdi --name data >/dev/null || exit 9
    mdadm --wait /dev/md/data
    for link in md0 md1; do ln -sf "$(readlink -f /dev/md/data)" /dev/$link; done
}
# small_sweep [exec]
small_sweep() {
    $* disksmith sweep --devices /dev/sdf,/dev/sdg --destroy /dev/sdf --destroy /dev/sdg --members 2 --level 0 --chunk 64k \
        --fs ext4 --scheduler none,mq-deadline --phase page-read --objective page-read.iops --seconds 200ms --size 16M
}
has_sweep() { blank; small_sweep >/dev/null || exit 9; }
has_stopped_sweep() {
    blank
    small_sweep exec >/dev/null &
    tries=0
    until grep -q '^md' /proc/mdstat; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || exit 9
        sleep 0.1
    done
    kill -TERM $!
    wait $!
}
# What runs a schedule: the machine has no systemd.
mkdir -p /run/systemd/system /etc/systemd/system /data
for name in systemctl systemd-analyze; do printf '#!/bin/sh\n' >/bin/$name; chmod +x /bin/$name; done
"#;

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// State that a command begins with.
fn before(words: &[String]) -> &'static str {
    if words.iter().any(|word| word == "--window") {
        return "blank; has_array; date -s 02:00 >/dev/null";
    }
    match (words[0].as_str(), words[1].as_str()) {
        ("array", "create") | ("sweep", "--devices") => "blank; has_ext4",
        ("sweep", "--show") => "has_sweep",
        ("sweep", "--abandon") => "has_stopped_sweep",
        ("array" | "scrub", _) => "blank; has_array",
        _ => "true",
    }
}

/// Options that are added so that a command takes seconds.
fn shorter(words: &[String]) -> &'static str {
    match (words[0].as_str(), words[1].as_str()) {
        ("sweep", "--devices") => {
            " --phase page-mixed --phase page-write --blocks 1 --seconds 200ms --size 16M"
        }
        _ => "",
    }
}

/// Runs commands of the manual. The machine prints the number and the status of each, and the beginning of what it wrote to standard
/// error; `None` without QEMU.
pub(crate) fn run(place: &Place, commands: &[Vec<String>]) -> Option<ProgramOutput> {
    let mut script = SETUP.to_owned();
    for (number, words) in commands.iter().enumerate() {
        let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        script.push_str(&format!(
            "{}\ndisksmith {}{} >/tmp/out 2>/tmp/err; echo \"{number} $?\"; head -c 600 /tmp/err >&2\n",
            before(words),
            line.join(" "),
            shorter(words)
        ));
    }
    in_lab(place, "--volumes 6xiops=4000:1GiB --timeout 30m", &script)
}
