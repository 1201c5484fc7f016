//! A plan: what to add to Wireshark's tree, as plain values. Made by safe code in `show`, carried out by `draw.rs`.
//!
//! Wireshark's functions may leave through `longjmp`, past every Rust frame. So nothing of Wireshark is called while a
//! plan is made, and nothing that would have to be dropped is alive while one is carried out: it is copied to memory
//! that Wireshark frees with the packet.
#![forbid(unsafe_code)]

use crate::names::{F, Node, P};
use core::fmt;
use fcn_wire::finding::{Findings, MAX_FINDINGS, Rule};
use std::net::{IpAddr, Ipv6Addr};

/// Octets in a data source: where an item of the tree points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// First octet.
    pub start: u32,
    /// How many.
    pub len: u32,
}

/// `len` octets from `start`.
pub fn at(start: usize, len: usize) -> At {
    At {
        start: u32::try_from(start).unwrap_or(u32::MAX),
        len: u32::try_from(len).unwrap_or(u32::MAX),
    }
}

/// Where a part of a plan goes in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Below everything else, at top level.
    Root,
    /// The same in a tree that is shown. In one that is not, somewhere below the top level, where statistics of the
    /// protocol hierarchy take nothing for a layer of the packet.
    Aside,
    /// To Wireshark's own item that begins there.
    At(Node, u32),
}

/// A text, or octets, in the plan's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its first octet.
    pub start: u32,
    /// Its length, without the NUL behind a text.
    pub len: u32,
}

/// How an item is shown beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It stands in the packet.
    Plain,
    /// It does not stand in the packet: Wireshark puts it in brackets.
    Generated,
    /// Filterable, but not shown.
    Hidden,
    /// It stands in the packet, and Wireshark's own item that begins there shows it: filterable, and shown only if that item
    /// is not in the tree.
    Known(Node, u32),
    /// It stands in the packet, and Wireshark's own item that begins there does not know its name: shown in brackets right
    /// behind that item, or as [`Mark::Plain`] if that is not in the tree.
    Behind(Node, u32),
}

/// What an item of the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A protocol.
    Protocol(P),
    /// A field.
    Field(F),
}

/// What an item says; how that is written, its field's type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// What the octets say that it points to.
    Octets,
    /// A number, a flag, an IPv4 address, or a span of time in nanoseconds. With a mask, the whole word.
    Number(u64),
    /// A text or an IPv6 address.
    Stored(Stored),
}

/// An item of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its protocol or field.
    pub what: What,
    /// The octets that it points to.
    pub at: At,
    /// What it says.
    pub value: Value,
    /// How it is shown.
    pub mark: Mark,
    /// Whether what follows goes into it.
    pub opens: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Go to a place in the tree; closes what is open.
    Goto(Anchor),
    /// Go there where the place asked for just before is not in the tree.
    OrGoto(Anchor),
    /// Hide Wireshark's own item that begins there: what follows shows what it could not read.
    Replace(Node, u32),
    /// Add an item.
    Add(Item),
    /// Close what was opened last.
    Close,
    /// Replace the text of the item added last.
    Label(Stored),
    /// Append to the text of the item added last.
    Append(Stored),
    /// Add the ICRC at that place: the right value, and whether it was verified.
    Icrc(u32, u32, bool),
    /// Add expert info for a broken rule here; a text of no length stands for the rule's own.
    Expert(Rule, At, Stored),
    /// Note a broken rule whose expert info Wireshark adds itself, for filters on all of ours.
    Found(Rule, At),
}

const NO_TEXT: Stored = Stored { start: 0, len: 0 };
/// Longest text stored; Wireshark's own labels end at 240.
const MAX_TEXT: usize = 239;

/// A list of steps and the texts they use.
#[derive(Debug, Default)]
pub struct Plan {
    ops: Vec<Op>,
    store: Vec<u8>,
    quoted: bool,
    findings: usize,
    left_out: usize,
}

impl Plan {
    /// Empties it, for what another packet quotes or not: a quotation breaks no rule here, where it is only told of.
    pub fn begin(&mut self, quoted: bool) {
        self.ops.clear();
        self.store.clear();
        (self.quoted, self.findings, self.left_out) = (quoted, 0, 0);
    }

    /// Whether nothing of what follows is said to break a rule.
    pub const fn silence(&mut self, silent: bool) {
        self.quoted = silent;
    }

