//! A plan: the items to add to Wireshark's tree, as plain values. Safe code in `show` makes it, and
//! `draw.rs` carries it out.
//!
//! Wireshark's functions may leave through `longjmp`, past every Rust frame. So no function of
//! Wireshark is called while a plan is made, and nothing that would have to be dropped is alive
//! while one is carried out: the plan is copied to memory that Wireshark frees with the packet.
#![forbid(unsafe_code)]

use crate::names::{F, Node, P, Remark};
use core::fmt;
use fcn_wire::finding::{Findings, MAX_FINDINGS, Rule};
use std::net::{IpAddr, Ipv6Addr};

/// Range of octets in a data source, as highlighted for an item of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First octet.
    pub start: u32,
    /// Length in octets.
    pub len: u32,
}

/// Returns the range of `len` octets from `start`.
pub fn range(start: usize, len: usize) -> Range {
    Range {
        start: u32::try_from(start).unwrap_or(u32::MAX),
        len: u32::try_from(len).unwrap_or(u32::MAX),
    }
}

/// Position in the tree for a part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At top level, below everything else.
    Root,
    /// Like `Root` in a visible tree. In an invisible one, a position below the top level, where
    /// protocol hierarchy statistics do not count it as a layer of the packet.
    BelowTopLevel,
    /// Wireshark's own item that begins at this offset.
    At(Node, u32),
}

/// A text, or octets, in the plan's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Offset of its first octet.
    pub start: u32,
    /// Length, without the NUL that follows a text.
    pub len: u32,
}

/// Way that an item is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Contained in the packet.
    Plain,
    /// Not contained in the packet: Wireshark shows it in brackets.
    Generated,
    /// Filterable, but not displayed.
    Hidden,
    /// Contained in the packet, and shown by Wireshark's own item that begins at this offset:
    /// filterable, and displayed only if that item is not in the tree.
    ShownByWireshark(Node, u32),
    /// Contained in the packet, but Wireshark's own item that begins at this offset does not name
    /// it: displayed in brackets right behind that item, or as [`Mark::Plain`] if that is not in
    /// the tree.
    AfterWiresharkItem(Node, u32),
}

/// Protocol or field of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A protocol.
    Protocol(P),
    /// A field.
    Field(F),
}

/// Value of an item; its field's type decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The value of the octets that the item points to.
    Octets,
    /// A number, a flag, an IPv4 address, or a duration in nanoseconds. With a mask, the whole
    /// word.
    Number(u64),
    /// A text or an IPv6 address.
    Stored(Stored),
}

/// An item of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Protocol or field.
    pub kind: ItemKind,
    /// Octets that it points to.
    pub range: Range,
    /// Value.
    pub value: Value,
    /// Way that it is displayed.
    pub mark: Mark,
    /// True if the items that follow are added below it.
    pub opens: bool,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Move to a position in the tree; closes everything that is open.
    Goto(Anchor),
    /// Move to this position if the one of the previous step is not in the tree.
    OrGoto(Anchor),
    /// Hide Wireshark's own item that begins at this offset: the items that follow show what it
    /// could not decode.
    Replace(Node, u32),
    /// Add an item.
    Add(Item),
    /// Close the item that was opened last.
    Close,
    /// Replace the text of the item that was added last.
    Label(Stored),
    /// Append to the text of the item that was added last.
    Append(Stored),
    /// Add the ICRC at this offset: the expected value, and if it was verified, the rule that a
    /// different one breaks.
    Icrc(u32, u32, Option<Rule>),
    /// Add expert info for a violated rule; an empty text stands for the rule's own text.
    Expert(Rule, Range, Stored),
    /// Add expert info that no rule is behind; an empty text stands for its own text.
    Remark(Remark, Range, Stored),
    /// Record a violated rule whose expert info Wireshark itself adds, so that our general filters
    /// find it.
    Found(Rule, Range),
}

const NO_TEXT: Stored = Stored { start: 0, len: 0 };
/// Maximum length of a stored text; Wireshark's own labels have at most 240 octets.
const MAX_TEXT: usize = 239;

/// A list of steps and the texts that they use.
#[derive(Debug, Default)]
pub struct Plan {
    ops: Vec<Op>,
    store: Vec<u8>,
    quoted: bool,
    findings: usize,
    left_out: usize,
}

impl Plan {
    /// Clears the plan for another packet, or for a quotation in one: a quotation violates no rule
    /// here, because this packet only quotes it.
    pub fn begin(&mut self, quoted: bool) {
        self.ops.clear();
        self.store.clear();
        (self.quoted, self.findings, self.left_out) = (quoted, 0, 0);
    }

