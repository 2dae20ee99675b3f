//! `errors`: the kernel's log or md speaks of errors.

use std::collections::{HashMap, HashSet};

use record::sample::{ArraySample, DeviceId, DeviceSample, KernelError, Sample, SampleTime};
use record::{Nanos, Severity, Subject};

use crate::watch::rule::{Rule, RuleInput, Sighting};

const ADVICE: &str = "Check the kernel's log (dmesg) and the volume's status in the cloud, and make sure that there is \
                      a backup first.";
const ADVICE_ARRAY: &str = "The array has less redundancy than it should. Make sure that there is a backup, then replace \
                            the member.";

/// The log's errors of one subject while the event lasts.
struct LoggedErrors {
    count: u64,
    last: KernelError,
    began: SampleTime,
    seen: SampleTime,
}

impl LoggedErrors {
    fn text(&self) -> String {
        let times = match self.count {
            1 => "The kernel's log reports".to_owned(),
            count => format!("The kernel's log has {count} errors, the last of them"),
        };
        // The log's lines end as their drivers have it, a sentence with a full stop.
        let last = self.last.text.trim_end_matches(['.', ' ']);
        format!("{times}: {last}.")
    }
}

/// Read errors of a member that md corrected from a copy.
struct Corrected {
    /// The count of md, as last seen.
    total: u64,
    /// Number that came while the event lasts, and the last time.
    fresh: u64,
    seen: SampleTime,
}

/// Rule for errors.
#[derive(Default)]
pub(super) struct Errors {
    logged: HashMap<Subject, LoggedErrors>,
    /// Corrections on each member of each array.
    corrected: HashMap<(DeviceId, String), Corrected>,
    /// The arrays that were seen whole.
    whole: HashSet<DeviceId>,
}

/// Time without a new line after which an event of the log ends.
const SILENCE: Nanos = Nanos::from_secs(60);

impl Rule for Errors {
    fn grace_period(&self) -> Nanos {
        SILENCE
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let at = now.sample.at;
        self.logged
            .retain(|_, errors| at.elapsed - errors.seen.elapsed <= SILENCE);
        for error in &now.sample.host.errors {
            self.note_error(error, now);
        }
        for (subject, errors) in &self.logged {
            let device = match subject {
                Subject::Device(id) => now.sample.device(*id),
                Subject::Host => None,
            };
            // The errors of an array go with what md reports of it.
            let is_array = device.is_some_and(|device| device.array.is_some());
            if errors.seen.elapsed == at.elapsed && !is_array {
                seen.push(of_log(*subject, device, errors));
            }
        }
        let arrays: Vec<_> = now
            .sample
            .devices
            .iter()
            .filter_map(|device| Some((device, device.array.as_ref()?)))
            .collect();
        let there: HashSet<DeviceId> = arrays.iter().map(|(array, _)| array.device.id).collect();
        self.corrected.retain(|(id, _), _| there.contains(id));
        self.whole.retain(|id| there.contains(id));
        for (array, state) in arrays {
            seen.extend(self.of_array(array, state, now));
        }
    }
}

fn of_log(subject: Subject, device: Option<&DeviceSample>, errors: &LoggedErrors) -> Sighting {
    Sighting {
        subject,
        name: device
            .map_or("host", |device| &device.device.name)
            .to_owned(),
        severity: Severity::Warn,
        began: errors.began,
        text: errors.text(),
        advice: ADVICE,
        figures: vec![("count", errors.count as f64)],
    }
}

/// The device that the kernel's log refers to. For NVMe it names the controller, as `nvme2`, or one of several paths,
/// as `nvme2c1n1`; the disk is `nvme2n1`.
fn logged_device<'a>(name: &str, sample: &'a Sample) -> Option<&'a DeviceSample> {
    if let Some(device) = sample.named(name) {
        return Some(device);
    }
    let rest = name.strip_prefix("nvme")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    let (controller, path) = rest.split_at(digits.unwrap_or(rest.len()));
    if controller.is_empty() {
        return None;
    }
    let space = match path.strip_prefix('c') {
        Some(path) => path.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => path,
    };
    match space.strip_prefix('n') {
        Some(space) => sample.named(&format!("nvme{controller}n{space}")),
        None if space.is_empty() => {
            let spaces = format!("nvme{controller}n");
            let mut disks = sample.devices.iter();
            disks.find(|device| device.device.name.starts_with(&spaces))
        }
        None => None,
    }
}

