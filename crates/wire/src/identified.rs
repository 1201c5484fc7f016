//! Enumerations with stable names, defined as one list.

/// Defines an enumeration whose values have names for JSON, filters and reports.
#[macro_export]
macro_rules! identified {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $id:literal,)+ }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// All values.
            pub const ALL: [Self; [$($id),+].len()] = [$(Self::$value),+];

            /// Returns the name used in JSON, filters and reports.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$value => $id,)+
                }
            }
        }
    };
}