    /// Suppresses the findings that follow if `silent`.
    pub const fn suppress_findings(&mut self, silent: bool) {
        self.quoted = silent;
    }

    /// Number of findings beyond the first [`MAX_FINDINGS`], which were left out.
    pub const fn omitted(&self) -> usize {
        self.left_out
    }

    /// Adds a step that reports a violated rule.
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

    /// Counts findings that are not reported individually.
    pub fn count_omitted(&mut self, count: usize) {
        if !self.quoted {
            self.left_out += count;
        }
    }

    /// Adds the number of findings that were left out.
    pub fn add_omitted_count(&mut self, here: Range) {
        if let Ok(count @ 1..) = u32::try_from(self.left_out) {
            self.below_top_level();
            self.generated(F::FcnFindingLeftOut, here, count);
        }
    }

    /// Returns the steps.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Returns the texts and addresses.
    pub fn store(&self) -> &[u8] {
        &self.store
    }

    /// Adds a step.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    fn keep(&mut self, octets: &[u8]) -> Stored {
        let Range { start, len } = range(self.store.len(), octets.len());
        self.store.extend_from_slice(octets);
        Stored { start, len }
    }

    /// Stores a text followed by a NUL, truncated if it is too long.
    pub fn store_text(&mut self, text: fmt::Arguments<'_>) -> Stored {
        let mut octets = [0; MAX_TEXT];
        let len = write(&mut octets, text);
        let stored = self.keep(octets.get(..len).unwrap_or_default());
        self.store.push(0);
        stored
    }

    /// Moves to the top level, below everything else.
    pub fn root(&mut self) {
        self.push(Op::Goto(Anchor::Root));
    }

    /// Moves to [`Anchor::BelowTopLevel`].
    pub fn below_top_level(&mut self) {
        self.push(Op::Goto(Anchor::BelowTopLevel));
    }

    /// Moves to Wireshark's own item that begins at `start`.
    pub fn goto(&mut self, node: Node, start: usize) {
        self.push(Op::Goto(Anchor::At(node, range(start, 0).start)));
    }

    /// Moves to that item if the position of the previous step is not in the tree.
    pub fn or_goto(&mut self, node: Node, start: usize) {
        self.push(Op::OrGoto(Anchor::At(node, range(start, 0).start)));
    }

    fn item(&mut self, kind: ItemKind, range: Range, value: Value, mark: Mark, opens: bool) {
        self.push(Op::Add(Item {
            kind,
            range,
            value,
            mark,
            opens,
        }));
    }

    fn field(&mut self, field: F, range: Range, value: Value, mark: Mark) {
        self.item(ItemKind::Field(field), range, value, mark, false);
    }

    /// Adds a protocol and opens it.
    pub fn protocol(&mut self, protocol: P, range: Range, mark: Mark) {
        self.item(
            ItemKind::Protocol(protocol),
            range,
            Value::Octets,
            mark,
            true,
        );
    }

    /// Adds a field and opens it.
    pub fn open(&mut self, field: F, range: Range, mark: Mark) {
        self.item(ItemKind::Field(field), range, Value::Octets, mark, true);
    }

    /// Adds a number and opens it, so that its parts can be added.
    pub fn open_word(&mut self, field: F, range: Range, word: impl Into<u64>, mark: Mark) {
        let value = Value::Number(word.into());
        self.item(ItemKind::Field(field), range, value, mark, true);
    }

    /// Closes the item that was opened last.
    pub fn close(&mut self) {
        self.push(Op::Close);
    }

    /// Adds a number or a flag of the packet; for a part of a word, `value` is the whole word.
    pub fn add(&mut self, field: F, range: Range, value: impl Into<u64>) {
        self.field(field, range, Value::Number(value.into()), Mark::Plain);
    }

    /// Adds a number or a flag with the given mark.
    pub fn marked(&mut self, field: F, range: Range, value: impl Into<u64>, mark: Mark) {
        self.field(field, range, Value::Number(value.into()), mark);
    }

    /// Adds a number or a flag of the packet that Wireshark's own `node` shows.
    pub fn known(&mut self, field: F, range: Range, value: impl Into<u64>, node: Node) {
        self.marked(
            field,
            range,
            value,
            Mark::ShownByWireshark(node, range.start),
        );
    }

    /// Hides Wireshark's own item that begins at `start`.
    pub fn replace(&mut self, node: Node, start: usize) {
        self.push(Op::Replace(node, range(start, 0).start));
    }

    /// Adds a number, a flag or a duration that is not contained in the packet.
    pub fn generated(&mut self, field: F, range: Range, value: impl Into<u64>) {
        self.field(field, range, Value::Number(value.into()), Mark::Generated);
    }

    /// Adds octets of the packet.
    pub fn octets(&mut self, field: F, range: Range) {
        self.field(field, range, Value::Octets, Mark::Plain);
    }

    /// Adds a text that is not contained in the packet.
    pub fn text(&mut self, field: F, range: Range, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.stored(field, range, stored, Mark::Generated);
    }

    /// Adds a text that is filterable, but not displayed.
    pub fn hidden(&mut self, field: F, range: Range, text: &str) {
        let stored = self.store_text(format_args!("{text}"));
        self.stored(field, range, stored, Mark::Hidden);
    }

    /// Adds a text that is already in the store.
    pub fn stored(&mut self, field: F, range: Range, text: Stored, mark: Mark) {
        self.field(field, range, Value::Stored(text), mark);
    }

    /// Adds an address to the field of its family.
    pub fn address(&mut self, (v4, v6): (F, F), range: Range, address: IpAddr, mark: Mark) {
        match address {
            IpAddr::V4(address) => {
                let bits = Value::Number(address.to_bits().into());
                self.field(v4, range, bits, mark);
            }
            IpAddr::V6(address) => self.ipv6(v6, range, address, mark),
        }
    }

    /// Adds an IPv6 address.
    pub fn ipv6(&mut self, field: F, range: Range, address: Ipv6Addr, mark: Mark) {
        let octets = self.keep(&address.octets());
        self.stored(field, range, octets, mark);
    }

    /// Replaces the text of the item that was added last.
    pub fn label(&mut self, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.push(Op::Label(stored));
    }

    /// Appends to the text of the item that was added last.
    pub fn append(&mut self, text: fmt::Arguments<'_>) {
        let stored = self.store_text(text);
        self.push(Op::Append(stored));
    }

    /// Adds expert info for every finding; their offsets are relative to `base`.
    pub fn experts(&mut self, findings: &Findings, base: usize) {
        for finding in findings {
            self.expert(finding.rule, range(base + finding.offset, finding.len));
        }
    }

    /// Adds expert info for `rule`, with the rule's own text.
    pub fn expert(&mut self, rule: Rule, range: Range) {
        self.found(Op::Expert(rule, range, NO_TEXT));
    }

    /// Adds expert info that no rule is behind.
    pub fn remark(&mut self, remark: Remark, range: Range) {
        self.push(Op::Remark(remark, range, NO_TEXT));
    }

    /// Adds expert info that no rule is behind, with `detail`.
    pub fn remark_with(&mut self, remark: Remark, range: Range, detail: fmt::Arguments<'_>) {
        let stored = self.store_text(format_args!("{}: {detail}", remark.text()));
        self.push(Op::Remark(remark, range, stored));
    }

    /// Adds expert info about the packet as a whole, which findings in its parts cannot crowd out.
    pub fn packet_expert(&mut self, rule: Rule, range: Range) {
        if !self.quoted {
            self.push(Op::Expert(rule, range, NO_TEXT));
        }
    }

    /// Adds expert info for `rule` with `detail`.
    pub fn expert_with(&mut self, rule: Rule, range: Range, detail: fmt::Arguments<'_>) {
        let info = rule.info();
        let stored = self.store_text(format_args!("{}: {detail} [{}]", info.text, info.section));
        self.found(Op::Expert(rule, range, stored));
    }
}

/// Writes a text, truncated at a character boundary if it is too long, and returns its length.
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
            // Stop here: nothing may follow a text that was truncated.
            if take < text.len() {
                Err(fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    let mut line = Line { out, len: 0 };
    // An error only means that the text was truncated.
    let _ = fmt::write(&mut line, text);
    line.len
}

/// A line of text for Wireshark's columns: NUL-terminated, without heap allocation.
#[derive(Clone, Copy, Debug)]
pub struct ColumnText {
    bytes: [u8; Self::ROOM],
}

impl ColumnText {
    const ROOM: usize = 256;

    /// Creates a line from `text`, truncated if it is too long.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; Self::ROOM];
        write(&mut bytes[..Self::ROOM - 1], text);
        Self { bytes }
    }

    /// Returns the text as a C string, for Wireshark.
    pub fn as_c_str(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Returns the text as a Rust string.
    pub fn as_str(&self) -> &str {
        self.as_c_str().to_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_truncated_at_character_boundaries_and_end_with_nul() {
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
    fn column_texts_are_always_terminated() {
        let long = "→".repeat(200);
        let text = ColumnText::new(format_args!("x{long}"));
        assert_eq!(text.as_str().chars().count(), 1 + 254 / 3);
    }
}
