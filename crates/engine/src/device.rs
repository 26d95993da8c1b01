// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block device: `queue_depth` servers, which serve requests in order of arrival.

use schedlab_model::machine::Device;
use schedlab_model::program::IoDirection;
use schedlab_model::{Nanos, time::NSEC_PER_SEC};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The device's queue.
#[derive(Debug)]
pub struct DeviceQueue {
    device: Device,
    /// When each server becomes free.
    free_at: BinaryHeap<Reverse<Nanos>>,
}

impl DeviceQueue {
    /// An idle device.
    pub fn new(device: Device) -> Self {
        let servers = device.queue_depth.max(1) as usize;
        Self { device, free_at: std::iter::repeat_n(Reverse(0), servers).collect() }
    }

    /// Submits a request at `now`. Returns the time at which it is done.
    pub fn submit(&mut self, now: Nanos, direction: IoDirection, bytes: u64) -> Nanos {
        let latency = match direction {
            IoDirection::Read => self.device.read_latency_ns,
            IoDirection::Write => self.device.write_latency_ns,
        };
        let speed = u128::from(self.device.bytes_per_sec.max(1));
        let transfer = u128::from(bytes) * u128::from(NSEC_PER_SEC) / speed;
        let service = latency.saturating_add(Nanos::try_from(transfer).unwrap_or(Nanos::MAX));
        let Reverse(free) = self.free_at.pop().expect("a device has at least one server");
        let done = free.max(now).saturating_add(service);
        self.free_at.push(Reverse(done));
        debug_assert!(done >= now, "a request of {bytes} bytes is done before it comes");
        let servers = self.device.queue_depth.max(1) as usize;
        debug_assert_eq!(self.free_at.len(), servers, "servers of the device");
        done
    }

    /// CPU time (ns) to copy `bytes` between program and page cache.
    pub fn copy_ns(&self, bytes: u64) -> Nanos {
        let ns = u128::from(bytes) * u128::from(self.device.copy_kib_ns) / 1024;
        Nanos::try_from(ns).unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_depth_wait_for_a_server() {
        let device = Device {
            queue_depth: 2,
            read_latency_ns: 10,
            write_latency_ns: 30,
            bytes_per_sec: NSEC_PER_SEC,
            copy_kib_ns: 100,
        };
        let mut queue = DeviceQueue::new(device);
        assert_eq!(queue.submit(0, IoDirection::Read, 5), 15);
        assert_eq!(queue.submit(0, IoDirection::Write, 0), 30);
        assert_eq!(queue.submit(1, IoDirection::Read, 0), 25);
        assert_eq!(queue.submit(40, IoDirection::Read, 0), 50);
        assert_eq!(queue.copy_ns(2048), 200);
    }
}
