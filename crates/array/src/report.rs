//! The array that `array create` builds, or would build, as text and as a document.

use std::path::{Path, PathBuf};

use linux::block::Devices;
use record::Bytes;
use serde::Serialize;

use super::bitmap::Bitmap;
use super::check::CheckedPlan;
use super::host::ArrayHost;
use super::persist::{self, has_udev};
use super::plan::ArrayPlan;
use crate::args::CreateArgs;
use domain::raid::Raid10Layout;
use ui::table::wrap;

/// The document of `array create --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// True with `--dry-run`: nothing was touched.
    dry_run: bool,
    /// Path of the array's device.
    node: &'a Path,
    /// Name of the array; `null` where it only has a number.
    name: Option<&'a str>,
    /// UUID of the array, which is chosen before it is built.
    uuid: &'a str,
    /// RAID level, such as `10`.
    level: &'static str,
    /// Layout of the copies of RAID 10; `null` at other levels.
    layout: Option<&'static str>,
    /// Paths of its members.
    members: &'a [PathBuf],
    /// Paths of its hot spares.
    spares: &'a [PathBuf],
    /// Write-intent bitmap; `null` at levels that can have none.
    bitmap: Option<&'static str>,
    /// Chunk size; `null` at levels without chunks.
    chunk_bytes: Option<Bytes>,
    /// Capacity for data.
    capacity_bytes: Bytes,
    /// File system that is made on it, such as `xfs`; `null` without one.
    filesystem: Option<&'static str>,
    /// Mount point; `null` where it is not mounted.
    mount: Option<&'a Path>,
    /// The commands that build it, each as a line of a shell.
    commands: Vec<String>,
    /// Line of mdadm.conf that assembles it at boot.
    mdadm_conf: String,
    /// Line of fstab that mounts it at boot; `null` where it is not mounted.
    fstab: Option<String>,
    /// Rule of udev that sets the read-ahead; `null` where there is none to set, or no udev.
    udev_rule: Option<String>,
    /// True if `mdadm_conf`, `fstab` and `udev_rule` were written to their files.
    persisted: bool,
}

/// The array that was built, or would be where there is no node.
pub(super) fn document(
    plan: &ArrayPlan,
    args: &CreateArgs,
    etc: &Path,
    node: Option<&Path>,
) -> String {
    let geometry = plan.geometry;
    let at = node.unwrap_or(&plan.node);
    let commands = [Some(plan.mdadm()), plan.mkfs(at)];
    let mount = plan.mount(at);
    let commands = commands.into_iter().flatten();
    let commands = commands.chain(mount.as_ref().map(|(_, mount)| mount.clone()));
    let document = Document {
        dry_run: node.is_none(),
        node: at,
        name: plan.name.as_deref(),
        uuid: &plan.uuid,
        level: geometry.level.mdadm_name(),
        layout: plan.layout().map(Raid10Layout::name),
        members: &plan.members,
        spares: &plan.spares,
        bitmap: plan.bitmap().map(Bitmap::name),
        chunk_bytes: geometry.chunk,
        capacity_bytes: plan.capacity,
        filesystem: plan.fs.as_ref().map(|fs| fs.fs.name()),
        commands: commands.map(|command| command.line()).collect(),
        mount: mount.map(|(point, _)| point),
        mdadm_conf: plan.conf_line(),
        fstab: plan.fstab_line(),
        udev_rule: plan.udev_rule().filter(|_| has_udev(etc)),
        persisted: args.persist && node.is_some(),
    };
    ui::json::document("array create", &document)
}

/// Commands that would be run.
pub(super) fn dry_run(checked: &CheckedPlan, persist: bool, etc: &Path) -> String {
    let plan = &checked.plan;
    let mut lines = vec!["This would be run, and nothing of it was:".to_owned()];
    let signed = checked.members.iter().filter(|member| member.signed);
    lines.extend(
        signed.map(|member| format!("+ wipefs --all --force --quiet {}", member.path.display())),
    );
    lines.push(format!("+ {}", plan.mdadm().line()));
    if let Some(read_ahead) = plan.geometry.read_ahead() {
        // The number of a named array is not known before.
        let node = plan.node.display();
        lines.push(format!(
            "+ echo {} > /sys/class/block/$(basename $(readlink -f {node}))/queue/read_ahead_kb",
            read_ahead.0 >> 10
        ));
    }
    lines.extend(
        plan.mkfs(&plan.node)
            .map(|mkfs| format!("+ {}", mkfs.line())),
    );
    if let Some((point, mount)) = plan.mount(&plan.node) {
        if !point.exists() {
            lines.push(format!("+ mkdir -p {}", point.display()));
        }
        lines.push(format!("+ {}", mount.line()));
    }
    let mut text = lines.join("\n");
    text.push_str("\n\n");
    text.push_str(&boot_files(checked, persist, etc, "would be"));
    text
}

/// The lines for the files that are read at boot.
fn boot_files(checked: &CheckedPlan, persist: bool, etc: &Path, verb: &str) -> String {
    let heads = match persist {
        true => format!("For the next boot, this {verb} in"),
        false => "For the next boot (--persist writes it), this belongs in".to_owned(),
    };
    let lines = persist::lines(&checked.plan, etc).into_iter();
    let lines = lines.map(|(file, line)| format!("{heads} {}:\n  {line}\n", file.display()));
    lines.collect()
}

/// The array that was built.
pub(super) fn summary(
    checked: &CheckedPlan,
    persist: bool,
    host: &ArrayHost,
    columns: usize,
) -> anyhow::Result<String> {
    let (plan, array) = (&checked.plan, host.built()?);
    let node = array.node.display();
    let geometry = plan.geometry;
    // What md made of it: chunks and superblocks take a little.
    let devices = Devices::read(&host.root)?;
    let size = devices.get(array.number).map(|device| device.size);
    let spares = match plan.spares.len() {
        0 => String::new(),
        1 => " and a hot spare".to_owned(),
        count => format!(" and {count} hot spares"),
    };
    let mut text = format!(
        "\n{node} is {} of {} members{spares}, with {} for data.\n",
        geometry.level.title(),
        geometry.members,
        size.unwrap_or(plan.capacity)
    );
    let mut report = |sentence: String| {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    };
    if let Some(read_ahead) = geometry.read_ahead() {
        let stripes = geometry.stripe().map(|stripe| stripe.0.saturating_mul(2));
        let why = if stripes == Some(read_ahead.0) {
            "two stripes of data, so that a scan keeps all members at work"
        } else {
            "as near to two stripes of data as is useful; two let a scan keep all members at work"
        };
        let lasts = match persist && persist::has_udev(&host.etc) {
            true => "udev sets it again whenever the array is assembled.",
            false => {
                "It lasts until the array is stopped; newer kernels choose two stripes by themselves."
            }
        };
        report(format!("Read-ahead is {read_ahead}: {why}. {lasts}"));
    }
    if geometry.level.is_redundant() && !plan.assume_clean {
        report(format!(
            "It can be used at once. Its {} synchronized meanwhile, which takes from its \
             speed{}: 'disksmith array list' shows how far that is; measure after.",
            if geometry.level.has_parity() {
                "parity is"
            } else {
                "copies are"
            },
            if geometry.level.is_built_degraded() {
                ", and until then no member may fail"
            } else {
                ""
            }
        ));
    }
    text.push_str(&boot_files(checked, persist, &host.etc, "is now"));
    if persist && host.etc.join("initramfs-tools").is_dir() {
        text.push_str("The initramfs has a copy of mdadm.conf: update-initramfs -u renews it.\n");
    }
    Ok(text)
}
