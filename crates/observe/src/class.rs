//! The traffic class of a packet, by which switches choose a queue for it. Notifications in the
//! class of data are delayed if data of that class queues on their path, or is paused.

use crate::data::Ecn;
use fcn_wire::frame::Span;
use fcn_wire::{Frame, Layer, Rule, identified};

/// DSCP and ECN of the outermost IP header, and the classes in front of it: the priority of the
/// outermost VLAN tag, and the traffic class of the outermost MPLS label (RFC 5462).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    traffic_class: u8,
    /// VLAN priority (lower four bits) and MPLS traffic class (upper four bits), packed so that
    /// tables stay small.
    in_front: u8,
}

/// Four-bit value of `in_front` for an absent tag or label.
const NONE: u8 = 8;

impl Class {
    fn new(traffic_class: u8, priority: Option<u8>, label: Option<u8>) -> Self {
        Self {
            traffic_class,
            in_front: label.unwrap_or(NONE) << 4 | priority.unwrap_or(NONE),
        }
    }

    /// Returns the class of the packet in `frame`; in a [mirror](Frame::mirror), that of the
    /// mirrored packet.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>) -> Option<Self> {
        Some(Self::found(frame)?.0)
    }

    /// Returns the class of the packet in `frame`, with the span of the IP header that it was read
    /// from.
    #[must_use]
    pub fn found<'f>(frame: &'f Frame<'_>) -> Option<(Self, &'f Span)> {
        let (mut priority, mut label) = (None, None);
        for span in frame.inner_spans() {
            let octets = frame.bytes().get(span.start..)?;
            let traffic_class = match span.layer {
                Layer::Vlan => {
                    priority = priority.or(Some(octets.first()? >> 5));
                    continue;
                }
                Layer::Mpls => {
                    label = label.or(Some(octets.get(2)? >> 1 & 7));
                    continue;
                }
                Layer::Ipv4 => *octets.get(1)?,
                Layer::Ipv6 => octets.first()? << 4 | octets.get(1)? >> 4,
                _ => continue,
            };
            return Some((Self::new(traffic_class, priority, label), span));
        }
        None
    }

    /// Differentiated services code point (RFC 2474), 0 to 63.
    #[must_use]
    pub const fn dscp(self) -> u8 {
        self.traffic_class >> 2
    }

    /// The ECN field (RFC 3168).
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }

    /// Priority code point of the VLAN tag (IEEE 802.1Q), 0 to 7; `None` without one.
    #[must_use]
    pub fn priority(self) -> Option<u8> {
        Some(self.in_front & 0x0F).filter(|priority| *priority < NONE)
    }

    /// Traffic class of the MPLS label, 0 to 7; `None` without one.
    fn label(self) -> Option<u8> {
        Some(self.in_front >> 4).filter(|label| *label < NONE)
    }

    /// Returns true if switches put both packets into the same queue, going by DSCP (with MPLS, by
    /// the label's traffic class instead) or by VLAN priority. `None` if that depends on which of
    /// the two they go by: one agrees and the other does not, or only one packet has a tag or a
    /// label.
    #[must_use]
    pub fn is_queued_as(self, other: Self) -> Option<bool> {
        let same_class = match (self.label(), other.label()) {
            (None, None) => self.dscp() == other.dscp(),
            (Some(own), Some(others)) => own == others,
            _ => return None,
        };
        let same_priority = match (self.priority(), other.priority()) {
            (None, None) => same_class,
            (Some(own), Some(others)) => own == others,
            _ => !same_class,
        };
        (same_class == same_priority).then_some(same_class)
    }
}

identified! {
    /// Traffic class of the notifications about a flow, relative to that of its data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    ClassRelation {
        /// A class other than its data's.
        Apart = "apart",
        /// The class of its data.
        WithData = "with_data",
        /// Several classes.
        Several = "several",
    }
}

/// The classes of the notifications of one topic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Classes {
    last: Option<Class>,
    several: bool,
    with_data: bool,
}

impl Classes {
    /// Adds a notification of class `class`; `data` is the class of the last data packet of its
    /// flow, if known. Returns the rule broken, if that is found for the first time.
    pub fn add(&mut self, class: Class, data: Option<Class>) -> Option<Rule> {
        let is_as = |other: Option<Class>| other.and_then(|other| other.is_queued_as(class));
        let other = is_as(self.last) == Some(false);
        let with_data = is_as(data) == Some(true);
        let news = [
            (other && !self.several).then_some(Rule::ClassSeveral),
            (with_data && !self.with_data).then_some(Rule::ClassWithData),
        ];
        self.several |= other;
        self.with_data |= with_data;
        self.last = Some(class);
        news.into_iter().flatten().next()
    }

