//! Thresholds, limits and control parameters of the roles: the file's own, else defaults that scale with the links.

use super::check;
use super::error::Refusal;
use super::model::{Pfc, Thresholds};
use super::schema::{DcqcnText, HostText, Maybe, SwitchText, TelemetryText};
use super::text::{DurationText, RateText};
use crate::units::{Ps, Rate};
use core::time::Duration;
use fcn_node::congestion_point::Marking;
use fcn_node::limiter::Limits;
use fcn_node::reaction_point::detour::Detour;
use fcn_node::reaction_point::{dcqcn, telemetry};
use toml::Spanned;

/// Kmin for each Mbit/s of the port, 8 µs of it; Kmax is four times as deep, and Pmax 0.2.
///
/// The simulator published with HPCC (SIGCOMM 2019) scales DCQCN's thresholds with the link, 1 to 4, with Pmax 0.2, but four
/// times as deep (400 kB and 1.6 MB at 100 Gbit/s); DCQCN's own 5 kB, 200 kB and 1 % are for 40 Gbit/s. A quarter of HPCC's depth
/// lets a few senders show congestion within a millisecond. Where receivers tell, and that takes longer, Kmin is what the port
/// sends in the round trip, so that the queue lasts until senders have heard and come back: 8 µs of it would let the link go idle.
const KMIN_PER_MBIT: u64 = 1;
/// Least Kmin: DCQCN's.
const LEAST_KMIN: u64 = 5_000;
/// Pmax.
const PMAX: f64 = 0.2;
/// Octets of an egress queue for each Mbit/s of the port: 128 µs of it.
const QUEUE_PER_MBIT: u64 = 16;
/// Least queue.
const LEAST_QUEUE: u64 = 80_000;
/// Smallest queue that a file may ask for: one packet of 4096 octets and its headers.
const ONE_PACKET: u64 = 5_000;
/// Octets of one ingress port at which PFC stops it, for each Mbit/s of the port: twice Kmax, since marks have to come
/// before pauses (DCQCN, SIGCOMM 2015, section 4). It goes on at half of that.
const XOFF_PER_MBIT: u64 = 8;
/// Least Xoff.
const LEAST_XOFF: u64 = 40_000;

/// Thresholds of a port of this rate; `round` is the round trip that receivers' CNPs have to bridge there, or 0.
pub(super) fn thresholds(
    switch: &SwitchText,
    rate: Rate,
    round: Ps,
    lossless: bool,
) -> Result<Thresholds, Refusal> {
    let mbits = rate.bits_per_second() / 1_000_000;
    let queue = queue(switch, mbits)?;
    let in_flight = (round.as_seconds_f64() * rate.bits_per_second() as f64 / 8.0) as u64;
    Ok(Thresholds {
        marking: marking(switch, mbits, in_flight.min(queue / 8), queue)?,
        queue,
        pfc: lossless.then(|| pause(switch, mbits, queue)).transpose()?,
    })
}

/// Octets that an egress queue of the switch holds.
fn queue(switch: &SwitchText, mbits: u64) -> Result<u64, Refusal> {
    match &switch.queue {
        Some(queue) if queue.get_ref().0 < ONE_PACKET => {
            let octets = queue.get_ref().0;
            Err(Refusal::at(
                queue,
                format!("{octets} octets are no queue; at least {ONE_PACKET} are allowed"),
            ))
        }
        Some(queue) => Ok(queue.get_ref().0),
        None => Ok((mbits * QUEUE_PER_MBIT).max(LEAST_QUEUE)),
    }
}

fn marking(
    switch: &SwitchText,
    mbits: u64,
    in_flight: u64,
    queue: u64,
) -> Result<Marking, Refusal> {
    let text = &switch.marking;
    let kmin = text.kmin.as_ref().map_or(
        (mbits * KMIN_PER_MBIT).max(LEAST_KMIN).max(in_flight),
        |kmin| kmin.get_ref().0,
    );
    let kmax = text
        .kmax
        .as_ref()
        .map_or_else(|| kmin.saturating_mul(4), |kmax| kmax.get_ref().0);
    if let Some(at) = text
        .kmax
        .as_ref()
        .or(text.kmin.as_ref())
        .filter(|_| kmax < kmin)
    {
        return Err(Refusal::at(
            at,
            format!("Kmax, {kmax}, is below Kmin, {kmin}; it must not be"),
        ));
    }
    if kmin >= queue {
        let kmin_at = text.kmin.as_ref().map(Spanned::span);
        return Err(Refusal {
            span: kmin_at.or_else(|| switch.queue.as_ref().map(Spanned::span)),
            message: format!(
                "Kmin, {kmin}, is not below the queue's limit, {queue}: nothing would ever be marked"
            ),
        });
    }
    Ok(Marking {
        kmin,
        kmax,
        pmax: check::probability(&text.pmax, PMAX)?,
    })
}

