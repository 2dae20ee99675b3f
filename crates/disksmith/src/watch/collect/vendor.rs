//! The volumes' own statistics pages. They are asked for by a thread of their own: the controller of
//! a volume that is stuck may keep a caller for a minute, which is when the rest is wanted most.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use linux::Root;
use linux::ebs::StatsPage;
use record::sample::{DeviceId, DeviceSample};

/// What is asked: all disks that have a page.
type Wanted = Vec<(DeviceId, PathBuf)>;

/// A page, or why there is none.
struct Answer {
    id: DeviceId,
    path: PathBuf,
    at: Instant,
    page: io::Result<StatsPage>,
}

/// The pages of all volumes that have one.
pub(super) struct Vendor {
    period: Duration,
    wanted: Wanted,
    thread: Option<(Sender<Wanted>, Receiver<Answer>)>,
    last: HashMap<DeviceId, (Instant, StatsPage)>,
    refused: bool,
}

impl Vendor {
    /// Asks nobody yet.
    pub(super) fn new(period: Duration) -> Vendor {
        Vendor {
            period,
            wanted: Vec::new(),
            thread: None,
            last: HashMap::new(),
            refused: false,
        }
    }

    /// Asks these from now on. On another machine's files there is nobody to ask.
    pub(super) fn watch(&mut self, root: &Root, wanted: Wanted) {
        if wanted == self.wanted || *root != Root::host() {
            return;
        }
        self.last
            .retain(|id, _| wanted.iter().any(|(other, _)| other == id));
        self.wanted.clone_from(&wanted);
        if self.thread.is_none() {
            self.thread = start(self.period);
        }
        if let Some((questions, _)) = &self.thread {
            // A thread that ended answers nothing more.
            let _ = questions.send(wanted);
        }
    }

    /// Adds to the samples what the volumes said since the last time.
    pub(super) fn give(&mut self, samples: &mut [DeviceSample], notes: &mut Vec<String>) {
        let Some((_, answers)) = &self.thread else {
            return;
        };
        while let Ok(answer) = answers.try_recv() {
            match answer.page {
                Ok(page) => {
                    let before = self.last.insert(answer.id, (answer.at, page.clone()));
                    let said = before.and_then(|(then, before)| {
                        page.since(&before, answer.at.duration_since(then).into())
                    });
                    let mut samples = samples.iter_mut();
                    if let Some(sample) = samples.find(|one| one.device.id == answer.id) {
                        sample.vendor = said;
                    }
                }
                Err(error) if !self.refused => {
                    self.refused = true;
                    notes.push(refusal(&answer.path, &error));
                }
                Err(_) => {}
            }
        }
    }
}

/// Why there is no page, for the first volume that has none.
fn refusal(path: &std::path::Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "; run disksmith as root for that",
        _ => "",
    };
    format!(
        "The statistics that {} keeps itself cannot be read, so that caps are judged from the \
         kernel's counters: {error}{remedy}",
        path.display()
    )
}

fn start(period: Duration) -> Option<(Sender<Wanted>, Receiver<Answer>)> {
    let (questions, asked) = channel();
    let (answers, given) = channel();
    // Without the thread there are no pages.
    thread::Builder::new()
        .name("volume-pages".to_owned())
        .spawn(move || answer_all(&asked, &answers, period))
        .ok()?;
    Some((questions, given))
}

/// Asks all that are wanted, once a period, until nobody wants to know any more.
fn answer_all(asked: &Receiver<Wanted>, answers: &Sender<Answer>, period: Duration) {
    let mut open: Vec<(DeviceId, PathBuf, Option<File>)> = Vec::new();
    let mut next = Instant::now();
    loop {
        match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(wanted) => {
                open = wanted
                    .into_iter()
                    .map(|(id, path)| (id, path, None))
                    .collect();
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        next = Instant::now() + period;
        for (id, path, file) in &mut open {
            let page = ask(path, file);
            if page.is_err() {
                *file = None;
            }
            let answer = Answer {
                id: *id,
                path: path.clone(),
                at: Instant::now(),
                page,
            };
            if answers.send(answer).is_err() {
                return;
            }
        }
    }
}

fn ask(path: &PathBuf, file: &mut Option<File>) -> io::Result<StatsPage> {
    let open = match file.take() {
        Some(open) => open,
        None => File::open(path)?,
    };
    StatsPage::read(file.insert(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_page_is_said_once() {
        let mut vendor = Vendor::new(Duration::from_millis(10));
        vendor.watch(
            &Root::host(),
            vec![
                (DeviceId(0), "/dev/null".into()),
                (DeviceId(1), "/no/such".into()),
            ],
        );
        let mut notes = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline && notes.is_empty() {
            thread::sleep(Duration::from_millis(20));
            vendor.give(&mut [], &mut notes);
        }
        thread::sleep(Duration::from_millis(50));
        vendor.give(&mut [], &mut notes);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("/dev/null"), "{notes:?}");
    }
}
