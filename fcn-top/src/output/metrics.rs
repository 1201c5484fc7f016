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

fcn_tool::families! {
    BUILD = "fcn_top_build_info", Gauge, &["version"], "Version of fcn-top; always 1";
    CLOCK = "fcn_top_clock_timestamp_seconds", Gauge, &[], "The moment of this page by the packets' clock";
    PACKETS = "fcn_top_packets_total", Counter, &[], "Packets seen";
    OCTETS = "fcn_top_octets_total", Counter, &[], "Octets of the packets seen, on the wire";
    NOTIFICATIONS = "fcn_top_notifications_total", Counter, &["kind"], "Congestion notifications";
    SAMPLES = "fcn_top_samples_total", Counter, &[], "Packets that are samples; whatever is not of QPs counts each as one";
    STAMPS_BACK = "fcn_top_stamps_back_total", Counter, &[], "Packets stamped before the one that came before them, as where clocks are apart";
    DATA = "fcn_top_data_packets_total", Counter, &[], "RoCEv2 data packets";
    CE = "fcn_top_data_ce_packets_total", Counter, &[], "RoCEv2 data packets marked CE";
    UNREADABLE = "fcn_top_unreadable_packets_total", Counter, &["reason"], "Packets that could not be read: cut by the capture, or undecodable";
    ICRC = "fcn_top_icrc_bad_total", Counter, &[], "Notifications with a wrong ICRC";
    FINDINGS = "fcn_top_findings_total", Counter, &["rule", "severity"], "How often a rule was found broken";
    KEPT = "fcn_top_kept", Gauge, &["table"], "Entries kept: QP rows, data flows, notifiers";
    EVICTED = "fcn_top_evicted_total", Counter, &["table"], "Entries that had to go for others, the least recently seen first";
    INTERFACE_UP = "fcn_top_interface_up", Gauge, &["interface"], "1 where packets can come from the interface or file, else 0";
    INTERFACE_PACKETS = "fcn_top_interface_packets_total", Counter, &["interface"], "Packets that an interface gave us";
    INTERFACE_DROPPED = "fcn_top_interface_dropped_total", Counter, &["interface", "by"], "Packets dropped by the kernel or by the interface, as libpcap counts them";
    NIC_COUNTER = "fcn_top_infiniband_counter_total", Counter, &["device", "port", "interface", "counter", "quantity"], "What the driver of an RDMA device of this host counts at a port, under the driver's name; the quantity, where that is known, is the same in all drivers";
    NIC_SEEN = "fcn_top_infiniband_seen_total", Counter, &["device", "port", "interface", "quantity"], "What was seen on the port's interface of what its NIC counts, since it is watched";
    NOTIFIER = "fcn_top_notifier_notifications_total", Counter, &["notifier"], "Congestion notifications by who sent them: the most active, and all others as notifier=\"other\"";
    NOTIFIER_FLOWS = "fcn_top_notifier_flows", Gauge, &["notifier"], "QPs and flows that a notifier has told to slow down, at least: those that rows tell of";
    QP = "fcn_top_qp_notifications_total", Counter, ROW, "Congestion notifications of the QPs that are told most";
    QP_RATE = "fcn_top_qp_notifications_per_second", Gauge, ROW, "Notifications a second in the last ten seconds that are over";
    QP_GAP = "fcn_top_qp_gap_median_seconds", Gauge, ROW, "Median time between two notifications of the QP";
    QP_LAST = "fcn_top_qp_last_notification_timestamp_seconds", Gauge, ROW, "Last notification of the QP";
    QP_DATA = "fcn_top_qp_data_bytes_per_second", Gauge, ROW, "The flow's data rate in the last second";
    QP_CE = "fcn_top_qp_data_ce_ratio", Gauge, ROW, "Part of the flow's data packets that were marked CE";
    QP_CHANGE = "fcn_top_qp_data_change_ratio", Gauge, ROW, "How much less data there is at least after notifications than at other times: -0.5 is half";
    QP_SAMPLED = "fcn_top_qp_sampled_one_in", Gauge, ROW, "Of how many notifications one was sampled: the QP's count and rate are estimates; only where there are samples";
    QP_VERDICT = "fcn_top_qp_verdict_notifications", Gauge, JUDGED_ROW, "Notifications that the verdict about the QP rests on; the verdict is a label: obeys, does_not_obey, unclear";
}