/// How long a notification takes to be made or translated, where the file says nothing: about what a pipeline and a NIC need
/// \[choice\]; the same everywhere, so that it favours no mechanism.
const NOTIFICATION_DELAY: Ps = Ps::from_nanos(1_000);

pub(super) fn notification_delay(text: &Maybe<DurationText>) -> Ps {
    text.as_ref()
        .map_or(NOTIFICATION_DELAY, |delay| delay.get_ref().0)
}

pub(super) fn limits(switch: &SwitchText) -> Limits {
    let defaults = Limits::default();
    Limits {
        interval: switch
            .limits
            .interval
            .map_or(defaults.interval, |interval| as_duration(interval.0)),
        per_second: switch.limits.per_second.unwrap_or(defaults.per_second),
        burst: switch.limits.burst.unwrap_or(defaults.burst),
        ..defaults
    }
}

/// How a host gets past congested switches.
pub(super) fn detour(host: &HostText) -> Option<Detour> {
    let defaults = Detour::default();
    let tries = host.detours.filter(|tries| *tries > 0)?;
    Some(Detour {
        tries,
        hold: host
            .detour_hold
            .map_or(defaults.hold, |hold| as_duration(hold.0)),
        rest: host
            .detour_rest
            .map_or(defaults.rest, |rest| as_duration(rest.0)),
    })
}

fn pause(switch: &SwitchText, mbits: u64, queue: u64) -> Result<Pfc, Refusal> {
    let text = &switch.pause;
    let xoff = text.xoff.as_ref().map_or_else(
        || (mbits * XOFF_PER_MBIT).max(LEAST_XOFF).min(queue / 2),
        |xoff| xoff.get_ref().0,
    );
    let xon = text.xon.as_ref().map_or(xoff / 2, |xon| xon.get_ref().0);
    if let Some(at) = text
        .xon
        .as_ref()
        .or(text.xoff.as_ref())
        .filter(|_| xon >= xoff)
    {
        return Err(Refusal::at(
            at,
            format!("xon, {xon}, is not below xoff, {xoff}; it must be"),
        ));
    }
    if let Some(at) = text
        .xoff
        .as_ref()
        .or(switch.queue.as_ref())
        .filter(|_| xoff > queue)
    {
        return Err(Refusal::at(
            at,
            format!("xoff, {xoff}, is above the queue, {queue}; PFC would never stop anybody"),
        ));
    }
    Ok(Pfc {
        xoff,
        xon,
        quanta: text.quanta.unwrap_or(u16::MAX),
    })
}

pub(super) fn dcqcn_params(text: &DcqcnText) -> Result<dcqcn::Params, Refusal> {
    let defaults = dcqcn::Params::default();
    let rate = |rate: Option<RateText>, default: f64| {
        rate.map_or(default, |rate| rate.0.bits_per_second() as f64)
    };
    Ok(dcqcn::Params {
        g: check::probability(&text.g, defaults.g)?,
        k: positive(&text.k, "K")?.unwrap_or(defaults.k),
        t: positive(&text.t, "T")?.unwrap_or(defaults.t),
        b: text.b.as_ref().map_or(defaults.b, |b| b.get_ref().0),
        f: text.f.unwrap_or(defaults.f),
        r_ai: rate(text.r_ai, defaults.r_ai),
        r_hai: rate(text.r_hai, defaults.r_hai),
        r_min: rate(text.r_min, defaults.r_min),
    })
}

pub(super) fn telemetry_params(text: &TelemetryText) -> Result<telemetry::Params, Refusal> {
    let defaults = telemetry::Params::default();
    Ok(telemetry::Params {
        eta: check::within(&text.eta, defaults.eta, 0.01..=1.0, "utilisation")?,
        t: positive(&text.t, "T")?.unwrap_or(defaults.t),
        w_ai: text
            .w_ai
            .as_ref()
            .map_or(defaults.w_ai, |octets| octets.get_ref().0 as f64),
        max_stage: text.max_stage.unwrap_or(defaults.max_stage),
        fallback: check::probability(&text.fallback, defaults.fallback)?,
        r_min: text
            .r_min
            .map_or(defaults.r_min, |rate| rate.0.bits_per_second() as f64),
    })
}

const fn as_duration(ps: Ps) -> Duration {
    Duration::from_nanos(ps.as_nanos())
}

/// A duration of a role, at least a nanosecond.
pub(super) fn positive(
    text: &Maybe<DurationText>,
    what: &str,
) -> Result<Option<Duration>, Refusal> {
    match text {
        Some(value) if value.get_ref().0.as_nanos() == 0 => Err(Refusal::at(
            value,
            format!("{what} is too short; at least \"1ns\" is allowed"),
        )),
        Some(value) => Ok(Some(as_duration(value.get_ref().0))),
        None => Ok(None),
    }
}
