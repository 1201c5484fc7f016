//! Rewrites the MAC addresses of simulated frames for a link, and checks that frames fit the link.

/// Octets of the two MAC addresses and the EtherType.
const HEADER: usize = 14;
/// Octets of a VLAN tag.
const TAG: usize = 4;
/// EtherTypes of VLAN tags: IEEE 802.1Q and 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88A8];

/// New MAC addresses for frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// New source address, if it changes.
    pub source: Option<[u8; 6]>,
    /// New destination address, if it changes; group addresses are kept.
    pub destination: Option<[u8; 6]>,
}

impl Rewrite {
    /// Rewrites `frame`.
    pub fn apply(&self, frame: &mut [u8]) {
        let Some((destination, rest)) = frame.split_first_chunk_mut::<6>() else {
            return;
        };
        if let Some(new) = self.destination
            && destination[0] & 1 == 0
        {
            *destination = new;
        }
        if let (Some(new), Some(source)) = (self.source, rest.first_chunk_mut::<6>()) {
            *source = new;
        }
    }
}

/// Properties of a link that decide how frames are rewritten and which ones it can carry.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// New addresses of the frames.
    pub rewrite: Rewrite,
    /// MTU of the link; `None` for a capture file.
    pub mtu: Option<usize>,
    /// Length of the longest frame that fits the link's slots, in octets.
    pub longest: usize,
}

impl Link {
    /// Returns true if the link can carry `frame`.
    pub fn takes(&self, frame: &[u8]) -> bool {
        frame.len() <= self.longest && self.mtu.is_none_or(|mtu| fits(frame, mtu))
    }
}

/// Returns true if `frame` fits an MTU of `mtu` octets, which does not include Ethernet header and
/// VLAN tags.
fn fits(frame: &[u8], mtu: usize) -> bool {
    let is_tag = |at: &usize| {
        let kind = frame.get(*at..).and_then(|rest| rest.first_chunk());
        kind.is_some_and(|kind| TAGS.contains(&u16::from_be_bytes(*kind)))
    };
    let types = (HEADER - 2..).step_by(TAG).take(2);
    let header = HEADER + TAG * types.take_while(is_tag).count();
    (HEADER..=header + mtu).contains(&frame.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_addresses_are_kept() {
        let rewrite = Rewrite {
            source: Some([2; 6]),
            destination: Some([4; 6]),
        };
        let mut frame = [0; 14];
        rewrite.apply(&mut frame);
        assert_eq!(frame[..12], [4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2]);
        let mut pause = [1; 14];
        rewrite.apply(&mut pause);
        assert_eq!(pause[..12], [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        rewrite.apply(&mut []);
        let mut same = [7; 14];
        Rewrite::default().apply(&mut same);
        assert_eq!(same, [7; 14]);
    }

    #[test]
    fn mtu_excludes_headers_and_tags() {
        let mut frame = vec![0; 14 + 1500];
        assert!(fits(&frame, 1500) && !fits(&frame, 1499));
        frame.extend([0; 4]);
        assert!(!fits(&frame, 1500));
        frame[12..14].copy_from_slice(&[0x81, 0]);
        assert!(fits(&frame, 1500));
        frame[16..18].copy_from_slice(&[0x88, 0xA8]);
        assert!(fits(&frame, 1496) && !fits(&frame, 1495));
        assert!(!fits(&[0; 13], 1500) && fits(&[0; 14], 0));
    }
}
