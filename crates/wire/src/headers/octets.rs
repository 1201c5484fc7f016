//! Reading and writing big-endian fields without panics. Formats are defined elsewhere.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the `N` octets at offset `at`, or zeros if the slice is too short. Views check lengths
/// on construction, so zeros appear only if a caller skipped that check.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
        Some(found) => *found,
        None => [0; N],
    }
}

#[inline]
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn u24_at(bytes: &[u8], at: usize) -> u32 {
    let [a, b, c] = array(bytes, at);
    u32::from_be_bytes([0, a, b, c])
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

#[inline]
pub(crate) fn ipv4_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(array::<4>(bytes, at))
}

#[inline]
pub(crate) fn ipv6_at(bytes: &[u8], at: usize) -> Ipv6Addr {
    Ipv6Addr::from(array::<16>(bytes, at))
}

/// Copies `value` to offset `at`. Emitters check the buffer's length once, before the first field.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        place.copy_from_slice(value);
    }
}

/// Writes the low 24 bits of `value` at offset `at`.
#[inline]
pub(crate) fn put_u24(bytes: &mut [u8], at: usize, value: u32) {
    let [_, a, b, c] = value.to_be_bytes();
    put(bytes, at, &[a, b, c]);
}
