//! The orders of a link that the kernel has not taken yet.

use super::cut::len;
use nmad_engine::transfer::driver::Order;
use std::collections::VecDeque;

/// Orders, and how much of the first one was sent.
#[derive(Debug, Default)]
pub struct Queue {
    orders: VecDeque<Order>,
    begun: usize,
}

impl Queue {
    /// Adds an order.
    #[inline]
    pub fn push(&mut self, order: Order) {
        self.orders.push_back(order);
    }

    /// Returns whether everything was sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Returns the first order and the bytes of it that were sent.
    #[inline]
    pub fn first(&self) -> Option<(&Order, usize)> {
        Some((self.orders.front()?, self.begun))
    }

    /// Records that `bytes` more of the first order were sent; if that was all of it, it goes to `sent`.
    #[inline]
    pub fn left(&mut self, bytes: usize, sent: &mut Vec<Order>) {
        self.begun += bytes;
        if self.orders.front().is_some_and(|order| self.begun >= len(order)) {
            self.begun = 0;
            sent.extend(self.orders.pop_front());
        }
    }

    /// Restarts an order that was sent in part, after the length of parts has changed.
    pub fn restart(&mut self) {
        self.begun = 0;
    }

    /// Removes and returns the orders that were not sent.
    pub fn take_unsent(&mut self) -> Vec<Order> {
        self.begun = 0;
        self.orders.drain(..).collect()
    }
}
