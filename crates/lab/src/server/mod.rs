//! The volume server: virtual volumes that clients reach over NBD.

mod error;
mod folder;
mod listen;
mod truth;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use record::Bytes;

use crate::disk::{Clock, Disk, RequestLog, SharedFairQueue};
use crate::model;
pub use crate::model::Caps;
use crate::nbd::Limits;
use crate::spec::{Span, VolumeSpec};
pub use crate::store::DataMedium;
use crate::store::VolumeData;
pub use error::ServerError;
use folder::Folder;
use listen::Listener;
pub use truth::VolumeTruth;

/// Minimum operations a second of a cap, after scaling.
const MIN_IOPS: f64 = 0.001;

/// Maximum cap. It is far above the rates of hardware, so that a higher one must be a mistake.
const MAX_CAP: f64 = 1e18;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Factor of all rates, including the instance's; above 0. Credits are multiplied too, so that they last as long.
    /// Latencies are not changed.
    pub scale: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Caps of the instance on all volumes, before scaling; no caps by default.
    pub instance: Caps,
    /// Folder in which the server creates its own, for sockets and data; by default the system's folder for temporary
    /// files. The server's folder is removed when the server stops.
    pub folder: Option<PathBuf>,
    /// Where the data is stored.
    pub keep: DataMedium,
    /// A loopback address that offers all volumes by their serial numbers, besides the sockets.
    /// Port 0 lets the kernel choose.
    pub listen: Option<SocketAddr>,
    /// True to start no faults, and to let cold blocks cost nothing and stay cold, until [`Server::begin`]: for a
    /// machine that reads its disks while it boots.
    pub hold: bool,
    /// A new file to which every request is written; `None` for no log.
    pub requests: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            scale: 1.0,
            seed: 0,
            instance: Caps::default(),
            folder: None,
            keep: DataMedium::default(),
            listen: None,
            hold: false,
            requests: None,
        }
    }
}

/// Volumes that are served until this is dropped. Then no thread, socket or file remains.
pub struct Server {
    // Dropped in this order: clients first, then the fair queue that answers them, then the folder.
    listeners: Vec<Listener>,
    fair_queue: Option<Arc<SharedFairQueue>>,
    volumes: Vec<Volume>,
    address: Option<SocketAddr>,
    limits: Arc<Limits>,
    log: Option<Arc<RequestLog>>,
    folder: Folder,
}

/// A served volume.
pub struct Volume {
    disk: Arc<Disk>,
    socket: PathBuf,
}

impl Server {
    /// Creates the volumes and serves each on its own unix socket.
    ///
    /// # Errors
    /// When the options or the serial numbers are inconsistent, or the folder, the data or a socket cannot be created.
    /// Then nothing remains.
    pub fn start(specs: &[VolumeSpec], options: &Options) -> Result<Server, ServerError> {
        check(specs, options)?;
        let serials = serials(specs)?;
        let log = match &options.requests {
            Some(path) => Some(Arc::new(RequestLog::create(path).map_err(|source| {
                ServerError::Requests {
                    path: path.clone(),
                    source,
                }
            })?)),
            None => None,
        };
        let folder = Folder::make(options.folder.as_deref())?;
        let clock = Clock::start();
        let caps = options.instance.scaled(options.scale);
        let fair_queue = match caps.is_open() {
            true => None,
            false => Some(
                SharedFairQueue::start(caps, specs.len(), clock).map_err(ServerError::Thread)?,
            ),
        };
        let mut server = Server {
            listeners: Vec::new(),
            fair_queue,
            volumes: Vec::new(),
            address: None,
            limits: Arc::default(),
            log,
            folder,
        };
        for (number, (spec, serial)) in specs.iter().zip(serials).enumerate() {
            server.add(number, spec, serial, clock, options)?;
        }
        if let Some(address) = options.listen {
            server.listen(address)?;
        }
        Ok(server)
    }

    fn add(
        &mut self,
        number: usize,
        spec: &VolumeSpec,
        serial: String,
        clock: Clock,
        options: &Options,
    ) -> Result<(), ServerError> {
        let seed = spec
            .seed
            .unwrap_or_else(|| model::Random::of(options.seed, number as u64).bits());
        let store =
            VolumeData::new(spec, seed, options.keep, self.folder.path()).map_err(|source| {
                ServerError::Data {
                    serial: serial.clone(),
                    size: spec.size,
                    source,
                }
            })?;
        let mut volume = model::Volume::new(spec.scaled(options.scale), seed);
        if options.hold {
            volume = volume.paused();
        }
        let queue = self.fair_queue.clone().map(|queue| (queue, number));
        let disk = Arc::new(Disk::new(
            serial,
            clock,
            volume,
            store,
            queue,
            self.log.clone(),
        ));
        let socket = self.folder.path().join(format!("{}.sock", disk.serial()));
        let listener = Listener::unix(
            &socket,
            Arc::from([Arc::clone(&disk)]),
            Arc::clone(&self.limits),
        )?;
        self.listeners.push(listener);
        self.volumes.push(Volume { disk, socket });
        Ok(())
    }

    fn listen(&mut self, address: SocketAddr) -> Result<(), ServerError> {
        let exports = self.volumes.iter().map(|v| Arc::clone(&v.disk)).collect();
        let (listener, address) = Listener::tcp(address, exports, Arc::clone(&self.limits))?;
        self.listeners.push(listener);
        self.address = Some(address);
        Ok(())
    }

    /// The volumes, in the order of their specifications.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The loopback address that offers all volumes; `None` if not requested.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The server's own folder, which is removed with the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the buffered rest of the log of requests.
    ///
    /// # Errors
    /// When the log could not be written completely.
    pub fn finish_requests(&self) -> std::io::Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.finish())
    }

    /// Starts the times of all stalls, slow episodes, errors and corruption, and the cost of cold blocks. Without
    /// [`Options::hold`] they start with the server, and this does nothing.
    pub fn begin(&self) {
        for volume in &self.volumes {
            volume.disk.begin();
        }
    }
}

