//! Routes of pages, of the API, of metrics and of the health check.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use fleet::FleetPage;
use jiff::Timestamp;

use super::access::{self, RequestSender};
use super::app::App;
use super::events::events;
use super::params::Params;
use super::reply::{self, Problem};
use crate::csv::CsvTable;
use crate::documents::{Document, Marker, Markers, Race, Run, Runs, Verdicts};
use crate::pages::{self, Frame, Page};
use crate::{markers, view};

/// Maximum size of a request's body in bytes.
const MAX_BODY_BYTES: usize = 64 << 10;
/// Maximum number of runs in a report.
const MAX_REPORT_RUNS: usize = 8;

/// State of all handlers.
type Shared = State<Arc<App>>;
/// Parameters as axum reads them.
type Pairs = Query<Vec<(String, String)>>;
/// Result of handlers of the API.
type ApiResult = Result<Response, Problem>;

/// Router of all routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/response-times", get(page))
        .route("/verdicts", get(page))
        .route("/runs", get(page))
        .route("/runs/{run}", get(run_report))
        .route("/sweep/{key}", get(sweep_report))
        .route("/fleet/{key}", get(fleet_report))
        .route("/compare", get(page))
        .route("/report", get(report))
        .route("/markers", get(page))
        .route("/sign-in", get(access::sign_in_page).post(access::sign_in))
        .route("/sign-out", post(access::sign_out))
        .route("/assets/{name}", get(asset))
        .route("/api/v1/now", get(now))
        .route("/api/v1/live", get(live))
        .route("/api/v1/tags", get(tags))
        .route("/api/v1/response-times", get(response_times))
        .route("/api/v1/response-times.csv", get(response_times_csv))
        .route("/api/v1/verdicts", get(verdicts))
        .route("/api/v1/verdicts.csv", get(verdicts_csv))
        .route("/api/v1/runs", get(runs))
        .route("/api/v1/runs.csv", get(runs_csv))
        .route("/api/v1/runs/{run}", get(run))
        .route("/api/v1/sweep/{key}", get(sweep))
        .route("/api/v1/fleet/{key}", get(fleet))
        .route("/api/v1/compare", get(compare))
        .route("/api/v1/markers", get(list_markers).post(set_markers))
        .route("/api/v1/markers.csv", get(markers_csv))
        .route("/api/markers", post(set_markers))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&app),
            access::admit,
        ))
        .with_state(app)
}

fn seconds_now() -> i64 {
    Timestamp::now().as_second()
}

async fn not_found(visitor: Extension<RequestSender>, uri: Uri) -> Response {
    let problem = Problem::new(404, "There is nothing here.");
    match uri.path().starts_with("/api/") {
        true => problem.into_response(),
        false => problem_page(&uri, visitor.0, problem),
    }
}

fn frame(uri: &Uri, visitor: RequestSender) -> Frame<'_> {
    Frame {
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
        can_write: visitor.can_write(),
        signed_in: visitor.signed_in,
    }
}

fn problem_page(uri: &Uri, visitor: RequestSender, problem: Problem) -> Response {
    let page = Page::Problem {
        status: problem.status.as_u16(),
        text: &problem.text,
    };
    let body = pages::render(&frame(uri, visitor), &page);
    let mut response = match body {
        Ok(body) => reply::typed("text/html; charset=utf-8", body),
        Err(_) => problem.clone().into_response(),
    };
    *response.status_mut() = problem.status;
    response
}

/// A page with its document in it.
async fn page(
    State(app): Shared,
    Extension(visitor): Extension<RequestSender>,
    Query(pairs): Pairs,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let params = Params(pairs);
    let place = uri.clone();
    let body = app
        .read(move |app| {
            let frame = frame(&place, visitor);
            let rendered = match place.path() {
                "/response-times" => {
                    let question = params.view(seconds_now())?;
                    let view = view::response_times(&app.sources, &question, seconds_now())?;
                    pages::render(&frame, &Page::ResponseTimes(&view))
                }
                "/verdicts" => {
                    let verdicts = judged(app, &params)?;
                    pages::render(&frame, &Page::Verdicts(&verdicts))
                }
                "/runs" => pages::render(&frame, &Page::Runs(&listed(app, &params)?)),
                "/compare" => pages::render(&frame, &Page::Compare(&compared(app, &params)?)),
                "/markers" => {
                    let markers = marked(app, &params)?;
                    pages::render(&frame, &Page::Markers(&markers))
                }
                _ => pages::render(&frame, &Page::Now(&app.live.document(&app.sources))),
            };
            rendered.map_err(|error| Problem::new(500, error.to_string()))
        })
        .await;
    match body {
        Ok(body) => reply::page(&headers, body),
        Err(problem) => problem_page(&uri, visitor, problem),
    }
}

