//! A run on links, for a node and for the translator: opens the interfaces, drives the node, shows
//! progress and the report, and decides whether the run succeeded.

use super::drive::{Drive, LinkTraffic, Measured, RunEnd};
use super::metrics::{self, Names};
use super::report::{FinishedRun, LinkReport, Outage, Report};
use crate::cli::Emulate;
use crate::device::{LinkNode, Played, open};
use fcn_link::clock::{Monotonic, Waiting};
use fcn_link::port::Port;
use fcn_tool::console::{Console, print, print_json};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::{bits_per_second, grouped};
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Refuses a run without an end, unless that was requested.
///
/// # Errors
/// Neither a duration nor `--forever` is given.
pub fn demand_end(options: &Emulate) -> Result {
    if options.duration.is_none() && !options.forever {
        return Err(Failure::usage("emulate needs --duration or --forever")
            .and(options.role.id())
            .and("for example --duration 10s, or --forever until Ctrl-C"));
    }
    Ok(())
}

/// The opened interfaces of a run.
pub struct OpenLinks {
    pub played: Vec<Played>,
    /// Method of sending and receiving of each.
    pub modes: Vec<String>,
    ports: Vec<Port>,
    listener: Option<TcpListener>,
    stop: Arc<AtomicBool>,
}

impl OpenLinks {
    /// Opens the interfaces, and catches interruptions from then on.
    ///
    /// # Errors
    /// An interface or the port for metrics cannot be opened.
    pub fn new(options: &Emulate, played: Vec<Played>, console: &Console<'_>) -> Result<Self> {
        let listener = options
            .prometheus
            .map(fcn_tool::metrics::listen)
            .transpose()?;
        let stop = (console.catch_interrupt)()?;
        let ports = open(options.backend, &played)?;
        Ok(Self {
            modes: ports.iter().map(|port| port.mode().to_owned()).collect(),
            played,
            ports,
            listener,
            stop,
        })
    }

    /// Runs a node on the links, until its own flows are complete if `until_done` is set; `role` is
    /// the role, and the names of its node, its scenario and its mechanism.
    ///
    /// # Errors
    /// Metrics cannot be served, or a stream cannot be written to.
    pub fn run<N: LinkNode>(
        mut self,
        options: &Emulate,
        role: [&str; 4],
        mut node: N,
        until_done: bool,
        console: &mut Console<'_>,
    ) -> Result<(FinishedRun, N)> {
        let interfaces = self.played.iter();
        let names = Names {
            role: role.map(str::to_owned),
            interfaces: interfaces.map(|p| p.interface.name().to_owned()).collect(),
        };
        let page = metrics::page(&names, &Measured::default(), &mut node);
        let page = Arc::new(Mutex::new(page));
        let server = self.listener.take().map(|listener| {
            let page = Arc::clone(&page);
            fcn_tool::metrics::serve(listener, "fcn-gen", move || page.lock().clone())
        });
        let server = server.transpose()?;
        if let (Some(server), false) = (&server, options.quiet) {
            let text = format!("metrics  http://{}/metrics", server.address());
            print(console.err, &text)?;
        }
        // An unoptimised build works most of the time: with raised priority, several of them would
        // starve other programs.
        let mut clock = match cfg!(debug_assertions) {
            true => Monotonic::new(Waiting::Sleep),
            false => Monotonic::with_precedence(Waiting::Sleep),
        };
        let drive = Drive::new(&mut self.ports, &mut clock, node, options.speed);
        let mut before = Measured::default();
        let (ended, node, measured) = drive.run(
            options.duration,
            until_done,
            &self.stop,
            &mut |at, now, node| {
                if server.is_some() {
                    *page.lock() = metrics::page(&names, now, node);
                }
                let news: String = now.news.drain(..).map(|news| news + "\n").collect();
                if !options.quiet {
                    let text = news + &tick((at, options.speed), now, &before, node);
                    before.traffic.clone_from(&now.traffic);
                    // A closed standard error is no reason to stop.
                    let _ = console.err.write_all(text.as_bytes());
                }
            },
        );
        let run = FinishedRun {
            links: self.report(&measured),
            ended,
            measured,
        };
        Ok((run, node))
    }

    fn report(&self, measured: &Measured) -> Vec<LinkReport> {
        let links = self.played.iter().zip(&self.modes).zip(&self.ports);
        let links = links.zip(&measured.traffic);
        let links = links.map(|(((played, mode), port), passed)| {
            let outages = Outage::of(port);
            LinkReport {
                interface: played.interface.name().to_owned(),
                peer: played.peer.clone(),
                mode: mode.clone(),
                traffic: LinkTraffic {
                    refused: passed.refused.saturating_sub(outages.lost),
                    ..*passed
                },
                lost: port.lost(),
                outages,
            }
        });
        links.collect()
    }
}

/// Describes when a run ends.
pub fn end_of(options: &Emulate) -> String {
    match options.duration {
        Some(duration) => format!("{duration:?} have passed, or Ctrl-C"),
        None => "Ctrl-C".to_owned(),
    }
}

/// Formats the progress line.
fn tick(
    (at, speed): (u64, f64),
    now: &Measured,
    before: &Measured,
    node: &mut impl LinkNode,
) -> String {
    let sum = |measured: &Measured| {
        let traffic = measured.traffic.iter();
        traffic.fold((0, 0), |(received, sent), p| {
            (received + p.received, sent + p.sent)
        })
    };
    let ((received, sent), (received_before, sent_before)) = (sum(now), sum(before));
    let (delivered, rate, queue) = node.figures();
    let mut text = format!(
        "{:>7.1} s  {:>9} in/s  {:>9} out/s",
        at as f64 / 1e9,
        grouped(received - received_before),
        grouped(sent - sent_before),
    );
    if rate > 0.0 {
        let _ = write!(text, "  rates {}", bits_per_second(rate * speed));
    }
    if delivered > 0 {
        let _ = write!(text, "  {} octets delivered", grouped(delivered));
    }
    if queue > 0 {
        let _ = write!(text, "  queue {} octets", grouped(queue));
    }
    for (kind, times) in &now.reactions {
        let _ = write!(text, "  {} {}", grouped(times.len()), kind.id());
    }
    text.push('\n');
    text
}

/// Prints a report as the options demand.
pub fn show(report: &Report, options: &Emulate, console: &mut Console<'_>) -> Result {
    if options.json {
        print_json(console.out, report)
    } else if !options.quiet {
        print(console.out, &report.text())
    } else {
        Ok(())
    }
}

/// Succeeds only if frames were received, unless the node injects packets, which have no answer,
/// and, if it begins flows, a connection was opened.
pub fn conclude(
    end: RunEnd,
    report: &Report,
    (begins_flows, opened): (bool, bool),
    injects: bool,
) -> Result {
    let received: u64 = report.links.iter().map(|link| link.traffic.received).sum();
    match end {
        RunEnd::Failed(why) => Err(Failure::failed(why)),
        RunEnd::Interrupted => Err(Failure::interrupted(format!(
            "frames received so far: {}",
            grouped(received)
        ))),
        RunEnd::TimeUp | RunEnd::Done if begins_flows && !opened => {
            Err(Failure::failed("no connection was opened")
                .and(&report.node)
                .and(
                    "is the receiver running (start it first), and do the devices between forward?",
                ))
        }
        RunEnd::TimeUp | RunEnd::Done if received == 0 && !injects => {
            Err(Failure::failed("no frame was received")
                .and(&report.node)
                .and("is the other end of the link up, and does it send?"))
        }
        RunEnd::TimeUp | RunEnd::Done => Ok(()),
    }
}
