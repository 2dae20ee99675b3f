//! `fleet top`: the present activity of all hosts, repeatedly.

mod counters;
mod row;
pub(crate) mod view;

use std::cell::Cell;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;

use crate::args::TopArgs;
use crate::connection::pool::{ConnectionLimit, STACK};
use crate::connection::session::{SILENCE, silent_error};
use crate::connection::transport::{COUNTERS_END_LINE, Wire};
use crate::connection::{ConnectionError, Transport};
use crate::host_rates::HostRates;
use crate::hosts::Host;
use crate::reach::{allow_connections, connection, find};
use counters::{Counters, Sampler};
use row::{HostRow, State, shown};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::screen::{self, Inline};
use view::TableView;

/// Pause before a host is retried: initially and at most.
const PAUSE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
/// Interval of the first rates of a host, which is short so that they are soon shown.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum size of an answer, in bytes; a longer one is invalid.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// Shows the present activity of all hosts.
pub(super) fn top(args: &TopArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let found = find(&args.source)?;
    for one in &found.left_out {
        context.notice(one);
    }
    let ssh = connection(&args.reach);
    let starting = found.hosts.len().min(args.reach.batch as usize);
    allow_connections(starting, found.hosts.len(), "hosts")?;
    let mut show = Output::of(args, context);
    let every = Duration::from_nanos(args.every.0.0);
    let lasts = args.lasts.map(|lasts| Duration::from_nanos(lasts.0.0));
    let mut was_seen = false;
    let mut show = |rows: &[HostRow]| {
        was_seen |= rows.iter().any(|row| row.sample().is_some());
        show.show(rows)
    };
    let watching = HostMonitor {
        every,
        lasts,
        batch: args.reach.batch as usize,
        interrupt,
    };
    let rows = watching.watch(&ssh, &found.hosts, &mut show)?;
    if !was_seen && rows.iter().all(|row| row.sample().is_none()) {
        let reason = rows.iter().find_map(|row| match &row.state {
            State::Dead(reason) => Some(format!(": {reason}")),
            _ => None,
        });
        let reason = reason.unwrap_or_default();
        return Err(Failure::refused(format!("no host was reached{reason}")));
    }
    Ok(CommandEnd::Done)
}

/// Output of the table.
struct Output<'a> {
    args: &'a TopArgs,
    context: &'a mut Context,
    /// The terminal on which the table is redrawn in place; `None` for a file or a pipe.
    screen: Option<Inline>,
}

impl<'a> Output<'a> {
    fn of(args: &'a TopArgs, context: &'a mut Context) -> Output<'a> {
        let is_drawn = screen::is_possible() && !args.json;
        Output {
            args,
            context,
            screen: is_drawn.then(Inline::on_stdout).and_then(Result::ok),
        }
    }

    fn show(&mut self, rows: &[HostRow]) -> Result<(), Failure> {
        let shown = shown(rows, self.args.sort, &self.args.only);
        if self.args.json {
            return self.context.print(&view::json(rows, &shown));
        }
        let room = self.screen.as_ref().map(Inline::room);
        let picture = TableView {
            all: rows,
            shown,
            height: room.map(|room| room.height.into()),
            width: room.map_or(self.context.columns, |room| room.width.into()),
            late: 3 * Duration::from_nanos(self.args.every.0.0) + Duration::from_secs(3),
        };
        let lines = view::table(&picture, Timestamp::now());
        match &mut self.screen {
            Some(screen) => {
                screen.draw(lines);
                Ok(())
            }
            None => {
                let lines = lines.iter().map(|line| format!("{line}\n"));
                let table: String = lines.collect();
                self.context.print(&format!("{table}\n"))
            }
        }
    }
}

impl Drop for Output<'_> {
    /// Leaves the last table on the screen.
    fn drop(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.keep();
        }
    }
}

/// Event of a host: rates, a lost connection, or a new attempt.
enum HostEvent {
    Sample(Box<HostRates>),
    Dead(String),
    Connecting,
}

/// Parameters for monitoring hosts.
pub(super) struct HostMonitor<'a> {
    every: Duration,
    lasts: Option<Duration>,
    batch: usize,
    interrupt: &'a AtomicBool,
}

