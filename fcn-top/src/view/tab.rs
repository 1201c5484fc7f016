//! The views by name, as they stand in the line of tabs.

fcn_wire::identified! {
    /// What the screen shows: the tabs in their order, which is that of the keys 1 to 7.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    Tab {
        /// What each QP is told.
        #[default]
        Qps = "qps",
        /// Who tells: congestion points, and receivers that send CNPs.
        Points = "points",
        /// One row of the QPs, over time.
        Flow = "flow",
        /// IOAM paths, hop by hop.
        Paths = "paths",
        /// Events and findings.
        Events = "events",
        /// Where packets come from, and what was lost.
        Interfaces = "interfaces",
        /// What this host's NICs count, and their queue pairs.
        Nics = "nics",
    }
}

impl Tab {
    /// Its name on the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Qps => "QPs",
            Self::Points => "Points",
            Self::Flow => "Flow",
            Self::Paths => "Paths",
            Self::Events => "Events",
            Self::Interfaces => "Interfaces",
            Self::Nics => "NICs",
        }
    }

    /// The view of that name.
    #[must_use]
    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.id() == id)
    }

    /// The view so many tabs further on, round and round.
    pub(super) fn step(self, back: bool) -> Self {
        let at = Self::ALL.iter().position(|&view| view == self).unwrap_or(0);
        let by = if back { Self::ALL.len() - 1 } else { 1 };
        Self::ALL.into_iter().cycle().nth(at + by).unwrap_or(self)
    }
}
