//! Starting the server, and its end.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use linux::remedy;
use tally::store::StoreAddress;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::args::ServeArgs;
use crate::http::app::{App, Parts};
use crate::http::events;
use crate::http::guard::ServerNames;
use crate::http::live::LatestEvents;
use crate::http::routes;
use crate::http::server::Acceptor;
use crate::http::tls;
use crate::http::tokens::Tokens;
use crate::sources::Sources;
use crate::sources::kernel::HostWatch;
use crate::sources::prometheus::Prometheus;
use crate::sources::recordings::Recordings;
use crate::sources::service::Stores;
use crate::verdicts::Engine;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::service_manager::notify;

/// Interval at which signals are polled.
const POLL: Duration = Duration::from_millis(100);
/// Time after which a browser that `serve` opened is killed.
const BROWSER_TIME: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of threads that read sources.
const MAX_READER_THREADS: usize = 8;

/// Settings of the server, from its arguments and the files that they name, checked before it listens.
pub(crate) struct ServerSettings {
    door: ServerAccess,
    slot_s: i64,
    stores: Stores,
    ledger: PathBuf,
}

impl ServerSettings {
    /// Reads the settings from the arguments and the files that they name.
    ///
    /// # Errors
    /// Refused when a file cannot be read or is invalid, or when arguments conflict.
    pub(crate) fn of(args: &ServeArgs, context: &Context) -> Result<ServerSettings, Failure> {
        Ok(ServerSettings {
            door: ServerAccess::of(args)?,
            slot_s: slot(args)?,
            stores: stores(args, context)?,
            ledger: context.ledger_path()?,
        })
    }
}

/// Serves until interrupted.
pub(crate) fn run(args: &ServeArgs, context: &mut Context, interrupt: &Arc<AtomicBool>) -> Outcome {
    let ServerSettings {
        door,
        slot_s,
        stores,
        ledger,
    } = ServerSettings::of(args, context)?;
    let listener = listen(args.listen.0)?;
    listener.set_nonblocking(true).refused()?;
    let address = listener.local_addr().refused()?;
    let live = LatestEvents::new();
    let known: Arc<OnceLock<Arc<Sources>>> = Arc::default();
    let publish = {
        let (live, known) = (live.clone(), Arc::clone(&known));
        move || {
            if let Some(sources) = known.get() {
                live.publish(sources);
            }
        }
    };
    let sources = Arc::new(Sources {
        ledger: Recordings::new(ledger),
        stores,
        prometheus: args
            .prometheus
            .clone()
            .map(|address| Prometheus::new(address, args.series.clone())),
        kernel: HostWatch::start(&context.root, publish),
    });
    let _ = known.set(Arc::clone(&sources));
    let (stop, stopped) = watch::channel(false);
    let hostname = linux::machine::hostname(&context.root);
    let app = Arc::new(App::new(Parts {
        sources,
        engine: Engine::new(slot_s),
        tokens: door.tokens,
        names: names(args, address, &hostname),
        secure: door.tls.is_some() || args.behind_proxy.is_some(),
        hostname,
        live,
        stop: stopped,
    }));
    let url = url(address, door.tls.is_some());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_READER_THREADS)
        .build()
        .refused()?;
    context.print(&format!("Serving {url}\n"))?;
    if args.open {
        open(url);
    }
    runtime
        .block_on(async {
            let server = Acceptor {
                listener: tokio::net::TcpListener::from_std(listener)?,
                tls: door.tls,
                only: args.behind_proxy,
                metrics: Arc::clone(&app.metrics),
            };
            notify("READY=1");
            let interrupt = Arc::clone(interrupt);
            tokio::spawn(events::follow(Arc::clone(&app)));
            tokio::spawn(async move {
                while !interrupt.load(Relaxed) {
                    tokio::time::sleep(POLL).await;
                }
                stop.send_replace(true);
            });
            server
                .run(routes::router(Arc::clone(&app)), app.stop.clone())
                .await;
            Ok::<(), std::io::Error>(())
        })
        .midway()?;
    // Unfinished reads are abandoned: they change nothing.
    runtime.shutdown_background();
    Ok(CommandEnd::Done)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .map_err(|error| remedy::port(error, address.port()))
        .with_context(|| format!("{address} cannot be listened on"))
        .refused()
}

/// Tokens and TLS of the server.
struct ServerAccess {
    tokens: Option<Tokens>,
    tls: Option<TlsAcceptor>,
}

impl ServerAccess {
    fn of(args: &ServeArgs) -> Result<ServerAccess, Failure> {
        let is_reached = !args.listen.0.ip().is_loopback() || args.behind_proxy.is_some();
        let is_encrypted = args.tls_cert.is_some() || args.behind_proxy.is_some();
        if is_reached && (args.token_file.is_none() || !is_encrypted) {
            return Err(Failure::refused(format!(
                "others can reach {}: name --token-file, and either --tls-cert with --tls-key or --behind-proxy; or listen on 127.0.0.1",
                args.listen.0
            )));
        }
        let tokens = args.token_file.as_deref().map(Tokens::open);
        let pair = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
        let tls = pair.map(|(certificate, key)| tls::acceptor(certificate, key));
        Ok(ServerAccess {
            tokens: tokens.transpose().refused()?,
            tls: tls.transpose().refused()?,
        })
    }
}

/// Length of a verdict's slots in seconds.
fn slot(args: &ServeArgs) -> Result<i64, Failure> {
    let seconds = args.slot.as_secs_f64();
    match seconds.fract() == 0.0 && (1.0..=3600.0).contains(&seconds) {
        true => Ok(seconds as i64),
        false => Err(Failure::refused(
            "--slot is a whole number of seconds, at most an hour, such as 1m",
        )),
    }
}

/// The stores that the arguments name, or else the default store, which need not exist yet.
fn stores(args: &ServeArgs, context: &Context) -> Result<Stores, Failure> {
    if !args.tally.is_empty() {
        let twice =
            (1..args.tally.len()).find(|place| args.tally[..*place].contains(&args.tally[*place]));
        if let Some(twice) = twice {
            return Err(Failure::refused(format!(
                "{} is named twice; its events would count twice",
                args.tally[twice]
            )));
        }
        return Ok(Stores::new(args.tally.clone()));
    }
    let path: PathBuf = context.ledger_path()?.with_file_name("tally.db");
    Ok(Stores::new(vec![StoreAddress::Sqlite(path)]))
}

fn names(args: &ServeArgs, address: SocketAddr, hostname: &str) -> ServerNames {
    let mut named: Vec<String> = args
        .name
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let loopback = address.ip().is_loopback();
    if !loopback && !hostname.is_empty() {
        named.push(hostname.to_ascii_lowercase());
    }
    ServerNames { loopback, named }
}

fn url(address: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let host = match address.ip().is_unspecified() {
        true => SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    };
    format!("{scheme}://{host}/")
}

/// Opens a page in the browser of this desktop. Some browsers stay in the foreground until they are closed: the server
/// does not wait for that.
fn open(url: String) {
    std::thread::spawn(move || {
        let browser = linux::exec::Exec::new("xdg-open")
            .arg(&url)
            .limit(BROWSER_TIME);
        if let Err(error) = browser.run() {
            ui::context::notice(&format!("{url} could not be opened in a browser: {error}"));
        }
    });
}
