//! Tables of fields: of each its name, type and place, from which follow accessors of a view, the representation, and how
//! that is read and written. InfiniBand's headers are described so; a format with few fields needs no table.

use crate::error::{Error, Result};
use crate::layer::Layer;
use std::net::Ipv6Addr;

/// Where a field stands: octets from the start of what it is in, bits to skip there, bits of it. One field is in pieces.
pub(crate) type Place = (usize, u32, u32);

/// What a field can hold.
pub(crate) trait Value: Sized {
    /// The value at `places`; zeros where the octets end before.
    fn read(data: &[u8], places: &[Place]) -> Self;

    /// Writes the value over zeros; one that is wider than its field is cut.
    fn write(&self, data: &mut [u8], places: &[Place]);

    /// Whether the value fits; an error is at the octet where the field `name` begins.
    fn check(&self, name: &'static str, places: &[Place]) -> Result<()>;
}

/// Values with the places of their fields: what [`values`] makes.
pub(crate) trait Values: Sized {
    /// The values in `data`; zeros where the octets end before.
    fn read_from(data: &[u8]) -> Self;

    /// Writes the values over zeros; those wider than their field are cut.
    fn write_to(&self, data: &mut [u8]);

    /// Whether every value fits into its field.
    fn check_widths(&self) -> Result<()>;
}

/// A value of up to 128 bits.
pub(crate) trait Bits: Copy {
    fn from_bits(bits: u128) -> Self;
    fn bits(self) -> u128;
}

macro_rules! bits {
    ($($type:ty: $from:expr, $into:expr;)+) => {$(
        impl Bits for $type {
            fn from_bits(bits: u128) -> Self {
                $from(bits)
            }

            fn bits(self) -> u128 {
                $into(self)
            }
        }
    )+};
}

bits! {
    u8: |bits| bits as Self, u128::from;
    u16: |bits| bits as Self, u128::from;
    u32: |bits| bits as Self, u128::from;
    u64: |bits| bits as Self, u128::from;
    bool: |bits| bits != 0, u128::from;
    Ipv6Addr: Self::from_bits, Self::to_bits;
}

impl<T: Bits> Value for T {
    #[inline]
    fn read(data: &[u8], places: &[Place]) -> Self {
        T::from_bits(places.iter().fold(0, |value, &(at, skip, width)| {
            let end = at + (skip + width).div_ceil(8) as usize;
            let octets = data.get(at..end).unwrap_or_default();
            let whole = octets.iter().fold(0, |v, o| v << 8 | u128::from(*o));
            let behind = (octets.len() as u32 * 8).saturating_sub(skip + width);
            value.unbounded_shl(width) | whole >> behind & ones(width)
        }))
    }

    #[inline]
    fn write(&self, data: &mut [u8], places: &[Place]) {
        let mut value = self.bits();
        for &(at, skip, width) in places.iter().rev() {
            let octets = (skip + width).div_ceil(8);
            let piece = (value & ones(width)) << (octets * 8 - skip - width);
            for (octet, place) in (0..octets).rev().zip(data.iter_mut().skip(at)) {
                *place |= (piece >> (octet * 8)) as u8;
            }
            value = value.unbounded_shr(width);
        }
    }

    fn check(&self, name: &'static str, places: &[Place]) -> Result<()> {
        let width = places.iter().map(|(.., width)| width).sum();
        if self.bits().unbounded_shr(width) == 0 {
            return Ok(());
        }
        let expected = match width {
            1 => "1 bit",
            2 => "2 bits",
            3 => "3 bits",
            4 => "4 bits",
            5 => "5 bits",
            6 => "6 bits",
            7 => "7 bits",
            20 => "20 bits",
            _ => "24 bits",
        };
        let at = places.first().map_or(0, |(at, ..)| *at);
        let value = self.bits() as u64;
        Err(Error::value(Layer::RdmaCm, at, name, value, expected))
    }
}

const fn ones(width: u32) -> u128 {
    u128::MAX.unbounded_shr(128 - width)
}

/// Values with the places of their fields, by which they are read and written; where their length is given, on their own.
macro_rules! values {
    ($(#[$about:meta])* $repr:ident $([$len:expr])? {
        $($(#[$doc:meta])* $field:ident: $type:ty = $name:literal, $places:expr;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $repr {
            $($(#[$doc])* pub $field: $type,)+
        }

        $(impl $repr {
            /// How many octets it has.
            pub const LEN: usize = $len;

            /// Its octets; values wider than their field are cut to it.
            #[inline]
            #[must_use]
            pub fn to_bytes(self) -> [u8; $len] {
                let mut out = [0; $len];
                self.write_to(&mut out);
                out
            }
        })?

        /// Every value 0.
        impl Default for $repr {
            fn default() -> Self {
                Self::read_from(&[])
            }
        }

        impl Values for $repr {
            #[inline]
            fn read_from(data: &[u8]) -> Self {
                Self {
                    $($field: $crate::fields::Value::read(data, &$places),)+
                }
            }

            #[inline]
            fn write_to(&self, data: &mut [u8]) {
                $($crate::fields::Value::write(&self.$field, data, &$places);)+
            }

            fn check_widths(&self) -> Result<()> {
                $($crate::fields::Value::check(&self.$field, $name, &$places)?;)+
                Ok(())
            }
        }
    };
}

/// A view's accessors for the fields in the octets that its method `$octets` gives, and its values; `and` has values that are
/// no accessors.
macro_rules! described {
    ($view:ident by $octets:ident, $(#[$about:meta])* $repr:ident $([$len:expr])? {
        $($(#[$doc:meta])* $field:ident: $type:ty = $name:literal, $places:expr;)+
    } and { $($more:tt)* }) => {
        impl $view<'_> {
            $(
                $(#[$doc])*
                #[inline]
                #[must_use]
                pub fn $field(&self) -> $type {
                    $crate::fields::Value::read(self.$octets(), &$places)
                }
            )+
        }

        values! {
            $(#[$about])*
            $repr $([$len])? {
                $($(#[$doc])* $field: $type = $name, $places;)+
                $($more)*
            }
        }

        impl $repr {
            /// The values of what is viewed.
            #[must_use]
            pub fn parse(view: &$view<'_>) -> Self {
                Self::read_from(view.$octets())
            }
        }
    };
}

pub(crate) use {bits, described, values};
