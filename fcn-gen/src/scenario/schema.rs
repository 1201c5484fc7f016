//! The keys of a scenario file for serde: their names, types and ranges. `build.rs` and its
//! neighbours define their meaning.

use super::limits::{FLOWS, INJECTED, MTUS};
use super::model::{MarkingPoint, Mechanism, ProxyKnownBy};
use crate::stress::{DataOpcode, Kind, MOST_CONNECTIONS, MOST_TRACE_NODES};
use crate::units::{Delay, Ps, Rate, Size};
use core::fmt::Display;
use core::num::NonZeroU64;
use core::time::Duration;
use fcn_node::limiter::Limits;
use fcn_node::proxy_directory::Reading;
use fcn_node::reaction_point::{dcqcn, hpcc, swift, telemetry, timely};
use fcn_wire::Profile;
use fcn_wire::bth::MAX_24;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Last second that fits 64 bits of nanoseconds, with a margin of an hour.
const LAST_EPOCH: u64 = u64::MAX / 1_000_000_000 - 3_601;
/// Maximum window in packets: half the PSNs, so that old and new ones can be distinguished.
pub(super) const WIDEST: u32 = 1 << 23;
/// Minimum number of octets kept of each packet.
const LEAST_SNAP: u32 = 64;
/// Maximum payload of a stress in octets: with its headers it fits the largest frames in use, 9,600
/// octets.
const MOST_PAYLOAD: u64 = 9_216;
/// Minimum queue in octets: one packet of 4096 octets with its headers.
const ONE_PACKET: u64 = 5_000;
/// Maximum of a 20-bit field.
const MAX_20: u64 = 0x000F_FFFF;

/// A 24-bit number from `FROM` on.
type Bits24<const FROM: u64 = 0> = Within<u32, FROM, { MAX_24 as u64 }>;
/// A QP; 0 and 1 are reserved for management.
type Qp = Bits24<2>;
/// An MPLS label; 0 to 15 are reserved.
pub(super) type Label = Within<u32, 16, MAX_20>;

/// A whole number from `FROM` to `TO`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u64", bound(deserialize = "T: TryFrom<u64>"))]
pub(super) struct Within<T, const FROM: u64, const TO: u64>(pub T);

impl<T: TryFrom<u64>, const FROM: u64, const TO: u64> TryFrom<u64> for Within<T, FROM, TO> {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        let fits = (FROM..=TO)
            .contains(&number)
            .then(|| T::try_from(number).ok());
        fits.flatten()
            .map(Self)
            .ok_or_else(|| format!("{number} is out of range; {FROM} to {TO} are allowed"))
    }
}

/// Defines types of a single value with a restricted range.
macro_rules! checked {
    ($($(#[$doc:meta])* $name:ident($inner:ty as $text:literal), $fits:expr, $refusal:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Deserialize)]
        #[serde(try_from = $text)]
        pub(super) struct $name(pub $inner);

        impl TryFrom<$inner> for $name {
            type Error = String;

            fn try_from(value: $inner) -> Result<Self, String> {
                let fits: fn($inner) -> bool = $fits;
                let refusal: fn($inner) -> String = $refusal;
                if fits(value) { Ok(Self(value)) } else { Err(refusal(value)) }
            }
        }
    )+};
}

checked! {
    /// A probability.
    Probability(f64 as "f64"), |p| (0.0..=1.0).contains(&p), |p| format!("{p} is not a valid probability; 0 to 1 are allowed");
    /// A link's utilisation.
    Utilisation(f64 as "f64"), |u| (0.01..=1.0).contains(&u), |u| format!("{u} is out of range; 0.01 to 1 are allowed");
    /// A number of packets of a window, or of a change of it.
    Packets(f64 as "f64"), |packets| (0.000_1..=1e6).contains(&packets), |packets| format!("{packets} packets are out of range; 0.0001 to 1000000 are allowed");
    /// A duration greater than zero.
    Span(Ps as "Ps"), |span| span.as_nanos() > 0, |span| format!("{span} is too short; at least \"1ns\" is allowed");
    /// Interval of routing advertisements.
    Interval(Ps as "Ps"), |interval| interval >= Ps::from_nanos(1_000), |_| "the interval is too short; at least \"1us\" is allowed".to_owned();
    /// Octets kept of each packet: 0 (all), or enough for all headers up to a BTH after a tunnel
    /// and a full trace.
    SnapLen(u32 as "u32"), |len| len == 0 || (LEAST_SNAP..=65_535).contains(&len), |len| format!("{len} is out of range; 0 (all) and {LEAST_SNAP} to 65535 are allowed");
    /// Octets of a stress's payload: a multiple of 4, so that no padding is needed.
    Payload(Size<0, MOST_PAYLOAD> as "Size<0, MOST_PAYLOAD>"), |len| len.0.is_multiple_of(4), |len| format!("{} octets is not a valid payload; multiples of 4 are allowed", len.0);
    /// An IP version.
    IpVersion(u8 as "u8"), |ip| [4, 6].contains(&ip), |ip| format!("{ip} is not a valid IP version; 4 and 6 are allowed");
    /// Octets of payload per packet.
    Mtu(u16 as "u16"), |mtu| MTUS.contains(&mtu), |mtu| format!("{mtu} is not a valid RoCE MTU; {} are allowed", list(MTUS));
}

/// Formats values as a list.
pub(super) fn list<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    values.join(", ")
}

