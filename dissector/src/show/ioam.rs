//! The IOAM trace inside Fast CNP option 2: header, trace type bit by bit, every node's data fields.

use crate::names::F;
use crate::plan::{Mark, Op, Plan, at};
use fcn_wire::ioam::{Node, TRACE_HEADER_LEN, Trace, Value};

/// Plans the trace that begins at `base`.
pub fn trace(plan: &mut Plan<'_>, base: usize, trace: &Trace<'_>) {
    let whole = trace.bytes().len();
    plan.push(Op::Open(F::Trace, at(base, whole)));
    let nodes = trace.nodes().filter(Result::is_ok).count();
    plan.label(format_args!(
        "IOAM trace, namespace {}, {nodes} node{}",
        trace.namespace_id(),
        if nodes == 1 { "" } else { "s" }
    ));
    plan.uint(F::TraceNamespace, at(base, 2), trace.namespace_id());

    let flags = u32::from(trace.flags()) << 7;
    let lengths = (trace.node_len() as u32) << 11 | flags | trace.remaining_len() as u32;
    let word = at(base + 2, 2);
    plan.uint(F::TraceNodeLen, word, lengths);
    plan.push(Op::OpenUint(F::TraceFlags, word, lengths));
    for flag in [
        F::TraceOverflow,
        F::TraceLoopback,
        F::TraceActive,
        F::TraceFlagUndefined,
    ] {
        plan.flag(flag, word, lengths);
    }
    plan.push(Op::Close);
    plan.uint(F::TraceRemainingLen, word, lengths);

    let kinds = at(base + 4, 3);
    let bits = trace.trace_type().bits();
    plan.push(Op::OpenUint(F::TraceType, kinds, bits));
    let (defined, rest) = F::TRACE_BITS.split_at(12);
    for bit in defined {
        plan.flag(*bit, kinds, bits);
    }
    plan.uint(F::TraceUndefined, kinds, bits);
    for bit in rest {
        plan.flag(*bit, kinds, bits);
    }
    plan.push(Op::Close);
    plan.uint(F::TraceReserved, at(base + 7, 1), trace.reserved());

    if let Ok(free) = trace.free_len()
        && free > 0
    {
        plan.push(Op::Bytes(
            F::TraceFree,
            at(base + TRACE_HEADER_LEN, free.min(whole - TRACE_HEADER_LEN)),
        ));
    }
    let mut read = TRACE_HEADER_LEN + trace.free_len().unwrap_or(0);
    for (i, found) in trace.nodes().map_while(Result::ok).enumerate() {
        node(plan, base, i, &found);
        read = found.offset + found.bytes.len();
    }
    if read < whole {
        plan.push(Op::Bytes(F::TraceUnread, at(base + read, whole - read)));
    }
    plan.push(Op::Close);
}

fn node(plan: &mut Plan<'_>, base: usize, index: usize, node: &Node<'_>) {
    plan.push(Op::Open(F::Node, at(base + node.offset, node.bytes.len())));
    let place = match index {
        0 => " (the last node passed)",
        _ => "",
    };
    match (node.node_id(), node.queue_depth()) {
        (Some(id), Some(depth)) => {
            plan.label(format_args!("Node {id:#x}{place}, queue depth {depth}"));
        }
        (Some(id), None) => plan.label(format_args!("Node {id:#x}{place}")),
        (None, Some(depth)) => plan.label(format_args!("Node data{place}, queue depth {depth}")),
        (None, None) => plan.label(format_args!("Node data{place}")),
    }
    for field in node.fields() {
        let start = base + field.offset;
        let all = at(start, field.len);
        match field.value {
            Value::HopLimitNodeId { hop_limit, node_id } => {
                plan.uint(F::NodeHopLimit, at(start, 1), hop_limit);
                plan.uint(F::NodeId, at(start + 1, 3), node_id);
            }
            Value::Interfaces { ingress, egress } => {
                plan.uint(F::NodeIngress, at(start, 2), ingress);
                plan.uint(F::NodeEgress, at(start + 2, 2), egress);
            }
            Value::TimestampSeconds(value) => plan.uint(F::NodeSeconds, all, value),
            Value::TimestampFraction(value) => plan.uint(F::NodeFraction, all, value),
            Value::TransitDelay(value) => plan.uint(F::NodeDelay, all, value),
            Value::NamespaceData(value) => plan.uint(F::NodeData, all, value),
            Value::QueueDepth(value) => plan.uint(F::NodeQueue, all, value),
            Value::ChecksumComplement(value) => plan.uint(F::NodeComplement, all, value),
            Value::HopLimitNodeIdWide { hop_limit, node_id } => {
                plan.uint(F::NodeHopLimit, at(start, 1), hop_limit);
                plan.push(Op::Uint64(
                    F::NodeIdWide,
                    at(start + 1, 7),
                    node_id,
                    Mark::Plain,
                ));
            }
            Value::InterfacesWide { ingress, egress } => {
                plan.uint(F::NodeIngressWide, at(start, 4), ingress);
                plan.uint(F::NodeEgressWide, at(start + 4, 4), egress);
            }
            Value::NamespaceDataWide(value) => {
                plan.push(Op::Uint64(F::NodeDataWide, all, value, Mark::Plain));
            }
            Value::BufferOccupancy(value) => plan.uint(F::NodeBuffer, all, value),
            Value::Undefined(value) => {
                plan.push(Op::Uint(F::NodeUndefined, all, value, Mark::Plain));
                plan.append(format_args!(" (bit {})", field.bit));
            }
            Value::Opaque { schema_id, data } => {
                plan.push(Op::Open(F::NodeOpaque, all));
                plan.uint(F::NodeOpaqueLength, at(start, 1), (data.len() / 4) as u32);
                plan.uint(F::NodeOpaqueSchema, at(start + 1, 3), schema_id);
                if !data.is_empty() {
                    plan.push(Op::Bytes(F::NodeOpaqueData, at(start + 4, data.len())));
                }
                plan.push(Op::Close);
            }
        }
    }
    plan.push(Op::Close);
}
