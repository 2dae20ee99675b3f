//! A topic of Kafka. Its offsets are kept by the stores, in the transactions with the sums, and not by the brokers: no
//! record is counted twice or left out, whatever is killed between two commits.
//!
//! A process reads all partitions of the topic, or those that are named. A position is always at the end of a batch of
//! records, which brokers keep as it was produced.

mod compression;
mod place;
mod protocol;
mod records;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use super::{Delivery, Identity, Intake, PollResult, Source, Stopped};
use crate::identity::fingerprint;
use crate::store::MAX_KEY_BYTES;

pub use place::KafkaTopic;
use protocol::{Connection, error};

/// Interval at which the list of partitions is refreshed: partitions may be added to a topic.
const REFRESH_INTERVAL: Duration = Duration::from_secs(300);
/// Maximum wait for one of several brokers.
const MAX_BROKER_WAIT: Duration = Duration::from_millis(20);

/// A reader of a topic.
#[derive(Debug)]
pub struct Kafka {
    place: KafkaTopic,
    address: String,
    cluster: Option<Cluster>,
}

/// Connections to the leaders of partitions.
#[derive(Debug)]
struct Cluster {
    leaders: BTreeMap<i32, Leader>,
    refreshed: Instant,
}

#[derive(Debug)]
struct Leader {
    connection: Connection,
    partitions: BTreeMap<i32, Partition>,
}

#[derive(Debug)]
struct Partition {
    /// Name of its position in the stores.
    source: String,
    /// Offset of the first record that was not taken.
    position: u64,
    /// Offset after the last record that can be read (high watermark).
    end: u64,
}

/// Reason why nothing is read.
enum FetchFailure {
    Stopped(Stopped),
    Broker(io::Error),
}

impl From<Stopped> for FetchFailure {
    fn from(stopped: Stopped) -> FetchFailure {
        FetchFailure::Stopped(stopped)
    }
}

impl From<io::Error> for FetchFailure {
    fn from(error: io::Error) -> FetchFailure {
        FetchFailure::Broker(error)
    }
}

impl Kafka {
    /// A reader of a topic, which connects when it is polled.
    pub fn new(place: KafkaTopic) -> Kafka {
        Kafka {
            address: place.to_string(),
            place,
            cluster: None,
        }
    }

    fn step(&mut self, wait: Duration, intake: &mut dyn Intake) -> Result<bool, FetchFailure> {
        if self
            .cluster
            .as_ref()
            .is_some_and(|cluster| cluster.refreshed.elapsed() >= REFRESH_INTERVAL)
        {
            self.cluster = None;
        }
        let cluster = match &mut self.cluster {
            Some(cluster) => cluster,
            None => self.cluster.insert(connect(&self.place, intake)?),
        };
        let wait = if cluster.leaders.len() > 1 {
            wait.min(MAX_BROKER_WAIT)
        } else {
            wait
        };
        let topic = &self.place.topic;
        for leader in cluster.leaders.values_mut() {
            let offsets = leader.partitions.iter();
            let offsets = offsets.map(|(index, partition)| (*index, partition.position));
            leader.connection.ask(topic, offsets, wait)?;
        }
        let mut came = false;
        for leader in cluster.leaders.values_mut() {
            came |= leader.take(topic, intake)?;
        }
        Ok(came)
    }
}

/// Finds the leaders of the partitions, and the stores' positions.
fn connect(place: &KafkaTopic, intake: &mut dyn Intake) -> Result<Cluster, FetchFailure> {
    let mut last = io::Error::other("no broker is named");
    let metadata = place.brokers.iter().find_map(|broker| {
        let answer = Connection::open(broker).and_then(|mut one| one.metadata(&place.topic));
        answer.map_err(|error| last = error).ok()
    });
    let metadata = metadata.ok_or(last)?;
    if metadata.error != error::NONE {
        return Err(io::Error::other(error::text(metadata.error)).into());
    }
    let mut leaders: BTreeMap<i32, Leader> = BTreeMap::new();
    for (index, code, node) in metadata.partitions {
        if !place.has(index) {
            continue;
        }
        let broker = metadata.brokers.iter().find(|(broker, _)| *broker == node);
        let Some((_, address)) = broker.filter(|_| code == error::NONE) else {
            return Err(io::Error::other(error::text(5)).into());
        };
        let leader = match leaders.entry(node) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(Leader {
                connection: Connection::open(address)?,
                partitions: BTreeMap::new(),
            }),
        };
        let source = source(&metadata.cluster, &place.topic, index);
        let position = match intake.position(&source)? {
            Some(position) => position,
            None => leader.connection.earliest(&place.topic, index)?,
        };
        leader.partitions.insert(
            index,
            Partition {
                source,
                position,
                end: position,
            },
        );
    }
    Ok(Cluster {
        leaders,
        refreshed: Instant::now(),
    })
}