impl Server {
    /// Cuts the power of the volumes, as of the machine that uses them. Every client is disconnected, and unanswered
    /// requests are lost; then volumes with a volatile write cache lose some of the data that no flush has made
    /// durable. Everything else is kept: other contents, cold blocks, credits, counters and the times of faults.
    /// Returns the number of blocks of 4 KiB that got earlier contents.
    ///
    /// The machine must be off by then (see [`Power`](crate::machine::Power)): a client that connects during this may
    /// read either contents.
    ///
    /// # Errors
    /// When a volume's data cannot be written.
    pub fn cut_power(&self) -> Result<u64, ServerError> {
        for listener in &self.listeners {
            listener.hang_up();
        }
        let lose = |volume: &Volume| {
            volume
                .disk
                .store()
                .cut_power()
                .map_err(|source| ServerError::Lose {
                    serial: volume.serial().to_owned(),
                    source,
                })
        };
        self.volumes.iter().map(lose).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listeners.clear();
        if let Some(fair_queue) = &self.fair_queue {
            fair_queue.stop();
        }
    }
}

impl Volume {
    /// The unix socket on which it is served, as the default export and under its serial number.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Size of the volume.
    pub fn size(&self) -> Bytes {
        self.disk.size()
    }

    /// Serial number of the volume.
    pub fn serial(&self) -> &str {
        self.disk.serial()
    }

    /// Specification of the volume, with rates scaled.
    pub fn spec(&self) -> VolumeSpec {
        self.disk.model().spec().clone()
    }

    /// Counters and state of the volume.
    pub fn truth(&self) -> VolumeTruth {
        VolumeTruth::of(&self.disk)
    }

    /// Corrupts these bytes now: they read back differently until they are written again. Bytes beyond the volume's
    /// end are ignored.
    pub fn corrupt(&self, place: Span) {
        self.disk.corrupt(place);
    }
}

fn check(specs: &[VolumeSpec], options: &Options) -> Result<(), ServerError> {
    if specs.is_empty() {
        return Err(ServerError::NoVolumes);
    }
    if !(options.scale > 0.0 && options.scale.is_finite()) {
        return Err(ServerError::Scale(options.scale));
    }
    check_caps(specs, options)?;
    match options.listen {
        Some(address) if !address.ip().is_loopback() => Err(ServerError::NotLoopback(address)),
        _ => Ok(()),
    }
}

/// Checks that all caps are valid rates after scaling: times are divided by them, and must be finite.
fn check_caps(specs: &[VolumeSpec], options: &Options) -> Result<(), ServerError> {
    let check = |whose: &dyn Fn() -> String, cap: Option<f64>, unit, least| match cap {
        Some(cap) if !(least..=MAX_CAP).contains(&(cap * options.scale)) => Err(ServerError::Cap {
            whose: whose(),
            cap,
            unit,
            scale: options.scale,
            least,
        }),
        _ => Ok(()),
    };
    let (operations, bytes) = ("operations a second", "bytes a second");
    let of_bytes = |rate: Option<Bytes>| rate.map(|rate| rate.0 as f64);
    let instance = || "the instance's cap".to_owned();
    check(&instance, options.instance.iops, operations, MIN_IOPS)?;
    let throughput = of_bytes(options.instance.throughput);
    check(&instance, throughput, bytes, 1.0)?;
    let burst = || "the instance's most".to_owned();
    let most = of_bytes(options.instance.most_throughput);
    check(&burst, options.instance.most_iops, operations, MIN_IOPS)?;
    check(&burst, most, bytes, 1.0)?;
    for (sustained, most, unit) in [
        (
            options.instance.iops,
            options.instance.most_iops,
            operations,
        ),
        (throughput, most, bytes),
    ] {
        let is_above = |most: &f64| sustained.is_some_and(|sustained| *most > sustained);
        if let Some(most) = most.filter(|most| !is_above(most)) {
            return Err(ServerError::NoBurst { most, unit });
        }
    }
    for (number, spec) in (1..).zip(specs) {
        let of = |what: &str| format!("{what} of volume {number}");
        let (cap, burst) = (|| of("the cap"), || of("the burst"));
        check(&cap, spec.iops, operations, MIN_IOPS)?;
        check(&cap, of_bytes(spec.throughput), bytes, 1.0)?;
        let most = spec.burst.map(|burst| burst.iops);
        check(&burst, most, operations, MIN_IOPS)?;
        let credits = spec.burst.map(|burst| burst.credits);
        check(&burst, credits, "credits", MIN_IOPS)?;
        let most = spec.throughput_burst.map(|burst| burst.throughput);
        check(&burst, of_bytes(most), bytes, 1.0)?;
        let credits = spec.throughput_burst.map(|burst| burst.credits);
        check(&burst, of_bytes(credits), "credits", 1.0)?;
    }
    Ok(())
}

/// Every volume's serial number: its own, or "lab" and its index.
fn serials(specs: &[VolumeSpec]) -> Result<Vec<String>, ServerError> {
    let mut serials = Vec::with_capacity(specs.len());
    for (number, spec) in (1..).zip(specs) {
        let serial = spec
            .serial
            .clone()
            .unwrap_or_else(|| format!("lab{number}"));
        if serial == crate::spec::STATE_SERIAL {
            return Err(ServerError::Reserved(serial));
        }
        if serials.contains(&serial) {
            return Err(ServerError::SerialTwice(serial));
        }
        serials.push(serial);
    }
    Ok(serials)
}
