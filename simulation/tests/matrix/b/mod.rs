//! What the API server answers, at each of an operator's calls.

mod answers;
mod conflicts;
mod deletes;
mod denials;
mod losses;