impl Span {
    /// Returns whole nanoseconds.
    pub fn duration(self) -> Duration {
        self.0.into()
    }
}

/// A scenario file after applying settings and defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub about: String,
    #[serde(default)]
    pub demonstrates: String,
    pub mechanism: Mechanism,
    pub duration: Span,
    #[serde(default)]
    pub seed: u64,
    pub ip: Option<IpVersion>,
    #[serde(default)]
    pub vantage: Vec<String>,
    pub epoch: Option<Within<u64, 0, LAST_EPOCH>>,
    pub snap_len: Option<SnapLen>,
    pub cnp_dscp: Option<Within<u8, 0, 63>>,
    pub advertise_interval: Option<Interval>,
    #[serde(default, deserialize_with = "PncAt::deserialize")]
    pub pnc_at: Reading,
    #[serde(default)]
    pub profile: Profile,
    #[serde(default)]
    pub compare: CompareKeys,
    #[serde(default)]
    pub host: Vec<HostKeys>,
    #[serde(default)]
    pub switch: Vec<SwitchKeys>,
    #[serde(default)]
    pub link: Vec<LinkKeys>,
    #[serde(default)]
    pub flow: Vec<FlowKeys>,
    #[serde(default)]
    pub fault: Vec<FaultKeys>,
    #[serde(default)]
    pub inject: Vec<InjectionKeys>,
}

/// The keys of `[compare]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareKeys {
    pub duration: Option<Span>,
    pub warm_up: Option<Ps>,
}

/// A file that defines packets composed one by one instead of a simulation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GalleryFile {
    pub about: String,
    #[serde(default)]
    pub demonstrates: String,
    pub gallery: String,
    pub family: Option<String>,
    #[serde(default)]
    pub profile: Profile,
}

/// A file that defines an endless sequence of frames.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StressFile {
    pub about: String,
    #[serde(default)]
    pub demonstrates: String,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub profile: Profile,
    pub stress: StressKeys,
}

/// The keys of `[stress]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StressKeys {
    /// Weights by kind.
    pub mix: BTreeMap<Kind, u32>,
    pub flows: Option<Connections>,
    pub qps: Option<Connections>,
    #[serde(default)]
    pub senders: Vec<String>,
    #[serde(default)]
    pub receivers: Vec<String>,
    pub opcode: Option<DataOpcode>,
    pub payload: Option<Payload>,
    pub trace_nodes: Option<Within<usize, 0, { MOST_TRACE_NODES as u64 }>>,
    pub levels: Option<Vec<Within<u8, 0, 7>>>,
    pub ce: Option<Probability>,
}

type Connections = Within<u32, 1, { MOST_CONNECTIONS as u64 }>;

/// A parameter, to be set by a short name with `--set`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterKeys {
    pub about: String,
    pub set: Vec<String>,
    pub default: Option<serde_json::Value>,
    #[serde(default)]
    pub values: Vec<serde_json::Value>,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident),+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(super) enum $name { $($variant),+ }
    )+};
}

