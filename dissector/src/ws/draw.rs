//! Carries out a plan: finds positions in Wireshark's tree, and adds the items.
//!
//! Wireshark may leave any of its functions through `longjmp`, so nothing here may need to be
//! dropped.

use super::compat::{CHECKSUM_VERIFY, is_true, set_flag};
use super::packet::{Packet, Tree, Tvb};
use super::{guard, ids, sys};
use crate::names::{F, Kind, Node, P, expert_protocol};
use crate::plan::{Anchor, Item, ItemKind, Mark, Op, Plan, Range, Stored, Value};
use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int};
use core::marker::PhantomData;
use core::ptr;
use fcn_wire::finding::{Rule, Severity};

/// Maximum nesting depth of a plan.
const DEPTH: usize = 8;
const AS_IS: &CStr = c"%s";
/// Maximum number of failed searches of the whole tree; later searches cover only the nodes ahead,
/// so that no packet can make this slow.
const MAX_MISSES: usize = 64;
/// Nanoseconds in a second.
const NANOSECONDS: i64 = 1_000_000_000;

thread_local! {
    /// The plan under construction. Borrowed only by pure Rust code.
    static PLAN: RefCell<Plan> = RefCell::default();
}

/// A plan in the packet's memory, ready to be carried out.
#[derive(Clone, Copy)]
pub struct Drawing<'p> {
    pub ops: &'p [Op],
    store: &'p [u8],
}

/// Lets `work` make a plan about a packet, or about its quotation of another; `None` if it panics.
pub fn plan<'p, T: Copy>(
    packet: Packet<'p>,
    quoted: bool,
    work: impl FnOnce(&mut Plan) -> T,
) -> Option<(Drawing<'p>, T)> {
    let (steps, octets, more) = guard(|| {
        PLAN.with_borrow_mut(|plan| {
            plan.begin(quoted);
            let more = work(plan);
            (plan.ops().len(), plan.store().len(), more)
        })
    })?;
    let (ops, store) = (packet.room(steps, Op::Close), packet.room(octets, 0));
    guard(|| {
        PLAN.with_borrow(|plan| {
            ops.copy_from_slice(plan.ops());
            store.copy_from_slice(plan.store());
        });
        (Drawing { ops, store }, more)
    })
}

/// Carries out a plan, starting at `root`, and returns the tree that it leaves open. Offsets are
/// relative to `tvb`.
pub fn draw<'p>(packet: Packet<'p>, root: Tree<'p>, tvb: Tvb<'p>, plan: Drawing<'_>) -> Tree<'p> {
    let mut pen = Pen {
        pinfo: packet.0,
        root: root.0,
        tvb: tvb.0,
        captured: tvb.captured() as u32,
        store: plan.store,
        open: [root.0; DEPTH],
        depth: 0,
        last: ptr::null_mut(),
        cursor: ptr::null_mut(),
        missed: false,
        misses: 0,
    };
    for op in plan.ops {
        // SAFETY: the packet, its octets and the tree are live.
        unsafe { pen.step(*op) };
    }
    Tree(pen.tree(), PhantomData)
}

struct Pen<'a> {
    pinfo: *mut sys::packet_info,
    /// Root of the tree, or the tree that a dissector was given; may be null.
    root: *mut sys::proto_tree,
    tvb: *mut sys::tvbuff_t,
    captured: u32,
    store: &'a [u8],
    open: [*mut sys::proto_tree; DEPTH],
    depth: usize,
    last: *mut sys::proto_item,
    /// Node that was found last: plans mostly go forward, so the next one usually follows it.
    cursor: *mut sys::proto_node,
    /// True if the last requested position is not in the tree.
    missed: bool,
    /// Number of failed searches.
    misses: usize,
}

