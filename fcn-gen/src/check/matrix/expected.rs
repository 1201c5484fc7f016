/// What is expected of each fault; at a merge that brings rules, the tests say which entries change.
const EXPECTED: &[Expected] = &[
    // The octets of messages.
    expect("icrc-wrong", &["rocev2.icrc.bad"], &[]),
    expect("icrc-swapped", &["rocev2.icrc.swapped"], &[]),
    expect("icrc-zero", &["rocev2.icrc.missing"], &[]),
    Expected {
        besides: &[
            ("switch-proxy", "proxycn.sent"),
            ("switch-wan", "wanfcn.sent"),
        ],
        ..expect(
            "udp-checksum-wrong",
            &["proxycn.checksum.bad", "wanfcn.checksum.bad"],
            &[
                "switch",
                "receiver",
                "receiver-fast",
                "sender",
                "proxy",
                "ingress-pe",
            ],
        )
    },
    expect("udp-length-wrong", &["fcn.packet.length"], &[]),
    expect("hop-limit-0", &[], &[ANY]),
    expect("hop-limit-1", &[], &[ANY]),
    expect("notification-ce", &[], &[ANY]),
    expect("pkey-0", &[], &[ANY]),
    expect("bth-reserved", &[], &[ANY]),
    expect("bth-flags", &[], &[ANY]),
    expect("bth-fecn", &[], &[ANY]),
    expect("becn-clear", &["cnp.becn.clear"], &[]),
    expect("psn", &["cnp.psn.nonzero"], &[]),
    Expected {
        besides: &[
            ("switch", "fastcnp.not_a_cnp"),
            ("receiver-fast", "fastcnp.not_a_cnp"),
            ("receiver", "cnp.sent"),
            ("proxy", "proxy.sent"),
            ("ingress-pe", "ingress.sent"),
        ],
        ..expect("opcode-0x80", &["rocev2.opcode.infiniband_cnp"], &[])
    },
    Expected {
        besides: &[
            ("receiver", "cnp.sent"),
            ("proxy", "proxy.sent"),
            ("ingress-pe", "ingress.sent"),
        ],
        ..expect("cnp-short", &["cnp.malformed"], &[])
    },
    expect("cnp-reserved", &["cnp.reserved.nonzero"], &[]),
    Expected {
        besides: &[
            ("switch", "fastcnp.rate.exceeded"),
            ("receiver", "cnp.limited"),
        ],
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
    expect("mac-broadcast", &[], &[ANY]),
    expect("mac-multicast", &[], &[ANY]),
    expect("tag-added", &[], &[ANY]),
    expect("mac-source-zero", &[], &[ANY]),
    expect("fragment-header", &[], &[ANY]),
    expect("routing-header", &[], &[ANY]),
    expect("hop-by-hop", &[], &[ANY]),
    expect("option-extra", &[], &[ANY]),
    expect("trailer", &[], &[ANY]),
    Expected {
        besides: &[("switch-proxy", "proxycn.sent")],
        ..expect("too-long", &["proxycn.length.excess"], &[])
    },
    Expected {
        besides: &[("switch-proxy", "proxycn.rate.exceeded")],
        ..expect("quote-short", &["proxycn.invoking.copied"], &[ANY])
    },
    // When and how often.
    expect("silent", SENT, &[]),
    expect("one-in", SENT, &[]),
    Expected {
        besides: &[("ingress-pe", "ingress.reserved_ignored")],
        ..expect("one-in=20", SENT, &[ANY])
    },
    expect("late=1ms", SENT, &[ANY]),
    expect("late=10ms", SENT, &["switch"]),
    expect("late", SENT, &["switch"]),
    expect("late=1s", SENT, &["switch"]),
    expect("bursts", BURSTS, &["switch-wan"]),
    expect("stops-after", &[], &[ANY]),
    expect("twice", LIMITED, &["switch-proxy", "switch-wan"]),
    expect("keeps-telling", &[], &[ANY]),
    expect(
        "half-of-qps",
        SENT,
        &["switch", "receiver", "receiver-fast", "ingress-pe"],
    ),
    Expected {
        besides: &[
            ("switch", "fastcnp.rate.exceeded"),
            ("switch", "fastcnp.option.by_trace"),
            ("receiver", "cnp.limited"),
        ],
        ..expect("one-qp", QP, &["switch", "receiver", "ingress-pe"])
    },
    expect(
        "wrong-link",
        &["fastcnp.destination.copied", "wanfcn.sent", "ingress.sent"],
        &["switch-proxy", "proxy"],
    ),
    Expected {
        devices: &["switch"],
        ..expect("empty-queue", &[], &[ANY])
    },
    Expected {
        devices: &["switch"],
        ..expect("about-acks", &[], &[ANY])
    },
    Expected {
        devices: &["switch"],
        ..expect("about-cnps", &[], &[ANY])
    },
    Expected {
        devices: &["switch"],
        ..expect("about-others", &[], &[ANY])
    },
    Expected {
        devices: &["switch"],
        ..expect("about-all-data", &[], &[ANY])
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
    expect("loss", &[], &[ANY]),
    expect("reorder", &[], &[ANY]),
    expect("delay", &[], &[ANY]),
    expect("duplicate", &[], &[ANY]),
    expect(
        "corrupt",
        &["rocev2.icrc.bad"],
        &["switch-proxy", "switch-wan", "proxy", "ingress-pe"],
    ),
    expect(
        "ecn-erased",
        &["ingress.ecn.copied"],
        &["switch", "switch-proxy", "switch-wan", "proxy"],
    ),
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
    expect("reacts-late=2ms", OBEYED, &[ANY]),
    expect("reacts-late", OBEYED, &[]),
    expect("barely-slows", OBEYED, &[ANY]),
    expect("never-recovers", &[], &[ANY]),
    expect(
        "slows-all",
        &["fastcnp.obeyed.that_qp_alone", "cnp.obeyed.that_qp_alone"],
        &[],
    ),
    expect("qp-alone", &["fastcnp.obeyed.by_both"], &[]),
];

const SENT: &[&str] = &[
    "fastcnp.sent",
    "proxycn.sent",
    "wanfcn.sent",
    "cnp.sent",
    "proxy.sent",
    "ingress.sent",
];
const LIMITED: &[&str] = &[
    "fastcnp.rate.exceeded",
    "proxycn.rate.exceeded",
    "wanfcn.rate.exceeded",
    "cnp.limited",
    "proxy.limited",
    "ingress.limited",
];
const QP: &[&str] = &[
    "fastcnp.dest_qp.copied",
    "cnp.dest_qp.sender",
    "proxy.dest_qp.sender",
    "ingress.dest_qp.sender",
];
const OBEYED: &[&str] = &["fastcnp.obeyed", "fastcnp.obeyed.option2", "cnp.obeyed"];
/// Late in part, and then too many at once.
const BURSTS: &[&str] = &[
    "fastcnp.rate.exceeded",
    "proxycn.sent",
    "cnp.sent",
    "proxy.limited",
    "ingress.sent",
];
