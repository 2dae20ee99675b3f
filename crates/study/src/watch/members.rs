//! Members of an array, for comparison with each other.

use record::sample::{DeviceKind, DeviceSample, Sample, SyncAction};

use super::history::{DeviceHistory, Point};

/// A member and its last points.
pub(super) struct MemberLoad<'a> {
    /// The member.
    pub(super) device: &'a DeviceSample,
    /// Points of the member.
    pub(super) points: &'a [Point],
}

/// The arrays of a sample.
pub(super) fn arrays(sample: &Sample) -> impl Iterator<Item = &DeviceSample> {
    sample
        .devices
        .iter()
        .filter(|device| device.device.kind == DeviceKind::Array)
}

/// True if an array rebuilds a member or changes its layout, so that its members have different work.
pub(super) fn is_rebuilt(array: &DeviceSample) -> bool {
    let action = array.array.as_ref().and_then(|state| state.action);
    matches!(action, Some(SyncAction::Recover | SyncAction::Reshape))
}

/// The members that should do the same: without spares, failed ones, and those that are only written. Empty where one
/// of them was not seen for as long.
pub(super) fn sides<'a>(
    array: &'a DeviceSample,
    sample: &'a Sample,
    history: &'a DeviceHistory,
    seconds: f64,
    least: usize,
) -> Vec<MemberLoad<'a>> {
    let state = array.array.as_ref();
    let takes_part = |device: &&DeviceSample| {
        let member = state.and_then(|state| {
            let id = Some(device.device.id);
            state.members.iter().find(|member| member.device == id)
        });
        member.is_none_or(|member| {
            let odd = ["faulty", "spare", "write_mostly"];
            !member.state.iter().any(|word| odd.contains(&word.as_str()))
        })
    };
    sample
        .below(&array.device)
        .filter(takes_part)
        .map(|device| {
            let points = history.last(device.device.id, seconds, least)?;
            Some(MemberLoad { device, points })
        })
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default()
}
