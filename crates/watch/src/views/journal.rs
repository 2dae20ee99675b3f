//! Findings as entries of systemd's journal: the only output of a service.

use record::Severity;
use study::watch::{ChangeKind, EventChange, WatchEvent};

use ui::journal::{JournalField, JournalPriority, add};

/// Writes the findings that were opened or closed.
pub(crate) fn write(changes: &[EventChange]) {
    for change in changes {
        let (word, priority, message) = match change.kind {
            ChangeKind::Opened => ("opened", priority(&change.event), change.event.text.clone()),
            ChangeKind::Closed => ("closed", JournalPriority::Info, ending(&change.event)),
            ChangeKind::Updated | ChangeKind::Unfinished => continue,
        };
        add(priority, &message, &fields(&change.event, word));
    }
}

fn priority(event: &WatchEvent) -> JournalPriority {
    match event.severity {
        Severity::Note => JournalPriority::Notice,
        Severity::Warn | Severity::Invalid => JournalPriority::Warning,
    }
}

fn ending(event: &WatchEvent) -> String {
    format!("Over: {} of {}.", event.code.name(), event.name)
}

/// The journal fields of a finding, for queries such as `journalctl DISKSMITH_FINDING=stalled`.
fn fields(event: &WatchEvent, change: &str) -> Vec<JournalField> {
    let field = |name: &str, value: &str| (format!("DISKSMITH_{name}"), value.to_owned());
    let mut fields = vec![
        field("FINDING", event.code.name()),
        field("CHANGE", change),
        field("DEVICE", &event.name),
        field("ID", &event.id.to_string()),
        field("ADVICE", &event.advice),
    ];
    let figures = event.figures.iter();
    fields.extend(
        figures.map(|figure| field(&figure.key.to_ascii_uppercase(), &figure.value.to_string())),
    );
    fields
}

#[cfg(test)]
mod tests {
    use record::Subject;
    use record::sample::SampleTime;
    use study::watch::{EventCode, EventFigure};

    use super::*;

    #[test]
    fn a_finding_has_fields_that_it_is_found_by() {
        let event = WatchEvent {
            id: 7,
            code: EventCode::Stalled,
            severity: Severity::Warn,
            subject: Subject::Host,
            name: "md0".to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: "Nothing completes.".to_owned(),
            advice: "Look at the kernel log.".to_owned(),
            figures: vec![EventFigure {
                key: "in_flight".to_owned(),
                value: 3.0,
            }],
        };
        let fields = fields(&event, "opened");
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            fields,
            [
                "DISKSMITH_FINDING=stalled",
                "DISKSMITH_CHANGE=opened",
                "DISKSMITH_DEVICE=md0",
                "DISKSMITH_ID=7",
                "DISKSMITH_ADVICE=Look at the kernel log.",
                "DISKSMITH_IN_FLIGHT=3",
            ]
        );
        assert_eq!(priority(&event), JournalPriority::Warning);
        assert_eq!(ending(&event), "Over: stalled of md0.");
    }
}
