//! Meanings of drivers' counters. The same name may be a different quantity in another driver, so a
//! counter of an unknown driver has no meaning here.

macro_rules! quantities {
    ($($variant:ident = $id:literal, $about:literal;)+) => {
        /// The quantity that a counter counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Quantity { $( #[doc = $about] $variant, )+ }

        impl Quantity {
            /// All quantities, the most informative first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns its identifier.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)+ }
            }

            /// Returns its description.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }
        }
    };
}

quantities! {
    CnpReceived = "cnp_received", "CNPs that the NIC received, whether it slowed down for them or not";
    CnpHandled = "cnp_handled", "CNPs that the NIC received and handled as a reaction point";
    CnpIgnored = "cnp_ignored", "CNPs that the NIC received and ignored";
    CnpSent = "cnp_sent", "CNPs that the NIC sent as a notification point";
    EcnMarked = "ecn_marked", "RoCE packets marked CE that the NIC received";
    OutOfSequence = "out_of_sequence", "Packets that the NIC received out of sequence";
    SequenceNaks = "sequence_naks", "NAKs for PSN sequence errors that the NIC received";
    ImpliedNaks = "implied_naks", "Responses received out of sequence, which imply a NAK";
    Timeouts = "timeouts", "Acknowledgement timeouts after which the NIC retransmitted";
    Retries = "retries", "Times that the NIC began to retransmit, for any reason";
    AdaptiveRetransmissions = "adaptive_retransmissions", "Adaptive retransmissions";
    AdaptiveTimeouts = "adaptive_timeouts", "Timeouts within adaptive retransmission";
    RetriesExceeded = "retries_exceeded", "Times that the NIC gave up retransmitting";
    SlowRestarts = "slow_restarts", "Slow restarts";
    SlowRestartCnps = "slow_restart_cnps", "CNPs that slow restart generated";
    RnrNaks = "rnr_naks", "RNR NAKs that the NIC received: the other side had no receive buffer";
    Duplicates = "duplicates", "Duplicate requests that the NIC received";
    NoBuffer = "no_buffer", "Packets dropped for lack of a receive buffer";
    IcrcErrors = "icrc_errors", "RoCE packets received with a wrong ICRC";
    PacketsSent = "packets_sent", "RoCE packets sent";
    PacketsReceived = "packets_received", "RoCE packets received";
}
use Quantity as Q;

/// Kernel drivers that RDMA devices are bound to, and the RDMA drivers that provide the counters.
const DRIVERS: &[(&str, &str)] = &[
    ("mlx5_core", "mlx5"),
    ("bnxt_en", "bnxt_re"),
    ("ice", "irdma"),
    ("i40e", "irdma"),
    ("idpf", "irdma"),
];

/// A quantity, and its names in a driver.
type Names = (Quantity, &'static [&'static str]);

