//! Metrics for Prometheus: pages in its text format 0.0.4 ([`Page`]), and where they are served ([`serve`]). What is counted is the
//! tools' business.

pub mod http;

use self::http::{Answer, Server};
use crate::clean::clean;
use crate::failure::{Failure, Result};
use std::fmt::{Display, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// A page is made anew at most once in this time: who asks more often gets the same one, so that asking costs nothing.
const FRESH: Duration = Duration::from_millis(500);

/// What a number does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It grows only.
    Counter,
    /// It goes up and down.
    Gauge,
}

impl Type {
    /// What Prometheus calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// A metric.
#[derive(Debug)]
pub struct Family {
    /// What it is called.
    pub name: &'static str,
    /// What its number does.
    pub kind: Type,
    /// What it means, for people.
    pub help: &'static str,
    /// Its labels; those with nothing in them are left out of a sample.
    pub labels: &'static [&'static str],
}

/// The metrics of a tool: what each is called.
#[macro_export]
macro_rules! families {
    ($( $name:ident = $id:literal, $kind:ident, $labels:expr, $help:literal; )+) => {
        $( pub(crate) static $name: $crate::metrics::Family = $crate::metrics::Family {
            name: $id, kind: $crate::metrics::Type::$kind, help: $help, labels: $labels,
        }; )+

        /// All of them, in the order of the page.
        #[cfg(test)]
        pub(crate) static FAMILIES: &[&$crate::metrics::Family] = &[$( &$name, )+];
    };
}

/// A page being written.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Begins a metric, which may have no samples.
    pub fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let (name, kind) = (family.name, family.kind.name());
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(family.help));
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        let text = &mut self.text;
        Samples { text, family }
    }

    /// A metric of one number.
    pub fn single(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).add(&[""; 0], value);
    }

    /// Its text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

/// Where the samples of a metric go.
#[derive(Debug)]
pub struct Samples<'p> {
    text: &'p mut String,
    family: &'static Family,
}

impl Samples<'_> {
    /// A sample, with the values of the metric's labels. Those with nothing in them are the same as none, and left out.
    pub fn add(&mut self, labels: &[impl AsRef<str>], value: impl Display) {
        self.text.push_str(self.family.name);
        let mut joint = '{';
        for (label, value) in self.family.labels.iter().zip(labels) {
            let value = escaped(value.as_ref()).replace('"', "\\\"");
            if !value.is_empty() {
                let _ = write!(self.text, "{joint}{label}=\"{value}\"");
                joint = ',';
            }
        }
        let end = if joint == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Escaped as the format wants it; in a label's value, quotation marks have to be, too.
fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\")
}

/// Reads where to serve: `127.0.0.1:9464`, `[::1]:9464`; a port alone is one of this machine only.
///
/// # Errors
/// It is none of these.
pub fn read_address(text: &str) -> std::result::Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    text.parse().map_err(|_| {
        format!(
            "`{text}` is not a valid address with a port: write 127.0.0.1:9464, [::1]:9464 or 9464"
        )
    })
}

/// Opens `address` for [`serve`]: a port that needs rights has to be, before they are given up.
///
/// # Errors
/// The address cannot be had: in use, not of this machine, or a port that needs rights.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => "choose another port, or end what listens there",
            std::io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
            std::io::ErrorKind::PermissionDenied => "choose a port above 1023",
            _ => "choose another address",
        };
        Failure::failed("cannot serve metrics")
            .and(address.to_string())
            .and(error.to_string())
            .and(hint)
    })
}

/// Serves a page at `/metrics`, in a thread of its own; `name` is the tool's. There is no encryption and nobody is asked who they
/// are: other machines are served only where the address is one that they reach.
///
/// # Errors
/// The system has no thread for it.
pub fn serve(
    listener: TcpListener,
    name: &str,
    mut make: impl FnMut() -> String + Send + 'static,
) -> Result<Server> {
    let root = format!("<!DOCTYPE html><title>{name}</title><a href=\"/metrics\">metrics</a>\n");
    let mut last: Option<(Instant, String)> = None;
    let answer = move |path: &str| match path {
        "/metrics" => {
            let page = match &last {
                Some((at, page)) if at.elapsed() < FRESH => page.clone(),
                _ => {
                    let page = make();
                    last = Some((Instant::now(), page.clone()));
                    page
                }
            };
            Some(Answer {
                content: "text/plain; version=0.0.4; charset=utf-8",
                body: page,
            })
        }
        "/" => Some(Answer {
            content: "text/html; charset=utf-8",
            body: root.clone(),
        }),
        _ => None,
    };
    Server::start(listener, answer)
        .map_err(|error| Failure::failed("cannot serve metrics").and(error.to_string()))
}
