//! Interfaces that packets come from, with counts of each type of packet.

use super::mirror_clocks;
use super::windows::Windows;
use crate::packet::Packet;
use crate::record::{INDIRECT, InterfaceRecord};
use crate::tables::Dropped;
use crate::text::span;
use core::fmt::Write as _;
use fcn_observe::path_order::{PathOrder, Step, TransitTime};
use fcn_observe::unit::Unit;
use fcn_tool::quantity::grouped;
use fcn_wire::erspan::{Direction, Erspan};
use fcn_wire::pfc::{CLASSES, Pfc};
use fcn_wire::sflow;
use fcn_wire::{Layer, Mirror};
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum number of interfaces distinguished: as many as a capture file may have. Packets of
/// further ones count for the last.
const MAX_INTERFACES: usize = 65_536;
/// Maximum number of points distinguished where switches copy packets. Copies from further ones
/// count for the capture itself: packets may claim anything.
const MOST_COPIED: usize = 10_000;

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A congestion notification.
    Notification,
    /// RoCEv2 data.
    Data,
    /// Any other decodable packet.
    Other,
    /// Truncated too much by the capture.
    Cut,
    /// It contradicts itself, has an unsupported link type, or cannot be decoded as the
    /// notification that it was intended as.
    Undecodable,
}

/// Clock of the times at a capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// The capture's clock.
    Capture,
    /// The capture's clock, at the arrival of a mirror's copy.
    Arrival,
    /// The mirror's clock.
    Mirror(mirror_clocks::Clock),
}

#[derive(Clone, Debug)]
struct Interface {
    name: Arc<str>,
    clock: Clock,
    state: &'static str,
    about: Arc<str>,
    dropped: Dropped,
    /// Packets by [`Sort`].
    sorts: [u64; 5],
    /// PFC frames that pause a class, and their number for each class.
    pfc: u64,
    paused: [u64; CLASSES],
    octets: u64,
    windows: Windows,
}

impl Interface {
    fn new(number: usize) -> Self {
        Self {
            name: format!("#{number}").into(),
            clock: Clock::Capture,
            state: "up",
            about: Arc::from(""),
            dropped: (None, None),
            sorts: [0; 5],
            pfc: 0,
            paused: [0; CLASSES],
            octets: 0,
            windows: Windows::default(),
        }
    }

    fn record(&self, now: u64, since: u64) -> InterfaceRecord {
        let packets = |sort: Sort| self.sorts.get(sort as usize).copied().unwrap_or(0);
        let paused = self.paused.iter().enumerate();
        let paused = paused.filter(|(_, frames)| **frames > 0);
        let paused = paused.map(|(class, frames)| format!("{class} ×{}", grouped(*frames)));
        InterfaceRecord {
            name: Arc::clone(&self.name),
            state: self.state,
            received: self.sorts.iter().sum(),
            octets: self.octets,
            rate_1s: self.windows.rate_1s(now, since),
            notifications: packets(Sort::Notification),
            data: packets(Sort::Data),
            other: packets(Sort::Other),
            pfc: self.pfc,
            paused: (self.pfc > 0)
                .then(|| format!("class {}", paused.collect::<Vec<_>>().join(", ")).into()),
            cut: packets(Sort::Cut),
            undecodable: packets(Sort::Undecodable),
            dropped_kernel: self.dropped.0,
            dropped_interface: self.dropped.1,
            about: Arc::clone(&self.about),
        }
    }
}

/// The point where a switch copied packets, as far as the copies show: copies that differ in any of
/// this come from different capture points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CopiedAt {
    /// Interface that the copies were captured on.
    captured_on: u32,
    switch: IpAddr,
    how: How,
    direction: Option<Direction>,
    port: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum How {
    /// By an ERSPAN mirror of that type and session.
    Erspan(u8, Option<u16>),
    /// By a mirror of another format.
    Mirror(Layer),
    /// As sFlow samples.
    Sflow,
}

impl CopiedAt {
    fn mirror(captured_on: u32, mirror: &Mirror) -> Self {
        let header = &mirror.header;
        let kind = match header {
            Erspan::I => 1,
            Erspan::II(_) => 2,
            Erspan::III(_) => 3,
        };
        Self {
            captured_on,
            switch: mirror.exporter,
            how: match mirror.format {
                Layer::Erspan => How::Erspan(kind, header.session()),
                other => How::Mirror(other),
            },
            direction: header.direction(),
            port: header.port().filter(|port| *port != 0),
        }
    }

    /// Uses the input port of the packet, unless it was sampled at its output port.
    fn sample(captured_on: u32, agent: IpAddr, sample: &sflow::FlowSample) -> Self {
        let (input, output) = (sample.input.index(), sample.output.index());
        let source = Some(sample.source.index).filter(|_| sample.source.kind == 0);
        let went_out = output.is_some() && (input.is_none() || source == output && input != output);
        Self {
            captured_on,
            switch: agent,
            how: How::Sflow,
            direction: went_out.then_some(Direction::Egress),
            port: if went_out { output } else { input },
        }
    }

