//! Evidence for which QP at the sender belongs to a flow.

use fcn_wire::identified;

identified! {
    /// Evidence for the QP at the sender.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Resolved {
        /// The notification names it.
        Packet = "packet",
        /// The RDMA CM exchange that set the connection up.
        Cm = "cm",
        /// The UDP source port, which Linux drivers compute from the numbers of both QPs.
        Port = "port",
        /// Acknowledgements in the reverse direction match the PSNs of this flow's data, and of no
        /// other flow's.
        Acks = "acks",
        /// Weaker: in the capture, the two hosts send to one QP each.
        Only = "only",
    }
}
