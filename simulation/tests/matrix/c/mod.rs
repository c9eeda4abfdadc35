//! Lists and watches, and the caches.

mod broken;
mod late;
mod odd;
