//! The commands that build a layout permanently.

use std::path::{Path, PathBuf};

use linux::exec::Exec;

use super::layout::Layout;
use super::record::SweepSettings;
use array::geometry::Geometry;
use array::plan::{ArrayPlan, FsPlan};
use domain::filesystem::Fs;
use domain::raid::{Level, Raid10Layout};

/// The name of the array and its folder, which the user will change.
const NAME: &str = "data";

/// Commands that build a layout on the devices of a sweep: with disksmith, and the same by hand.
pub(crate) fn commands(settings: &SweepSettings, layout: &Layout) -> Vec<String> {
    let members: Vec<PathBuf> = settings
        .devices
        .iter()
        .take(layout.members)
        .map(|device| device.path.clone())
        .collect();
    let mut commands = match layout.geometry() {
        Some(geometry) => array(geometry, layout.fs, &members),
        None => single_disk_commands(layout.fs, &members),
    };
    if let Some(scheduler) = &layout.scheduler {
        commands.extend(members.iter().map(|member| {
            format!(
                "echo {scheduler} > /sys/class/block/$(basename $(readlink -f {}))/queue/scheduler",
                member.display()
            )
        }));
    }
    commands
}

fn array(geometry: Geometry, fs: Fs, members: &[PathBuf]) -> Vec<String> {
    let listed: Vec<String> = members.iter().map(|m| m.display().to_string()).collect();
    // After a sweep the devices have no signatures, but the data that it wrote.
    let consents: Vec<String> = listed
        .iter()
        .map(|member| format!("--destroy {member}=unknown"))
        .collect();
    let chunk = geometry
        .chunk
        .map_or_else(String::new, |chunk| format!(" --chunk {}k", chunk.0 >> 10));
    let copies = match geometry.layout {
        Raid10Layout::N2 => String::new(),
        other => format!(" --layout {}", other.name()),
    };
    let ours = format!(
        "disksmith array create --level {}{copies}{chunk} --members {} {} --name {NAME} --fs {} --mount \
         /{NAME} --persist",
        geometry.level.mdadm_name(),
        listed.join(","),
        consents.join(" "),
        fs.name(),
    );
    let mut plan = plan(geometry, fs, members);
    plan.name = Some(NAME.to_owned());
    let node = Path::new("/dev/md").join(NAME);
    plan.node.clone_from(&node);
    let mut lines = vec![ours, "# or by hand:".to_owned(), plan.mdadm().line()];
    if let Some(read_ahead) = geometry.read_ahead() {
        lines.push(format!(
            "blockdev --setra {} {}",
            read_ahead.0 / 512,
            node.display()
        ));
    }
    lines.extend(formatted(&plan, &node));
    lines
}

fn single_disk_commands(fs: Fs, members: &[PathBuf]) -> Vec<String> {
    let geometry = Geometry {
        level: Level::Linear,
        members: 1,
        chunk: None,
        layout: Raid10Layout::N2,
    };
    let Some(disk) = members.first() else {
        return Vec::new();
    };
    let wipe = Exec::new("wipefs").arg("--all").arg(disk);
    let mut lines = vec![wipe.line()];
    lines.extend(formatted(&plan(geometry, fs, members), disk));
    lines
}

fn formatted(plan: &ArrayPlan, node: &Path) -> Vec<String> {
    let mut lines: Vec<String> = plan
        .mkfs(node)
        .map(|mkfs| mkfs.line())
        .into_iter()
        .collect();
    if let Some((point, mount)) = plan.mount(node) {
        lines.push(format!("mkdir -p {}", point.display()));
        lines.push(mount.line());
    }
    lines
}

/// A plan without ids, which the programs choose.
fn plan(geometry: Geometry, fs: Fs, members: &[PathBuf]) -> ArrayPlan {
    ArrayPlan {
        geometry,
        members: members.to_vec(),
        spares: Vec::new(),
        name: None,
        node: PathBuf::new(),
        uuid: String::new(),
        capacity: record::Bytes(0),
        bitmap: None,
        assume_clean: false,
        fs: Some(FsPlan {
            fs,
            uuid: String::new(),
            mount: Some(Path::new("/").join(NAME)),
            trial: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Bytes;

    #[test]
    fn an_array_is_built_with_the_layout_of_its_copies_where_that_is_not_the_usual_one() {
        let lines = |layout| {
            let geometry = Geometry {
                level: Level::Ten,
                members: 2,
                chunk: Some(Bytes::kib(64)),
                layout,
            };
            array(geometry, Fs::Xfs, &["/dev/b".into(), "/dev/c".into()])
        };
        let far = lines(Raid10Layout::F2);
        assert!(
            far[0].contains(" --level 10 --layout f2 --chunk 64k "),
            "{far:#?}"
        );
        assert!(
            far[2].contains(" --level=10 --layout=f2 --chunk=64 "),
            "{far:#?}"
        );
        let near = lines(Raid10Layout::N2);
        assert!(near[0].contains(" --level 10 --chunk 64k "), "{near:#?}");
    }
}