async fn asset(uri: Uri, headers: HeaderMap) -> ApiResult {
    match pages::asset(uri.path()) {
        Some(asset) => Ok(reply::asset(&headers, asset)),
        None => Err(Problem::new(404, "There is no such file; reload the page.")),
    }
}

async fn now(State(app): Shared) -> ApiResult {
    Ok(reply::json(app.live.document(&app.sources).json()))
}

async fn live(State(app): Shared) -> ApiResult {
    events(&app)
}

async fn tags(State(app): Shared) -> ApiResult {
    let body = app
        .read_kept("tags".to_owned(), |app| {
            Ok(app.sources.tag_list(seconds_now())?.json())
        })
        .await?;
    Ok(reply::json(body))
}

/// Key of a request in the cache of answers.
fn key(name: &str, params: &Params) -> String {
    format!("{name} {:?}", params.0)
}

async fn response_times(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let params = Params(pairs);
    let question = params.view(seconds_now())?;
    let body = app
        .read_kept(key("view", &params), move |app| {
            Ok(view::response_times(&app.sources, &question, seconds_now())?.json())
        })
        .await?;
    Ok(reply::json(body))
}

async fn response_times_csv(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let question = Params(pairs).view(seconds_now())?;
    let body = app
        .read(move |app| {
            let view = view::response_times(&app.sources, &question, seconds_now())?;
            Ok(view::csv(&view))
        })
        .await?;
    Ok(reply::csv("response-times", body))
}

fn judged(app: &App, params: &Params) -> Result<Verdicts, Problem> {
    let now = params.as_of(seconds_now())?;
    let question = params.verdicts(now)?;
    Ok(app.engine.verdicts(&app.sources, &question, now))
}

async fn verdicts(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let params = Params(pairs);
    let body = app
        .read_kept(key("verdicts", &params), move |app| {
            Ok(judged(app, &params)?.json())
        })
        .await?;
    Ok(reply::json(body))
}

async fn verdicts_csv(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let found = app.read(move |app| judged(app, &Params(pairs))).await?;
    let head = ["time", "marker", "conclusion", "certainty", "sentence"];
    let mut table = CsvTable::new(head.map(str::to_owned));
    for verdict in found.verdicts {
        table.row([
            verdict.time.to_string(),
            verdict
                .marker
                .map_or_else(String::new, |marker| marker.text),
            verdict.conclusion.to_owned(),
            verdict.certainty.to_owned(),
            verdict.sentence,
        ]);
    }
    Ok(reply::csv("verdicts", table.text()))
}

fn listed(app: &App, params: &Params) -> Result<Runs, Problem> {
    let filter = params.runs()?;
    let read = app.sources.ledger.read(|ledger| {
        let runs = ledger.list(&filter)?.into_iter().map(run_row).collect();
        let work = ledger.list_work(None)?;
        // A key with a dot belongs to a late answer to the run whose key is before the dot.
        let is_race = |kind: &str, key: &str| match kind {
            "fleet" => !key.contains('.'),
            _ => kind == "sweep",
        };
        let races = work
            .into_iter()
            .filter(|work| is_race(&work.kind, &work.key))
            .map(|work| Race {
                work: work.kind,
                key: work.key,
                began: work.began,
                finished: work.finished,
                hostname: work.owner.host,
            });
        Ok(Runs {
            runs,
            races: races.collect(),
        })
    })?;
    Ok(read.unwrap_or_else(|| Runs {
        runs: Vec::new(),
        races: Vec::new(),
    }))
}