impl Pen<'_> {
    fn tree(&self) -> *mut sys::proto_tree {
        self.open[self.depth]
    }

    /// Adds expert info of a protocol, with `text` unless that is empty.
    ///
    /// # Safety
    /// The packet, its octets and the tree must be live.
    unsafe fn expert(
        &mut self,
        expert: *mut sys::expert_field,
        protocol: P,
        at: Range,
        text: Stored,
    ) {
        let (start, len) = self.clamp(at);
        let (tree, pinfo, tvb) = (self.tree(), self.pinfo, self.tvb);
        // SAFETY: all are live, says the caller.
        unsafe {
            // Wireshark assigns the expert info to the protocol that is being dissected.
            let before = (*pinfo).current_proto;
            (*pinfo).current_proto = ids::short_name(protocol);
            if text.len == 0 {
                sys::proto_tree_add_expert(tree, pinfo, expert, tvb, start, len);
            } else {
                let text = self.stored(text);
                sys::proto_tree_add_expert_format(
                    tree,
                    pinfo,
                    expert,
                    tvb,
                    start,
                    len,
                    AS_IS.as_ptr(),
                    text,
                );
            }
            (*pinfo).current_proto = before;
        }
    }

    /// Returns start and length, clamped to the captured octets, so that adding an item throws no
    /// exception.
    fn clamp(&self, range: Range) -> (c_int, c_int) {
        let start = range.start.min(self.captured);
        let len = range.len.min(self.captured - start);
        (
            c_int::try_from(start).unwrap_or(0),
            c_int::try_from(len).unwrap_or(0),
        )
    }

    fn stored(&self, text: Stored) -> *const c_char {
        let start = text.start as usize;
        match self.store.get(start..=start + text.len as usize) {
            // `Plan::store_text` put a NUL after it.
            Some(text) => text.as_ptr().cast(),
            None => c"".as_ptr(),
        }
    }

    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds.
    unsafe fn step(&mut self, op: Op) {
        let (pinfo, tvb) = (self.pinfo, self.tvb);
        let tree = self.tree();
        // SAFETY: everywhere below, `tree` is a live tree or null (which Wireshark takes for "no
        // tree wanted"), `tvb` is live, start and length are within it, the field was registered
        // with the type that the function expects, and texts end with a NUL.
        unsafe {
            match op {
                Op::Goto(anchor) => {
                    self.depth = 0;
                    self.open[0] = self.find(anchor);
                    self.last = ptr::null_mut();
                }
                Op::OrGoto(anchor) => {
                    if self.missed {
                        self.open[0] = self.find(anchor);
                    }
                }
                Op::Replace(node, start) => {
                    let item = self.own(node, start);
                    if !item.is_null() {
                        set_flag(item, sys::FI_HIDDEN);
                    }
                }
                Op::Add(item) => self.add(item),
                Op::Close => self.depth = self.depth.saturating_sub(1),
                Op::Label(text) => {
                    if !self.last.is_null() {
                        sys::proto_item_set_text(self.last, AS_IS.as_ptr(), self.stored(text));
                    }
                }
                Op::Append(text) => {
                    if !self.last.is_null() {
                        sys::proto_item_append_text(self.last, AS_IS.as_ptr(), self.stored(text));
                    }
                }
                Op::Icrc(at, expected, rule) => {
                    if at.saturating_add(4) <= self.captured {
                        let flags = if rule.is_some() { CHECKSUM_VERIFY } else { 0 };
                        let item = sys::proto_tree_add_checksum(
                            tree,
                            tvb,
                            at as _,
                            ids::field(F::RoceIcrc),
                            ids::field(F::RoceIcrcStatus),
                            ids::expert(rule.unwrap_or(Rule::RoceIcrcBad)),
                            pinfo,
                            // In network byte order, as Wireshark's own "Invariant CRC" shows it.
                            expected.swap_bytes(),
                            sys::ENC_BIG_ENDIAN,
                            flags,
                        );
                        self.added(item, Mark::Plain);
                    }
                }
                Op::Found(rule, at) => self.found(rule, at),
                Op::Remark(remark, at, text) => {
                    self.expert(ids::remark(remark), P::Roce, at, text);
                }
                Op::Expert(rule, at, text) => {
                    self.expert(ids::expert(rule), expert_protocol(rule), at, text);
                    self.found(rule, at);
                }
            }
        }
    }

    /// Adds an item by the type that its field was registered with, and opens it if requested.
    ///
    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds.
    unsafe fn add(&mut self, item: Item) {
        let (mut tree, tvb) = (self.tree(), self.tvb);
        let mut mark = item.mark;
        let mut before = ptr::null_mut();
        if let Mark::ShownByWireshark(node, start) | Mark::AfterWiresharkItem(node, start) =
            item.mark
        {
            // SAFETY: passed on.
            let own = unsafe { self.own(node, start) };
            mark = match item.mark {
                _ if own.is_null() => Mark::Plain,
                Mark::ShownByWireshark(..) => Mark::Hidden,
                _ => {
                    before = own;
                    // SAFETY: Wireshark's own items are not the root.
                    tree = unsafe { (*own).parent };
                    Mark::Generated
                }
            };
        }
        let (start, len) = self.clamp(item.range);
        let (id, ett, kind) = match item.kind {
            ItemKind::Protocol(protocol) => {
                let (id, ett) = (ids::protocol(protocol), ids::protocol_ett(protocol));
                (id, ett, Kind::Node)
            }
            ItemKind::Field(field) => (ids::field(field), ids::field_ett(field), field.def().kind),
        };
        // SAFETY: as in `step`.
        let added = unsafe {
            match (kind, item.value) {
                (_, Value::Octets) => {
                    sys::proto_tree_add_item(tree, id, tvb, start, len, sys::ENC_BIG_ENDIAN)
                }
                (Kind::Text, Value::Stored(text)) => {
                    sys::proto_tree_add_string(tree, id, tvb, start, len, self.stored(text))
                }
                (Kind::Ipv6, Value::Stored(octets)) => {
                    let rest = self.store.get(octets.start as usize..);
                    let Some(address) = rest.and_then(<[u8]>::first_chunk::<16>) else {
                        return;
                    };
                    sys::proto_tree_add_ipv6(tree, id, tvb, start, len, address.as_ptr().cast())
                }
                (Kind::Ipv4, Value::Number(bits)) => {
                    // Wireshark keeps IPv4 addresses in network byte order.
                    let address = (bits as u32).to_be();
                    sys::proto_tree_add_ipv4(tree, id, tvb, start, len, address)
                }
                (Kind::Flag(_), Value::Number(word)) => {
                    // 32 bits in 4.0, 64 later.
                    sys::proto_tree_add_boolean(tree, id, tvb, start, len, word as _)
                }
                (Kind::Span, Value::Number(nanoseconds)) => {
                    let nanoseconds = nanoseconds.cast_signed();
                    let span = sys::nstime_t {
                        secs: nanoseconds / NANOSECONDS,
                        nsecs: (nanoseconds % NANOSECONDS) as c_int,
                    };
                    sys::proto_tree_add_time(tree, id, tvb, start, len, &raw const span)
                }
                (Kind::Dec(33..) | Kind::Hex(33..), Value::Number(number)) => {
                    sys::proto_tree_add_uint64(tree, id, tvb, start, len, number)
                }
                (
                    Kind::Dec(_) | Kind::Named(_) | Kind::Hex(_) | Kind::Frame(_),
                    Value::Number(number),
                ) => sys::proto_tree_add_uint(tree, id, tvb, start, len, number as u32),
                // None of our fields is added with a type other than its own.
                _ => return,
            }
        };
        // SAFETY: Wireshark has just returned the item.
        unsafe {
            self.added(added, mark);
            if !before.is_null() && !added.is_null() {
                sys::proto_tree_move_item(tree, before, added);
            }
            if item.opens {
                self.descend(added, ett);
            }
        }
    }

    /// Adds hidden items that find the violated rules of all protocols by one name.
    ///
    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds.
    unsafe fn found(&mut self, rule: Rule, range: Range) {
        let (start, len) = self.clamp(range);
        let severity = match rule.info().severity {
            Severity::Error => c"error",
            Severity::Warning => c"warning",
            Severity::Note => c"note",
        };
        let (tree, tvb) = (self.tree(), self.tvb);
        for (field, text) in [
            (F::FcnFinding, ids::rule_id(rule)),
            (F::FcnFindingSeverity, severity.as_ptr()),
        ] {
            // SAFETY: as in `step`.
            unsafe {
                let id = ids::field(field);
                let item = sys::proto_tree_add_string(tree, id, tvb, start, len, text);
                set_flag(item, sys::FI_HIDDEN);
            }
        }
    }

    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds;
    /// Wireshark has just returned `item`.
    unsafe fn added(&mut self, item: *mut sys::proto_item, mark: Mark) {
        self.last = item;
        // SAFETY: passed on.
        unsafe { set_mark(item, mark) };
    }

    unsafe fn descend(&mut self, item: *mut sys::proto_item, ett: c_int) {
        // SAFETY: Wireshark has just returned `item`.
        let tree = unsafe { sys::proto_item_add_subtree(item, ett) };
        if self.depth + 1 < DEPTH {
            self.depth += 1;
        }
        self.open[self.depth] = tree;
    }

    /// Returns the tree at `anchor`, or the root if it is not there (not wanted by a filter, or its
    /// protocol is disabled).
    ///
    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds.
    unsafe fn find(&mut self, anchor: Anchor) -> *mut sys::proto_tree {
        let root = self.root;
        self.missed = false;
        let (node, start) = match anchor {
            Anchor::Root => return root,
            // SAFETY: passed on.
            Anchor::BelowTopLevel => return unsafe { aside(root) },
            Anchor::At(node, start) => (node, start),
        };
        if root.is_null() {
            return root;
        }
        // SAFETY: the root and its nodes are live while the packet is dissected.
        unsafe {
            // A tree built only for a filter mostly lacks the anchors; the position of a field
            // matters there only for the protocol hierarchy.
            if !is_shown(root) {
                return aside(root);
            }
            let found = self.own(node, start);
            if found.is_null() {
                self.missed = true;
                return root;
            }
            if node.is_sibling() {
                (*found).parent
            } else {
                found
            }
        }
    }

    /// Returns the item of `node` that begins at `start`, or null if it is not in the tree or the
    /// tree is not visible.
    ///
    /// # Safety
    /// To be called while the packet is being dissected whose tree and octets `self` holds.
    unsafe fn own(&mut self, node: Node, start: u32) -> *mut sys::proto_node {
        let root = self.root;
        let ids = ids::node(node);
        // SAFETY: the root and its nodes are live while the packet is dissected.
        unsafe {
            // Some versions of Wireshark have no such field.
            if root.is_null() || !is_shown(root) || ids.iter().all(|id| *id < 0) {
                return ptr::null_mut();
            }
            let mut found = ptr::null_mut();
            if !self.cursor.is_null() {
                found = find(root, self.cursor, &ids, self.tvb, start);
            }
            if found.is_null() && self.misses < MAX_MISSES {
                found = find(root, (*root).first_child, &ids, self.tvb, start);
            }
            if found.is_null() {
                self.misses += 1;
            } else {
                self.cursor = found;
            }
            found
        }
    }
}

