//! Lists and watches, and what is known from them.

mod broken;
mod late;
mod odd;
