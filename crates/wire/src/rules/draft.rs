//! The Internet-Drafts that formats, code points and rules follow, each in one revision. If a later
//! revision changes a format or a rule, its entry here changes together with the code, and so do
//! the citations in every tool.

use core::fmt;

/// An Internet-Draft in the revision that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Name without the revision.
    pub name: &'static str,
    /// Two digits; `None` if the text that was available does not give a revision.
    pub revision: Option<&'static str>,
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.revision {
            Some(revision) => write!(f, "-{revision}"),
            None => Ok(()),
        }
    }
}

/// Defines each draft, and a macro of the same name in lower case that cites it:
/// `fast_cnp!("section 4")` is a string.
macro_rules! drafts {
    ($d:tt $( $(#[$doc:meta])* $constant:ident, $cite:ident = $name:literal $(, revision $revision:literal)?; )+) => {
        $(
            $(#[$doc])*
            pub const $constant: Draft = Draft {
                name: $name,
                revision: drafts!(@revision $($revision)?),
            };

            macro_rules! $cite {
                ($d where:literal) => { concat!($name, $("-", $revision,)? " ", $d where) };
            }
            pub(crate) use $cite;
        )+

        /// All drafts that are followed.
        pub const ALL: &[Draft] = &[$($constant),+];
    };
    (@revision) => { None };
    (@revision $revision:literal) => { Some($revision) };
}

drafts! { $
    /// Fast CNP.
    FAST_CNP, fast_cnp = "draft-xiao-rtgwg-rocev2-fast-cnp", revision "02";
    /// Congestion notification to the proxy node.
    PROXY_CN, proxy_cn = "draft-xiao-rtgwg-proxy-congestion-notification";
    /// Fast CNP in the WAN.
    WAN_FCN, wan_fcn = "draft-he-rtgwg-wan-fcn", revision "00";
    /// Next Hop Dependent Characteristics of BGP.
    BGP_NHC, bgp_nhc = "draft-ietf-idr-nhc";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    #[test]
    fn rules_cite_the_followed_draft_revisions() {
        for rule in Rule::ALL {
            let source = rule.info().section;
            let cited = source.split(", ").filter(|part| part.starts_with("draft-"));
            for part in cited {
                let known = ALL
                    .iter()
                    .any(|draft| part.starts_with(&format!("{draft} section")));
                assert!(known, "{rule}: {part}");
            }
        }
        assert!(
            Rule::FastCnpRate
                .info()
                .section
                .starts_with("draft-xiao-rtgwg-rocev2-fast-cnp-02 section 5")
        );
    }

    #[test]
    fn drafts_page_lists_every_draft() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/drafts.md");
        let page = std::fs::read_to_string(page).unwrap();
        for draft in ALL {
            assert!(page.contains(&format!("| {draft} |")), "{draft}");
        }
    }
}
