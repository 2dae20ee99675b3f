//! The volumes' own statistics pages. Each is read by its own thread: the controller of a volume that hangs may block
//! its reader for a minute, and the other pages and figures are most important then.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use linux::Root;
use linux::ebs::StatsPage;
use record::sample::{DeviceId, DeviceSample, VendorSample};

/// Stack size of a thread that only reads pages.
const STACK: usize = 128 * 1024;

/// A page of a volume, or the error of reading it.
struct VendorPage {
    id: DeviceId,
    path: PathBuf,
    at: Instant,
    page: io::Result<StatsPage>,
}

/// The pages of all volumes that have one.
pub(super) struct Vendor {
    period: Duration,
    /// Volumes that are polled. A thread ends when its sender is dropped.
    polled: HashMap<DeviceId, (PathBuf, Sender<Infallible>)>,
    answers: (Sender<VendorPage>, Receiver<VendorPage>),
    last: HashMap<DeviceId, (Instant, StatsPage)>,
    refused: bool,
}

impl Vendor {
    /// A reader that polls no volume yet.
    pub(super) fn new(period: Duration) -> Vendor {
        Vendor {
            period,
            polled: HashMap::new(),
            answers: channel(),
            last: HashMap::new(),
            refused: false,
        }
    }

    /// Polls these volumes from now on; does nothing on another machine's files.
    pub(super) fn watch(&mut self, root: &Root, wanted: Vec<(DeviceId, PathBuf)>) {
        if *root != Root::host() {
            return;
        }
        let is_wanted = |id: &DeviceId, path: &PathBuf| {
            let same = |(other, at): &(DeviceId, PathBuf)| other == id && at == path;
            wanted.iter().any(same)
        };
        self.polled.retain(|id, (path, _)| is_wanted(id, path));
        let polled = &self.polled;
        self.last.retain(|id, _| polled.contains_key(id));
        for (id, path) in wanted {
            if !self.polled.contains_key(&id) {
                let (end, ended) = channel();
                let answers = self.answers.0.clone();
                if start(id, path.clone(), self.period, ended, answers).is_ok() {
                    self.polled.insert(id, (path, end));
                }
            }
        }
    }

    /// Adds the statistics of the volumes since the last call to the samples.
    pub(super) fn add_to(&mut self, samples: &mut [DeviceSample], notes: &mut Vec<String>) {
        // Two pages may arrive within one sample; the counts of the last include those of the first.
        let mut newest = HashMap::new();
        while let Ok(answer) = self.answers.1.try_recv() {
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
                sample.vendor = self.reported(sample.device.id, at, page);
            }
        }
    }

    /// Difference between a page and the one before it.
    fn reported(&mut self, id: DeviceId, at: Instant, page: StatsPage) -> Option<VendorSample> {
        let before = self.last.insert(id, (at, page.clone()));
        let (then, before) = before?;
        page.since(&before, at.duration_since(then).into())
    }
}

/// Note on the first volume whose page cannot be read.
fn refusal(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {}", linux::remedy::as_root()),
        _ => String::new(),
    };
    format!(
        "The statistics that {} itself keeps cannot be read, so caps are judged from the \
         kernel's counters: {error}{remedy}",
        path.display()
    )
}

/// Starts the thread that reads a volume's page once per period, until its channel is dropped.
fn start(
    id: DeviceId,
    path: PathBuf,
    period: Duration,
    ended: Receiver<Infallible>,
    answers: Sender<VendorPage>,
) -> io::Result<()> {
    let asks = move || {
        let mut file = None;
        loop {
            let next = Instant::now() + period;
            let page = ask(&path, &mut file);
            if page.is_err() {
                file = None;
            }
            let answer = VendorPage {
                id,
                path: path.clone(),
                at: Instant::now(),
                page,
            };
            let wait = next.saturating_duration_since(Instant::now());
            if answers.send(answer).is_err()
                || ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
            {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("volume-page".to_owned());
    thread.stack_size(STACK).spawn(asks)?;
    Ok(())
}

fn ask(path: &Path, file: &mut Option<File>) -> io::Result<StatsPage> {
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
    use record::sample::{Device, SampleTime};

    use super::*;

    /// The page of an EBS volume with this number of completed reads.
    fn page(reads: u64) -> StatsPage {
        let mut page = vec![0; 4096];
        page[..4].copy_from_slice(&0x3C23_B510_u32.to_le_bytes());
        page[8..16].copy_from_slice(&reads.to_le_bytes());
        StatsPage::parse(&page).unwrap()
    }

    #[test]
    fn two_pages_within_a_sample_are_both_counted() {
        let mut vendor = Vendor::new(Duration::from_secs(1));
        let answers = vendor.answers.0.clone();
        let began = Instant::now();
        let answer = |second: u64, reads: u64| {
            let answer = VendorPage {
                id: DeviceId(3),
                path: "/dev/nvme1n1".into(),
                at: began + Duration::from_secs(second),
                page: Ok(page(reads)),
            };
            answers.send(answer).unwrap();
        };
        let device = Device::by_name(DeviceId(3), "nvme1n1", SampleTime::default());
        let device = DeviceSample::unknown(Arc::new(device));
        let mut give = || {
            let mut samples = [device.clone()];
            vendor.add_to(&mut samples, &mut Vec::new());
            let vendor = samples[0].vendor.take();
            vendor.map(|page| (page.reads, page.length))
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
    fn a_volume_without_a_page_is_reported_once() {
        let mut vendor = Vendor::new(Duration::from_millis(10));
        vendor.watch(
            &Root::host(),
            vec![
                (DeviceId(0), "/dev/null".into()),
                (DeviceId(1), "/no/such".into()),
            ],
        );
        let mut notes = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(600);
        while Instant::now() < deadline && notes.is_empty() {
            thread::sleep(Duration::from_millis(20));
            vendor.add_to(&mut [], &mut notes);
        }
        thread::sleep(Duration::from_millis(50));
        vendor.add_to(&mut [], &mut notes);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let named = ["/dev/null", "/no/such"];
        assert!(
            named.iter().any(|path| notes[0].contains(path)),
            "{notes:?}"
        );
    }

    #[test]
    fn a_volume_that_hangs_keeps_no_other_from_being_polled() {
        // The pipe has no writer, so that opening it for reading blocks, like a volume that hangs.
        let folder = tempfile::tempdir().unwrap();
        let hangs = folder.path().join("hangs");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &hangs,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let mut vendor = Vendor::new(Duration::from_millis(10));
        let wanted = vec![
            (DeviceId(0), hangs.clone()),
            (DeviceId(1), "/dev/null".into()),
        ];
        vendor.watch(&Root::host(), wanted.clone());
        vendor.watch(&Root::host(), wanted);
        let mut notes = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(600);
        while Instant::now() < deadline && notes.is_empty() {
            thread::sleep(Duration::from_millis(20));
            vendor.add_to(&mut [], &mut notes);
        }
        assert!(notes[0].contains("/dev/null"), "{notes:?}");
        assert_eq!(vendor.polled.len(), 2);
        vendor.watch(&Root::host(), Vec::new());
        assert!(vendor.polled.is_empty());
        // It ends with the other end of the pipe.
        drop(std::fs::OpenOptions::new().write(true).open(&hangs));
    }
}
