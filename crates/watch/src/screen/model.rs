//! State of the screen: the frames, the displayed time, and the user's choices, without access to a terminal.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ledger::Mark;
use record::Nanos;
use record::sample::{DeviceId, SampleSource};

use super::finding_list::FindingList;
use super::frame::Frame;
use super::history::History;
use super::order::{DeviceSearch, SparklineFigure};
use super::tree::{Branch, DeviceSelection, Fold, branches};
use super::update::Update;
use ui::screen::Key;

/// Maximum number of notes that are kept.
const NOTES: usize = 20;
/// Step of the keys for a minute.
const MINUTE: Nanos = Nanos::from_secs(60);
/// Time for which a mark is shown, which is the span of the sparklines.
const MARK_SHOWN: Nanos = Nanos::from_secs(120);

/// Page that fills the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Page {
    /// The devices, with the findings below.
    #[default]
    Devices,
    /// A single device.
    Detail,
    /// All findings.
    Findings,
    /// The processes with the most I/O.
    Processes,
    /// The keys.
    Help,
}

/// Effect of a key, in addition to a redraw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    /// No effect.
    None,
    /// Ends the screen.
    Quit,
    /// Suspends the program, so that the shell has the terminal.
    Suspend,
    /// Shows one frame more of a recording.
    Next,
    /// Plays a recording faster.
    Faster,
    /// Plays a recording slower.
    Slower,
}

/// State of playing a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Playback {
    /// Speed, as a multiple of the original.
    pub speed: f64,
    /// True if the newest frame is the last of the recording.
    pub at_end: bool,
}

/// State from which the screen is drawn.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The host.
    pub source: SampleSource,
    /// State of playing a recording; `None` while the host is watched.
    pub playing: Option<Playback>,
    /// True if the watch is also recorded; `None` where that was not requested.
    pub recording: Option<bool>,
    /// Marks, in order of time.
    pub marks: Vec<Mark>,
    /// The frames.
    pub history: History,
    /// The findings.
    pub found: FindingList,
    /// Notes on missing data, with the reasons.
    pub notes: VecDeque<String>,
    /// Selection of the devices, and their order.
    pub choice: DeviceSelection,
    /// Figure of the sparklines.
    pub graph: SparklineFigure,
    /// Page that fills the screen.
    pub page: Page,
    /// Filter text that is being typed.
    pub typing: Option<String>,
    /// Scroll offset of a long page, in lines.
    pub scroll: usize,
    /// Number of the frame at which the screen is paused; `None` while it follows the newest.
    held: Option<u64>,
    selected: Option<(DeviceId, Option<DeviceId>)>,
    ever_active: HashSet<DeviceId>,
    /// Number of visible rows at the last redraw.
    page_rows: usize,
}

impl Model {
    /// A model without frames. With `all`, unused devices are shown too.
    pub(crate) fn new(source: SampleSource, all: bool) -> Model {
        Model {
            source,
            choice: DeviceSelection {
                all,
                ..DeviceSelection::default()
            },
            page_rows: 10,
            ..Model::default()
        }
    }

    /// Applies an update.
    pub(crate) fn take(&mut self, update: Update) {
        match update {
            Update::Frame(frame, changes) => {
                let active = frame.rows.iter().filter(|row| row.figures.is_active());
                self.ever_active.extend(active.map(|row| row.device.id));
                self.found.take(changes, frame.at.elapsed);
                self.history.push(frame);
                // A paused frame may be dropped from the history: the oldest one is shown then.
                let oldest = self.history.oldest();
                self.held = self.held.max(self.held.and(oldest));
            }
            Update::Marks(marks) => self.marks = marks,
            Update::Recording(is_kept) => self.recording = Some(is_kept),
            Update::Note(note) => {
                self.notes.push_back(note);
                if self.notes.len() > NOTES {
                    self.notes.pop_front();
                }
            }
        }
    }

    /// Marks of the two minutes up to the displayed frame, the last first, each with the time from the mark to that
    /// frame.
    pub(crate) fn recent_marks(&self) -> impl Iterator<Item = (&Mark, Nanos)> {
        let now = self.frame().and_then(|frame| frame.at.wall);
        let before = move |mark: &Mark| {
            let before = now?.as_nanosecond() - mark.at.as_nanosecond();
            u64::try_from(before).ok().map(Nanos)
        };
        self.marks
            .iter()
            .rev()
            .filter_map(move |mark| Some((mark, before(mark)?)))
            .filter(|(_, before)| *before <= MARK_SHOWN)
    }

    /// The number of the displayed frame.
    pub(crate) fn number(&self) -> Option<u64> {
        self.held.or(self.history.newest())
    }

    /// The displayed frame.
    pub(crate) fn frame(&self) -> Option<&Arc<Frame>> {
        self.history.get(self.number()?)
    }

    /// Time from the frame at which the screen is paused to the newest one; `None` while it follows the newest.
    pub(crate) fn behind(&self) -> Option<Nanos> {
        let held = self.history.get(self.held?)?;
        let newest = self.history.get(self.history.newest()?)?;
        Some(newest.at.elapsed - held.at.elapsed)
    }

    /// The lines of the tree.
    pub(crate) fn branches(&self) -> Vec<Branch> {
        let number = self.number();
        number.map_or_else(Vec::new, |number| {
            branches(&self.history, number, &self.choice, &self.ever_active)
        })
    }

    /// Index of the selected line; the first, where that device is not shown.
    pub(crate) fn selected(&self, lines: &[Branch]) -> usize {
        let is_it = |line: &Branch| Some((line.id, line.parent)) == self.selected;
        lines.iter().position(is_it).unwrap_or(0)
    }

    /// Sets the number of rows of a page, for the keys that move by pages.
    pub(crate) fn set_page_rows(&mut self, rows: usize) {
        self.page_rows = rows.max(1);
    }

