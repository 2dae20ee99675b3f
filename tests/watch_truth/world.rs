//! Volumes of the lab in simulated time, programs that use them, and what the kernel would count.
//!
//! The volumes are those that `lab serve` serves, cold blocks, caps, credits and troubles included. What
//! the kernel does between is little here: arrays without parity, and queues of a given depth. It takes
//! no processor that the host may not have, so that it can be played as often as wanted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use lab::model::{Admission, Caps, FairQueue, Request, RequestKind, Volume};
use lab::spec::VolumeGroup;
use record::sample::{
    ArraySample, Device, DeviceId, DeviceKind, DeviceSample, Progress, Sample, SampleTime,
    SyncAction,
};
use record::{Bytes, Nanos};

use crate::dice::Random;
use crate::meter::Meter;
use crate::program::{Array, Pace, Program, Target};

/// The requests that a program's request waits for.
#[derive(Debug)]
struct Flight {
    program: usize,
    began: u64,
    write: bool,
    bytes: u64,
    parts: u64,
}

/// One request to one volume.
#[derive(Clone, Copy, Debug)]
struct Part {
    flight: u64,
    volume: usize,
    request: Request,
    began: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Issue(usize),
    Done(u64),
    Pass,
}

/// A host.
pub(crate) struct World {
    volumes: Vec<Volume>,
    fair_queue: Option<FairQueue<u64>>,
    /// When the fair queue is examined next.
    passes: Option<u64>,
    array: Option<Array>,
    queue: Option<u64>,
    programs: Vec<Program>,
    devices: Vec<Arc<Device>>,
    meters: Vec<Meter>,
    flights: HashMap<u64, Flight>,
    parts: HashMap<u64, (Part, Option<Admission>)>,
    waiting: Vec<VecDeque<u64>>,
    events: BinaryHeap<Reverse<(u64, u64, What)>>,
    count: u64,
    now: u64,
    dice: Random,
}

impl World {
    /// A host with these volumes, as `lab run --volumes` has them, each of one.
    pub(crate) fn new(specs: &[String], dice: &mut Random) -> World {
        let mut volumes = Vec::new();
        for spec in specs {
            let group: VolumeGroup = spec.parse().unwrap();
            volumes.push(Volume::new(group.spec, dice.between(0, u64::MAX - 1)));
        }
        World {
            fair_queue: None,
            passes: None,
            array: None,
            queue: None,
            programs: Vec::new(),
            devices: Vec::new(),
            meters: vec![Meter::default(); volumes.len() + 1],
            flights: HashMap::new(),
            parts: HashMap::new(),
            waiting: vec![VecDeque::new(); volumes.len()],
            events: BinaryHeap::new(),
            count: 0,
            now: 0,
            dice: Random::new(dice.between(0, u64::MAX - 1)),
            volumes,
        }
    }

    /// All volumes together answer no more requests a second.
    pub(crate) fn instance(&mut self, iops: u64) {
        let caps = Caps {
            iops: Some(iops as f64),
            throughput: None,
            ..Caps::default()
        };
        self.fair_queue = Some(FairQueue::new(caps, self.volumes.len()));
    }

    /// All volumes are an array.
    pub(crate) fn array(&mut self, array: Array) {
        self.array = Some(array);
    }

    /// The queue of a volume takes no more requests.
    pub(crate) fn queue(&mut self, depth: u64) {
        self.queue = Some(depth);
    }

    /// A program.
    pub(crate) fn program(&mut self, program: Program) {
        self.programs.push(program);
    }

    /// The names of the devices, the array's last.
    pub(crate) fn names(&self) -> Vec<String> {
        let volumes = self.volumes.len() as u8;
        let names = (0..volumes).map(|number| format!("vd{}", char::from(b'a' + number)));
        names.chain(self.array.map(|_| "md0".to_owned())).collect()
    }

    /// Plays it, and shows each second.
    pub(crate) fn play(mut self, seconds: u64, mut show: impl FnMut(&Sample)) {
        self.make_devices();
        if let Some(array) = self.array {
            self.programs.extend(array.checkers(self.volumes.len()));
        }
        for (number, program) in self.programs.clone().into_iter().enumerate() {
            let streams = match program.pace {
                Pace::Depth(depth) => depth,
                Pace::Rate(_) => 1,
            };
            for _ in 0..streams {
                self.push(program.from * 1_000_000_000, What::Issue(number));
            }
        }
        for second in 1..=seconds {
            let end = second * 1_000_000_000;
            while let Some(Reverse((at, _, what))) = self.events.peek().copied()
                && at < end
            {
                self.events.pop();
                self.now = at;
                self.go(what);
            }
            self.now = end;
            show(&self.sample(second));
        }
    }

    fn make_devices(&mut self) {
        let volumes = self.volumes.len();
        for (number, name) in self.names().iter().enumerate() {
            let id = DeviceId(u32::try_from(number).unwrap());
            let mut device = Device::by_name(id, name, SampleTime::default());
            device.kind = DeviceKind::Disk;
            device.queue_depth = self.queue.map(|depth| u32::try_from(depth).unwrap());
            if number == volumes {
                device.kind = DeviceKind::Array;
                device.queue_depth = None;
                device.level = self
                    .array
                    .map(|array| record::raid::MdLevel::from(format!("raid{}", array.level)));
                device.lies_on = (0..number as u32).map(DeviceId).collect();
            }
            self.devices.push(Arc::new(device));
        }
    }

