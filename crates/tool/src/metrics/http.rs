//! A page of metrics over HTTP. One thread serves all connections concurrently; hyper implements
//! HTTP.
//!
//! A network monitor must not be stopped from the network. So there are limits to the number of
//! open connections, to the duration of each, and to the size of a request's head. When too many
//! are open, the oldest connection is closed, so that idle connections do not block access to the
//! page.
//!
//! `tiny_http` is smaller, but accepts header lines of any length, and starts a thread for each
//! connection without a limit.

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Maximum number of open connections.
pub const CONNECTIONS: usize = 64;

/// Maximum duration of a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a request's head in octets: the minimum that hyper accepts.
pub const HEAD: usize = 8_192;

/// A page.
pub(super) struct Answer {
    /// Media type.
    pub content: &'static str,
    pub body: String,
}

/// A page served by a separate thread. Dropping this ends the thread and all connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Server {
    /// Answers requests for a path (without its query) with the result of `answer`; `None` means
    /// not found.
    pub(super) fn start(
        listener: TcpListener,
        answer: impl FnMut(&str) -> Option<Answer> + Send + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("metrics")
            .enable_all()
            .build()?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        runtime.spawn(accept(listener, Arc::new(Mutex::new(answer))));
        Ok(Self {
            address,
            _runtime: runtime,
        })
    }

    /// Returns the address it listens on, with the actual port if 0 was requested.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept<A>(listener: tokio::net::TcpListener, answer: Arc<Mutex<A>>)
where
    A: FnMut(&str) -> Option<Answer> + Send + 'static,
{
    let mut open: VecDeque<AbortHandle> = VecDeque::with_capacity(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Perhaps no descriptor is free: an immediate retry would fail again.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = timeout(TIMEOUT, serve(stream, Arc::clone(&answer)));
        open.push_back(tokio::spawn(connection).abort_handle());
    }
}

async fn serve<A>(stream: TcpStream, answer: Arc<Mutex<A>>)
where
    A: FnMut(&str) -> Option<Answer>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let response = reply(&request, &mut *answer.lock());
        async { Ok::<_, Infallible>(response) }
    });
    // A client that does not read its answer has no effect on others.
    let _ = http1::Builder::new()
        .keep_alive(false)
        // A client may close its sending side after the request.
        .half_close(true)
        // The whole connection has a limit.
        .header_read_timeout(None)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn reply(
    request: &Request<Incoming>,
    answer: &mut impl FnMut(&str) -> Option<Answer>,
) -> Response<String> {
    let error = |status: StatusCode| {
        let mut response = Response::new(format!("{status}\n"));
        *response.status_mut() = status;
        (response, "text/plain; charset=utf-8")
    };
    let (mut response, content) = if [Method::GET, Method::HEAD].contains(request.method()) {
        match answer(request.uri().path()) {
            Some(Answer { content, body }) => (Response::new(body), content),
            None => error(StatusCode::NOT_FOUND),
        }
    } else {
        let (mut response, content) = error(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        (response, content)
    };
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(CONTENT_TYPE, content);
    response
}