fn run_row(run: ledger::RunSummary) -> Run {
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    Run {
        run: run.id.to_string(),
        started: run.started,
        hostname: known(run.host),
        target: known(run.target),
        device: run.device,
        suite: run.suite,
        phases: run.phases,
        imported_from: match run.origin {
            record::Origin::Measured => None,
            record::Origin::Imported { tool } => Some(tool),
        },
        interrupted: run.interrupted,
        verdict: run.verdict.to_string(),
    }
}

async fn runs(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let runs = app.read(move |app| listed(app, &Params(pairs))).await?;
    Ok(reply::json(runs.json()))
}

async fn runs_csv(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let runs = app.read(move |app| listed(app, &Params(pairs))).await?;
    let head = [
        "run", "started", "hostname", "target", "device", "suite", "verdict",
    ];
    let mut table = CsvTable::new(head.map(str::to_owned));
    for run in runs.runs {
        table.row([
            run.run,
            run.started.to_string(),
            run.hostname.unwrap_or_default(),
            run.target.unwrap_or_default(),
            run.device.unwrap_or_default(),
            run.suite,
            run.verdict,
        ]);
    }
    Ok(reply::csv("runs", table.text()))
}

/// Returns what `work` reads from the ledger; status 404 if there is no ledger.
fn of_ledger<R>(
    app: &App,
    work: impl Fn(&ledger::Ledger) -> Result<R, ui::exit::Failure>,
) -> Result<R, Problem> {
    let read = app.sources.ledger.read(|ledger| Ok(work(ledger)))?;
    match read {
        Some(answer) => Ok(answer?),
        None => Err(Problem::new(404, "There is no ledger yet, and so no run.")),
    }
}

async fn run(State(app): Shared, Path(id): Path<String>) -> ApiResult {
    let body = app
        .read(move |app| of_ledger(app, |ledger| bench::runs::document(ledger, &id)))
        .await?;
    Ok(reply::json(body))
}

async fn sweep(State(app): Shared, Path(key): Path<String>) -> ApiResult {
    let body = app
        .read(move |app| of_ledger(app, |ledger| sweep::document(ledger, &key)))
        .await?;
    Ok(reply::json(body))
}

async fn fleet(State(app): Shared, Path(key): Path<String>) -> ApiResult {
    let body = app
        .read(move |app| of_ledger(app, |ledger| fleet::document(ledger, &key)))
        .await?;
    Ok(reply::json(body))
}

fn compared(app: &App, params: &Params) -> Result<String, Problem> {
    let (Some(a), Some(b)) = (params.get("a"), params.get("b")) else {
        return Err(Problem::misused("Two runs are compared: ?a=RUN&b=RUN"));
    };
    of_ledger(app, |ledger| bench::runs::comparison_document(ledger, a, b))
}

async fn compare(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let body = app.read(move |app| compared(app, &Params(pairs))).await?;
    Ok(reply::json(body))
}

async fn run_report(
    State(app): Shared,
    visitor: Extension<RequestSender>,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    drawn(app, visitor.0, vec![id], &uri).await
}

async fn report(
    State(app): Shared,
    visitor: Extension<RequestSender>,
    Query(pairs): Pairs,
    uri: Uri,
) -> Response {
    let params = Params(pairs);
    let runs: Vec<String> = params.all("run").map(str::to_owned).collect();
    if runs.is_empty() || runs.len() > MAX_REPORT_RUNS {
        let text = format!("A report is of 1 to {MAX_REPORT_RUNS} runs: ?run=RUN&run=RUN");
        return problem_page(&uri, visitor.0, Problem::misused(text));
    }
    drawn(app, visitor.0, runs, &uri).await
}

async fn sweep_report(
    State(app): Shared,
    visitor: Extension<RequestSender>,
    Path(key): Path<String>,
    uri: Uri,
) -> Response {
    let body = app
        .read(move |app| of_ledger(app, |ledger| sweep::report_page(ledger, &key)))
        .await;
    report_or_problem(body, visitor.0, &uri)
}

