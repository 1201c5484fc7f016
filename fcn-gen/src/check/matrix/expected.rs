/// What is expected of each fault; at a merge that brings rules, the tests say which entries change.
const EXPECTED: &[Expected] = &[
    // The octets of messages.
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("icrc-wrong", &["rocev2.icrc.bad"], &[])
    },
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("icrc-swapped", &["rocev2.icrc.swapped"], &[])
    },
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("icrc-zero", &["rocev2.icrc.missing"], &[])
    },
    expect(
        "udp-checksum-wrong",
        &[
            "notification.udp_checksum",
            "proxycn.checksum.bad",
            "wanfcn.checksum.bad",
        ],
        &["sender"],
    ),
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("udp-length-wrong", &["fcn.packet.length"], &[])
    },
    expect("hop-limit-0", &["notification.hop_limit"], &["sender"]),
    expect("hop-limit-1", &["notification.hop_limit"], &["sender"]),
    expect("notification-ce", &["notification.ecn"], &[]),
    expect("pkey-0", &["notification.p_key"], &["sender"]),
    expect("bth-reserved", &["notification.bth_reserved"], &["sender"]),
    expect("bth-flags", &[], &[ANY]),
    expect("bth-fecn", &[], &[ANY]),
    expect("becn-clear", &["cnp.becn.clear"], &[]),
    expect("psn", &["cnp.psn.nonzero"], &[]),
    Expected {
        besides: &[
            ("switch", "fastcnp.not_a_cnp"),
            ("receiver-fast", "fastcnp.not_a_cnp"),
            ("proxy", "proxy.sent"),
            ("ingress-pe", "ingress.sent"),
        ],
        ..expect("opcode-0x80", &["rocev2.opcode.infiniband_cnp"], &[])
    },
    Expected {
        besides: &[("proxy", "proxy.sent"), ("ingress-pe", "ingress.sent")],
        ..expect("cnp-short", &["cnp.malformed"], &[])
    },
    expect("cnp-reserved", &["cnp.reserved.nonzero"], &[]),
    Expected {
        besides: &[("receiver", "cnp.limited")],
        ..expect("qp-zero", QP, &[])
    },
    expect("qp-wrong", QP, &[]),
    expect(
        "source-wrong",
        &["fastcnp.source.own", "fastcnp.source.receiver"],
        &[
            "switch-proxy",
            "switch-wan",
            "receiver",
            "proxy",
            "ingress-pe",
        ],
    ),
    Expected {
        besides: &[
            ("receiver", "cnp.dest_qp.sender"),
            ("receiver-fast", "fastcnp.original_destination.copied"),
        ],
        ..expect(
            "destination-wrong",
            &[
                "fastcnp.destination.copied",
                "proxycn.destination.proxy",
                "wanfcn.destination.ingress",
                "proxy.destination.sender",
                "ingress.destination.sender",
            ],
            &["receiver", "receiver-fast"],
        )
    },
    expect(
        "to-receiver",
        &[
            "fastcnp.destination.copied",
            "fastcnp.destination.is_receiver",
        ],
        &[],
    ),
    expect(
        "original-wrong",
        &["fastcnp.original_destination.copied"],
        &[],
    ),
    expect("mac-broadcast", &["notification.mac"], &["sender"]),
    expect("mac-multicast", &["notification.mac"], &["sender"]),
    expect("mac-source-zero", &["notification.mac"], &[ANY]),
    expect("tag-added", &[], &[ANY]),
    expect("fragment-header", HEADERS, &["sender"]),
    expect("routing-header", HEADERS, &["sender"]),
    expect("hop-by-hop", HEADERS, &["sender"]),
    expect("option-extra", HEADERS, &["sender"]),
    expect("trailer", &[], &[ANY]),
    expect("too-long", &["proxycn.length.excess"], &[]),
    Expected {
        besides: &[("switch-proxy", "proxycn.rate.exceeded")],
        ..expect("quote-short", &["proxycn.invoking.copied"], &[ANY])
    },
    // When and how often.
    expect("silent", SENT, &[]),
    expect("one-in", SHARE, &[]),
    Expected {
        besides: &[("ingress-pe", "ingress.reserved_ignored")],
        ..expect("one-in=20", SHARE, &["proxy", "ingress-pe"])
    },
    expect("stops-after", SHARE, &["switch-proxy"]),
    expect("late=1ms", LATE, &["proxy", "ingress-pe"]),
    expect("late=10ms", LATE, &[]),
    expect("late", LATE, &[]),
    expect("late=1s", LATE, &[]),
    expect(
        "bursts",
        &[
            "fastcnp.sent",
            "proxycn.sent",
            "wanfcn.sent",
            "cnp.sent",
            "proxy.sent",
            "ingress.sent",
            "congestion.latency",
            "cnp.latency",
            "fastcnp.rate.exceeded",
            "proxycn.rate.exceeded",
            "wanfcn.rate.exceeded",
            "cnp.limited",
            "proxy.limited",
            "ingress.limited",
        ],
        &[],
    ),
    expect(
        "twice",
        &[
            "fastcnp.rate.exceeded",
            "proxycn.rate.exceeded",
            "wanfcn.rate.exceeded",
            "cnp.limited",
            "proxy.limited",
            "ingress.limited",
            "congestion.once",
        ],
        &[],
    ),
    expect(
        "keeps-telling",
        &["congestion.once", "cnp.latency"],
        &["switch-proxy", "proxy", "ingress-pe"],
    ),
    expect("half-of-qps", SHARE, &[]),
    Expected {
        besides: &[
            ("switch", "fastcnp.rate.exceeded"),
            ("switch", "fastcnp.option.by_trace"),
            ("switch", "congestion.again"),
            ("switch", "congestion.once"),
            ("receiver", "cnp.limited"),
            ("receiver", "cnp.latency"),
        ],
        ..expect(
            "one-qp",
            &[
                "fastcnp.dest_qp.copied",
                "cnp.dest_qp.sender",
                "proxy.dest_qp.sender",
                "ingress.dest_qp.sender",
                "congestion.share",
                "cnp.each_flow",
            ],
            &["ingress-pe"],
        )
    },
    expect(
        "wrong-link",
        &["fastcnp.destination.copied"],
        &["switch-proxy", "switch-wan", "proxy", "ingress-pe"],
    ),
    Expected {
        devices: &["switch"],
        ..expect(
            "empty-queue",
            &["congestion.queue", "congestion.share", "congestion.again"],
            &[],
        )
    },
    Expected {
        devices: &["switch"],
        ..expect("about-acks", &["congestion.data_alone"], &[])
    },
    Expected {
        devices: &["switch"],
        ..expect("about-cnps", &["congestion.data_alone"], &[])
    },
    Expected {
        devices: &["switch"],
        besides: &[("switch", "fastcnp.dest_qp.copied")],
        ..expect("about-others", &["congestion.data_alone"], &[ANY])
    },
    Expected {
        devices: &["switch"],
        besides: &[
            ("switch", "congestion.again"),
            ("switch", "congestion.once"),
        ],
        ..expect("about-all-data", &["congestion.queue"], &[])
    },
    expect("no-rate-limit", LIMITED, &[]),
    expect(
        "on-by-default",
        &[
            "fastcnp.off_by_default",
            "proxycn.off_by_default",
            "wanfcn.off_by_default",
        ],
        &[],
    ),
    expect(
        "believes-anybody",
        &[
            "fastcnp.access_list",
            "proxy.access_list",
            "ingress.access_list",
        ],
        &[],
    ),
    // What a switch forwards.
    expect("loss", &["forwarded.all"], &["switch-proxy", "switch-wan"]),
    expect("reorder", &["forwarded.order"], &["proxy", "ingress-pe"]),
    Expected {
        besides: &[
            ("switch", "congestion.again"),
            ("proxy", "forwarded.all"),
            ("ingress-pe", "forwarded.all"),
        ],
        ..expect("delay", &[], &[ANY])
    },
    expect("duplicate", &["forwarded.once"], &[]),
    expect(
        "corrupt",
        &["rocev2.icrc.bad"],
        &["switch-proxy", "switch-wan", "proxy", "ingress-pe"],
    ),
    expect("ecn-erased", &["forwarded.ecn", "ingress.ecn.copied"], &[]),
    expect(
        "marks-all",
        &["fastcnp.ce.also_marked"],
        &["switch-proxy", "switch-wan", "proxy", "ingress-pe"],
    ),
    Expected {
        devices: &["switch", "switch-ioam"],
        ..expect("marks-notified", &["fastcnp.ce.also_marked"], &[])
    },
    Expected {
        devices: &["switch", "switch-ioam"],
        ..expect("node-data-ones", &[], &[ANY])
    },
    Expected {
        devices: &["border"],
        ..expect("no-border", &["fastcnp.border.crossed"], &[])
    },
    Expected {
        devices: &["switch", "switch-ioam"],
        ..expect("option-1-always", &["fastcnp.option.by_trace"], &[])
    },
    expect("one-label", &["ingress.labels"], &[]),
    expect("minds-reserved", &["ingress.reserved_ignored"], &[]),
    // Receivers.
    expect("without-marks", &["cnp.for_marks_alone"], &[]),
    // Senders.
    expect("ignores", OBEYED, &[]),
    expect("ignores-fast-cnp", OBEYED, &[]),
    expect("ignores-option-2", OBEYED, &[]),
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("reacts-late=2ms", OBEYED, &[ANY])
    },
    expect("reacts-late", OBEYED, &[]),
    Expected {
        besides: &[("sender", "reaction.recovers")],
        ..expect("barely-slows", OBEYED, &[ANY])
    },
    expect("never-recovers", &["reaction.recovers"], &[]),
    expect(
        "slows-all",
        &["fastcnp.obeyed.that_qp_alone", "cnp.obeyed.that_qp_alone"],
        &[],
    ),
    expect("qp-alone", &["fastcnp.obeyed.by_both"], &[]),
];

