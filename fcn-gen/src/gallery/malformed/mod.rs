//! The gallery `malformed`: every defect that a rule names, a packet each. Only defects of code points are missing: they
//! need a profile that the drafts forbid, and then every packet has them.

mod cnp;
mod fast_cnp;
mod ioam;
mod pfc;
mod pnc;
mod proxy_cn;
mod wan_fcn;

use super::Family;
use fcn_wire::header::{ethernet, ipv6};

/// Octets of Ethernet and IPv6 headers.
const BEHIND_V6: usize = ethernet::LEN + ipv6::LEN;

/// The families, in the order in which they are played.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "cnp",
        about: "CNPs and RoCEv2 packets that break a rule each",
        compose: cnp::compose,
    },
    Family {
        name: "fast-cnp",
        about: "Fast CNPs that break a rule each",
        compose: fast_cnp::compose,
    },
    Family {
        name: "ioam",
        about: "IOAM traces that break a rule each, in Fast CNPs with option 2 and in data",
        compose: ioam::compose,
    },
    Family {
        name: "proxy-cn",
        about: "Notifications to the proxy node and proxy address options that break a rule each",
        compose: proxy_cn::compose,
    },
    Family {
        name: "wan-fcn",
        about: "FCN messages that break a rule each",
        compose: wan_fcn::compose,
    },
    Family {
        name: "pnc",
        about: "Proxy Node Capability in routing messages that break a rule each",
        compose: pnc::compose,
    },
    Family {
        name: "pfc",
        about: "PFC frames that break a rule each",
        compose: pfc::compose,
    },
];
