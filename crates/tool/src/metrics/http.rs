//! A page of metrics over HTTP. One thread serves all connections side by side; HTTP itself is hyper's.
//!
//! What watches a network must not be stopped from there: there is a limit to how many connections are open, to how long one is,
//! and to what a request may have in its head. Past the first, the oldest connection ends, so that those who connect and say
//! nothing keep nobody from the page.
//!
//! `tiny_http` is smaller, but takes header lines of any length, and has a thread for each connection, without end.

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

/// Connections that are open at a time.
pub const CONNECTIONS: usize = 64;

/// What a whole request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Octets of a request's head: as few as hyper can be told.
pub const HEAD: usize = 8_192;

/// A page.
pub(super) struct Answer {
    /// Its media type.
    pub content: &'static str,
    pub body: String,
}

/// A page being served by a thread of its own, which ends, and all connections with it, when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Server {
    /// Answers requests for a path (without its query) with what `answer` says; `None` is not found.
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

    /// Where it listens: the port is the one in use, where 0 was asked for.
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
            // No descriptor is free, perhaps: it would be so at once again.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = timeout(PATIENCE, serve(stream, Arc::clone(&answer)));
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
    // Whoever asks and does not listen has not been answered; nobody else needs to know.
    let _ = http1::Builder::new()
        .keep_alive(false)
        // Who has asked may say that nothing more comes.
        .half_close(true)
        // All of a connection has a limit.
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
