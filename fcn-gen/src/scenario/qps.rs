//! QPs that proxy nodes, provider edges and congestion points get by configuration: those of the
//! flows in a switch's `qps`.

use super::error::{Refusal, refuse};
use super::limits;
use super::model::{Flow, Node, NodeKind};
use super::schema::fits;
use super::topology::{Entry, Topology};
use fcn_node::FlowKey;
use fcn_wire::Qp;

/// Configures the roles of every node with the QPs that its entry names.
pub(super) fn configure(
    topology: &Topology<'_>,
    flows: &[Flow],
    nodes: &mut [Node],
) -> Result<(), Refusal> {
    let mut listed = 0;
    for (named, node) in topology.nodes.iter().zip(nodes) {
        let (Entry::Switch(keys), NodeKind::Switch(switch)) = (named.entry, &mut node.kind) else {
            continue;
        };
        let mut qps: Vec<(FlowKey, Qp)> = Vec::new();
        for (index, pattern) in keys.qps.iter().enumerate() {
            let path = || named.path(&format!("qps.{index}"));
            let before = qps.len();
            let found = flows.iter().filter(|flow| fits(pattern, &flow.name));
            qps.extend(found.map(|flow| (flow.key(), flow.sender_qp)));
            if qps.len() == before {
                refuse!(path(), "there is no flow `{pattern}`");
            }
            listed += qps.len() - before;
            limits::at_most(listed, limits::LISTED, "QPs in all lists together", path)?;
        }
        switch.congestion.qps.clone_from(&qps);
        if let Some(proxy) = &mut switch.proxy {
            proxy.config.qps.clone_from(&qps);
        }
        if let Some(edge) = &mut switch.edge {
            edge.config.qps = qps;
        }
    }
    Ok(())
}
