//! Counters of a role, and reasons for refusals: each reason with its counter, documented once.

/// Defines counters with their names.
macro_rules! counters {
    (
        $(#[$about:meta])*
        pub struct Counters { $($(#[$what:meta])* pub $counter:ident: u64,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$what])* pub $counter: u64,)*
        }

        impl Counters {
            /// Returns the counters by name, in the order of declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter),)*].into_iter()
            }
        }
    };
}

/// Defines an enumeration of reasons, and counters: those given in braces, then one for each
/// reason.
macro_rules! reasons {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$why:meta])* $reason:ident = $counter:ident,)+ }
        $(#[$about_counters:meta])*
        { $($(#[$what:meta])* $other:ident,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$why])* $reason,)+
        }

        $crate::reasons::counters! {
            $(#[$about_counters])*
            pub struct Counters {
                $($(#[$what])* pub $other: u64,)*
                $(
                    #[doc = concat!("See [`", stringify!($name), "::", stringify!($reason), "`].")]
                    pub $counter: u64,
                )+
            }
        }

        impl Counters {
            fn count(&mut self, reason: $name) {
                *match reason {
                    $($name::$reason => &mut self.$counter,)+
                } += 1;
            }
        }
    };
}

pub(crate) use counters;
pub(crate) use reasons;