words! {
    /// A host's ability to handle Fast CNPs, and whether switches have it recorded.
    Ability { Able, AbleUnknown, Unable, UnableUnknown }
    /// Answer of a host to CE.
    CnpForm { Cnp, FastCnp }
    /// Source address and hop limit of a switch's plain CNPs.
    CnpAs { Receiver, Own }
    /// Rate control of a host.
    ControlKind { Dcqcn, Telemetry, Hpcc, Swift, Timely, Fixed }
    /// NIC whose documented parameters are the defaults of a host.
    Nic { Sigcomm15, HpccNs3, Connectx }
    /// Encapsulation of a provider edge.
    TunnelKind { Srv6, Vxlan, SrMpls }
    /// IOAM trace in a flow's packets.
    TraceKind { None, Preallocated, Incremental }
    /// Pairing of senders and receivers.
    Pairs { All, Each }
    /// Kind of fault on a link.
    FaultWord { Loss, Reorder, Down }
    /// Kind of injected packets.
    InjectionKind { SpoofedFastCnp, ReplayedFastCnp, SpoofedCnp, Tcp, Pause }
}

/// Owner of the prefix with the proxy's flag, in IS-IS and OSPF.
#[derive(Deserialize)]
#[serde(remote = "Reading")]
enum PncAt {
    #[serde(rename = "proxy")]
    ProxyPrefix,
    #[serde(rename = "sender")]
    SenderPrefix,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostKeys {
    pub name: String,
    pub count: Option<u32>,
    pub attach: Option<Patterns>,
    pub rate: Option<Rate>,
    pub delay: Option<Delay>,
    pub domain: Option<String>,
    pub ipv6: Option<Ipv6Addr>,
    pub ipv4: Option<Ipv4Addr>,
    pub fast_cnp: Option<Ability>,
    pub control: Option<ControlKind>,
    pub access_list: Option<Vec<String>>,
    pub cnp: Option<bool>,
    pub cnp_form: Option<CnpForm>,
    pub cnp_interval: Option<Span>,
    pub notification_delay: Option<Ps>,
    pub answers_unknown_options: Option<bool>,
    pub verify_icrc: Option<bool>,
    #[serde(default)]
    pub detours: u32,
    pub detour_hold: Option<Ps>,
    pub detour_rest: Option<Ps>,
    pub nic: Option<Nic>,
    pub reaction_delay: Option<Ps>,
    pub merge_interval: Option<Ps>,
    #[serde(default)]
    pub dcqcn: DcqcnKeys,
    #[serde(default, deserialize_with = "TelemetryKeys::deserialize")]
    pub telemetry: telemetry::Params,
    #[serde(default)]
    pub hpcc: HpccKeys,
    #[serde(default, deserialize_with = "SwiftKeys::deserialize")]
    pub swift: swift::Params,
    #[serde(default, deserialize_with = "TimelyKeys::deserialize")]
    pub timely: timely::Params,
}

/// The keys of `[host.dcqcn]`; those left out follow from the host's NIC.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DcqcnKeys {
    g: Option<Probability>,
    #[serde(rename = "K")]
    k: Option<Span>,
    #[serde(rename = "T")]
    t: Option<Span>,
    #[serde(rename = "B")]
    b: Option<Size>,
    #[serde(rename = "F")]
    f: Option<u32>,
    #[serde(rename = "R_AI")]
    r_ai: Option<Rate>,
    #[serde(rename = "R_HAI")]
    r_hai: Option<Rate>,
    #[serde(rename = "R_min")]
    r_min: Option<Rate>,
    cut_interval: Option<Ps>,
    clamp_target_rate: Option<bool>,
    alpha_per_tick: Option<bool>,
    least_factor: Option<Probability>,
}

impl DcqcnKeys {
    /// Returns the parameters: those of `nic`, unless the file gives others.
    pub fn over(&self, nic: dcqcn::Params) -> dcqcn::Params {
        let rate = |own: Option<Rate>, of_nic| own.map_or(of_nic, |r| r.bits_per_second() as f64);
        dcqcn::Params {
            g: self.g.map_or(nic.g, |g| g.0),
            k: self.k.map_or(nic.k, Span::duration),
            t: self.t.map_or(nic.t, Span::duration),
            b: self.b.map_or(nic.b, |b| b.0),
            f: self.f.unwrap_or(nic.f),
            r_ai: rate(self.r_ai, nic.r_ai),
            r_hai: rate(self.r_hai, nic.r_hai),
            r_min: rate(self.r_min, nic.r_min),
            cut_interval: self.cut_interval.map_or(nic.cut_interval, Ps::into),
            clamp_target_rate: self.clamp_target_rate.unwrap_or(nic.clamp_target_rate),
            alpha_per_tick: self.alpha_per_tick.unwrap_or(nic.alpha_per_tick),
            least_factor: self.least_factor.map_or(nic.least_factor, |share| share.0),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    remote = "telemetry::Params",
    default = "telemetry::Params::default",
    deny_unknown_fields
)]
struct TelemetryKeys {
    #[serde(deserialize_with = "utilisation")]
    eta: f64,
    #[serde(rename = "T", deserialize_with = "span")]
    t: Duration,
    #[serde(rename = "W_AI", deserialize_with = "octets_f64")]
    w_ai: f64,
    #[serde(rename = "maxStage")]
    max_stage: u32,
    #[serde(deserialize_with = "probability")]
    fallback: f64,
    #[serde(rename = "R_min", deserialize_with = "bits_per_second")]
    r_min: f64,
}

/// The keys of `[host.hpcc]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HpccKeys {
    eta: Option<Utilisation>,
    #[serde(rename = "T")]
    t: Option<Span>,
    #[serde(rename = "W_AI")]
    w_ai: Option<Size>,
    #[serde(rename = "maxStage")]
    max_stage: Option<u32>,
    #[serde(rename = "R_min")]
    r_min: Option<Rate>,
}