/// Name of a partition's position.
fn source(cluster: &str, topic: &str, partition: i32) -> String {
    let name = format!("kafka:{cluster}:{topic}:{partition}");
    if name.len() <= MAX_KEY_BYTES {
        return name;
    }
    let hash = u128::from_be_bytes(fingerprint(topic.as_bytes()));
    format!("kafka:{cluster}:{}:{hash:032x}:{partition}", &topic[..100])
}

impl Leader {
    /// Delivers the records that the broker sent; false if there are none.
    fn take(&mut self, topic: &str, intake: &mut dyn Intake) -> Result<bool, FetchFailure> {
        let Leader {
            connection,
            partitions,
        } = self;
        let mut lost = Vec::new();
        // Partition, position before and after the lines, and the lines.
        let mut taken: Vec<(i32, u64, u64, Vec<u8>)> = Vec::new();
        for answer in connection.fetched()? {
            let Some(partition) = partitions.get_mut(&answer.partition) else {
                continue;
            };
            match answer.error {
                error::NONE => {}
                error::OFFSET_OUT_OF_RANGE => {
                    lost.push(answer.partition);
                    continue;
                }
                code => return Err(io::Error::other(error::text(code)).into()),
            }
            partition.end = answer.end.max(0).cast_unsigned();
            let mut from = partition.position;
            for batch in records::batches(answer.records, from.cast_signed(), &answer.aborted)? {
                let to = batch.end.cast_unsigned();
                taken.push((answer.partition, from, to, batch.lines));
                from = to;
            }
        }
        for index in lost {
            if let Some(partition) = partitions.get(&index) {
                let from = partition.position;
                let to = connection.earliest(topic, index)?;
                taken.push((
                    index,
                    from,
                    passed(&partition.source, from, to)?,
                    Vec::new(),
                ));
            }
        }
        let deliveries: Vec<Delivery<'_>> = taken
            .iter()
            .filter_map(|(index, from, to, lines)| {
                let source = &partitions.get(index)?.source;
                let (from, to) = (*from, *to);
                Some(Delivery {
                    identity: Identity::Step { source, from, to },
                    lines,
                })
            })
            .collect();
        if deliveries.is_empty() {
            return Ok(false);
        }
        intake.take(&deliveries)?;
        for (index, _, to, _) in taken {
            if let Some(partition) = partitions.get_mut(&index) {
                partition.position = to;
            }
        }
        Ok(true)
    }
}

/// The position after records that the broker has removed. The gap is reported.
///
/// # Errors
/// Where the position is after the end of the partition: the topic was created anew, or a broker lost acknowledged
/// records.
fn passed(source: &str, from: u64, earliest: u64) -> io::Result<u64> {
    if earliest < from {
        return Err(io::Error::other(format!(
            "{source} ends before offset {from}, up to which the store has it; was the topic created anew?"
        )));
    }
    crate::notices::report(&format!(
        "{source}: the records from offset {from} to {earliest} were removed before they were read; they are not counted"
    ));
    Ok(earliest)
}

impl Source for Kafka {
    fn address(&self) -> &str {
        &self.address
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        match self.step(wait, intake) {
            Ok(true) => PollResult::More,
            Ok(false) => PollResult::Idle,
            Err(FetchFailure::Stopped(Stopped)) => {
                self.cluster = None;
                PollResult::Idle
            }
            Err(FetchFailure::Broker(error)) => {
                // The leaders may have moved; they are looked up again.
                self.cluster = None;
                PollResult::Down(error.to_string())
            }
        }
    }

    fn lag(&self) -> Option<u64> {
        let leaders = self.cluster.as_ref()?.leaders.values();
        let partitions = leaders.flat_map(|leader| leader.partitions.values());
        Some(
            partitions
                .map(|one| one.end.saturating_sub(one.position))
                .sum(),
        )
    }

    fn rewind(&mut self) {
        self.cluster = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_positions_fit_each_store() {
        let name = source("MkU3OEVBNTcwNTJENDM2Qk", &"t".repeat(249), 12);
        assert!(
            name.len() <= MAX_KEY_BYTES && name.ends_with(":12"),
            "{name}"
        );
    }
}
