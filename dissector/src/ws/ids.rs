//! The numbers that Wireshark gives to protocols, fields and expert infos while it starts, and whether anybody asks for them.

use super::{compat, sys};
use crate::names::{F, P};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use fcn_wire::finding::Rule;

/// How many protocols there are.
pub const PROTOCOLS: usize = P::ALL.len();
const FIELDS: usize = F::ALL.len();
const RULES: usize = Rule::ALL.len();

/// Numbers that Wireshark writes once, while it starts, and reads afterwards.
pub(super) static PROTOCOL_IDS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
pub(super) static FIELD_IDS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static FIELD_ETTS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static PROTOCOL_ETTS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
pub(super) static ANCHOR_IDS: [AtomicI32; ANCHORS] = [const { AtomicI32::new(-1) }; ANCHORS];
pub(super) static EXPERT_TAP: AtomicI32 = AtomicI32::new(-1);
pub(super) static EXPERT_PROTOCOL: AtomicI32 = AtomicI32::new(-1);

/// The rules' identifiers, as C has them.
pub(super) static RULE_IDS: [AtomicPtr<c_char>; RULES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; RULES];

struct ExpertIds([UnsafeCell<sys::expert_field>; RULES]);

// SAFETY: written by Wireshark while it starts, on its one thread, and only read by it afterwards; Rust code hands out
// the address alone.
unsafe impl Sync for ExpertIds {}

static EXPERT_IDS: ExpertIds =
    ExpertIds([const { UnsafeCell::new(sys::expert_field { ei: -1, hf: -1 }) }; RULES]);

/// Fields of Wireshark's own that ours stand beside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchors {
    /// One IPv6 option.
    Ipv6Option,
    /// InfiniBand's Base Transport Header.
    Bth,
    /// The InfiniBand packet.
    InfiniBand,
    /// The MAC control frame.
    MacControl,
    /// The LSP.
    IsisLsp,
    /// First field of an IS-IS prefix: its metric.
    IsisPrefix,
    /// The OSPF packet.
    Ospf,
    /// First field of an OSPFv2 Extended Prefix TLV.
    Ospf2Prefix,
    /// First field of a TLV in an extended LSA; not known to every Wireshark.
    Ospf3Prefix,
    /// Field of an OSPFv3 LSA.
    Ospf3Lsa,
    /// The BGP message.
    Bgp,
    /// One BGP path attribute.
    BgpAttribute,
    /// First field of a BGP prefix.
    BgpPrefix,
}

const ANCHORS: usize = 15;
/// Most fields of Wireshark's that one anchor has.
const SAME_ANCHOR: usize = 3;

impl Anchors {
    pub(super) const ALL: [(Self, &'static CStr); ANCHORS] = [
        (Self::Ipv6Option, c"ipv6.opt"),
        (Self::Bth, c"infiniband.bth"),
        (Self::InfiniBand, c"infiniband"),
        (Self::MacControl, c"macc"),
        (Self::IsisLsp, c"isis.lsp"),
        (Self::IsisPrefix, c"isis.lsp.ext_ip_reachability.metric"),
        (Self::IsisPrefix, c"isis.lsp.ipv6_reachability.metric"),
        (Self::IsisPrefix, c"isis.lsp.srv6_locator.metric"),
        (Self::Ospf, c"ospf"),
        (Self::Ospf2Prefix, c"ospf.tlv.extpfx.tlv_type"),
        (Self::Ospf3Prefix, c"ospf.v3.elsa.tlv_type"),
        (Self::Ospf3Lsa, c"ospf.v3.lsa"),
        (Self::Bgp, c"bgp"),
        (Self::BgpAttribute, c"bgp.update.path_attribute"),
        (Self::BgpPrefix, c"bgp.prefix_length"),
    ];

    /// Whether ours stand beside it, not in it.
    pub const fn is_beside(self) -> bool {
        matches!(
            self,
            Self::IsisPrefix
                | Self::Ospf2Prefix
                | Self::Ospf3Prefix
                | Self::Ospf3Lsa
                | Self::BgpPrefix
        )
    }
}

/// Wireshark's number of a protocol.
pub fn protocol(protocol: P) -> c_int {
    PROTOCOL_IDS[protocol as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a protocol's subtree.
pub fn protocol_ett(protocol: P) -> c_int {
    PROTOCOL_ETTS[protocol as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a field.
pub fn field(field: F) -> c_int {
    FIELD_IDS[field as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a field's subtree.
pub fn field_ett(field: F) -> c_int {
    FIELD_ETTS[field as usize].load(Ordering::Relaxed)
}

/// Wireshark's numbers of an anchor; those behind the last are none.
pub fn anchor(anchor: Anchors) -> [c_int; SAME_ANCHOR] {
    let mut ids = [c_int::MIN; SAME_ANCHOR];
    let same = Anchors::ALL.iter().zip(&ANCHOR_IDS);
    let same = same.filter(|((one, _), _)| *one == anchor);
    for (place, (_, id)) in ids.iter_mut().zip(same) {
        *place = id.load(Ordering::Relaxed);
    }
    ids
}

/// Wireshark's place for the expert info of a rule.
pub fn expert(rule: Rule) -> *mut sys::expert_field {
    EXPERT_IDS.0[rule as usize].get()
}

/// The identifier of a rule, as C has it.
pub fn rule_id(rule: Rule) -> *const c_char {
    RULE_IDS[rule as usize].load(Ordering::Relaxed)
}

/// Whether anyone collects expert infos.
pub fn is_expert_heard() -> bool {
    // SAFETY: asks by the number that Wireshark gave.
    compat::is_true(unsafe { sys::have_tap_listener(EXPERT_TAP.load(Ordering::Relaxed)) })
}

/// Wireshark's numbers of the protocols whose fields a filter may refer to: ours, and expert info.
pub fn referable() -> impl Iterator<Item = c_int> {
    PROTOCOL_IDS
        .iter()
        .chain(core::iter::once(&EXPERT_PROTOCOL))
        .map(|id| id.load(Ordering::Relaxed))
}
