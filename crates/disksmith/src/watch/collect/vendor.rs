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
use record::sample::{DeviceId, DeviceSample, VendorSample};

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
        // Two pages may come within one sample; the last of them has counted what the first did.
        let mut newest = HashMap::new();
        while let Ok(answer) = answers.try_recv() {
            match answer.page {
                Ok(page) => {
                    newest.insert(answer.id, (answer.at, page));
                }
                Err(error) if !self.refused => {
                    self.refused = true;
                    notes.push(refusal(&answer.path, &error));
                }
                Err(_) => {}
            }
        }
        for sample in samples {
            if let Some((at, page)) = newest.remove(&sample.device.id) {
                sample.vendor = self.said(sample.device.id, at, page);
            }
        }
    }

    /// What a page says beyond the one before it.
    fn said(&mut self, id: DeviceId, at: Instant, page: StatsPage) -> Option<VendorSample> {
        let before = self.last.insert(id, (at, page.clone()));
        let (then, before) = before?;
        page.since(&before, at.duration_since(then).into())
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
    use std::sync::Arc;

    use record::Nanos;
    use record::sample::{Device, Moment};

    use super::*;

    /// The page of an EBS volume that has completed so many reads.
    fn page(reads: u64) -> StatsPage {
        let mut page = vec![0; 4096];
        page[..4].copy_from_slice(&0x3C23_B510_u32.to_le_bytes());
        page[8..16].copy_from_slice(&reads.to_le_bytes());
        StatsPage::parse(&page).unwrap()
    }

    #[test]
    fn two_pages_within_a_sample_are_both_counted() {
        let mut vendor = Vendor::new(Duration::from_secs(1));
        let (questions, _) = channel();
        let (answers, given) = channel();
        vendor.thread = Some((questions, given));
        let began = Instant::now();
        let answer = |second: u64, reads: u64| {
            let answer = Answer {
                id: DeviceId(3),
                path: "/dev/nvme1n1".into(),
                at: began + Duration::from_secs(second),
                page: Ok(page(reads)),
            };
            answers.send(answer).unwrap();
        };
        let device = Device::by_name(DeviceId(3), "nvme1n1", Moment::default());
        let device = DeviceSample::unknown(Arc::new(device));
        let mut give = || {
            let mut samples = [device.clone()];
            vendor.give(&mut samples, &mut Vec::new());
            let said = samples[0].vendor.take();
            said.map(|said| (said.reads, said.length))
        };
        answer(0, 10);
        assert_eq!(give(), None);
        answer(1, 15);
        answer(2, 22);
        assert_eq!(give(), Some((12, Nanos::from_secs(2))));
        assert_eq!(give(), None);
        answer(3, 23);
        assert_eq!(give(), Some((1, Nanos::from_secs(1))));
    }

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
