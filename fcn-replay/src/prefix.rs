//! Address prefixes as people write them.

use fcn_wire::pnc::Prefix;
use std::net::IpAddr;

/// Reads `10.0.0.0/8`, `fd00::/16`, or an address alone. What stands behind the length is cleared.
///
/// # Errors
/// It is none.
pub fn read(text: &str) -> Result<Prefix, String> {
    let how = || format!("`{text}` is no prefix: write 10.0.0.0/8, fd00::/16, or one address");
    let Some((address, len)) = text.split_once('/') else {
        return Ok(Prefix::host(text.parse().map_err(|_| how())?));
    };
    let address: IpAddr = address.parse().map_err(|_| how())?;
    let len = len.parse().map_err(|_| how())?;
    Prefix::new(address, len).ok_or_else(how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read() {
        let prefix = read("10.0.0.7/24").unwrap();
        assert_eq!(
            (prefix.address(), prefix.bits()),
            ([10, 0, 0, 0].into(), 24)
        );
        assert!(read("fd00::1").unwrap().is_host());
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a/8",
            "10.0.0.0/",
            "::/-1",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
