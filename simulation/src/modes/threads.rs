//! Executes many runs on several threads, each run on one thread.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::modes::report::Report;

/// Calls `act` with every number below `count` on this many threads, and returns the sum of the reports.
pub fn parallel(count: u64, threads: u32, act: impl Fn(u64, &mut Report) + Sync) -> Report {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut report = Report::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    act(number, &mut report);
                }
                sum.lock().merge(report);
            });
        }
    });
    sum.into_inner()
}