    fn push(&mut self, at: u64, what: What) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, what)));
    }

    fn go(&mut self, what: What) {
        match what {
            What::Issue(program) => self.issue(program),
            What::Done(part) => self.done(part),
            What::Pass => {
                self.passes = self.passes.filter(|known| *known > self.now);
                self.pass();
            }
        }
    }

    fn issue(&mut self, number: usize) {
        let program = self.programs[number];
        if self.now >= program.to * 1_000_000_000 {
            return;
        }
        if let Pace::Rate(rate) = program.pace {
            let wait = -(1.0 - self.dice.uniform()).ln() / rate;
            self.push(self.now + (wait * 1e9) as u64, What::Issue(number));
        }
        let write = self.dice.uniform() >= program.reads;
        let place = self.dice.between(0, program.span / program.block - 1) * program.block;
        let places = match program.target {
            Target::Volume(volume) => vec![(volume, place)],
            Target::Array => self.members(place, write),
        };
        self.count += 1;
        let flight = self.count;
        self.flights.insert(
            flight,
            Flight {
                program: number,
                began: self.now,
                write,
                bytes: program.block,
                parts: places.len() as u64,
            },
        );
        if matches!(program.target, Target::Array) {
            let array = self.volumes.len();
            self.meters[array].begin(self.now);
        }
        for (volume, offset) in places {
            let part = Part {
                flight,
                volume,
                request: Request {
                    kind: if write {
                        RequestKind::Write
                    } else {
                        RequestKind::Read
                    },
                    offset,
                    length: program.block,
                },
                began: 0,
            };
            self.ask(part);
        }
    }

    /// Where a request to the array goes.
    fn members(&mut self, place: u64, write: bool) -> Vec<(usize, u64)> {
        let in_flight: Vec<u64> = self.meters.iter().map(|meter| meter.in_flight).collect();
        let array = self.array.unwrap();
        let in_flight = &in_flight[..self.volumes.len()];
        array.members(place, write, in_flight, &mut self.dice)
    }

    fn ask(&mut self, mut part: Part) {
        self.count += 1;
        let number = self.count;
        part.began = self.now;
        self.parts.insert(number, (part, None));
        let full = |depth| self.meters[part.volume].in_flight >= depth;
        if self.queue.is_some_and(full) {
            self.waiting[part.volume].push_back(number);
        } else {
            self.admit(number);
        }
    }

    fn admit(&mut self, number: u64) {
        let (part, admission) = self.parts.get_mut(&number).unwrap();
        part.began = self.now;
        let part = *part;
        self.meters[part.volume].begin(self.now);
        let admitted = self.volumes[part.volume].admit(Nanos(self.now), &part.request);
        *admission = Some(admitted.clone());
        let start = admitted.start;
        match &mut self.fair_queue {
            None => {
                let due = self.volumes[part.volume].due(&admitted, start);
                self.push(due.0, What::Done(number));
            }
            Some(fair_queue) => {
                fair_queue.enqueue(start, part.volume, admitted.ops, admitted.bytes, number);
                self.pass();
            }
        }
    }

    fn pass(&mut self) {
        let Some(fair_queue) = &mut self.fair_queue else {
            return;
        };
        let mut passed = Vec::new();
        while let Some(one) = fair_queue.step(Nanos(self.now)) {
            passed.push(one);
        }
        let next = fair_queue.next();
        for one in passed {
            let (part, admission) = &self.parts[&one.what];
            let due = self.volumes[part.volume].due(admission.as_ref().unwrap(), one.at);
            self.push(due.0.max(self.now), What::Done(one.what));
        }
        let next = next.map(|next| next.0.max(self.now + 1));
        if let Some(next) = next
            && self.passes.is_none_or(|known| next < known)
        {
            self.passes = Some(next);
            self.push(next, What::Pass);
        }
    }

    fn done(&mut self, number: u64) {
        let (part, _) = self.parts.remove(&number).unwrap();
        let write = part.request.kind == RequestKind::Write;
        self.meters[part.volume].end(self.now, part.began, write, part.request.length);
        if let Some(next) = self.waiting[part.volume].pop_front() {
            self.admit(next);
        }
        let flight = self.flights.get_mut(&part.flight).unwrap();
        flight.parts -= 1;
        if flight.parts > 0 {
            return;
        }
        let flight = self.flights.remove(&part.flight).unwrap();
        let program = self.programs[flight.program];
        if matches!(program.target, Target::Array) {
            let array = self.volumes.len();
            self.meters[array].end(self.now, flight.began, flight.write, flight.bytes);
        }
        if matches!(program.pace, Pace::Depth(_)) {
            self.push(self.now, What::Issue(flight.program));
        }
    }

    fn sample(&mut self, second: u64) -> Sample {
        let now = self.now;
        let meters = self.meters.iter_mut();
        let mut devices: Vec<DeviceSample> = self
            .devices
            .iter()
            .zip(meters)
            .map(|(device, meter)| meter.take(device, now))
            .collect();
        if let Some(array) = self.array {
            let checks = array.check_from.is_some_and(|from| second > from);
            let sample = devices.last_mut().unwrap();
            sample.array = Some(ArraySample {
                action: Some(if checks {
                    SyncAction::Check
                } else {
                    SyncAction::Idle
                }),
                position: checks.then_some(Progress {
                    done: Bytes::mib(second),
                    of: Bytes::gib(1),
                }),
                ..ArraySample::default()
            });
        }
        Sample {
            at: SampleTime {
                wall: None,
                elapsed: Nanos(now),
            },
            length: Nanos::from_secs(1),
            devices,
            ..Sample::default()
        }
    }
}