/// Answers with the report of a run of the fleet: a page of its own for a race, text for others.
async fn fleet_report(
    State(app): Shared,
    visitor: Extension<RequestSender>,
    Path(key): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let title = format!("Run of the fleet {key}");
    let json = format!("/api/v1/fleet/{key}");
    let found = app
        .read(move |app| of_ledger(app, |ledger| fleet::report_page(ledger, &key)))
        .await;
    let text = match found {
        Ok(FleetPage::Text(text)) => text,
        Ok(FleetPage::Race(body)) => return reply::report(body),
        Err(problem) => return problem_page(&uri, visitor.0, problem),
    };
    let page = Page::Text {
        title: &title,
        text: &text,
        json: &json,
    };
    match pages::render(&frame(&uri, visitor.0), &page) {
        Ok(body) => reply::page(&headers, body),
        Err(error) => problem_page(&uri, visitor.0, Problem::new(500, error.to_string())),
    }
}

async fn drawn(app: Arc<App>, visitor: RequestSender, runs: Vec<String>, uri: &Uri) -> Response {
    let body = app
        .read(move |app| of_ledger(app, |ledger| bench::runs::report_page(ledger, &runs)))
        .await;
    report_or_problem(body, visitor, uri)
}

fn report_or_problem(
    body: Result<Vec<u8>, Problem>,
    visitor: RequestSender,
    uri: &Uri,
) -> Response {
    match body {
        Ok(body) => reply::report(body),
        Err(problem) => problem_page(uri, visitor, problem),
    }
}

fn marked(app: &App, params: &Params) -> Result<Markers, Problem> {
    let (from, to) = params.markers(seconds_now())?;
    Ok(Markers {
        markers: app.sources.markers(from, to)?,
    })
}

async fn list_markers(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let params = Params(pairs);
    let form = params.get("form").map(str::to_owned);
    let found = app.read(move |app| marked(app, &params)).await?;
    Ok(reply::json(match form.as_deref() {
        None => found.json(),
        Some("grafana") => markers::grafana(&found.markers),
        Some("ganglia") => markers::ganglia(&found.markers),
        Some(_) => return Err(Problem::misused("form is grafana or ganglia")),
    }))
}

async fn markers_csv(State(app): Shared, Query(pairs): Pairs) -> ApiResult {
    let found = app.read(move |app| marked(app, &Params(pairs))).await?;
    let mut table = CsvTable::new(["id", "time", "hostname", "text"].map(str::to_owned));
    for marker in found.markers {
        let id = marker.id.to_string();
        table.row([id, marker.time.to_string(), marker.hostname, marker.text]);
    }
    Ok(reply::csv("markers", table.text()))
}

async fn set_markers(
    State(app): Shared,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult {
    if !super::guard::is_json(&headers) {
        return Err(Problem::new(415, "Markers are sent as application/json."));
    }
    let body =
        body.map_err(|rejection| Problem::new(rejection.status().as_u16(), rejection.body_text()))?;
    let wanted =
        markers::read(&body).map_err(|error| Problem::misused(ui::exit::sentence(&error)))?;
    let set = app.read(move |app| set(app, wanted)).await?;
    let mut response = reply::json(Markers { markers: set }.json());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

fn set(app: &App, wanted: Vec<markers::NewMarker>) -> Result<Vec<Marker>, Problem> {
    let mut ledger = ledger::Ledger::open(app.sources.ledger.path())
        .map_err(|error| Problem::from(anyhow::Error::from(error)))?;
    let mut set = Vec::new();
    for one in wanted {
        let at = one.at.unwrap_or_else(Timestamp::now);
        let host = one.host.as_deref().unwrap_or(&app.hostname);
        let mark = ledger
            .mark(at, host, &one.text)
            .map_err(|error| Problem::from(anyhow::Error::from(error)))?;
        set.push(Marker::from(mark));
    }
    Ok(set)
}

async fn metrics(State(app): Shared) -> Response {
    let states = app.sources.states();
    reply::text(app.metrics.text(&states))
}

/// Health check: succeeds while the server answers, even if a source fails, since a restart would not help.
async fn healthz() -> Response {
    reply::text("ok\n")
}
