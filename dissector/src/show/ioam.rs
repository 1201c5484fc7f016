//! IOAM trace in Fast CNP option 2: header, trace type bit by bit, data fields of every node.

use crate::names::F;
use crate::plan::{Mark, Plan, range};
use fcn_wire::ioam::{Node, TRACE_HEADER_LEN, Trace, Value};

const FLAGS: [F; 4] = F::TraceOverflow.run();
const TYPE_BITS: [F; 15] = F::TraceBit0.run();

/// Plans the items for the trace that begins at `base`.
pub fn trace(plan: &mut Plan, base: usize, trace: &Trace<'_>) {
    let whole = trace.bytes().len();
    plan.open(F::Trace, range(base, whole), Mark::Plain);
    let nodes = trace.nodes().filter(Result::is_ok).count();
    plan.label(format_args!(
        "IOAM trace, namespace {}, {nodes} node{}",
        trace.namespace_id(),
        if nodes == 1 { "" } else { "s" }
    ));
    plan.add(F::TraceNamespace, range(base, 2), trace.namespace_id());

    let flags = u32::from(trace.flags()) << 7;
    let lengths = u32::from(trace.node_len()) << 11 | flags | u32::from(trace.remaining_len());
    let word = range(base + 2, 2);
    plan.add(F::TraceNodeLen, word, lengths);
    plan.open_word(F::TraceFlags, word, lengths, Mark::Plain);
    for flag in FLAGS {
        plan.add(flag, word, lengths);
    }
    plan.close();
    plan.add(F::TraceRemainingLen, word, lengths);

    let kinds = range(base + 4, 3);
    let bits = trace.trace_type().bits();
    plan.open_word(F::TraceType, kinds, bits, Mark::Plain);
    for bit in TYPE_BITS {
        plan.add(bit, kinds, bits);
    }
    plan.close();
    plan.add(F::TraceReserved, range(base + 7, 1), trace.reserved());

    if let Ok(free) = trace.free_len()
        && free > 0
    {
        let free = free.min(whole - TRACE_HEADER_LEN);
        plan.octets(F::TraceFree, range(base + TRACE_HEADER_LEN, free));
    }
    let mut read = TRACE_HEADER_LEN + trace.free_len().unwrap_or(0);
    for (i, found) in trace.nodes().map_while(Result::ok).enumerate() {
        node(plan, base, i, &found);
        read = found.offset + found.bytes.len();
    }
    if read < whole {
        plan.octets(F::TraceUnread, range(base + read, whole - read));
    }
    plan.close();
}

fn node(plan: &mut Plan, base: usize, index: usize, node: &Node<'_>) {
    plan.open(
        F::Node,
        range(base + node.offset, node.bytes.len()),
        Mark::Plain,
    );
    let place = match index {
        0 => " (the last node passed)",
        _ => "",
    };
    match node.node_id() {
        Some(id) => plan.label(format_args!("Node {id:#x}{place}")),
        None => plan.label(format_args!("Node data{place}")),
    }
    if let Some(depth) = node.queue_depth() {
        plan.append(format_args!(", queue depth {depth}"));
    }
    for field in node.fields() {
        let start = base + field.offset;
        let all = range(start, field.len);
        match field.value {
            Value::HopLimitNodeId { hop_limit, node_id } => {
                plan.add(F::NodeHopLimit, range(start, 1), hop_limit);
                plan.add(F::NodeId, range(start + 1, 3), node_id);
            }
            Value::Interfaces { ingress, egress } => {
                plan.add(F::NodeIngress, range(start, 2), ingress);
                plan.add(F::NodeEgress, range(start + 2, 2), egress);
            }
            Value::TimestampSeconds(value) => plan.add(F::NodeSeconds, all, value),
            Value::TimestampFraction(value) => plan.add(F::NodeFraction, all, value),
            Value::TransitDelay(value) => plan.add(F::NodeDelay, all, value),
            Value::NamespaceData(value) => plan.add(F::NodeData, all, value),
            Value::QueueDepth(value) => plan.add(F::NodeQueue, all, value),
            Value::ChecksumComplement(value) => plan.add(F::NodeComplement, all, value),
            Value::HopLimitNodeIdWide { hop_limit, node_id } => {
                plan.add(F::NodeHopLimit, range(start, 1), hop_limit);
                plan.add(F::NodeIdWide, range(start + 1, 7), node_id);
            }
            Value::InterfacesWide { ingress, egress } => {
                plan.add(F::NodeIngressWide, range(start, 4), ingress);
                plan.add(F::NodeEgressWide, range(start + 4, 4), egress);
            }
            Value::NamespaceDataWide(value) => {
                plan.add(F::NodeDataWide, all, value);
            }
            Value::BufferOccupancy(value) => plan.add(F::NodeBuffer, all, value),
            Value::Undefined(value) => {
                plan.add(F::NodeUndefined, all, value);
                plan.append(format_args!(" (bit {})", field.bit));
            }
            Value::Opaque { schema_id, data } => {
                plan.open(F::NodeOpaque, all, Mark::Plain);
                plan.add(
                    F::NodeOpaqueLength,
                    range(start, 1),
                    (data.len() / 4) as u32,
                );
                plan.add(F::NodeOpaqueSchema, range(start + 1, 3), schema_id);
                if !data.is_empty() {
                    plan.octets(F::NodeOpaqueData, range(start + 4, data.len()));
                }
                plan.close();
            }
        }
    }
    plan.close();
}
