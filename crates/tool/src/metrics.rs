//! Metrics for Prometheus: pages in its text format 0.0.4 ([`Page`]), and a server for them
//! ([`serve`]). The tools define what is counted.

pub mod http;

use self::http::{Answer, Server};
use crate::clean::clean;
use crate::failure::{Failure, Result};
use std::fmt::{Display, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Minimum age before a page is generated anew: more frequent requests get the same page, so that
/// they cost nothing.
const FRESH: Duration = Duration::from_millis(500);

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number that only increases.
    Counter,
    /// A number that increases and decreases.
    Gauge,
}

impl Type {
    /// Returns the name of the type in Prometheus.
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
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: Type,
    /// Help text for human readers.
    pub help: &'static str,
    /// Labels; those with empty values are omitted from a sample.
    pub labels: &'static [&'static str],
}

/// Defines the metrics of a tool.
#[macro_export]
macro_rules! families {
    ($( $name:ident = $id:literal, $kind:ident, $labels:expr, $help:literal; )+) => {
        $( pub(crate) static $name: $crate::metrics::Family = $crate::metrics::Family {
            name: $id, kind: $crate::metrics::Type::$kind, help: $help, labels: $labels,
        }; )+

        /// All metrics, in the order of the page.
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

    /// Adds a metric with a single value.
    pub fn single(&mut self, family: &'static Family, value: impl Display) {
        self.family(family).add(&[""; 0], value);
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

/// Writer for the samples of a metric.
#[derive(Debug)]
pub struct Samples<'p> {
    text: &'p mut String,
    family: &'static Family,
}

impl Samples<'_> {
    /// Adds a sample, with the values of the metric's labels. Empty values are equivalent to absent
    /// labels, and omitted.
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

/// Escapes a text as the format requires; in a label's value, quotation marks must also be escaped.
fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\")
}

/// Parses the address to serve on: `127.0.0.1:9464`, `[::1]:9464`; a port alone means the loopback
/// address.
///
/// # Errors
/// The text has none of these forms.
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

/// Opens `address` for [`serve`]. A port that needs permissions must be opened before they are
/// given up.
///
/// # Errors
/// The address is not available: in use, not of this machine, or a port that needs permissions.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "choose another port, or stop the program that uses it"
            }
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

/// Serves a page at `/metrics` in a separate thread; `name` is that of the tool. There is no
/// encryption and no authentication: other machines have access only if the address is reachable
/// for them.
///
/// # Errors
/// The system cannot create the thread.
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
