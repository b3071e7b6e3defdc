//! Estimates of costs from observed times, for decisions of the engine, its drivers and the progress.
//!
//! **The model.** An observed time is a base cost plus noise that is never negative: the scheduler takes the
//! core, a receiver polls late, a queue is full. The base cost changes with the hardware and its use, and in
//! phases in which the whole host is slower. So it is estimated by a low quantile of the last observations:
//! single slow ones do not raise it, and it follows a change within one window. A mean is not used for it,
//! since beside other processes one observation may be a thousand times as long as the others.
//!
//! - [`low`]: the base cost of an action that is observed each time, in constant memory (the windowed minimum
//!   of BBR, Cardwell 2017, with two halves instead of a sorted window).
//! - [`span`]: the median of the last half second and how sure it is: the load of a rail.
//! - [`window`]: quantiles of the last few observations, for transfers of which few are observed: the
//!   corrected profile of a rail, one rail or several, the methods of shared memory.
//! - [`mean`]: waits, of which the mean and the deviation count: late receivers, round trips, queues, the
//!   gain of shared work.
//! - [`change`]: whether a quantity has changed, or is disturbed: the trust in a sampled profile.
//! - [`burst`]: whether a program waits or computes after it has submitted messages.
//!
//! **Constants.** These decide how much is remembered. Constants that recorded jobs can test are tested by
//! `nmad sim --golden decisions`. Each other constant names its own experiment.
//!
//! | constant | value | half, and twice |
//! |---|---|---|
//! | observations in half a window of [`low`] | 16 | there |
//! | `SPAN`, `MOST`, `LEAST` of a [`span`] | 0.5 s, 64, 8 | there |
//! | `SURE`; `LAST`, `CLEAR` of the load of a rail | 0.5; 24, 4 | `correction` |
//! | `DECAY_AFTER` of that load | 1 s | `correction` |
//! | `TOO_SLOW`, from where on a measured profile is | 2/3 | `correction` |
//! | `POOLED_NS`, `EXPLAINED` of a link in both directions | 40 ms, 4 | `transfer::link` |
//! | `KEPT` factors of one length; of sums of several transfers | 5; 15 | `recent` |
//! | `LIMIT`, `AGAINST` of a change | 15, 4 | [`change`] |
//! | messages of each choice: one rail or several; methods of `shm` | 5 | `together`; `selector` |
//! | weights of [`mean`] | 1/2, 1/4, 1/8 | there |
//! | weight of a burst | 1/1024 | its tests |

pub mod burst;
pub(crate) mod change;
pub(crate) mod low;
pub mod mean;
pub(crate) mod span;
pub mod window;