/// Adds only a protocol, for `len` captured octets of `tvb` from `start`.
pub fn add_protocol(
    tree: Tree<'_>,
    protocol: P,
    tvb: Tvb<'_>,
    (start, len): (usize, usize),
    mark: Mark,
) {
    let (id, start, len) = (ids::protocol(protocol), start as c_int, len as c_int);
    // SAFETY: tree and octets are live.
    unsafe {
        let item = sys::proto_tree_add_item(tree.0, id, tvb.0, start, len, sys::ENC_BIG_ENDIAN);
        set_mark(item, mark);
    }
}

/// Applies a mark to an item.
///
/// # Safety
/// Wireshark has just returned `item`.
unsafe fn set_mark(item: *mut sys::proto_item, mark: Mark) {
    // SAFETY: passed on.
    unsafe {
        match mark {
            // `add` has already resolved the last two.
            Mark::Plain | Mark::ShownByWireshark(..) | Mark::AfterWiresharkItem(..) => {}
            Mark::Generated => set_flag(item, sys::FI_GENERATED),
            Mark::Hidden => set_flag(item, sys::FI_HIDDEN),
        }
    }
}

/// Returns true if the tree is visible, false if it was built only for a filter.
///
/// # Safety
/// `root` is a live tree.
unsafe fn is_shown(root: *mut sys::proto_tree) -> bool {
    // SAFETY: the root is live while the packet is dissected.
    unsafe {
        let data = (*root).tree_data;
        !data.is_null() && is_true((*data).visible)
    }
}

