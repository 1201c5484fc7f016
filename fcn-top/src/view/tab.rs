//! The views by name, as they stand in the line of tabs.

/// What the screen shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// What each QP is told.
    #[default]
    Qps,
    /// Who tells: congestion points, and receivers that send CNPs.
    Points,
    /// One row of the QPs, over time.
    Flow,
    /// IOAM paths, hop by hop.
    Paths,
    /// Events and findings.
    Events,
    /// Where packets come from, and what was lost.
    Interfaces,
    /// What this host's NICs count, and their queue pairs.
    Nics,
}

impl Tab {
    /// Every view, in the order of the tabs and of the keys 1 to 7.
    pub const ALL: [Self; 7] = [
        Self::Qps,
        Self::Points,
        Self::Flow,
        Self::Paths,
        Self::Events,
        Self::Interfaces,
        Self::Nics,
    ];

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

    /// Its name in options and file names.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Qps => "qps",
            Self::Points => "points",
            Self::Flow => "flow",
            Self::Paths => "paths",
            Self::Events => "events",
            Self::Interfaces => "interfaces",
            Self::Nics => "nics",
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
