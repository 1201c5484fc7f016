//! Changes in command-line notation, and fcn-wire's rules for them.

use clap::Args;
use fcn_tool::failure::{self, Failure};
use fcn_tool::quantity;
use fcn_wire::Qp;
use fcn_wire::pnc::Prefix;
use fcn_wire::rewrite::{LoopVariation, Rules, RulesError, VlanTag};
use std::str::FromStr;

/// Source MAC address if neither the capture nor the command line nor the interface has one:
/// locally administered.
const DEFAULT_SOURCE_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

/// Changes to frames.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rewriting")]
pub struct Rewriting {
    /// Destination MAC address of all frames
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    pub dst_mac: Option<[u8; 6]>,
    /// Source MAC address of all frames
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    pub src_mac: Option<[u8; 6]>,
    /// Replace a MAC address; may be given several times, like every option with OLD=NEW
    #[arg(long, value_name = "OLD=NEW", value_parser = |text: &str| pair(text, quantity::mac))]
    pub map_mac: Vec<Pair<[u8; 6]>>,
    /// Set the outermost tag's VLAN ID, remove all tags, replace one VLAN ID, or push a tag
    #[arg(long, value_name = "ID|none|OLD=NEW|push:ID")]
    pub vlan: Vec<Vlan>,
    /// Replace an IPv4 or IPv6 prefix in IP headers, also of tunnels, options, five-tuples and quoted
    /// packets; parts that are not opened stay unchanged, and the report counts such frames
    #[arg(long, value_name = "PREFIX=PREFIX", value_parser = |text: &str| pair(text, quantity::prefix))]
    pub map_ip: Vec<Pair<Prefix>>,
    /// Change UDP source ports of RoCEv2 and tunnels; +N adds to those that are not 0
    #[arg(long, value_name = "PORT|OLD=NEW|+N")]
    pub udp_source: Vec<Port>,
    /// Replace a QP number
    #[arg(long, value_name = "OLD=NEW", value_parser = |text: &str| pair(text, qp))]
    pub map_qp: Vec<Pair<Qp>>,
    /// Add to QP numbers, except those of management (0, 1) and multicast
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = difference)]
    pub add_qp: Option<i32>,
    /// Add to PSNs, except those of CNPs, which are 0
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub add_psn: Option<u32>,
    /// Set all IPv6 flow labels
    #[arg(long, value_name = "LABEL", value_parser = number::<u32>)]
    pub flow_label: Option<u32>,
    /// Correct checksums and ICRCs that were wrong in the capture; those that were right always
    /// stay right
    #[arg(long)]
    pub repair: bool,
    /// Change fields with every loop: psn, flow (the UDP source port) or qp, each with =STEP, or
    /// address=PREFIX[+STEP]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub vary: Vec<Vary>,
}

impl Rewriting {
    /// True if frames with an Ethernet header are changed, regardless of loops.
    #[must_use]
    pub const fn changes_anything(&self) -> bool {
        self.dst_mac.is_some()
            || self.src_mac.is_some()
            || !self.map_mac.is_empty()
            || !self.vlan.is_empty()
            || !self.map_ip.is_empty()
            || !self.udp_source.is_empty()
            || !self.map_qp.is_empty()
            || self.add_qp.is_some()
            || self.add_psn.is_some()
            || self.flow_label.is_some()
            || self.repair
    }
}

/// A replacement of one value by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<T> {
    from: T,
    to: T,
}