/// Says nothing.
const SENT: &[&str] = &[
    "fastcnp.sent",
    "proxycn.sent",
    "wanfcn.sent",
    "cnp.sent",
    "proxy.sent",
    "ingress.sent",
];
/// Says too much.
const LIMITED: &[&str] = &[
    "fastcnp.rate.exceeded",
    "proxycn.rate.exceeded",
    "wanfcn.rate.exceeded",
    "cnp.limited",
    "proxy.limited",
    "ingress.limited",
];
/// Names another QP.
const QP: &[&str] = &[
    "fastcnp.dest_qp.copied",
    "cnp.dest_qp.sender",
    "proxy.dest_qp.sender",
    "ingress.dest_qp.sender",
];
/// Does not slow down.
const OBEYED: &[&str] = &["fastcnp.obeyed", "fastcnp.obeyed.option2", "cnp.obeyed"];
/// Says too little.
const SHARE: &[&str] = &[
    "fastcnp.sent",
    "proxycn.sent",
    "wanfcn.sent",
    "cnp.sent",
    "proxy.sent",
    "ingress.sent",
    "congestion.share",
    "congestion.again",
    "cnp.share",
    "cnp.each_flow",
];
/// Late, or so late that the step is over.
const LATE: &[&str] = &[
    "fastcnp.sent",
    "proxycn.sent",
    "wanfcn.sent",
    "cnp.sent",
    "proxy.sent",
    "ingress.sent",
    "congestion.latency",
    "cnp.latency",
];
/// Other headers; they also make the longest notifications longer than is allowed.
const HEADERS: &[&str] = &["notification.headers", "proxycn.length.excess"];
