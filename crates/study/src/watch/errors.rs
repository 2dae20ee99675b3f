//! `errors`: the kernel's log or md speaks of errors.

use std::collections::HashMap;

use record::sample::{ArraySample, DeviceId, DeviceSample, KernelError, Moment};
use record::{EventCode, Nanos, Severity, Subject};

use super::{Now, Rule, Sighting};

const ADVICE: &str = "Look at the kernel's log (dmesg) and at the volume's status in the cloud, and see to the \
                      backup before anything else.";
const ADVICE_ARRAY: &str = "The array has fewer copies than it should. Replace the member, and see to the \
                            backup before that.";

/// What the log said of one subject while the event lasts.
struct Said {
    count: u64,
    last: KernelError,
    began: Moment,
    seen: Moment,
}

/// Looks for errors.
#[derive(Default)]
pub(super) struct Errors {
    said: HashMap<Subject, Said>,
    /// Corrected read errors of each member, as last seen.
    corrected: HashMap<(DeviceId, String), u64>,
}

/// An event of the log ends when it was silent for so long.
const SILENCE: Nanos = Nanos::from_secs(60);

impl Rule for Errors {
    fn code(&self) -> EventCode {
        EventCode::Errors
    }

    fn linger(&self) -> Nanos {
        SILENCE
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn look(&mut self, now: &Now<'_>, seen: &mut Vec<Sighting>) {
        let at = now.sample.at;
        self.said
            .retain(|_, said| at.elapsed - said.seen.elapsed <= SILENCE);
        for error in &now.sample.host.errors {
            seen.extend(self.hear(error, now));
        }
        for device in &now.sample.devices {
            if let Some(state) = &device.array {
                let began = at.before(now.sample.length);
                seen.extend(trouble(device, state, began));
                seen.extend(self.corrected(device, state, began));
            }
        }
    }
}

impl Errors {
    fn hear(&mut self, error: &KernelError, now: &Now<'_>) -> Option<Sighting> {
        let device = error
            .device
            .as_deref()
            .and_then(|name| now.sample.named(name));
        let subject = device.map_or(Subject::Host, |device| Subject::Device(device.device.id));
        let at = now.sample.at;
        let said = self.said.entry(subject).or_insert_with(|| Said {
            count: 0,
            last: error.clone(),
            began: at.before(now.sample.length),
            seen: at,
        });
        said.count += 1;
        said.last.clone_from(error);
        said.seen = at;
        let name = device.map_or("host", |device| device.device.name.as_str());
        let times = match said.count {
            1 => "The kernel's log says".to_owned(),
            count => format!("The kernel's log has {count} errors, the last of them"),
        };
        Some(Sighting {
            subject,
            name: name.to_owned(),
            severity: Severity::Warn,
            began: said.began,
            text: format!("{times}: {}", said.last.text),
            advice: ADVICE,
            figures: vec![("count", said.count as f64)],
        })
    }

    /// Read errors that md corrected from a copy since the last look.
    fn corrected(
        &mut self,
        array: &DeviceSample,
        state: &ArraySample,
        began: Moment,
    ) -> Vec<Sighting> {
        let mut seen = Vec::new();
        for member in &state.members {
            let Some(errors) = member.errors else {
                continue;
            };
            let key = (array.device.id, member.name.clone());
            let before = self.corrected.insert(key, errors);
            if let Some(more) = before.and_then(|before| errors.checked_sub(before))
                && more > 0
            {
                seen.push(Sighting {
                    text: format!(
                        "md corrected {more} read errors of {} in {} from a copy.",
                        member.name, array.device.name
                    ),
                    advice: ADVICE,
                    figures: vec![("count", more as f64)],
                    ..Sighting::of(array, Severity::Warn, began)
                });
            }
        }
        seen
    }
}

/// Members that are missing or were given up.
fn trouble(array: &DeviceSample, state: &ArraySample, began: Moment) -> Option<Sighting> {
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
        format!("{lacks}; md gave up {}.", faulty.join(", "))
    };
    Some(Sighting {
        text,
        advice: ADVICE_ARRAY,
        figures: vec![("missing_members", f64::from(missing))],
        ..Sighting::of(array, Severity::Warn, began)
    })
}
