//! Admission of requests: identity and permission of the client, and signing in.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::extract::rejection::FormRejection;
use axum::extract::{Extension, Form, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::app::App;
use super::guard;
use super::params::Params;
use super::reply::{self, Problem};
use super::tokens::Role;
use crate::pages::{self, Frame, Page};

/// Time that the answer to a wrong token takes.
const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(300);
/// Longest token that is compared.
const MAX_TOKEN_BYTES: usize = 256;

/// The sender of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSender {
    role: Option<Role>,
    /// True if the sender has signed in, and thus can sign out.
    pub(crate) signed_in: bool,
}

impl RequestSender {
    /// True if the sender may set markers.
    pub(crate) fn can_write(self) -> bool {
        self.role == Some(Role::Write)
    }
}

/// Answers a request if its host, origin and token are right.
pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let answer = match guard::check(&app.names, request.method(), request.headers()) {
        Err((status, text)) => Problem::new(status.as_u16(), text).into_response(),
        Ok(()) => {
            let visitor = visitor(&app, request.headers());
            match refusal(&app, visitor, &request) {
                Some(refusal) => {
                    if refusal == Refusal::Unknown && is_tried(&app, request.headers()) {
                        app.metrics.wrong_tokens.fetch_add(1, Relaxed);
                        tokio::time::sleep(WRONG_TOKEN_DELAY).await;
                    }
                    refusal.answer(request.method(), request.uri())
                }
                None => {
                    request.extensions_mut().insert(visitor);
                    next.run(request).await
                }
            }
        }
    };
    let mut answer = answer;
    reply::harden(&mut answer, app.secure);
    app.count(answer.status().as_u16(), began.elapsed());
    answer
}

/// Name of the cookie. The prefix binds it to this host and to TLS (RFC 6265bis, section 4.1.3).
fn cookie_name(app: &App) -> &'static str {
    match app.secure {
        true => "__Host-disksmith",
        false => "disksmith",
    }
}

fn session(app: &App, headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'));
    let mut own = pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == cookie_name(app));
    own.next()
        .map(|(_, value)| value.to_owned())
        .filter(|value| value.len() <= MAX_TOKEN_BYTES)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && token.len() <= MAX_TOKEN_BYTES).then_some(token)
}

fn visitor(app: &App, headers: &HeaderMap) -> RequestSender {
    let Some(tokens) = &app.tokens else {
        return RequestSender {
            role: Some(Role::Write),
            signed_in: false,
        };
    };
    if headers.contains_key(header::AUTHORIZATION) {
        return RequestSender {
            role: bearer(headers).and_then(|token| tokens.role(token)),
            signed_in: false,
        };
    }
    let role = session(app, headers).and_then(|secret| tokens.role_of_session(&secret));
    RequestSender {
        role,
        signed_in: role.is_some(),
    }
}

/// True if a request carries a token or a session.
fn is_tried(app: &App, headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || session(app, headers).is_some()
}

/// Reason for which a visitor is not answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// The sender must sign in.
    Unknown,
    /// The sender's token only permits reading.
    ReadOnly,
}

/// True for paths that everyone may ask for.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/sign-in") || path.starts_with("/assets/")
}

fn refusal(app: &App, visitor: RequestSender, request: &Request) -> Option<Refusal> {
    if app.tokens.is_none() || is_open(request.uri().path()) {
        return None;
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_sign_out = request.uri().path() == "/sign-out";
    match visitor.role {
        None => Some(Refusal::Unknown),
        Some(Role::Read) if !is_read && !is_sign_out => Some(Refusal::ReadOnly),
        Some(_) => None,
    }
}

impl Refusal {
    fn answer(self, method: &Method, uri: &Uri) -> Response {
        let is_page =
            *method == Method::GET && !uri.path().starts_with("/api/") && uri.path() != "/metrics";
        match self {
            Refusal::ReadOnly => Problem::new(403, "This token may read only.").into_response(),
            Refusal::Unknown if is_page => to_sign_in(uri),
            Refusal::Unknown => {
                let text = "A token is needed: Authorization: Bearer TOKEN";
                let mut answer = Problem::new(401, text).into_response();
                let bearer = HeaderValue::from_static("Bearer");
                answer
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, bearer);
                answer
            }
        }
    }
}

fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn to_sign_in(uri: &Uri) -> Response {
    let next = uri.path_and_query().map_or("/", |place| place.as_str());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let next: String = next
        .bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    redirect(&format!("/sign-in?next={next}"))
}

/// A path of this server to go on to; `/` in place of what might lead elsewhere.
fn local(next: &str) -> &str {
    let leads_away = next.starts_with("//") || next.contains(['\\', '\r', '\n', '\t']);
    match next.starts_with('/') && !leads_away && next.is_ascii() {
        true => next,
        false => "/",
    }
}

/// The form.
#[derive(Deserialize)]
pub(crate) struct SignIn {
    token: String,
    #[serde(default)]
    next: String,
}

fn form(uri: &Uri, failed: bool, next: &str) -> Response {
    let frame = Frame {
        path: uri.path(),
        query: "",
        can_write: false,
        signed_in: false,
    };
    let page = Page::SignIn {
        failed,
        next: local(next),
    };
    match pages::render(&frame, &page) {
        Ok(body) => reply::typed("text/html; charset=utf-8", body),
        Err(error) => Problem::new(500, error.to_string()).into_response(),
    }
}

/// The page on which one signs in.
pub(crate) async fn sign_in_page(
    State(app): State<Arc<App>>,
    Query(pairs): Query<Vec<(String, String)>>,
    uri: Uri,
) -> Response {
    let params = Params(pairs);
    let next = params.get("next").unwrap_or("/");
    match app.tokens {
        Some(_) => form(&uri, false, next),
        None => redirect("/"),
    }
}

/// Signs a browser in.
pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    uri: Uri,
    sent: Result<Form<SignIn>, FormRejection>,
) -> Response {
    let Some(tokens) = &app.tokens else {
        return redirect("/");
    };
    let Ok(Form(SignIn { token, next })) = sent else {
        return Problem::misused("The form has the fields token and next.").into_response();
    };
    let token = token.trim();
    let secret = match token.len() <= MAX_TOKEN_BYTES {
        true => tokens.sign_in(token),
        false => Ok(None),
    };
    match secret {
        Ok(Some(secret)) => {
            let mut response = redirect(local(&next));
            set_cookie(&app, &mut response, &secret, "");
            response
        }
        Ok(None) => {
            app.metrics.wrong_tokens.fetch_add(1, Relaxed);
            tokio::time::sleep(WRONG_TOKEN_DELAY).await;
            let mut response = form(&uri, true, &next);
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

fn set_cookie(app: &App, response: &mut Response, value: &str, more: &str) {
    let secure = if app.secure { "; Secure" } else { "" };
    let name = cookie_name(app);
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

/// Ends a browser's session.
pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    _visitor: Extension<RequestSender>,
    headers: HeaderMap,
) -> Response {
    if let (Some(tokens), Some(secret)) = (&app.tokens, session(&app, &headers)) {
        tokens.sign_out(&secret);
    }
    let mut response = redirect("/sign-in");
    set_cookie(&app, &mut response, "", "; Max-Age=0");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_sent_on_to_this_server_only() {
        for (next, to) in [
            ("/verdicts?last=1d", "/verdicts?last=1d"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
        ] {
            assert_eq!(local(next), to);
        }
    }
}
