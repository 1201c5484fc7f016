//! Values with stable names, as one list.

/// Enumerations whose values have names in JSON, filters and reports.
#[macro_export]
macro_rules! identified {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $id:literal,)+ }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: [Self; [$($id),+].len()] = [$(Self::$value),+];

            /// The name in JSON, filters and reports.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$value => $id,)+
                }
            }
        }
    };
}