impl HostMonitor<'_> {
    /// Monitors all hosts, each on a separate thread, and calls `show` at each interval. Returns their last known
    /// state.
    fn watch(
        &self,
        transport: &dyn Transport,
        hosts: &[Host],
        show: &mut dyn FnMut(&[HostRow]) -> Result<(), Failure>,
    ) -> Result<Vec<HostRow>, Failure> {
        let row = |host: &Host| HostRow {
            host: host.name.clone(),
            zone: host.zone.clone(),
            state: State::Connecting,
        };
        let mut rows: Vec<HostRow> = hosts.iter().map(row).collect();
        let over = AtomicBool::new(false);
        let limit = ConnectionLimit::new(self.batch);
        let (sender, events) = channel();
        thread::scope(|scope| {
            let mut started = Ok(());
            for (at, host) in hosts.iter().enumerate() {
                let (sender, over, limit) = (sender.clone(), &over, &limit);
                let go = move || {
                    let follow = HostFollower {
                        transport,
                        host,
                        every: self.every,
                        over,
                        limit,
                    };
                    follow.follow(&|event| {
                        // If the receiver is gone, the end is near.
                        let _ = sender.send((at, event));
                    });
                };
                let thread = thread::Builder::new()
                    .name("host".to_owned())
                    .stack_size(STACK);
                if let Err(why) = thread.spawn_scoped(scope, go) {
                    started = Err(why)
                        .context("a thread for each host could not be started")
                        .midway();
                    break;
                }
            }
            drop(sender);
            let shown = started.and_then(|()| self.show_all(&events, &mut rows, show));
            over.store(true, Relaxed);
            shown
        })?;
        Ok(rows)
    }

    /// Processes the threads' events, and shows the rows at each interval, until the end.
    fn show_all(
        &self,
        events: &Receiver<(usize, HostEvent)>,
        rows: &mut [HostRow],
        show: &mut dyn FnMut(&[HostRow]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let mut next = began + self.every;
        loop {
            match events.recv_timeout(POLL) {
                Ok((at, event)) => {
                    if let Some(row) = rows.get_mut(at) {
                        row.take(event);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let now = Instant::now();
            if now >= next {
                next = now + self.every;
                show(rows)?;
            }
            let is_over = self.lasts.is_some_and(|lasts| began.elapsed() >= lasts);
            if is_over || self.interrupt.load(Relaxed) {
                return Ok(());
            }
        }
    }
}

impl HostRow {
    fn take(&mut self, event: HostEvent) {
        self.state = match event {
            HostEvent::Sample(sample) => State::Live(sample, Instant::now()),
            HostEvent::Dead(why) => State::Dead(why),
            // A new attempt does not change that it is dead.
            HostEvent::Connecting => match &self.state {
                State::Dead(why) => State::Dead(why.clone()),
                _ => State::Connecting,
            },
        };
    }
}

/// A host that is monitored.
struct HostFollower<'a> {
    transport: &'a dyn Transport,
    host: &'a Host,
    every: Duration,
    over: &'a AtomicBool,
    limit: &'a ConnectionLimit,
}

impl HostFollower<'_> {
    /// Monitors the host until the end, with reconnections after losses.
    fn follow(&self, notice: &dyn Fn(HostEvent)) {
        let pause = Cell::new(PAUSE[0]);
        // A host that is reached but shows nothing is retried no more often than one that is not reached.
        let seen = |event| {
            pause.set(PAUSE[0]);
            notice(event);
        };
        while !self.over.load(Relaxed) {
            notice(HostEvent::Connecting);
            let open = || self.transport.counters(self.host, self.over);
            let Some(opened) = self.limit.pass(self.over, open) else {
                return;
            };
            match opened.and_then(|wire| self.listen(wire, &seen)) {
                Ok(()) | Err(ConnectionError::Interrupted) => return,
                Err(why) => notice(HostEvent::Dead(why.to_string())),
            }
            let until = Instant::now() + pause.get();
            pause.set((pause.get() * 2).min(PAUSE[1]));
            while Instant::now() < until && !self.over.load(Relaxed) {
                thread::sleep(POLL);
            }
        }
    }

    /// Requests the counters repeatedly, until the end, or until the connection is lost.
    fn listen(&self, mut wire: Wire, notice: &dyn Fn(HostEvent)) -> Result<(), ConnectionError> {
        let mut sampler = Sampler::default();
        let mut pause = FIRST_INTERVAL.min(self.every);
        loop {
            let asked = Instant::now();
            let Some(lines) = self.ask(&mut wire)? else {
                break;
            };
            let counters = Counters::parse(&lines).ok_or_else(|| self.shows_none())?;
            if let Some(rates) = sampler.rates(counters) {
                notice(HostEvent::Sample(Box::new(rates)));
                pause = self.every;
            }
            // Only the end of the connection can arrive without a request.
            while self.line(&mut wire, asked + pause)?.is_some() {}
            if self.over.load(Relaxed) {
                break;
            }
        }
        wire.close();
        Ok(())
    }

    /// The lines of the host's answer; `None` if the end was requested before.
    fn ask(&self, wire: &mut Wire) -> Result<Option<Vec<String>>, ConnectionError> {
        let written = wire
            .input
            .write_all(b"\n")
            .and_then(|()| wire.input.flush());
        written.map_err(|_| wire.lost_error(self.host))?;
        let (mut lines, mut size) = (Vec::new(), 0);
        loop {
            match self.line(wire, Instant::now() + SILENCE)? {
                Some(line) if line == COUNTERS_END_LINE => return Ok(Some(lines)),
                Some(line) if size < MAX_ANSWER_BYTES => {
                    size += line.len() + 1;
                    lines.push(line);
                }
                Some(_) => return Err(self.shows_none()),
                None if self.over.load(Relaxed) => return Ok(None),
                None => return Err(silent_error(self.host)),
            }
        }
    }

    fn shows_none(&self) -> ConnectionError {
        ConnectionError::Unfit(format!(
            "{} does not show its counters; see what 'grep -H \"\" /proc/uptime' says there, or leave the host out \
             with --exclude.",
            self.host.name
        ))
    }

    /// The next line of the host; `None` if none arrives until then, or the end is requested.
    fn line(&self, wire: &mut Wire, until: Instant) -> Result<Option<String>, ConnectionError> {
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.over.load(Relaxed) {
                break;
            }
            match wire.lines.recv_timeout(POLL.min(left)) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Err(wire.lost_error(self.host)),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
