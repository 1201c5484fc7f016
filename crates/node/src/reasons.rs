//! Why a role did nothing: each reason with its counter, described once.

/// An enumeration of reasons, and counters: those given in braces, then one for each reason.
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

        $(#[$about_counters])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$what])* pub $other: u64,)*
            $(
                #[doc = concat!("See [`", stringify!($name), "::", stringify!($reason), "`].")]
                pub $counter: u64,
            )+
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

pub(crate) use reasons;
