//! The views by name, in the order of the tabs.

fcn_wire::identified! {
    /// Views of the screen, in the order of the tabs and of the keys 1 to 9.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    Tab {
        /// Notifications to each QP.
        #[default]
        Qps = "qps",
        /// Notifiers: congestion points, and receivers that send CNPs.
        Notifiers = "notifiers",
        /// One row of the QPs, over time.
        Flow = "flow",
        /// IOAM paths, hop by hop.
        Paths = "paths",
        /// Events and findings.
        Events = "events",
        /// Interfaces, and losses.
        Interfaces = "interfaces",
        /// Counters and queue pairs of this host's NICs.
        Nics = "nics",
        /// Flows of data, notified or not.
        Flows = "flows",
        /// Receivers of marked data, and how they answer.
        Receivers = "receivers",
    }
}

impl Tab {
    /// Returns the name on the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Qps => "QPs",
            Self::Notifiers => "Notifiers",
            Self::Flow => "Flow",
            Self::Paths => "Paths",
            Self::Events => "Events",
            Self::Interfaces => "Interfaces",
            Self::Nics => "NICs",
            Self::Flows => "Flows",
            Self::Receivers => "Receivers",
        }
    }

    /// Returns the view with that name.
    #[must_use]
    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.id() == id)
    }

    /// Returns the next or previous tab, cyclically.
    pub(super) fn step(self, back: bool) -> Self {
        let at = Self::ALL.iter().position(|&view| view == self).unwrap_or(0);
        let by = if back { Self::ALL.len() - 1 } else { 1 };
        Self::ALL.into_iter().cycle().nth(at + by).unwrap_or(self)
    }
}
