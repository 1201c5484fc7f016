//! The keys of a scenario file, as serde reads them. What they mean is in `build.rs` and its neighbours.
//!
//! Values keep their place in the text wherever a refusal may want to name it.

use super::text::{DelayText, DurationText, RateText, SizeText};
use core::fmt;
use fcn_wire::Profile;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use toml::Spanned;

/// A value that may be absent, with its place.
pub(super) type Maybe<T> = Option<Spanned<T>>;

/// A scenario file behind its settings and defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub about: String,
    #[serde(default)]
    pub demonstrates: String,
    pub mechanism: Spanned<MechanismText>,
    pub duration: Spanned<DurationText>,
    #[serde(default)]
    pub seed: u64,
    pub ip: Maybe<u8>,
    #[serde(default)]
    pub vantage: Vec<Spanned<String>>,
    pub epoch: Maybe<u64>,
    pub snap_len: Maybe<u32>,
    pub advertise_interval: Maybe<DurationText>,
    pub pnc_at: Option<PncAtText>,
    #[serde(default)]
    pub profile: Profile,
    #[serde(default)]
    pub compare: CompareText,
    #[serde(default)]
    pub host: Vec<Spanned<HostText>>,
    #[serde(default)]
    pub switch: Vec<Spanned<SwitchText>>,
    #[serde(default)]
    pub link: Vec<Spanned<LinkText>>,
    #[serde(default)]
    pub flow: Vec<Spanned<FlowText>>,
    #[serde(default)]
    pub fault: Vec<Spanned<FaultText>>,
    #[serde(default)]
    pub inject: Vec<Spanned<InjectText>>,
}

/// The keys of `[compare]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompareText {
    pub duration: Maybe<DurationText>,
    pub warm_up: Maybe<DurationText>,
}

/// A file that asks for packets made one by one instead of a simulation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GalleryFile {
    pub about: String,
    #[serde(default)]
    pub demonstrates: String,
    pub gallery: Spanned<String>,
    pub family: Maybe<String>,
    #[serde(default)]
    pub profile: Profile,
}

/// A file that asks for frames without end.
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
    pub stress: Spanned<StressText>,
}

/// The keys of `[stress]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StressText {
    pub mix: Spanned<MixText>,
    pub flows: Maybe<u32>,
    pub qps: Maybe<u32>,
    #[serde(default)]
    pub senders: Vec<Spanned<String>>,
    #[serde(default)]
    pub receivers: Vec<Spanned<String>>,
    pub opcode: Maybe<DataOpcodeText>,
    pub payload: Maybe<SizeText>,
    pub trace_nodes: Maybe<usize>,
    pub levels: Maybe<Vec<u8>>,
    pub ce: Maybe<f64>,
}

/// Weights of `[stress.mix]`, by kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MixText {
    pub cnp: Maybe<u32>,
    pub cnp_ipv4: Maybe<u32>,
    pub fast_cnp_1: Maybe<u32>,
    pub fast_cnp_2: Maybe<u32>,
    pub proxy_cn: Maybe<u32>,
    pub proxy_cn_ipv4: Maybe<u32>,
    pub wan_fcn: Maybe<u32>,
    pub data: Maybe<u32>,
    pub data_ipv4: Maybe<u32>,
    pub pfc: Maybe<u32>,
}

/// What `--set` offers by a short name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterText {
    pub about: String,
    pub set: Vec<Spanned<String>>,
    pub default: Option<toml::Value>,
    #[serde(default)]
    pub values: Vec<toml::Value>,
}

pub(super) type ParameterTexts = BTreeMap<String, Spanned<ParameterText>>;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub(super) enum $name { $( #[serde(rename = $word)] $variant, )+ }
    };
}

words!(
    /// What data packets of a stress are.
    DataOpcodeText {
        SendOnly = "send-only",
        SendMiddle = "send-middle",
        WriteOnly = "write-only",
        WriteMiddle = "write-middle",
    }
);