impl Errors {
    fn note_error(&mut self, error: &KernelError, now: &RuleInput<'_>) {
        let device = error.device.as_deref();
        let device = device.and_then(|name| logged_device(name, now.sample));
        let subject = device.map_or(Subject::Host, |device| Subject::Device(device.device.id));
        let at = now.sample.at;
        let errors = self.logged.entry(subject).or_insert_with(|| LoggedErrors {
            count: 0,
            last: error.clone(),
            began: at.before(now.sample.length),
            seen: at,
        });
        errors.count += 1;
        errors.last.clone_from(error);
        errors.seen = at;
    }

    /// Reports all errors of an array as one event: the members that it lacks, what md corrected and what the
    /// kernel's log said of it lately.
    fn of_array(
        &mut self,
        array: &DeviceSample,
        state: &ArraySample,
        now: &RuleInput<'_>,
    ) -> Option<Sighting> {
        let at = now.sample.at;
        let id = array.device.id;
        let mut sighting = Sighting::of(array, Severity::Warn, at.before(now.sample.length));
        sighting.advice = ADVICE;
        let mut texts = Vec::new();
        let mut is_now = false;
        if let Some((text, missing)) = missing_members(array, state) {
            let since = match self.whole.contains(&id) {
                true => "",
                false => " This was the case when the watch began.",
            };
            texts.push(format!("{text}{since}"));
            sighting.advice = ADVICE_ARRAY;
            sighting
                .figures
                .push(("missing_members", f64::from(missing)));
            is_now = true;
        } else {
            self.whole.insert(id);
        }
        for member in &state.members {
            if let Some(corrected) = self.corrected(id, &member.name, member.errors, at) {
                texts.push(format!(
                    "md corrected {} read errors of {} in {} from a copy.",
                    corrected.fresh, member.name, array.device.name
                ));
                sighting.figures.push(("count", corrected.fresh as f64));
                is_now |= corrected.seen.elapsed == at.elapsed;
            }
        }
        if let Some(errors) = self.logged.get(&Subject::Device(id)) {
            texts.push(errors.text());
            is_now |= errors.seen.elapsed == at.elapsed;
        }
        sighting.text = texts.join(" ");
        is_now.then_some(sighting)
    }

    /// Errors of a member that md corrected in the last samples.
    fn corrected(
        &mut self,
        array: DeviceId,
        member: &str,
        errors: Option<u64>,
        at: SampleTime,
    ) -> Option<&Corrected> {
        let total = errors?;
        let key = (array, member.to_owned());
        let corrected = self.corrected.entry(key).or_insert_with(|| Corrected {
            total,
            fresh: 0,
            seen: at,
        });
        if at.elapsed - corrected.seen.elapsed > SILENCE {
            corrected.fresh = 0;
        }
        let more = total.saturating_sub(corrected.total);
        corrected.total = total;
        if more > 0 {
            corrected.fresh += more;
            corrected.seen = at;
        }
        (corrected.fresh > 0).then_some(corrected)
    }
}

/// Members that are missing or were given up: the sentence about them, and their number.
fn missing_members(array: &DeviceSample, state: &ArraySample) -> Option<(String, u32)> {
    let faulty: Vec<&str> = state
        .members
        .iter()
        .filter(|member| member.is_faulty())
        .map(|member| member.name.as_str())
        .collect();
    let missing = state.degraded.unwrap_or(0);
    if missing == 0 && faulty.is_empty() {
        return None;
    }
    let name = &array.device.name;
    let lacks = match (missing, state.wanted) {
        (0, _) => format!("{name} has a failed member"),
        (missing, Some(wanted)) => format!("{name} lacks {missing} of its {wanted} members"),
        (missing, None) => format!("{name} lacks {missing} of its members"),
    };
    let text = if faulty.is_empty() {
        format!("{lacks}.")
    } else {
        format!("{lacks}; md failed {}.", faulty.join(", "))
    };
    Some((text, missing))
}
