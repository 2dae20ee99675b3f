//! The volumes of groups, as on a command line.

use lab::spec::{VolumeGroup, VolumeSpec};

pub(crate) fn specs(groups: &[&str]) -> Vec<VolumeSpec> {
    let groups = groups
        .iter()
        .map(|text| text.parse::<VolumeGroup>().unwrap());
    groups
        .flat_map(|group| group.volumes().collect::<Vec<_>>())
        .collect()
}
