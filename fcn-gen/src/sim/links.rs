//! What connects the nodes of a world: the scenario's cables, or the real links of one node.

use super::World;
use super::connection::Peer;
use super::event::Event;
use super::packet::Packet;
use crate::scenario::model::Flow;
use crate::units::Ps;
use fcn_wire::Frame;
use fcn_wire::rdma_cm::Cm;

/// The links of a world. Methods with a default concern peers outside of the scenario, which only
/// real links have.
pub trait Links: Sized {
    /// True if the node's peers are real: not all of them are in the scenario, and processing takes
    /// its own time.
    const REAL: bool;

    /// Carries a packet sent by `port`, to arrive at the other end at `arrival`.
    fn carry(world: &mut World<'_, Self>, port: u32, arrival: Ps, packet: Packet);

    /// Forwards a switch's packet whose destination is not in the scenario.
    fn forward_unknown(world: &mut World<'_, Self>, _node: u32, packet: Packet) {
        world.lose(&packet);
    }

    /// Returns arrival time and ingress port of the packet being processed.
    fn cause(&self) -> Option<(Ps, u32)> {
        None
    }

    /// Records that the connection of a flow that begins here is open.
    fn connection_opened(&mut self, _now: Ps, _flow: &Flow, _peer: &Peer) {}

    /// Answers connection management of a connection that is not in the scenario.
    fn answer_management(
        _world: &mut World<'_, Self>,
        _node: u32,
        _frame: &Frame<'_>,
        _message: (u64, &Cm<'_>),
    ) {
    }
}

/// The scenario's cables between all nodes, in virtual time.
pub struct Cables;

impl Links for Cables {
    const REAL: bool = false;

    fn carry(world: &mut World<'_, Self>, port: u32, arrival: Ps, packet: Packet) {
        if let Some(at) = world.ports[port as usize].put_on_link(arrival, packet) {
            world.events.plan(at, Event::Arrive(port));
        }
    }
}
