//! Responses of the API server, at each of the operator's calls.

mod answers;
mod conflicts;
mod deletes;
mod denials;
mod losses;
