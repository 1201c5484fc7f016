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
        /// Acknowledgements that go the other way fit the data's PSNs, and no other flow's.
        Acks = "acks",
        /// Weaker: the two hosts send to one QP each, as far as is captured.
        Only = "only",
    }
}