    /// Pauses at the frame with this number, or else at the newest.
    pub(crate) fn hold(&mut self, number: Option<u64>) {
        self.held = number.or(self.history.newest());
    }

    /// Follows the newest frame.
    pub(crate) fn follow(&mut self) {
        self.held = None;
    }

    /// Applies a key.
    pub(crate) fn press(&mut self, key: Key) -> KeyEffect {
        match key {
            Key::Ctrl('c') => return KeyEffect::Quit,
            Key::Ctrl('z') => return KeyEffect::Suspend,
            _ => {}
        }
        if self.typing.is_some() {
            self.type_in(key);
            return KeyEffect::None;
        }
        match key {
            Key::Char('q')
                if matches!(self.page, Page::Devices | Page::Findings | Page::Processes) =>
            {
                return KeyEffect::Quit;
            }
            Key::Char('q') | Key::Escape if self.page != Page::Devices => {
                self.show_page(Page::Devices);
            }
            Key::Escape => self.choice.wanted = DeviceSearch::default(),
            Key::Char('?') => self.show_page(Page::Help),
            Key::Char('f') => self.show_page(Page::Findings),
            Key::Char('p') => self.show_page(Page::Processes),
            Key::Enter => self.show_page(Page::Detail),
            Key::Char('/') => self.typing = Some(self.choice.wanted.text().to_owned()),
            Key::Char('s') => self.sort(true),
            Key::Char('S') => self.sort(false),
            Key::Char('r') => self.choice.reverse = !self.choice.reverse,
            Key::Char('v') => self.graph = self.graph.next(),
            Key::Char('a') => self.choice.all = !self.choice.all,
            Key::Char('z') => self.turn_fold(),
            Key::Char('Z') => self.turn_folds(),
            Key::Char('+' | '=') => return KeyEffect::Faster,
            Key::Char('-') => return KeyEffect::Slower,
            _ => return self.navigate(key),
        }
        KeyEffect::None
    }

    /// Applies a key that moves in time or in the list.
    fn navigate(&mut self, key: Key) -> KeyEffect {
        match key {
            Key::Char(' ') if self.held.is_some() => self.follow(),
            Key::Char(' ') => self.hold(None),
            Key::End => self.follow(),
            Key::Home => self.hold(self.history.oldest()),
            Key::Left => self.step_back(),
            Key::Right => return self.step_forward(),
            Key::Char('[') => self.seek(|time| time - MINUTE),
            Key::Char(']') => self.seek(|time| time + MINUTE),
            Key::Up | Key::Char('k') => self.move_by(-1),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::PageUp => self.move_by(-(self.page_rows as isize)),
            Key::PageDown => self.move_by(self.page_rows as isize),
            Key::Char('g') => self.move_by(isize::MIN),
            Key::Char('G') => self.move_by(isize::MAX),
            _ => {}
        }
        KeyEffect::None
    }

    fn show_page(&mut self, page: Page) {
        self.page = if self.page == page {
            Page::Devices
        } else {
            page
        };
        self.scroll = 0;
    }

    fn type_in(&mut self, key: Key) {
        let Some(text) = &mut self.typing else {
            return;
        };
        match key {
            Key::Char(letter) if text.chars().count() < 100 => text.push(letter),
            Key::Backspace => {
                text.pop();
            }
            Key::Ctrl('u') => text.clear(),
            Key::Enter => {
                self.typing = None;
                return;
            }
            Key::Escape => {
                self.typing = None;
                self.choice.wanted = DeviceSearch::default();
                return;
            }
            _ => return,
        }
        self.choice.wanted = DeviceSearch::new(text);
    }

    fn sort(&mut self, forward: bool) {
        self.choice.sort = self.choice.sort.step(forward);
        self.choice.reverse = false;
    }

    fn turn_fold(&mut self) {
        let lines = self.branches();
        let Some(line) = lines.get(self.selected(&lines)) else {
            return;
        };
        // On a line without lines below it, the key applies to its parent.
        let whose = match (line.fold, line.parent) {
            (Fold::Leaf, Some(parent)) => {
                let above = lines.iter().find(|line| line.id == parent);
                self.selected = above.map(|line| (line.id, line.parent));
                parent
            }
            _ => line.id,
        };
        if !self.choice.turned.remove(&whose) {
            self.choice.turned.insert(whose);
        }
    }

    fn turn_folds(&mut self) {
        self.choice.turned.clear();
        self.choice.folds = match self.choice.folds {
            None => Some(Fold::Closed),
            Some(Fold::Closed) => Some(Fold::Open),
            Some(_) => None,
        };
    }

    fn step_back(&mut self) {
        let before = self.number().map(|number| number.saturating_sub(1));
        self.held = before.max(self.history.oldest());
    }

    fn step_forward(&mut self) -> KeyEffect {
        let newest = self.history.newest();
        match self.held {
            Some(held) if Some(held) < newest => self.held = Some(held + 1),
            Some(_) if self.playing.is_some() => return KeyEffect::Next,
            _ => {}
        }
        KeyEffect::None
    }

    fn seek(&mut self, to: impl Fn(Nanos) -> Nanos) {
        if let Some(frame) = self.frame() {
            self.held = self.history.at(to(frame.at.elapsed));
        }
    }

    fn move_by(&mut self, by: isize) {
        if self.page != Page::Devices {
            self.scroll = self.scroll.saturating_add_signed(by);
            return;
        }
        let lines = self.branches();
        let last = lines.len().saturating_sub(1);
        let place = self.selected(&lines).saturating_add_signed(by).min(last);
        self.selected = lines.get(place).map(|line| (line.id, line.parent));
    }
}

#[cfg(test)]
mod tests;