impl HpccKeys {
    /// Returns the parameters of a host whose longest round trip takes `round`.
    pub fn params(&self, round: Ps) -> hpcc::Params {
        let usual = hpcc::Params::default();
        let r_min = self.r_min.map(|rate| rate.bits_per_second() as f64);
        hpcc::Params {
            eta: self.eta.map_or(usual.eta, |eta| eta.0),
            t: self.t.map_or(round.into(), Span::duration),
            w_ai: self.w_ai.map_or(usual.w_ai, |octets| octets.0 as f64),
            max_stage: self.max_stage.unwrap_or(usual.max_stage),
            r_min: r_min.unwrap_or(usual.r_min),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    remote = "swift::Params",
    default = "swift::Params::default",
    deny_unknown_fields
)]
struct SwiftKeys {
    #[serde(deserialize_with = "duration")]
    base_target: Duration,
    #[serde(deserialize_with = "duration")]
    hop: Duration,
    hops: u32,
    #[serde(deserialize_with = "duration")]
    fs_range: Duration,
    #[serde(deserialize_with = "packets")]
    fs_min: f64,
    #[serde(deserialize_with = "packets")]
    fs_max: f64,
    #[serde(deserialize_with = "packets")]
    ai: f64,
    #[serde(deserialize_with = "probability")]
    mdf: f64,
    #[serde(deserialize_with = "probability")]
    max_mdf: f64,
    #[serde(deserialize_with = "octets")]
    packet: u64,
    #[serde(deserialize_with = "packets")]
    least_window: f64,
    #[serde(deserialize_with = "packets")]
    most_window: f64,
}

#[derive(Deserialize)]
#[serde(
    remote = "timely::Params",
    default = "timely::Params::default",
    deny_unknown_fields
)]
struct TimelyKeys {
    #[serde(deserialize_with = "probability")]
    alpha: f64,
    #[serde(deserialize_with = "probability")]
    beta: f64,
    #[serde(deserialize_with = "bits_per_second")]
    delta: f64,
    #[serde(rename = "T_low", deserialize_with = "span")]
    t_low: Duration,
    #[serde(rename = "T_high", deserialize_with = "span")]
    t_high: Duration,
    #[serde(deserialize_with = "span")]
    min_rtt: Duration,
    #[serde(deserialize_with = "octets")]
    segment: u64,
    #[serde(rename = "R_min", deserialize_with = "bits_per_second")]
    r_min: f64,
}

/// Reads a key of a role's parameters through a type that parses its format.
macro_rules! read_as {
    ($($name:ident: $type:ty => $value:ty, $take:expr;)+) => {$(
        fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
            <$type>::deserialize(deserializer).map($take)
        }
    )+};
}

