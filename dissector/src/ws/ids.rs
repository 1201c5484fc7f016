//! Numbers that Wireshark assigns to protocols, fields and expert infos at startup, and checks
//! whether any of them are in use.

use super::{compat, sys};
use crate::names::{F, Node, P, Remark, expert_protocol};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use fcn_wire::finding::Rule;

const PROTOCOLS: usize = P::ALL.len();
const FIELDS: usize = F::ALL.len();
const RULES: usize = Rule::ALL.len();
const REMARKS: usize = Remark::ALL.len();
const NODES: usize = Node::ALL.len();

/// Numbers that Wireshark writes once, at startup, and reads afterwards.
pub(super) static PROTOCOL_IDS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
pub(super) static FIELD_IDS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static FIELD_ETTS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static PROTOCOL_ETTS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
static NODE_IDS: [[AtomicI32; SAME_NODE]; NODES] =
    [const { [const { AtomicI32::new(-1) }; SAME_NODE] }; NODES];
/// Wireshark's own protocols that show what carries a packet, and that no dissector accepted it.
pub(super) static SFLOW: AtomicI32 = AtomicI32::new(-1);
pub(super) static UDP: AtomicI32 = AtomicI32::new(-1);
pub(super) static UDP_LITE: AtomicI32 = AtomicI32::new(-1);
pub(super) static DATA: AtomicI32 = AtomicI32::new(-1);
pub(super) static EXPERT_TAP: AtomicI32 = AtomicI32::new(-1);
pub(super) static EXPERT_PROTOCOL: AtomicI32 = AtomicI32::new(-1);

/// Identifiers of the rules, as C strings.
pub(super) static RULE_IDS: [AtomicPtr<c_char>; RULES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; RULES];

/// One for each rule, and one for each remark.
struct ExpertIds([UnsafeCell<sys::expert_field>; RULES + REMARKS]);

// SAFETY: written by Wireshark at startup, on its one thread, and only read afterwards, by
// Wireshark and by `of_other_packets`.
unsafe impl Sync for ExpertIds {}

static EXPERT_IDS: ExpertIds =
    ExpertIds([const { UnsafeCell::new(sys::expert_field { ei: -1, hf: -1 }) }; RULES + REMARKS]);

/// Maximum number of Wireshark fields for one [`Node`].
const SAME_NODE: usize = 3;

/// Returns Wireshark's number of a protocol.
pub fn protocol(protocol: P) -> c_int {
    PROTOCOL_IDS[protocol as usize].load(Ordering::Relaxed)
}

/// Returns a protocol's short name, as a C string.
pub fn short_name(protocol: P) -> *const c_char {
    // SAFETY: a lookup by the number that Wireshark assigned.
    unsafe {
        sys::proto_get_protocol_short_name(sys::find_protocol_by_id(self::protocol(protocol)))
    }
}

/// Returns Wireshark's number of a protocol's subtree.
pub fn protocol_ett(protocol: P) -> c_int {
    PROTOCOL_ETTS[protocol as usize].load(Ordering::Relaxed)
}

/// Returns Wireshark's number of a field.
pub fn field(field: F) -> c_int {
    FIELD_IDS[field as usize].load(Ordering::Relaxed)
}

/// Returns Wireshark's number of a field's subtree.
pub fn field_ett(field: F) -> c_int {
    FIELD_ETTS[field as usize].load(Ordering::Relaxed)
}

/// Returns Wireshark's numbers of a node; -1 for those that do not exist.
pub fn node(node: Node) -> [c_int; SAME_NODE] {
    NODE_IDS[node as usize]
        .each_ref()
        .map(|id| id.load(Ordering::Relaxed))
}

/// Looks up Wireshark's own protocols and the nodes, after all are registered.
pub(super) fn find() {
    for (place, name) in [
        (&UDP, c"udp"),
        (&UDP_LITE, c"udplite"),
        (&DATA, c"data"),
        (&SFLOW, c"sflow"),
    ] {
        // SAFETY: a lookup by a text that ends with a NUL.
        let id = unsafe { sys::proto_get_id_by_filter_name(name.as_ptr()) };
        place.store(id, Ordering::Relaxed);
    }
    for (node, names) in Node::ALL {
        for (place, name) in NODE_IDS[*node as usize].iter().zip(*names) {
            // SAFETY: a lookup by a text that ends with a NUL.
            let id = unsafe { sys::proto_registrar_get_id_byname(name.as_ptr()) };
            place.store(id, Ordering::Relaxed);
        }
    }
}

/// Returns Wireshark's expert field of a rule.
pub fn expert(rule: Rule) -> *mut sys::expert_field {
    EXPERT_IDS.0[rule as usize].get()
}

/// Returns Wireshark's expert field of a remark.
pub fn remark(remark: Remark) -> *mut sys::expert_field {
    EXPERT_IDS.0[RULES + remark as usize].get()
}

/// Returns the identifier of a rule, as a C string.
pub fn rule_id(rule: Rule) -> *const c_char {
    RULE_IDS[rule as usize].load(Ordering::Relaxed)
}

/// Returns true if a listener collects expert infos.
pub fn has_expert_listener() -> bool {
    // SAFETY: a query by the number that Wireshark assigned.
    compat::is_true(unsafe { sys::have_tap_listener(EXPERT_TAP.load(Ordering::Relaxed)) })
}

/// Returns Wireshark's numbers of what a filter may refer to beyond the fields of every
/// notification: our other protocols, expert info, and the fields of [`P::Fcn`] that other packets
/// also have.
pub fn of_other_packets() -> impl Iterator<Item = c_int> {
    const FIELDS: [F; 5] = [
        F::FcnDataNode,
        F::FcnNotifiedBy,
        F::FcnFinding,
        F::FcnFindingLeftOut,
        F::FcnFindingSeverity,
    ];
    let others = P::ALL.iter().filter(|protocol| **protocol != P::Fcn);
    let others = others.map(|other| protocol(*other));
    let infos = core::iter::once(EXPERT_PROTOCOL.load(Ordering::Relaxed));
    // From 4.4 on, a filter for one expert info does not refer to expert info in general.
    let rules = Rule::ALL
        .iter()
        .filter(|rule| expert_protocol(**rule) == P::Fcn);
    // SAFETY: written only by Wireshark, when it registers them.
    let rules = rules.map(|rule| unsafe { (*expert(*rule)).hf });
    others.chain(infos).chain(FIELDS.map(field)).chain(rules)
}