    /// Findings beyond the first [`MAX_FINDINGS`], which were left out.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Adds the step that says that a rule is broken.
    pub fn found(&mut self, op: Op) {
        if self.quoted {
            return;
        }
        if self.findings < MAX_FINDINGS {
            self.findings += 1;
            self.push(op);
        } else {
            self.left_out += 1;
        }
    }

    /// Counts findings that nothing is said of one by one.
    pub fn leave_out(&mut self, count: usize) {
        if !self.quoted {
            self.left_out += count;
        }
    }

    /// Says how many findings were left out.
    pub fn say_left_out(&mut self, here: At) {
        if let Ok(count @ 1..) = u32::try_from(self.left_out) {
            self.aside();
            self.generated(F::FcnFindingLeftOut, here, count);
        }
    }

    /// The steps.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The texts and addresses.
    pub fn store(&self) -> &[u8] {
        &self.store
    }

    /// Adds a step.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    fn keep(&mut self, octets: &[u8]) -> Stored {
        let At { start, len } = at(self.store.len(), octets.len());
        self.store.extend_from_slice(octets);
        Stored { start, len }
    }

    /// Stores a text, followed by a NUL, cut where it is too long.
    pub fn store_text(&mut self, text: fmt::Arguments<'_>) -> Stored {
        let mut octets = [0; MAX_TEXT];
        let len = write(&mut octets, text);
        let stored = self.keep(octets.get(..len).unwrap_or_default());
        self.store.push(0);
        stored
    }

    /// Goes below everything else, at top level.
    pub fn root(&mut self) {
        self.push(Op::Goto(Anchor::Root));
    }

    /// Goes to [`Anchor::Aside`].
    pub fn aside(&mut self) {
        self.push(Op::Goto(Anchor::Aside));
    }

    /// Goes to Wireshark's own item that begins at `start`.
    pub fn goto(&mut self, node: Node, start: usize) {
        self.push(Op::Goto(Anchor::At(node, at(start, 0).start)));
    }

    /// Goes there where the place asked for just before is not in the tree.
    pub fn or_goto(&mut self, node: Node, start: usize) {
        self.push(Op::OrGoto(Anchor::At(node, at(start, 0).start)));
    }

    fn item(&mut self, what: What, at: At, value: Value, mark: Mark, opens: bool) {
        self.push(Op::Add(Item {
            what,
            at,
            value,
            mark,
            opens,
        }));
    }

    fn field(&mut self, field: F, at: At, value: Value, mark: Mark) {
        self.item(What::Field(field), at, value, mark, false);
    }

    /// Adds a protocol and opens it.
    pub fn protocol(&mut self, protocol: P, at: At, mark: Mark) {
        self.item(What::Protocol(protocol), at, Value::Octets, mark, true);
    }

    /// Adds a field and opens it.
    pub fn open(&mut self, field: F, at: At, mark: Mark) {
        self.item(What::Field(field), at, Value::Octets, mark, true);
    }

    /// Adds a number and opens it, for its parts.
    pub fn open_word(&mut self, field: F, at: At, word: impl Into<u64>, mark: Mark) {
        let value = Value::Number(word.into());
        self.item(What::Field(field), at, value, mark, true);
    }

    /// Closes what was opened last.
    pub fn close(&mut self) {
        self.push(Op::Close);
    }

    /// Adds a number or a flag that stands in the packet; of a part of a word, the whole word.
    pub fn add(&mut self, field: F, at: At, value: impl Into<u64>) {
        self.field(field, at, Value::Number(value.into()), Mark::Plain);
    }

    /// Adds a number or a flag, marked as told.
    pub fn marked(&mut self, field: F, at: At, value: impl Into<u64>, mark: Mark) {
        self.field(field, at, Value::Number(value.into()), mark);
    }

    /// Adds a number or a flag that stands in the packet, and that Wireshark's own `node` shows.
    pub fn known(&mut self, field: F, at: At, value: impl Into<u64>, node: Node) {
        self.marked(field, at, value, Mark::Known(node, at.start));
    }

    /// Hides Wireshark's own item that begins at `start`.
    pub fn replace(&mut self, node: Node, start: usize) {
        self.push(Op::Replace(node, at(start, 0).start));
    }

    /// Adds a number, a flag or a span of time that does not stand in the packet.
    pub fn generated(&mut self, field: F, at: At, value: impl Into<u64>) {
        self.field(field, at, Value::Number(value.into()), Mark::Generated);
    }

    /// Adds octets of the packet.
    pub fn octets(&mut self, field: F, at: At) {
        self.field(field, at, Value::Octets, Mark::Plain);
    }

    /// Adds a text that does not stand in the packet.
    pub fn text(&mut self, field: F, at: At, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.stored(field, at, stored, Mark::Generated);
    }

    /// Adds a text that is not shown.
    pub fn hidden(&mut self, field: F, at: At, text: &str) {
        let stored = self.store_text(format_args!("{text}"));
        self.stored(field, at, stored, Mark::Hidden);
    }

    /// Adds a text that is in the store.
    pub fn stored(&mut self, field: F, at: At, text: Stored, mark: Mark) {
        self.field(field, at, Value::Stored(text), mark);
    }

    /// Adds an address, as the field of its family.
    pub fn address(&mut self, (v4, v6): (F, F), at: At, address: IpAddr, mark: Mark) {
        match address {
            IpAddr::V4(address) => {
                let bits = Value::Number(address.to_bits().into());
                self.field(v4, at, bits, mark);
            }
            IpAddr::V6(address) => self.ipv6(v6, at, address, mark),
        }
    }

    /// Adds an IPv6 address.
    pub fn ipv6(&mut self, field: F, at: At, address: Ipv6Addr, mark: Mark) {
        let octets = self.keep(&address.octets());
        self.stored(field, at, octets, mark);
    }

    /// Replaces the text of the item added last.
    pub fn label(&mut self, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.push(Op::Label(stored));
    }

    /// Appends to the text of the item added last.
    pub fn append(&mut self, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.push(Op::Append(stored));
    }

    /// Adds expert info for every finding; their offsets are counted from `base`.
    pub fn experts(&mut self, findings: &Findings, base: usize) {
        for finding in findings {
            self.expert(finding.rule, at(base + finding.offset, finding.len));
        }
    }

    /// Adds expert info for `rule`, in the rule's own words.
    pub fn expert(&mut self, rule: Rule, at: At) {
        self.found(Op::Expert(rule, at, NO_TEXT));
    }

    /// The same of the packet as a whole, which is not left out for what its parts break.
    pub fn expert_of_all(&mut self, rule: Rule, at: At) {
        if !self.quoted {
            self.push(Op::Expert(rule, at, NO_TEXT));
        }
    }

    /// Adds expert info for `rule` that ends with `detail`.
    pub fn expert_with(&mut self, rule: Rule, at: At, detail: fmt::Arguments<'_>) {
        let info = rule.info();
        let stored = self.store_text(format_args!("{}: {detail} [{}]", info.text, info.section));
        self.found(Op::Expert(rule, at, stored));
    }
}

