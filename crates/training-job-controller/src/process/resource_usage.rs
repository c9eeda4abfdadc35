//! The CPU, memory and files of the process, from `/proc` of Linux. The names are those of all Prometheus clients.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Clock ticks in a second. Linux reports times to programs in this unit on all architectures that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the values at each scrape. Values that cannot be read are left out, as on other systems than Linux.
#[derive(Debug)]
pub(super) struct ResourceUsage;

impl Collector for ResourceUsage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = read("/proc/self/stat");
        let mut put = |name: &str, help: &str, metric: Option<&dyn EncodeDyn>| match metric {
            Some(metric) => metric.encode_as(name, help, &mut encoder),
            None => Ok(()),
        };
        let cpu = stat.as_deref().and_then(cpu_seconds).map(ConstCounter::new);
        put(
            "process_cpu_seconds", // process_cpu_seconds_total
            "CPU time of the process, user and system, in seconds.",
            cpu.as_ref().map(|cpu| cpu as &dyn EncodeDyn),
        )?;
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Resident memory of the process, in bytes.",
                read("/proc/self/status").as_deref().and_then(resident_bytes),
            ),
            (
                "process_open_fds",
                "Number of open file descriptors.",
                fs::read_dir("/proc/self/fd")
                    .ok()
                    .map(|files| as_f64(files.count())),
            ),
            (
                "process_max_fds",
                "Maximum number of open file descriptors.",
                read("/proc/self/limits").as_deref().and_then(max_files),
            ),
            (
                "process_start_time_seconds",
                "Start time of the process, in seconds since the Unix epoch.",
                stat.as_deref()
                    .and_then(|stat| start_time(stat, &read("/proc/stat")?)),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = value.map(ConstGauge::new);
            put(name, help, gauge.as_ref().map(|gauge| gauge as &dyn EncodeDyn))?;
        }
        Ok(())
    }
}

/// A metric that can be encoded under a name.
trait EncodeDyn {
    fn encode_as(&self, name: &str, help: &str, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result;
}

impl<M: EncodeMetric> EncodeDyn for M {
    fn encode_as(&self, name: &str, help: &str, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = encoder.encode_descriptor(name, help, None, self.metric_type())?;
        self.encode(encoder)
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// Returns a field of `/proc/self/stat` by its number in proc(5). The name of the program, field 2, may contain spaces.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields
        .split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((stat_field(stat, 14)? + stat_field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_time(stat: &str, system: &str) -> Option<f64> {
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(boot.trim().parse::<f64>().ok()? + stat_field(stat, 22)? / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

/// Returns the soft limit of open files, if there is one.
fn max_files(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_proc_are_read() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 1000000 500 184467";
        let system = "cpu  1 2 3\nbtime 1700000000\nprocesses 5\n";
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files    1024     524288    files\n";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(start_time(stat, system), Some(1_700_000_123.45));
        assert_eq!(
            resident_bytes("Name: x\nVmRSS:\t    2048 kB\n"),
            Some(2_097_152.0)
        );
        assert_eq!(max_files(limits), Some(1024.0));
        assert_eq!(cpu_seconds("7 (a"), None);
        assert_eq!(resident_bytes("VmRSS: many"), None);
    }
}