/// By RDMA driver, with the names in its Linux sources: drivers/infiniband/hw/mlx5/counters.c
/// (including the optional `cc_` ones), hw/bnxt_re/hw_counters.c, hw/irdma/verbs.c,
/// sw/rxe/rxe_hw_counters.c. hw/ionic takes its names from the NIC's firmware; these are the ones
/// that AMD's tools read (amdsmi, node-scraper), spelling included. Broadcom has also given bnxt_re
/// the names of mlx5, where `rp_cnp_handled` is any CNP received.
const KNOWN: &[(&str, &[Names])] = &[
    (
        "mlx5",
        &[
            (Q::CnpReceived, &["cc_rx_cnp_pkts"]),
            (Q::CnpHandled, &["rp_cnp_handled"]),
            (Q::CnpIgnored, &["rp_cnp_ignored"]),
            (Q::CnpSent, &["np_cnp_sent", "cc_tx_cnp_pkts"]),
            (
                Q::EcnMarked,
                &["np_ecn_marked_roce_packets", "cc_rx_ce_pkts"],
            ),
            (Q::OutOfSequence, &["out_of_sequence"]),
            (Q::SequenceNaks, &["packet_seq_err"]),
            (Q::ImpliedNaks, &["implied_nak_seq_err"]),
            (Q::Timeouts, &["local_ack_timeout_err"]),
            (Q::AdaptiveRetransmissions, &["roce_adp_retrans"]),
            (Q::AdaptiveTimeouts, &["roce_adp_retrans_to"]),
            (Q::RetriesExceeded, &["req_transport_retries_exceeded"]),
            (Q::SlowRestarts, &["roce_slow_restart"]),
            (Q::SlowRestartCnps, &["roce_slow_restart_cnps"]),
            (Q::RnrNaks, &["rnr_nak_retry_err"]),
            (Q::Duplicates, &["duplicate_request"]),
            (Q::NoBuffer, &["out_of_buffer"]),
            (Q::IcrcErrors, &["rx_icrc_encapsulated"]),
        ],
    ),
    (
        "bnxt_re",
        &[
            (Q::CnpReceived, &["rx_cnp_pkts", "rp_cnp_handled"]),
            (Q::CnpSent, &["tx_cnp_pkts", "np_cnp_pkts"]),
            (
                Q::EcnMarked,
                &["rx_ecn_marked_pkts", "np_ecn_marked_roce_packets"],
            ),
            (Q::OutOfSequence, &["oos_drop_count", "out_of_sequence"]),
            (Q::SequenceNaks, &["seq_err_naks_rcvd", "packet_seq_err"]),
            (Q::ImpliedNaks, &["missing_resp", "implied_nak_seq_err"]),
            (Q::Timeouts, &["to_retransmits", "local_ack_timeout_err"]),
            (Q::RetriesExceeded, &["max_retry_exceeded"]),
            (Q::RnrNaks, &["rnr_naks_rcvd", "rnr_nak_retry_err"]),
            (Q::Duplicates, &["dup_req", "duplicate_request"]),
            (Q::NoBuffer, &["rx_out_of_buffer", "out_of_buffer"]),
        ],
    ),
    (
        "irdma",
        &[
            (Q::CnpHandled, &["cnpHandled"]),
            (Q::CnpIgnored, &["cnpIgnored"]),
            (Q::CnpSent, &["cnpSent"]),
            (Q::EcnMarked, &["RxECNMrkd"]),
            (Q::OutOfSequence, &["Rcvd Out of order packets"]),
            (Q::Timeouts, &["RTO"]),
            (Q::RnrNaks, &["RNR received"]),
            (Q::IcrcErrors, &["CRC errors"]),
        ],
    ),
    (
        "ionic",
        &[
            (Q::CnpReceived, &["rx_rdma_cnp_pkts"]),
            (Q::CnpSent, &["tx_rdma_cnp_pkts"]),
            (Q::EcnMarked, &["rx_rdma_ecn_pkts"]),
            (Q::OutOfSequence, &["resp_rx_outouf_seq"]),
            (Q::SequenceNaks, &["req_rx_pkt_seq_err"]),
            (Q::ImpliedNaks, &["req_rx_impl_nak_seq_err"]),
            (Q::Timeouts, &["tx_rdma_ack_timeout"]),
            (Q::RetriesExceeded, &["req_tx_retry_excd_err"]),
            (Q::Duplicates, &["resp_rx_dup_request"]),
            (Q::NoBuffer, &["resp_rx_outof_buf"]),
            (Q::PacketsSent, &["tx_rdma_ucast_pkts"]),
            (Q::PacketsReceived, &["rx_rdma_ucast_pkts"]),
        ],
    ),
    // It neither marks packets nor sends or handles CNPs.
    (
        "rxe",
        &[
            (Q::OutOfSequence, &["out_of_seq_request"]),
            (Q::SequenceNaks, &["rcvd_seq_err"]),
            (Q::Retries, &["completer_retry_err"]),
            (Q::RetriesExceeded, &["retry_exceeded_err"]),
            (Q::RnrNaks, &["rcvd_rnr_err"]),
            (Q::Duplicates, &["duplicate_request"]),
            (Q::PacketsSent, &["sent_pkts"]),
            (Q::PacketsReceived, &["rcvd_pkts"]),
        ],
    ),
];

/// Returns the RDMA driver of a device bound to that kernel driver, if it has a different name.
pub fn rdma_driver(kernel: &str) -> &str {
    let known = DRIVERS.iter().find(|(other, _)| *other == kernel);
    known.map_or(kernel, |(_, driver)| driver)
}

/// Returns the quantity that a counter of that RDMA driver counts, if known.
pub fn quantity(driver: Option<&str>, counter: &str) -> Option<Quantity> {
    let (_, known) = KNOWN.iter().find(|(other, _)| Some(*other) == driver)?;
    // Drivers have used both spaces and underscores in names.
    let is_it = |name: &&str| {
        let same = |(a, b): (u8, u8)| a == b || (a, b) == (b' ', b'_');
        name.len() == counter.len() && name.bytes().zip(counter.bytes()).all(same)
    };
    let found = known.iter().find(|(_, names)| names.iter().any(is_it));
    found.map(|(quantity, _)| *quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_meaning_of_their_driver() {
        for (kernel, counter, meant) in [
            ("mlx5_core", "rp_cnp_handled", Some(Q::CnpHandled)),
            ("bnxt_en", "rp_cnp_handled", Some(Q::CnpReceived)),
            ("bnxt_en", "rx_cnp_pkts", Some(Q::CnpReceived)),
            ("ice", "cnpIgnored", Some(Q::CnpIgnored)),
            ("idpf", "Rcvd_Out_of_order_packets", Some(Q::OutOfSequence)),
            ("ionic", "rx_rdma_cnp_pkts", Some(Q::CnpReceived)),
            ("ionic", "rx_cnp_pkts", None),
            ("rxe", "out_of_seq_request", Some(Q::OutOfSequence)),
            ("rxe", "rp_cnp_handled", None),
            ("mlx5_core", "lost_in_space", None),
            ("hns-roce", "rp_cnp_handled", None),
        ] {
            assert_eq!(
                quantity(Some(rdma_driver(kernel)), counter),
                meant,
                "{kernel} {counter}"
            );
        }
        assert_eq!(quantity(None, "rp_cnp_handled"), None);
    }

    #[test]
    fn names_are_unique_per_driver() {
        for (driver, known) in KNOWN {
            let mut names: Vec<_> = known.iter().flat_map(|(_, names)| *names).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{driver}");
        }
    }
}