words!(
    /// How senders are told.
    MechanismText {
        None = "none",
        Pfc = "pfc",
        Cnp = "cnp",
        FastCnp = "fast-cnp",
        FastCnpIoam = "fast-cnp-ioam",
        Proxy = "proxy",
        WanFcn = "wan-fcn",
    }
);
words!(
    /// Whether a host handles Fast CNPs, and whether switches know.
    AbilityText {
        Able = "able",
        AbleUnknown = "able-unknown",
        Unable = "unable",
        UnableUnknown = "unable-unknown",
    }
);
words!(
    /// How a host answers CE.
    CnpFormText { Cnp = "cnp", FastCnp = "fast-cnp" }
);
words!(
    /// How a host controls its rates.
    ControlText { Dcqcn = "dcqcn", Telemetry = "telemetry", Fixed = "fixed" }
);
words!(
    /// How congestion points come to know a proxy.
    KnownByText {
        Config = "config",
        Option = "option",
        IsIs = "isis",
        Ospf2 = "ospfv2",
        Ospf3 = "ospfv3",
        Bgp = "bgp",
    }
);
words!(
    /// Whose prefix has the flag of a proxy in IS-IS and OSPF.
    PncAtText { Proxy = "proxy", Sender = "sender" }
);
words!(
    /// How a provider edge encapsulates.
    TunnelText { Srv6 = "srv6", Vxlan = "vxlan", SrMpls = "sr-mpls" }
);
words!(
    /// IOAM trace in a flow's packets.
    TraceText { None = "none", Preallocated = "preallocated", Incremental = "incremental" }
);
words!(
    /// Which senders go with which receivers.
    PairsText { All = "all", Each = "each" }
);
words!(
    /// What goes wrong on a link.
    FaultKindText { Loss = "loss", Reorder = "reorder", Down = "down" }
);
words!(
    /// What is injected.
    InjectKindText {
        SpoofedFastCnp = "spoofed-fast-cnp",
        ReplayedFastCnp = "replayed-fast-cnp",
        SpoofedCnp = "spoofed-cnp",
        Tcp = "tcp",
        Pause = "pause",
    }
);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostText {
    pub name: Spanned<String>,
    pub count: Maybe<u32>,
    pub attach: Maybe<Patterns>,
    pub rate: Maybe<RateText>,
    pub delay: Maybe<DelayText>,
    pub domain: Option<String>,
    pub ipv6: Maybe<Ipv6Addr>,
    pub ipv4: Maybe<Ipv4Addr>,
    pub fast_cnp: Option<AbilityText>,
    pub control: Option<ControlText>,
    pub access_list: Option<Vec<Spanned<String>>>,
    pub cnp: Option<bool>,
    pub cnp_form: Option<CnpFormText>,
    pub cnp_interval: Maybe<DurationText>,
    pub notification_delay: Maybe<DurationText>,
    pub answers_unknown_options: Option<bool>,
    pub verify_icrc: Option<bool>,
    pub detours: Option<u32>,
    pub detour_hold: Option<DurationText>,
    pub detour_rest: Option<DurationText>,
    #[serde(default)]
    pub dcqcn: DcqcnText,
    #[serde(default)]
    pub telemetry: TelemetryText,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DcqcnText {
    pub g: Maybe<f64>,
    #[serde(rename = "K")]
    pub k: Maybe<DurationText>,
    #[serde(rename = "T")]
    pub t: Maybe<DurationText>,
    #[serde(rename = "B")]
    pub b: Maybe<SizeText>,
    #[serde(rename = "F")]
    pub f: Option<u32>,
    #[serde(rename = "R_AI")]
    pub r_ai: Option<RateText>,
    #[serde(rename = "R_HAI")]
    pub r_hai: Option<RateText>,
    #[serde(rename = "R_min")]
    pub r_min: Option<RateText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TelemetryText {
    pub eta: Maybe<f64>,
    #[serde(rename = "T")]
    pub t: Maybe<DurationText>,
    #[serde(rename = "W_AI")]
    pub w_ai: Maybe<SizeText>,
    #[serde(rename = "maxStage")]
    pub max_stage: Option<u32>,
    pub fallback: Maybe<f64>,
    #[serde(rename = "R_min")]
    pub r_min: Option<RateText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchText {
    pub name: Spanned<String>,
    pub count: Maybe<u32>,
    pub domain: Option<String>,
    pub ipv6: Maybe<Ipv6Addr>,
    pub ipv4: Maybe<Ipv4Addr>,
    pub queue: Maybe<SizeText>,
    #[serde(default)]
    pub marking: MarkingText,
    #[serde(default)]
    pub limits: LimitsText,
    pub congestion_point: Option<bool>,
    pub ecn: Option<bool>,
    pub mark_unknown: Option<bool>,
    pub copy_flow_label: Option<bool>,
    pub level: Option<bool>,
    pub tells: Option<Vec<Spanned<String>>>,
    pub access_list: Option<Vec<Spanned<String>>>,
    pub allowed_proxies: Option<Vec<Spanned<String>>>,
    pub qps: Option<Vec<Spanned<String>>>,
    pub notification_delay: Maybe<DurationText>,
    pub pfc: Option<bool>,
    #[serde(default)]
    pub pause: PauseText,
    pub ioam: Option<bool>,
    pub ioam_node: Maybe<u32>,
    pub proxy: Maybe<bool>,
    pub known_by: Maybe<KnownByText>,
    pub serves: Option<Vec<Spanned<String>>>,
    pub edge: Maybe<TunnelText>,
    pub vni: Maybe<u32>,
    pub transport_label: Maybe<u32>,
    pub service_label: Maybe<u32>,
    pub border_filter: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkingText {
    pub kmin: Maybe<SizeText>,
    pub kmax: Maybe<SizeText>,
    pub pmax: Maybe<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsText {
    pub interval: Option<DurationText>,
    pub per_second: Option<u32>,
    pub burst: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PauseText {
    pub xoff: Maybe<SizeText>,
    pub xon: Maybe<SizeText>,
    pub quanta: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkText {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub from: Spanned<Patterns>,
    pub to: Spanned<Patterns>,
    pub rate: Maybe<RateText>,
    pub delay: Maybe<DelayText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowText {
    pub name: Maybe<String>,
    pub from: Spanned<Patterns>,
    pub to: Spanned<Patterns>,
    pub pairs: Option<PairsText>,
    pub count: Maybe<u32>,
    pub ip: Maybe<u8>,
    pub start: Maybe<DurationText>,
    pub stagger: Maybe<DurationText>,
    pub stop: Maybe<DurationText>,
    pub message: Maybe<SizeText>,
    pub messages: Maybe<u64>,
    pub mtu: Maybe<u16>,
    pub window: Maybe<u32>,
    pub ack_every: Maybe<u32>,
    pub retransmit_timeout: Maybe<DurationText>,
    pub priority: Maybe<u8>,
    pub dscp: Maybe<u8>,
    pub ecn: Option<bool>,
    pub trace: Maybe<TraceText>,
    pub trace_nodes: Maybe<u32>,
    pub trace_namespace: Option<u16>,
    pub rdma_cm: Option<bool>,
    pub rate_limit: Option<RateText>,
    pub sender_qp: Maybe<u32>,
    pub receiver_qp: Maybe<u32>,
    pub source_port: Option<u16>,
    pub flow_label: Maybe<u32>,
    pub first_psn: Maybe<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultText {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub link: Spanned<String>,
    pub kind: Spanned<FaultKindText>,
    pub towards: Maybe<String>,
    pub start: Maybe<DurationText>,
    pub stop: Maybe<DurationText>,
    pub probability: Maybe<f64>,
    pub by: Maybe<DurationText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectText {
    #[serde(rename = "name")]
    _name: Option<String>,
    pub from: Spanned<Patterns>,
    pub what: Spanned<InjectKindText>,
    pub flow: Maybe<String>,
    pub source: Maybe<String>,
    pub class: Maybe<u8>,
    pub quanta: Option<u16>,
    pub start: Option<DurationText>,
    pub count: Maybe<u64>,
    pub interval: Maybe<DurationText>,
}

/// One name or several, each of which may have `*` in it.
#[derive(Debug)]
pub(super) struct Patterns(pub Vec<String>);

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Patterns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, a pattern such as \"s*\", or a list of them")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Patterns, E> {
                Ok(Patterns(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Patterns, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(Patterns(names))
            }
        }
        deserializer.deserialize_any(Names)
    }
}

/// Whether `name` fits `pattern`, in which each `*` stands for any text.
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

/// A prefix such as `2001:db8::/32`, or one address.
pub(super) fn prefix(text: &str) -> Option<fcn_wire::pnc::Prefix> {
    match text.split_once('/') {
        Some((address, bits)) => {
            fcn_wire::pnc::Prefix::new(address.parse().ok()?, bits.parse().ok()?)
        }
        None => Some(fcn_wire::pnc::Prefix::host(text.parse::<IpAddr>().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_what_they_should() {
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

    #[test]
    fn prefixes_with_and_without_length() {
        assert_eq!(prefix("2001:db8::1/32").map(|p| p.bits()), Some(32));
        assert_eq!(prefix("198.18.0.1").map(|p| p.bits()), Some(32));
        for bad in ["198.18.0.1/33", "leaf1", "2001:db8::/x", ""] {
            assert_eq!(prefix(bad), None, "{bad}");
        }
    }
}
