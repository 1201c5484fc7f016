//! As much of an HTTP server (RFC 9112) as a page of metrics takes: one request at a time, whose head is small and comes
//! soon, one answer, and the connection is closed.
//!
//! `tiny_http` would have done it, but takes header lines of any length and a thread for each connection without end,
//! whoever opens them: what watches a network must not be stopped from there.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Octets of a request's head.
const MOST_HEAD: usize = 4_096;

/// What a whole request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is refused may send so much more, which is read and forgotten, lest the answer be lost with it.
const MOST_FORGOTTEN: usize = 256 * 1_024;

/// A page.
pub(super) struct Answer {
    /// Its media type.
    pub content: &'static str,
    pub body: String,
}

/// A server in a thread of its own, which ends when this is dropped.
pub(super) struct Server {
    address: SocketAddr,
    /// Closed when dropped: the thread sees that.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers requests for a path (without its query) with what `answer` says; `None` is not found.
    pub(super) fn start(
        listener: TcpListener,
        answer: impl FnMut(&str) -> Option<Answer> + Send + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = Builder::new()
            .name("metrics".to_owned())
            .spawn(move || run(&listener, &stopped, answer))?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// How waiting ended.
#[derive(PartialEq, Eq)]
enum Woken {
    Ready,
    Late,
    Stopped,
}

/// Waits until something can be done, until then, or until the server is to end.
fn wait(what: &impl AsFd, flags: PollFlags, until: Option<Instant>, stopped: &UnixStream) -> Woken {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Woken::Late;
        }
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = [
            PollFd::new(what, flags),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return Woken::Stopped,
        }
        let [ready, stop] = &fds;
        if !stop.revents().is_empty() {
            return Woken::Stopped;
        }
        if !ready.revents().is_empty() {
            return Woken::Ready;
        }
    }
}

fn run(
    listener: &TcpListener,
    stopped: &UnixStream,
    mut answer: impl FnMut(&str) -> Option<Answer>,
) {
    while wait(listener, PollFlags::IN, None, stopped) == Woken::Ready {
        match listener.accept() {
            Ok((stream, _)) => {
                // Whoever asks and does not listen has not been answered; nobody else needs to know.
                let _ = serve(stream, stopped, &mut answer);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // No descriptor is free, perhaps: it would be so at once again.
            Err(_) => {
                let later = Instant::now() + Duration::from_millis(100);
                if wait(stopped, PollFlags::empty(), Some(later), stopped) == Woken::Stopped {
                    return;
                }
            }
        }
    }
}

fn serve(
    mut stream: TcpStream,
    stopped: &UnixStream,
    answer: &mut impl FnMut(&str) -> Option<Answer>,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let (status, page, body_wanted) = loop {
        if let Some(line) = whole_head(&head) {
            break reply(line, answer);
        }
        if head.len() >= MOST_HEAD {
            break ("431 Request Header Fields Too Large", None, true);
        }
        match wait(&stream, PollFlags::IN, Some(until), stopped) {
            Woken::Ready => {}
            Woken::Late => break ("408 Request Timeout", None, true),
            Woken::Stopped => return Ok(()),
        }
        let mut part = [0; 1_024];
        match stream.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(n) => head.extend_from_slice(part.get(..n).unwrap_or_default()),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    };
    let page = page.unwrap_or_else(|| Answer {
        content: "text/plain; charset=utf-8",
        body: format!("{status}\n"),
    });
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
        page.content,
        page.body.len(),
        if status.starts_with("405") {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        },
    );
    if body_wanted {
        text.push_str(&page.body);
    }
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        if wait(&stream, PollFlags::OUT, Some(until), stopped) != Woken::Ready {
            return Ok(());
        }
        match stream.write(rest) {
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    linger(&mut stream, until, stopped)
}

/// Reads what still comes until the other side closes: were it left unread, closing would reset the connection, and the
/// answer with it.
fn linger(stream: &mut TcpStream, until: Instant, stopped: &UnixStream) -> io::Result<()> {
    let mut forgotten = 0;
    let mut part = [0; 4_096];
    while forgotten < MOST_FORGOTTEN
        && wait(stream, PollFlags::IN, Some(until), stopped) == Woken::Ready
    {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => forgotten += n,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The first line of a head that is there as a whole.
fn whole_head(head: &[u8]) -> Option<&[u8]> {
    let end = |mark: &[u8]| head.windows(mark.len()).any(|part| part == mark);
    if !end(b"\r\n\r\n") && !end(b"\n\n") {
        return None;
    }
    head.split(|b| *b == b'\n').next()
}

/// The status, the page where there is one, and whether its body is wanted.
fn reply(
    line: &[u8],
    answer: &mut impl FnMut(&str) -> Option<Answer>,
) -> (&'static str, Option<Answer>, bool) {
    let line = String::from_utf8_lossy(line);
    let mut words = line.trim_end().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version)) = (method, target, version) else {
        return ("400 Bad Request", None, true);
    };
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return ("400 Bad Request", None, true);
    }
    if !["GET", "HEAD"].contains(&method) {
        return ("405 Method Not Allowed", None, true);
    }
    let path = target.split('?').next().unwrap_or(target);
    let body = method == "GET";
    match answer(path) {
        Some(page) => ("200 OK", Some(page), body),
        None => ("404 Not Found", None, body),
    }
}
