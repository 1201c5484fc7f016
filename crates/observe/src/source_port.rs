//! The UDP source port that Linux drivers choose for packets from one QP to another.

use fcn_wire::Qp;

/// Number of different results of [`udp_source_port`].
pub const SOURCE_PORTS: u32 = 1 << 14;

/// Returns the UDP source port of RoCEv2 packets between two QPs, in both directions, if neither
/// the application nor RDMA CM sets a flow label: 0xC000 to 0xFFFF.
///
/// Computed as by `rdma_calc_flow_label` and `rdma_flow_label_to_udp_sport` of Linux
/// (`include/rdma/ib_verbs.h`), which the drivers mlx5, irdma, hns, erdma and rxe call.
#[must_use]
pub const fn udp_source_port(one: Qp, other: Qp) -> u16 {
    let mut hash = one.get() as u64 * other.get() as u64;
    hash ^= hash >> 20;
    hash ^= hash >> 40;
    let label = hash as u32 & 0xF_FFFF;
    ((label & (SOURCE_PORTS - 1)) ^ (label >> 14)) as u16 | 0xC000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_of_known_connections() {
        for (one, other, port) in [
            // Of soft RoCE, from this project's captures.
            (0x11, 0x13, 0xC143),
            // Long numbers, as adapters assign them.
            (887, 11662, 55100),
            (4949, 12756, 51029),
            (2, 2, 0xC004),
            (0xFF_FFFF, 0xFF_FFFF, 0xFF21),
        ] {
            let port_of = udp_source_port(Qp::truncate(one), Qp::truncate(other));
            assert_eq!(port_of, port, "{one:#x} {other:#x}");
        }
    }

    proptest! {
        #[test]
        fn both_directions_have_the_same_port(one: u32, other: u32) {
            let (one, other) = (Qp::truncate(one), Qp::truncate(other));
            prop_assert_eq!(udp_source_port(one, other), udp_source_port(other, one));
            prop_assert!(udp_source_port(one, other) >= 0xC000);
        }
    }
}
