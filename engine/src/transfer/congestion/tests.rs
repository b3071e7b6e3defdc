//! Requirements on every scheme.

use super::*;

#[test]
fn unknown_names_are_refused_and_the_known_ones_listed() {
    for scheme in Scheme::ALL {
        assert_eq!(scheme.name().parse(), Ok(scheme));
    }
    let error = "cubic".parse::<Scheme>().unwrap_err();
    assert!(error.contains("'cubic'") && error.contains("share, newreno, swift"), "{error}");
}

#[test]
fn a_window_never_closes_and_comes_back() {
    for scheme in Scheme::ALL {
        let mut window = scheme.window();
        let mut now = Instant::default();
        for number in 0..200 {
            now = now + Duration::from_ms(20);
            window.lost(now, number, number + 1);
            window.stalled(now, number + 1);
            assert!(window.window() >= 1024 && window.order_max() >= ORDER_MIN, "{scheme:?}");
        }
        let least = window.window();
        for _ in 0..400 {
            now = now + Duration::from_us(100);
            let in_flight = window.window();
            window.measured(now, Duration::from_us(100));
            (0..4).for_each(|_| window.acknowledged(now, in_flight / 4, in_flight, &|| None));
        }
        assert!(window.window() > 4 * least, "{scheme:?}: from {least} to {}", window.window());
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for scheme in Scheme::ALL {
        let mut window = scheme.window();
        let before = window.window();
        window.measured(Instant::default(), Duration::from_us(100));
        (0..100).for_each(|_| window.acknowledged(Instant::default(), 1000, 1000, &|| None));
        assert_eq!(window.window(), before, "{scheme:?}");
    }
}