/// Returns the position for items that are not a layer of the packet: see
/// [`Anchor::BelowTopLevel`].
///
/// # Safety
/// `root` is null or a live tree.
unsafe fn aside(root: *mut sys::proto_tree) -> *mut sys::proto_tree {
    // SAFETY: the root and its nodes are live while the packet is dissected.
    unsafe {
        if root.is_null() {
            return root;
        }
        let (data, last) = ((*root).tree_data, (*root).last_child);
        if data.is_null() || is_true((*data).visible) || last.is_null() {
            return root;
        }
        sys::proto_item_add_subtree(last, ids::protocol_ett(P::Fcn))
    }
}

/// Returns the first node from `from` on, in display order, that belongs to one of the fields `ids`
/// and begins at `start` of data source `ds`, or null.
///
/// # Safety
/// `root` is a live tree, and `from` is null or in it.
unsafe fn find(
    root: *mut sys::proto_node,
    from: *mut sys::proto_node,
    ids: &[c_int],
    ds: *mut sys::tvbuff_t,
    start: u32,
) -> *mut sys::proto_node {
    // SAFETY: Wireshark's trees are linked by these pointers, and not changed meanwhile.
    unsafe {
        let mut at = from;
        while !at.is_null() {
            let info = (*at).finfo;
            if !info.is_null()
                && !(*info).hfinfo.is_null()
                && u32::try_from((*info).start) == Ok(start)
                && (*info).ds_tvb == ds
                && ids.contains(&(*(*info).hfinfo).id)
            {
                return at;
            }
            if !(*at).first_child.is_null() {
                at = (*at).first_child;
                continue;
            }
            while (*at).next.is_null() {
                at = (*at).parent;
                if at.is_null() || at == root {
                    return ptr::null_mut();
                }
            }
            at = (*at).next;
        }
    }
    ptr::null_mut()
}
