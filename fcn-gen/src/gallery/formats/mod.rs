//! The gallery `formats`: every message as it should be. No packet here deserves a warning.

mod cnp;
mod cut;
mod fast_cnp;
mod ioam;
mod pfc;
mod pnc;
mod proxy_cn;
mod rdma_cm;
mod tunnels;
mod unaware_sender;
mod wan_fcn;

use super::Family;

/// The families, in the order in which they are played.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "cnp",
        about: "Plain CNPs over IPv4 and IPv6, after data marked CE; VLAN, MPLS and VXLAN",
        compose: cnp::compose,
    },
    Family {
        name: "fast-cnp",
        about: "Fast CNP with option 1 from a switch and from a receiver; the four readings of the ICRC",
        compose: fast_cnp::compose,
    },
    Family {
        name: "ioam",
        about: "Data with IOAM traces growing hop by hop; Fast CNP with option 2, pre-allocated and incremental, every data field",
        compose: ioam::compose,
    },
    Family {
        name: "fast-cnp-tunnels",
        about: "Fast CNPs in VLAN tags, MPLS, VXLAN over IPv4 and IPv6, SRv6 with and without a routing header, and raw IP",
        compose: tunnels::compose,
    },
    Family {
        name: "unaware-sender",
        about: "A sender that does not know the option: action bits 10 make it answer the switch with ICMPv6 Parameter Problem",
        compose: unaware_sender::compose,
    },
    Family {
        name: "proxy-cn",
        about: "Notification to the proxy node, over and about IPv4 and IPv6; the proxy address option; the translated CNP",
        compose: proxy_cn::compose,
    },
    Family {
        name: "wan-fcn",
        about: "Data between data centres in SRv6, VXLAN and SR-MPLS, the FCN about its outer flow label, the CNP made of it",
        compose: wan_fcn::compose,
    },
    Family {
        name: "pnc",
        about: "Proxy Node Capability advertised by IS-IS, OSPFv2, OSPFv3 and BGP",
        compose: pnc::compose,
    },
    Family {
        name: "rdma-cm",
        about: "RDMA CM sets connections up and takes them down, plain and in tunnels: which QP belongs to which; a Fast CNP in between",
        compose: rdma_cm::compose,
    },
    Family {
        name: "pfc",
        about: "Priority-based flow control: a class told to stop, and let go",
        compose: pfc::compose,
    },
    Family {
        name: "cut",
        about: "Packets cut by a snap length and fragments: said to be so, not called malformed, their ICRC unchecked",
        compose: cut::compose,
    },
];