/// Writes a text, cut between characters where it is too long, and gives its length.
fn write(out: &mut [u8], text: fmt::Arguments<'_>) -> usize {
    struct Line<'a> {
        out: &'a mut [u8],
        len: usize,
    }
    impl fmt::Write for Line<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let take = text.floor_char_boundary(self.out.len() - self.len);
            self.out[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
            self.len += take;
            // Nothing may follow a text that was cut.
            if take < text.len() {
                Err(fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    let mut line = Line { out, len: 0 };
    // An error only says that the text was cut.
    let _ = fmt::write(&mut line, text);
    line.len
}

/// A line of text for Wireshark's columns: NUL-terminated, without heap.
#[derive(Clone, Copy, Debug)]
pub struct ColumnText {
    bytes: [u8; Self::ROOM],
}

impl ColumnText {
    const ROOM: usize = 256;

    /// `text`, cut where it is too long.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; Self::ROOM];
        write(&mut bytes[..Self::ROOM - 1], text);
        Self { bytes }
    }

    /// For Wireshark: as C has it.
    pub fn as_c_str(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The text as Rust sees it.
    pub fn as_str(&self) -> &str {
        self.as_c_str().to_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_end_with_a_nul() {
        let mut plan = Plan::default();
        let a = plan.store_text(format_args!("abc"));
        let long = "→".repeat(100);
        let b = plan.store_text(format_args!("{long}{}", "x"));
        assert_eq!((a.len, b.len), (3, 79 * 3));
        assert_eq!(&plan.store()[..4], b"abc\0");
        let end = (b.start + b.len) as usize;
        assert_eq!(&plan.store()[end - 3..], "→\0".as_bytes());
        plan.begin(false);
        assert!(plan.ops().is_empty() && plan.store().is_empty());
    }

    #[test]
    fn column_texts_always_end() {
        let long = "→".repeat(200);
        let text = ColumnText::new(format_args!("x{long}"));
        assert_eq!(text.as_str().chars().count(), 1 + 254 / 3);
    }
}