    /// Returns its name, to follow the name of the interface that the copies were captured on. A
    /// mirror's name has no address, because its session identifies it.
    fn name(&self) -> String {
        let mut name = match self.how {
            How::Erspan(_, None) => "erspan".to_owned(),
            How::Erspan(_, Some(session)) => format!("erspan {session}"),
            How::Mirror(format) => format!("{format} {}", self.switch).to_lowercase(),
            How::Sflow => format!("sflow {}", self.switch),
        };
        let direction = self.direction.map(|direction| match direction {
            Direction::Ingress => "ingress".to_owned(),
            Direction::Egress => "egress".to_owned(),
        });
        let port = self.port.map(|port| match self.how {
            How::Erspan(2, _) => format!("index {port}"),
            _ => format!("port {port}"),
        });
        for part in [direction, port].into_iter().flatten() {
            name.push(' ');
            name.push_str(&part);
        }
        name
    }

    fn about(&self) -> String {
        match self.how {
            How::Erspan(kind, _) => format!("mirror, ERSPAN type {kind}"),
            How::Mirror(Layer::Tzsp) => "mirror, TZSP".to_owned(),
            How::Mirror(_) => "mirror of a Spectrum ASIC, in GRE".to_owned(),
            How::Sflow => "samples, by sFlow".to_owned(),
        }
    }
}

/// The interfaces in order of registration, including the points from which mirrors copied frames.
#[derive(Debug, Default)]
pub struct Interfaces {
    list: Vec<Interface>,
    /// Indices in the list of the captures' own interfaces, by number.
    own: Vec<u32>,
    copied: FxHashMap<CopiedAt, u32>,
}

impl Interfaces {
    /// Returns the index of the capture's interface with that number, adding it if it is new.
    #[inline]
    pub fn place(&mut self, number: u32) -> u32 {
        match self.own.get(number as usize) {
            Some(place) => *place,
            None => self.add_own(number),
        }
    }

    #[cold]
    fn add_own(&mut self, number: u32) -> u32 {
        let number = (number as usize).min(MAX_INTERFACES - 1);
        while self.own.len() <= number {
            self.own.push(self.list.len() as u32);
            self.list.push(Interface::new(self.own.len() - 1));
        }
        self.own[number]
    }

    /// Returns the index of the point where `mirror` copied a frame whose copy was captured at
    /// index `captured_on`.
    #[cold]
    pub fn mirrored(&mut self, captured_on: u32, mirror: &Mirror) -> u32 {
        self.copied_at(CopiedAt::mirror(captured_on, mirror))
    }

    /// Returns the index of the point where that agent sampled a packet whose sample was captured
    /// at index `captured_on`.
    #[cold]
    pub fn sampled(&mut self, captured_on: u32, agent: IpAddr, sample: &sflow::FlowSample) -> u32 {
        self.copied_at(CopiedAt::sample(captured_on, agent, sample))
    }

