//! Access lists of prefixes: sources that may send notifications to a node.
//!
//! draft-xiao-rtgwg-rocev2-fast-cnp section 5: senders MUST be able to check the source of a Fast
//! CNP against an access list.

use fcn_wire::pnc::Prefix;
use std::net::IpAddr;

/// Returns true if `source` is in one of the prefixes of `list`.
#[must_use]
pub fn list_contains(list: &[Prefix], source: IpAddr) -> bool {
    list.iter().any(|prefix| prefix.contains(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_contains_no_host() {
        let switch = IpAddr::from([0x2001; 8]);
        let list = [
            Prefix::new(IpAddr::from([10, 0, 0, 0]), 8),
            Prefix::new(switch, 64),
        ]
        .map(Option::unwrap);
        assert!(!list_contains(&[], switch));
        assert!(list_contains(&list, switch) && list_contains(&list, IpAddr::from([10, 1, 2, 3])));
        assert!(!list_contains(&list, IpAddr::from([11, 1, 2, 3])));
    }
}
