use super::*;

#[test]
fn seed() {
    let o = Options { soft_updates: true, maxphys: 128 << 10, ..Options::default() };
    let n = Newfs::new(188743680 * 512, 512, Some(4096), &o).unwrap();
    println!("{}", n.lines("/dev/ada1s1a", 204));
}