    fn copied_at(&mut self, place: CopiedAt) -> u32 {
        let captured_on = place.captured_on;
        if let Some(known) = self.copied.get(&place) {
            return *known;
        }
        let Some(own) = self.list.get(captured_on as usize) else {
            return captured_on;
        };
        if self.copied.len() >= MOST_COPIED {
            return captured_on;
        }
        let mut new = Interface::new(self.list.len());
        new.state = INDIRECT;
        if matches!(place.how, How::Erspan(..) | How::Mirror(_)) {
            new.clock = Clock::Arrival;
        }
        new.about = place.about().into();
        let name = format!("{}/{}", own.name, place.name());
        // Other switches may use the same session.
        let is_alike = |known: &&Interface| {
            let rest = known.name.strip_prefix(&*name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        new.name = match self.list.iter().filter(is_alike).count() {
            0 => name.into(),
            alike => format!("{name} ({})", alike + 1).into(),
        };
        let number = self.list.len() as u32;
        self.list.push(new);
        self.copied.insert(place, number);
        number
    }

    /// Records that times at that index are by a mirror's own clock.
    pub fn has_clock(&mut self, place: u32, clock: mirror_clocks::Clock) {
        if let Some(interface) = self.list.get_mut(place as usize) {
            interface.clock = Clock::Mirror(clock);
        }
    }

    fn entry(&mut self, number: u32) -> &mut Interface {
        let place = self.place(number) as usize;
        &mut self.list[place]
    }

    /// Counts a packet, whose interface is an index in the list.
    #[inline]
    pub fn count(&mut self, packet: &Packet<'_>, sort: Sort) {
        let Some(interface) = self.list.get_mut(packet.interface as usize) else {
            return;
        };
        if let Some(count) = interface.sorts.get_mut(sort as usize) {
            *count += 1;
        }
        interface.octets += packet.octets();
        interface.windows.add(packet.at);
    }

    /// Counts a PFC frame on the interface at index `place`, if it pauses any class; returns true
    /// if so.
    pub fn pause(&mut self, place: u32, pfc: &Pfc<'_>) -> bool {
        let mut pauses = false;
        if let Some(interface) = self.list.get_mut(place as usize) {
            for (class, _) in pfc.enabled().filter(|(_, time)| *time > 0) {
                pauses = true;
                interface.paused[class] += 1;
            }
            interface.pfc += u64::from(pauses);
        }
        pauses
    }

    /// Returns true if there are several interfaces.
    #[inline]
    pub const fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    /// Sets the name and description of an interface.
    pub fn know(&mut self, number: u32, name: &str, about: &str) {
        let interface = self.entry(number);
        if !name.is_empty() {
            interface.name = name.into();
        }
        interface.about = about.into();
    }

    /// Sets the state of an interface; `None` leaves a value unchanged.
    pub fn set_state(
        &mut self,
        number: u32,
        state: &'static str,
        about: Option<&str>,
        dropped: Dropped,
    ) {
        let interface = self.entry(number);
        interface.state = state;
        if let Some(about) = about {
            interface.about = about.into();
        }
        let (kernel, by_interface) = dropped;
        let before = interface.dropped;
        interface.dropped = (kernel.or(before.0), by_interface.or(before.1));
    }

    /// Returns the index of the interface with that name that packets were captured on, or passed.
    pub fn place_of(&self, name: &str) -> Option<u32> {
        let place = (self.list.iter()).position(|interface| &*interface.name == name)?;
        u32::try_from(place).ok()
    }

    /// Returns the name of the interface at that index.
    pub fn name(&self, place: u32) -> Option<Arc<str>> {
        let interface = self.list.get(place as usize);
        interface.map(|interface| Arc::clone(&interface.name))
    }

    /// Formats the paths of a flow; `None` if there is none. `unit` returns the unit of a capture
    /// point's time stamps.
    pub fn path(&self, order: &PathOrder, unit: impl Fn(u32) -> Unit) -> Option<Arc<str>> {
        let paths = order.paths(unit);
        let ways: Vec<String> = paths.iter().map(|way| self.way(way)).collect();
        (!ways.is_empty()).then(|| ways.join("; ").into())
    }

    fn way(&self, way: &[Step]) -> String {
        let name = |place: u32| (self.list.get(place as usize)).map_or("?", |known| &known.name);
        let clock = |place: u32| (self.list.get(place as usize)).map(|known| known.clock);
        // Arrival times are by the capture's clock as well, although late.
        let are_related = |step: &Step| match [step.from, step.to].map(clock) {
            [Some(Clock::Mirror(from)), Some(Clock::Mirror(to))] => from == to,
            clocks => !clocks
                .iter()
                .any(|clock| matches!(clock, Some(Clock::Mirror(_)))),
        };
        let mut text = String::new();
        for step in way {
            let Step {
                transit, packets, ..
            } = step;
            if text.is_empty() {
                text.push_str(name(step.from));
            }
            let to = name(step.to);
            // Writing to a string cannot fail.
            let _ = match *transit {
                _ if !are_related(step) => write!(text, " and {to}: clocks unrelated ({packets})"),
                TransitTime::About(time) => {
                    write!(text, " → {to} +{} ({packets})", span(time.into()))
                }
                TransitTime::Between(low, high) => {
                    let [low, high] = [low, high].map(|time| span(time.into()));
                    write!(text, " → {to} +{low} to {high} ({packets})")
                }
                TransitTime::Unclear => write!(text, " and {to}: order unclear ({packets})"),
                TransitTime::Below(unit) => {
                    let unit = span(unit);
                    write!(
                        text,
                        " and {to}: order unclear, time stamps of {unit} ({packets})"
                    )
                }
            };
        }
        if way
            .iter()
            .any(|step| step.guessed && step.has_order() && are_related(step))
        {
            text.push_str(", paired by nearness");
        }
        let mut clocks = way.iter().flat_map(|step| [step.from, step.to].map(clock));
        text.push_str(match clocks.find(|known| *known != Some(Clock::Capture)) {
            _ if !way.iter().any(are_related) => "",
            Some(Some(Clock::Arrival)) => ", as copies came in",
            Some(Some(Clock::Mirror(mirror_clocks::Clock::Synchronised))) => ", by IEEE 1588",
            Some(Some(Clock::Mirror(_))) => ", by the switch's clock",
            _ => "",
        });
        text
    }

    /// Returns the interfaces as of `now`, with packets captured since `since`.
    pub fn records(&self, now: u64, since: u64) -> Vec<InterfaceRecord> {
        self.list
            .iter()
            .map(|interface| interface.record(now, since))
            .collect()
    }
}