    /// Returns the class of the last notification.
    #[must_use]
    pub const fn last(&self) -> Option<Class> {
        self.last
    }

    /// Returns the class of the notifications relative to the data; `data` is the class of the
    /// flow's last data packet. `None` if the notifications have a single class and that of the
    /// data is unknown, or agrees in only one of DSCP and VLAN priority.
    #[must_use]
    pub fn class_relation(&self, data: Option<Class>) -> Option<ClassRelation> {
        if self.several {
            return Some(ClassRelation::Several);
        }
        // Data may have come only after the notifications.
        let with_data = self.last?.is_queued_as(data?);
        if self.with_data || with_data? {
            return Some(ClassRelation::WithData);
        }
        Some(ClassRelation::Apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{LinkType, Profile};

    fn class(dscp: u8, priority: Option<u8>) -> Class {
        Class::new(dscp << 2 | 2, priority, None)
    }

    #[test]
    fn the_class_is_read_behind_vlan_tags() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend([0x88, 0xA8, 0xA0, 7, 0x81, 0, 0x60, 9, 0x86, 0xDD]);
        frame.extend([0x6C, 0x20, 0, 0, 0, 0, 59, 64]);
        frame.extend([1; 32]);
        let class = |bytes: &[u8]| {
            let profile = Profile::DEFAULT;
            Class::from_frame(&Frame::parse(
                bytes,
                bytes.len(),
                LinkType::Ethernet,
                &profile,
            ))
        };
        let read = class(&frame).unwrap();
        assert_eq!(
            (read.dscp(), read.ecn(), read.priority()),
            (48, Ecn::Ect0, Some(5))
        );
        for len in 0..frame.len() {
            let _ = class(&frame[..len]);
        }
    }

    #[test]
    fn the_traffic_class_of_an_mpls_label_replaces_the_dscp() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47];
        // Two labels with TC 3 and 1.
        frame.extend([0, 1, 0x06, 64, 0, 1, 0x13, 64]);
        frame.extend([0x6C, 0x20, 0, 0, 0, 0, 59, 64]);
        frame.extend([1; 32]);
        let read = |bytes: &[u8]| {
            let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
            Class::from_frame(&frame).unwrap()
        };
        let own = read(&frame);
        assert_eq!((own.dscp(), own.label()), (48, Some(3)));
        // DSCP 26 with the same TC, and DSCP 48 with another.
        let mut data = frame.clone();
        data[22..24].copy_from_slice(&[0x66, 0xA0]);
        let data = read(&data);
        assert_eq!((data.dscp(), own.is_queued_as(data)), (26, Some(true)));
        frame[16] = 0x08;
        assert_eq!(own.is_queued_as(read(&frame)), Some(false));
        assert_eq!(own.is_queued_as(class(48, None)), None);
    }

    #[test]
    fn each_rule_is_reported_once() {
        let (data, own) = (class(26, None), class(48, None));
        let mut classes = Classes::default();
        assert_eq!(classes.add(own, None), None);
        assert_eq!(classes.class_relation(None), None);
        assert_eq!(classes.add(own, Some(data)), None);
        assert_eq!(
            classes.class_relation(Some(data)),
            Some(ClassRelation::Apart)
        );
        assert_eq!(classes.add(data, Some(data)), Some(Rule::ClassSeveral));
        assert_eq!(classes.add(own, Some(data)), None);
        assert_eq!(
            classes.class_relation(Some(data)),
            Some(ClassRelation::Several)
        );
        let mut classes = Classes::default();
        let tagged = class(26, Some(3));
        assert_eq!(classes.add(tagged, Some(data)), None, "by the tag");
        for (unclear, other) in [(data, "no tag"), (class(26, Some(4)), "priority")] {
            assert_eq!(classes.class_relation(Some(unclear)), None, "{other}");
        }
        assert_eq!(
            classes.class_relation(Some(class(48, Some(3)))),
            None,
            "DSCP"
        );
        let apart = classes.class_relation(Some(class(48, Some(4))));
        assert_eq!(apart, Some(ClassRelation::Apart));
        assert_eq!(
            classes.class_relation(Some(tagged)),
            Some(ClassRelation::WithData),
            "data came later"
        );
        let mut classes = Classes::default();
        assert_eq!(classes.add(data, Some(data)), Some(Rule::ClassWithData));
        assert_eq!(classes.add(data, Some(data)), None);
        assert_eq!(
            classes.class_relation(Some(data)),
            Some(ClassRelation::WithData)
        );
    }
}
