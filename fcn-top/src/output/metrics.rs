//! Names and descriptions of the metrics.

/// Labels that distinguish the series of rows.
const ROW: &[&str] = JUDGED_ROW.split_at(JUDGED_ROW.len() - 1).0;

/// Same, with the verdict.
const JUDGED_ROW: &[&str] = &[
    "sender",
    "destination",
    "qp",
    "qp_side",
    "receiver",
    "flow_label",
    "kind",
    "interface",
    "verdict",
];

/// Labels that distinguish the series of flows.
const FLOW: &[&str] = &["sender", "receiver", "receiver_qp"];

/// Same, with the kind of NAK.
const FLOW_NAK: &[&str] = &["sender", "receiver", "receiver_qp", "kind"];

fcn_tool::families! {
    BUILD = "fcn_top_build_info", Gauge, &["version"], "Version of fcn-top; always 1";
    CLOCK = "fcn_top_clock_timestamp_seconds", Gauge, &[], "The moment of this page by the packets' clock";
    PACKETS = "fcn_top_packets_total", Counter, &[], "Packets captured";
    OCTETS = "fcn_top_octets_total", Counter, &[], "Octets of the captured packets, on the wire";
    NOTIFICATIONS = "fcn_top_notifications_total", Counter, &["kind"], "Congestion notifications";
    SAMPLES = "fcn_top_samples_total", Counter, &[], "Packets that are samples; metrics other than those of QPs count each as one";
    STAMPS_BACK = "fcn_top_stamps_back_total", Counter, &[], "Packets with a time stamp before that of the previous packet, as if clocks differ";
    DATA = "fcn_top_data_packets_total", Counter, &[], "RoCEv2 data packets";
    CE = "fcn_top_data_ce_packets_total", Counter, &[], "RoCEv2 data packets marked CE";
    UNREADABLE = "fcn_top_unreadable_packets_total", Counter, &["reason"], "Packets that could not be decoded: captured too short, or undecodable";
    UNREAD = "fcn_top_unread_packets_total", Counter, &["reason"], "Packets not read although they may be RoCE or carry it: to RoCEv2's port but not proven to be RoCEv2, encapsulations that are not opened, fragments";
    ROCE_V1 = "fcn_top_roce_v1_packets_total", Counter, &[], "RoCE v1 packets";
    GLOBAL_PAUSES = "fcn_top_global_pauses_total", Counter, &[], "PAUSE frames (IEEE 802.3x), which stop all traffic classes";
    CNMS = "fcn_top_cnms_total", Counter, &[], "Congestion notification messages of bridges (IEEE 802.1Qau)";
    TRIMMED = "fcn_top_trimmed_packets_total", Counter, &[], "RoCEv2 packets that a switch has trimmed";
    ICRC = "fcn_top_icrc_bad_total", Counter, &[], "Notifications with a wrong ICRC";
    FINDINGS = "fcn_top_findings_total", Counter, &["rule", "severity"], "Times that a rule was broken";
    KEPT = "fcn_top_kept", Gauge, &["table"], "Entries kept: QP rows, data flows, notifiers";
    EVICTED = "fcn_top_evicted_total", Counter, &["table"], "Entries evicted for others, the least recently seen first";
    INTERFACE_UP = "fcn_top_interface_up", Gauge, &["interface"], "1 if packets can come from the interface or file, else 0";
    INTERFACE_PACKETS = "fcn_top_interface_packets_total", Counter, &["interface"], "Packets received from an interface";
    INTERFACE_DROPPED = "fcn_top_interface_dropped_total", Counter, &["interface", "by"], "Packets dropped by the kernel or by the interface, as libpcap counts them";
    NIC_COUNTER = "fcn_top_infiniband_counter_total", Counter, &["device", "port", "interface", "counter", "quantity"], "Counter of a port of an RDMA device of this host, under the driver's name; the quantity, if known, is the same for all drivers";
    NIC_SEEN = "fcn_top_infiniband_seen_total", Counter, &["device", "port", "interface", "quantity"], "Packets captured on the port's interface of the kind that its NIC counts, since the first reading";
    NOTIFIER = "fcn_top_notifier_notifications_total", Counter, &["notifier"], "Congestion notifications by notifier: the most active, and all others as notifier=\"other\"";
    NOTIFIER_FLOWS = "fcn_top_notifier_flows", Gauge, &["notifier"], "QPs and flows that a notifier has notified, at least: those in rows";
    QP = "fcn_top_qp_notifications_total", Counter, ROW, "Congestion notifications of the most notified QPs";
    QP_RATE = "fcn_top_qp_notifications_per_second", Gauge, ROW, "Notifications per second in the last ten complete seconds";
    QP_GAP = "fcn_top_qp_gap_median_seconds", Gauge, ROW, "Median time between two notifications of the QP";
    QP_LAST = "fcn_top_qp_last_notification_timestamp_seconds", Gauge, ROW, "Last notification of the QP";
    QP_DATA = "fcn_top_qp_data_bytes_per_second", Gauge, ROW, "The flow's data rate in the last second";
    QP_CE = "fcn_top_qp_data_ce_ratio", Gauge, ROW, "Fraction of the flow's data packets that were marked CE";
    QP_CHANGE = "fcn_top_qp_data_change_ratio", Gauge, ROW, "Least reduction of data after notifications, compared with other times: -0.5 is half";
    QP_SAMPLED = "fcn_top_qp_sampled_one_in", Gauge, ROW, "Notifications per sample: the QP's count and rate are estimates; only if there are samples";
    QP_VERDICT = "fcn_top_qp_verdict_notifications", Gauge, JUDGED_ROW, "Notifications that the verdict about the QP rests on; the verdict is a label: obeys, does_not_obey, unclear";
    FLOW_DATA = "fcn_top_flow_data_bytes_per_second", Gauge, FLOW, "Data rate in the last second of the flows that stalled longest, and of those with the most data";
    FLOW_CE = "fcn_top_flow_data_ce_ratio", Gauge, FLOW, "Fraction of the flow's data packets that were marked CE";
    FLOW_RESENT = "fcn_top_flow_resent_packets", Gauge, FLOW, "Data packets of the flow that were retransmitted";
    FLOW_STALLED = "fcn_top_flow_stalled_seconds", Gauge, FLOW, "Sum of the flow's stalls of at least 100 µs before retransmissions";
    FLOW_EXHAUSTED = "fcn_top_flow_retries_exhausted", Gauge, FLOW, "1 if the flow's sender has probably exhausted its retries, else 0";
    FLOW_ROUND_TRIP = "fcn_top_flow_round_trip_seconds", Gauge, FLOW, "Shortest time from a data packet that asks for an acknowledgement (AckReq) to that, where the data is captured";
    FLOW_NAKS = "fcn_top_flow_naks", Gauge, FLOW_NAK, "NAKs of the flow's data: rnr_nak, nak_sequence, nak_invalid_request, nak_remote_access, nak_remote_operation";
    RECEIVER_MARKED = "fcn_top_receiver_marked_packets", Gauge, &["receiver"], "Data packets to the receiver that were marked CE, of the receivers with the most";
    RECEIVER_EXPECTED = "fcn_top_receiver_cnps_expected", Gauge, &["receiver"], "CNPs expected of the receiver for these";
    RECEIVER_CNPS = "fcn_top_receiver_cnps", Gauge, &["receiver"], "CNPs from the receiver";
    RECEIVER_SILENT = "fcn_top_receiver_silent", Gauge, &["receiver"], "1 if the receiver answers no mark although other packets from it were captured, else 0";
    PAUSED = "fcn_top_paused_seconds", Gauge, &["interface", "mac", "class"], "Time for which the sender of PFC or PAUSE paused a class, or all, of those that paused longest";
    PAUSE_STORM = "fcn_top_pause_storm", Gauge, &["interface", "mac", "class"], "1 if one of these pauses lasted 200 ms or longer, else 0";
}
