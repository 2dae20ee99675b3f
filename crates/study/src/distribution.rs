//! Student's t distribution, for any positive number of degrees of freedom.

/// The probability that |t| exceeds `t`, with `degrees` of freedom.
pub(crate) fn student_tail(t: f64, degrees: f64) -> f64 {
    // Abramowitz and Stegun 26.5.27: the tail is an incomplete beta function.
    let x = degrees / (degrees + t * t);
    incomplete_beta(0.5 * degrees, 0.5, x)
}

/// The value that |t| exceeds with the probability `tail`, with `degrees` of freedom: a 95 % interval has a tail of
/// 0.05. Infinite if there is none, as with zero degrees of freedom.
pub(crate) fn student_quantile(tail: f64, degrees: f64) -> f64 {
    if !(tail > 0.0 && tail <= 1.0 && degrees > 0.0) {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while student_tail(high, degrees) > tail {
        low = high;
        high *= 2.0;
        if high > 1e150 {
            return f64::INFINITY;
        }
    }
    // Each step halves the bracket; forty give more precision than needed.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if student_tail(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function I_x(a, b).
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly only on this side of the mean of the distribution; the
    // other side follows from the symmetry I_x(a, b) = 1 - I_{1-x}(b, a).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    ln_front.exp() / (a * beta_fraction(a, b, x))
}

/// The continued fraction of DLMF 8.17.22, by the modified Lentz method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..=300 {
        let m = f64::from(step / 2);
        let term = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / nonzero(1.0 + term * d);
        c = nonzero(1.0 + term / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for a positive argument.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    // Stirling's series (DLMF 5.11.1) is accurate to 1e-15 beyond 15; the recurrence
    // gamma(x + 1) = x gamma(x) brings smaller arguments there.
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square)
        / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_of_whole_and_half_numbers() {
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-13);
        assert!(ln_gamma(1.0).abs() < 1e-13);
        assert!((ln_gamma(6.0) - 120f64.ln()).abs() < 1e-13);
    }

    #[test]
    fn student_tail_agrees_with_printed_tables() {
        // Two-sided 5 %, 1 % and 0.1 % points, NIST/SEMATECH e-Handbook, table 1.3.6.7.2.
        let table = [
            (12.706, 1.0, 0.05),
            (4.303, 2.0, 0.05),
            (2.228, 10.0, 0.05),
            (2.042, 30.0, 0.05),
            (1.984, 100.0, 0.05),
            (63.657, 1.0, 0.01),
            (3.169, 10.0, 0.01),
            (2.626, 100.0, 0.01),
            (4.587, 10.0, 0.001),
        ];
        for (t, degrees, tail) in table {
            let got = student_tail(t, degrees);
            assert!(
                (got / tail - 1.0).abs() < 2e-3,
                "t {t} with {degrees}: {got}"
            );
        }
    }

    #[test]
    fn the_quantile_inverts_the_tail() {
        for degrees in [0.5, 1.0, 2.0, 7.0, 40.0, 1e6] {
            for tail in [0.5, 0.05, 0.001, 1e-5] {
                let back = student_tail(student_quantile(tail, degrees), degrees);
                assert!((back / tail - 1.0).abs() < 1e-6, "{tail} with {degrees}");
            }
        }
        assert!((student_quantile(0.05, 10.0) - 2.228).abs() < 1e-3);
        for (tail, degrees) in [(0.0, 3.0), (-1.0, 3.0), (f64::NAN, 3.0), (0.05, 0.0)] {
            assert_eq!(student_quantile(tail, degrees), f64::INFINITY);
        }
    }

    #[test]
    fn student_tail_is_one_at_zero_and_falls() {
        assert!((student_tail(0.0, 7.0) - 1.0).abs() < 1e-12);
        let mut last = 1.0;
        for step in 1..200 {
            let tail = student_tail(f64::from(step) * 0.1, 7.0);
            assert!(tail < last && tail >= 0.0);
            last = tail;
        }
    }
}
