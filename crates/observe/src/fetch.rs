//! Memory that is fetched before it is needed. What is worth it is the users' business.

use prefetch_index::prefetch_index;

/// Has the line of memory that `place` begins in fetched into the caches, and does not wait for it.
#[inline(always)]
pub fn fetch<T>(place: &T) {
    prefetch_index(core::slice::from_ref(place), 0);
}
