use super::*;

#[test]
fn a_summary() {
    let of = Summary::of(&[4.0, 1.0, 3.0, 2.0, 100.0]).expect("finite");
    assert_eq!((of.count, of.least, of.greatest, of.mean, of.median, of.mad), (5, 1.0, 100.0, 22.0, 3.0, 1.0));
    assert!((of.deviation - 43.617_656_975_128_774).abs() < 1e-12, "{}", of.deviation);
    assert_eq!(Summary::of(&[2.0]).expect("one").deviation, 0.0);
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
}