fn pair<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Pair<T>, String> {
    let (from, to) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}`: write OLD=NEW"))?;
    Ok(Pair {
        from: read(from.trim())?,
        to: read(to.trim())?,
    })
}

fn qp(text: &str) -> Result<Qp, String> {
    Qp::new(number(text)?).ok_or_else(|| format!("`{text}`: a QP has 24 bits"))
}

/// Parses a difference: a number, negative to subtract.
pub fn difference(text: &str) -> Result<i32, String> {
    match text.strip_prefix('-') {
        Some(less) => number::<i32>(less).map(|less| -less),
        None => number(text),
    }
}

/// Parses a number, decimal or 0x….
fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    value
        .and_then(|value| value.try_into().ok())
        .ok_or_else(|| format!("`{text}` is not a number in range"))
}

/// Parses a number, or a replacement of one number by another, into the variants `set` and `map`.
/// The error message suggests `write`.
fn set_or_map<T>(
    text: &str,
    set: fn(u16) -> T,
    map: fn(u16, u16) -> T,
    write: &str,
) -> Result<T, String> {
    if text.contains('=') {
        return pair(text, number).map(|pair| map(pair.from, pair.to));
    }
    let number = number(text).map(set);
    number.map_err(|error| format!("{error}; write {write}"))
}

/// A change of VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// Sets the identifier of the outermost tag.
    Set(u16),
    /// Removes all tags.
    Remove,
    /// Replaces one identifier by another.
    Map(u16, u16),
    /// Pushes a tag.
    Push(u16),
}

impl FromStr for Vlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Remove);
        }
        if let Some(id) = text.strip_prefix("push:") {
            return number(id).map(Self::Push);
        }
        set_or_map(text, Self::Set, Self::Map, "ID, none, OLD=NEW or push:ID")
    }
}

/// A change of the UDP source ports of RoCEv2 and tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Sets all ports.
    Set(u16),
    /// Replaces one port by another.
    Map(u16, u16),
    /// Adds to ports.
    Add(u16),
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(by) = text.strip_prefix('+') {
            return number(by).map(Self::Add);
        }
        set_or_map(text, Self::Set, Self::Map, "PORT, OLD=NEW or +N")
    }
}

/// A field that changes with every loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// PSNs.
    Psn(u32),
    /// UDP source ports, by which routers choose paths for flows.
    Flow(u16),
    /// QP numbers.
    Qp(i32),
    /// Host part of addresses in a prefix.
    Addresses(Prefix, u64),
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, rest) = match text.split_once('=') {
            Some((what, rest)) => (what, Some(rest)),
            None => (text, None),
        };
        match (what, rest) {
            ("psn", step) => step.map_or(Ok(1 << 16), number).map(Self::Psn),
            ("flow", step) => step.map_or(Ok(1), number).map(Self::Flow),
            ("qp", step) => step.map_or(Ok(1), number).map(Self::Qp),
            ("address", Some(prefix)) => {
                let (prefix, step) = match prefix.split_once('+') {
                    Some((prefix, step)) => (prefix, number(step)?),
                    None => (prefix, 1),
                };
                Ok(Self::Addresses(quantity::prefix(prefix)?, step))
            }
            _ => Err(format!(
                "`{text}`: write psn, flow, qp (each may have =STEP) or address=PREFIX (or PREFIX+STEP)"
            )),
        }
    }
}

/// All source ports except 0, which means none.
const PORTS: std::ops::RangeInclusive<u16> = 1..=u16::MAX;

fn wrong(option: &str) -> impl Fn(RulesError) -> Failure + '_ {
    move |error| Failure::usage(option).and(error.to_string())
}

/// Returns the rules for the frames of an interface with the address `own`.
///
/// # Errors
/// The options contradict each other.
pub fn rules(options: &Rewriting, own: Option<[u8; 6]>) -> failure::Result<Rules> {
    let mut rules = Rules::default();
    if let Some(mac) = options.dst_mac {
        rules = rules
            .destination_mac(mac)
            .to_ethernet(options.src_mac.or(own).unwrap_or(DEFAULT_SOURCE_MAC), mac);
    }
    if let Some(mac) = options.src_mac {
        rules = rules.source_mac(mac);
    }
    for pair in &options.map_mac {
        rules = rules
            .map_mac(pair.from, pair.to)
            .map_err(wrong("--map-mac"))?;
    }
    for vlan in &options.vlan {
        rules = match *vlan {
            Vlan::Set(id) => rules.set_vlan(id),
            Vlan::Remove => Ok(rules.remove_vlans()),
            Vlan::Map(from, to) => rules.map_vlan(from, to),
            Vlan::Push(id) => rules.push_vlan(VlanTag {
                id,
                priority: 0,
                service: false,
            }),
        }
        .map_err(wrong("--vlan"))?;
    }
    for pair in &options.map_ip {
        rules = rules
            .map_prefix(pair.from, pair.to)
            .map_err(wrong("--map-ip"))?;
    }
    for port in &options.udp_source {
        rules = match *port {
            Port::Set(port) => Ok(rules.set_udp_source(port)),
            Port::Map(from, to) => rules.map_udp_source(from, to),
            Port::Add(by) => rules.add_udp_source(PORTS, by),
        }
        .map_err(wrong("--udp-source"))?;
    }
    for pair in &options.map_qp {
        rules = rules
            .map_qp(pair.from, pair.to)
            .map_err(wrong("--map-qp"))?;
    }
    if let Some(by) = options.add_qp {
        rules = rules.add_qp(by);
    }
    if let Some(by) = options.add_psn {
        rules = rules.add_psn(by);
    }
    if let Some(label) = options.flow_label {
        rules = rules.set_flow_label(label).map_err(wrong("--flow-label"))?;
    }
    if options.repair {
        rules = rules.repair();
    }
    Ok(rules)
}

/// Returns `rules`, with the fields that change with every loop.
///
/// # Errors
/// The options contradict each other.
pub fn variation(rules: &Rules, vary: &[Vary]) -> failure::Result<LoopVariation> {
    let mut variation = LoopVariation::new(rules);
    for vary in vary {
        variation = match *vary {
            Vary::Psn(step) => variation.psn(step),
            Vary::Flow(step) => variation
                .udp_source(PORTS, step)
                .map_err(wrong("--vary flow"))?,
            Vary::Qp(step) => variation.qp(step),
            Vary::Addresses(prefix, step) => variation.addresses(prefix, step),
        };
    }
    Ok(variation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        assert_eq!("none".parse(), Ok(Vlan::Remove));
        assert_eq!("7".parse(), Ok(Vlan::Set(7)));
        assert_eq!("7=8".parse(), Ok(Vlan::Map(7, 8)));
        assert_eq!("push:9".parse(), Ok(Vlan::Push(9)));
        assert_eq!("+0x10".parse(), Ok(Port::Add(16)));
        assert_eq!("69=50000".parse(), Ok(Port::Map(69, 50_000)));
        assert_eq!("psn".parse(), Ok(Vary::Psn(1 << 16)));
        assert_eq!("qp=3".parse(), Ok(Vary::Qp(3)));
        let prefix = quantity::prefix("fd00::/64").unwrap();
        assert_eq!(
            "address=fd00::/64+5".parse(),
            Ok(Vary::Addresses(prefix, 5))
        );
        assert_eq!(
            pair("0x11=5", qp),
            Ok(Pair {
                from: Qp::truncate(0x11),
                to: Qp::truncate(5)
            })
        );
        assert_eq!(difference("0x10"), Ok(16));
        assert_eq!(difference("-0x10"), Ok(-16));
        assert!(difference("--1").is_err());
        for text in [
            "",
            "x",
            "address",
            "address=",
            "psn=x",
            "psn=99999999999",
            "flow=70000",
        ] {
            assert!(text.parse::<Vary>().is_err(), "{text}");
        }
        for text in ["", "x", "1=", "=1", "push:", "push:70000"] {
            assert!(text.parse::<Vlan>().is_err(), "{text}");
        }
        assert!(pair("a=b", quantity::mac).is_err());
        assert!(pair("10.0.0.0/8", quantity::prefix).is_err());
        assert!(pair("1=0x1000000", qp).is_err());
    }
}