read_as! {
    probability: Probability => f64, |read| read.0;
    utilisation: Utilisation => f64, |read| read.0;
    span: Span => Duration, Span::duration;
    duration: Ps => Duration, Duration::from;
    octets: Size<1> => u64, |read| read.0;
    packets: Packets => f64, |read| read.0;
    octets_f64: Size => f64, |read| read.0 as f64;
    bits_per_second: Rate => f64, |rate| rate.bits_per_second() as f64;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchKeys {
    pub name: String,
    pub count: Option<u32>,
    pub domain: Option<String>,
    pub ipv6: Option<Ipv6Addr>,
    pub ipv4: Option<Ipv4Addr>,
    pub queue: Option<Size<ONE_PACKET>>,
    #[serde(default)]
    pub marking: MarkingKeys,
    #[serde(default, deserialize_with = "LimitsKeys::deserialize")]
    pub limits: Limits,
    pub congestion_point: Option<bool>,
    pub ecn: Option<bool>,
    pub mark_unknown: Option<bool>,
    pub cnp_source: Option<CnpAs>,
    pub cnp_hop_limit: Option<CnpAs>,
    pub copy_flow_label: Option<bool>,
    pub level: Option<bool>,
    pub tells: Option<Vec<String>>,
    pub access_list: Option<Vec<String>>,
    pub allowed_proxies: Option<Vec<String>>,
    #[serde(default)]
    pub qps: Vec<String>,
    pub notification_delay: Option<Ps>,
    pub pfc: Option<bool>,
    #[serde(default)]
    pub pause: PauseKeys,
    pub ioam: Option<bool>,
    pub ioam_node: Option<Bits24>,
    pub proxy: Option<bool>,
    pub known_by: Option<ProxyKnownBy>,
    pub serves: Option<Vec<String>>,
    pub edge: Option<TunnelKind>,
    pub vni: Option<Bits24>,
    pub transport_label: Option<Label>,
    pub service_label: Option<Label>,
    pub border_filter: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkingKeys {
    pub kmin: Option<Size>,
    pub kmax: Option<Size>,
    pub pmax: Option<Probability>,
    pub at: Option<MarkingPoint>,
}

#[derive(Deserialize)]
#[serde(remote = "Limits", default = "Limits::default", deny_unknown_fields)]
struct LimitsKeys {
    #[serde(deserialize_with = "duration")]
    interval: Duration,
    per_second: u32,
    burst: u32,
    #[serde(skip)]
    flows: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PauseKeys {
    pub xoff: Option<Size>,
    pub xon: Option<Size>,
    pub quanta: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkKeys {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub from: Patterns,
    pub to: Patterns,
    pub rate: Option<Rate>,
    pub delay: Option<Delay>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowKeys {
    pub name: Option<String>,
    pub from: Patterns,
    pub to: Patterns,
    pub pairs: Option<Pairs>,
    pub count: Option<Within<u32, 1, { FLOWS as u64 }>>,
    pub ip: Option<IpVersion>,
    pub start: Option<Ps>,
    pub stagger: Option<Ps>,
    pub stop: Option<Ps>,
    /// At most InfiniBand's 2 GiB.
    pub message: Option<Size<1, { 1 << 31 }>>,
    pub messages: Option<NonZeroU64>,
    pub mtu: Option<Mtu>,
    pub window: Option<Within<u32, 1, { WIDEST as u64 }>>,
    pub ack_every: Option<u32>,
    pub retransmit_timeout: Option<Ps>,
    pub priority: Option<Within<u8, 0, 7>>,
    pub dscp: Option<Within<u8, 0, 63>>,
    pub ecn: Option<bool>,
    pub trace: Option<TraceKind>,
    pub trace_nodes: Option<u32>,
    #[serde(default)]
    pub trace_namespace: u16,
    pub rdma_cm: Option<bool>,
    pub rate_limit: Option<Rate>,
    pub sender_qp: Option<Qp>,
    pub receiver_qp: Option<Qp>,
    pub source_port: Option<u16>,
    pub flow_label: Option<Within<u32, 0, MAX_20>>,
    pub first_psn: Option<Bits24>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultKeys {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub link: String,
    pub kind: FaultWord,
    pub towards: Option<String>,
    pub start: Option<Ps>,
    pub stop: Option<Ps>,
    pub probability: Option<Probability>,
    pub by: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectionKeys {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub from: Patterns,
    pub what: InjectionKind,
    pub flow: Option<String>,
    pub source: Option<String>,
    pub class: Option<Within<u8, 0, 7>>,
    pub quanta: Option<u16>,
    pub start: Option<Ps>,
    pub count: Option<Within<u64, 1, INJECTED>>,
    pub interval: Option<Span>,
}

/// One name or several, each of which may contain `*`.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a name, a pattern such as \"s*\", or a list of them"
)]
pub(super) enum Patterns {
    One(String),
    Several(Vec<String>),
}

impl Patterns {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => core::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// Returns true if `name` matches `pattern`, in which each `*` stands for any text.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = left.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, name, does) in [
            ("s1", "s1", true),
            ("s1", "s10", false),
            ("s*", "s10", true),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*1", "s11", true),
        ] {
            assert_eq!(fits(pattern, name), does, "{pattern} {name}");
        }
    }
}
