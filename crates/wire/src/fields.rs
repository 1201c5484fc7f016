//! Tables of fields: of each its name, type and place, from which follow accessors of a view, the representation, and how
//! that is read and written. MADs are described so; a format with few fields needs no table.

use crate::error::{Error, Result};
use crate::layer::Layer;
use std::net::Ipv6Addr;

/// Where a field stands: octets from the start of what it is in, bits to skip there, bits of it. One field is in pieces.
pub(crate) type Place = (usize, u32, u32);

/// What a field can hold.
pub(crate) trait Value: Sized {
    /// The value at `places`; zeros where the octets end before.
    fn read(data: &[u8], places: &[Place]) -> Self;

    /// Writes the value over zeros; an error is at the octet where the field `name` begins.
    fn write(&self, data: &mut [u8], name: &'static str, places: &[Place]) -> Result<()>;
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
    fn read(data: &[u8], places: &[Place]) -> Self {
        T::from_bits(places.iter().fold(0, |value, &(at, skip, width)| {
            let end = at + (skip + width).div_ceil(8) as usize;
            let octets = data.get(at..end).unwrap_or_default();
            let whole = octets.iter().fold(0, |v, o| v << 8 | u128::from(*o));
            let behind = (octets.len() as u32 * 8).saturating_sub(skip + width);
            value.unbounded_shl(width) | whole >> behind & u128::MAX.unbounded_shr(128 - width)
        }))
    }

    fn write(&self, data: &mut [u8], name: &'static str, places: &[Place]) -> Result<()> {
        let mut value = self.bits();
        let width = places.iter().map(|(.., width)| width).sum();
        if value.unbounded_shr(width) != 0 {
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
            let value = value as u64;
            return Err(Error::value(Layer::RdmaCm, at, name, value, expected));
        }
        for &(at, skip, width) in places.iter().rev() {
            let octets = (skip + width).div_ceil(8);
            let piece = value << (octets * 8 - skip - width);
            for (octet, place) in (0..octets).rev().zip(data.iter_mut().skip(at)) {
                *place |= (piece >> (octet * 8)) as u8;
            }
            value = value.unbounded_shr(width);
        }
        Ok(())
    }
}

/// Values with the places of their fields, by which they are read and written.
macro_rules! values {
    ($(#[$about:meta])* $repr:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $name:literal, $places:expr;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $repr {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl $repr {
            fn read_from(data: &[u8]) -> Self {
                Self {
                    $($field: Value::read(data, &$places),)+
                }
            }

            fn write_to(&self, data: &mut [u8]) -> Result<()> {
                $(self.$field.write(data, $name, &$places)?;)+
                Ok(())
            }
        }
    };
}

/// A view's accessors for the fields in the octets that its method `$octets` gives, and its values; `and` has values that are
/// no accessors.
macro_rules! described {
    ($view:ident by $octets:ident, $(#[$about:meta])* $repr:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $name:literal, $places:expr;)+
    } and { $($more:tt)* }) => {
        impl $view<'_> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $field(&self) -> $type {
                    Value::read(self.$octets(), &$places)
                }
            )+
        }

        values! {
            $(#[$about])*
            $repr {
                $($(#[$doc])* $field: $type = $name, $places;)+
                $($more)*
            }
        }
    };
}

pub(crate) use {bits, described, values};
