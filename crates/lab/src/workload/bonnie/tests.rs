use super::line::{Head, csv, table};
use super::*;
use crate::files::directory::Directory;
use crate::os::linux_writeback::{self, LinuxWriteback};
use crate::workload::recorder::Recorder;

/// The line of the seed of 2013: ada1, aligned.
const SEED: &str = "1.96,1.96,floater.unixathome.org,1,1359208317,66000M,,532,99,113838,20,40954,36,1049,99,116269,19,132.0,5,16,,,,,31292,58,+++++,+++,+++++,+++,23477,46,+++++,+++,+++++,+++,16232us,755ms,15295ms,19001us,1624ms,4518ms,158ms,72us,38us,125ms,35us,37us";

/// A run of `ops` and `bytes` in `ns`, the longest of them `longest_ns`.
fn run_of(ops: u64, bytes: u64, ns: u64, longest_ns: u64) -> Option<Run> {
    Some(Run { ops, bytes, ns, longest_ns, ..Run::new() })
}

#[test]
fn the_line_of_the_seed() {
    const S: u64 = 1_000_000_000;
    let kb = |rate: u64, longest_us: u64| run_of(1, rate * 1024, S, longest_us * 1000);
    let files = |rate: u64, longest_us: u64| run_of(rate, 0, S, longest_us * 1000);
    let quick = |longest_us: u64| run_of(16384, 0, S / 4, longest_us * 1000);
    let phases: Phases = [
        kb(532, 16_232),
        kb(113_838, 755_000),
        kb(40_954, 15_295_000),
        kb(1049, 19_001),
        kb(116_269, 1_624_000),
        run_of(1320, 0, 10 * S, 4_518_000_000),
        files(31_292, 158_000),
        quick(72),
        quick(38),
        files(23_477, 125_000),
        quick(35),
        quick(37),
    ];
    let head = Head {
        machine: "floater.unixathome.org",
        time: 1_359_208_317,
        parameters: Parameters { size: 66000 << 20, kilo_files: 16 },
    };
    // Percentages of the processor are not measured.
    let without: Vec<&str> = SEED
        .split(',')
        .enumerate()
        .map(|(n, field)| if is_busy(n) && field != "+++" { "" } else { field })
        .collect();
    assert_eq!(csv(&head, &phases), without.join(","));
    let table = table(&head, &phases);
    assert!(table.lines().all(|line| line.len() <= 80));
    assert!(table.contains("\nfloater.unix 66000M   532     113838"), "{table}");
    assert!(
        table.contains(
            "\nLatency               16232us     755ms   15295ms   19001us    1624ms    4518ms\n"
        ),
        "{table}"
    );
    assert!(
        table.contains(
            "\n                 16 31292     +++++ +++ +++++ +++ 23477     +++++ +++ +++++ +++\n"
        ),
        "{table}"
    );
}

/// True if field `n` is a percentage of the processor.
fn is_busy(n: usize) -> bool {
    [8, 10, 12, 14, 16, 18, 25, 27, 29, 31, 33, 35].contains(&n)
}

#[test]
fn on_a_model_and_on_a_real_directory() {
    let parameters = Parameters { size: 1 << 20, kilo_files: 1 };
    let check = |files: &mut dyn Files| {
        let phases = run(files, &parameters, 1, &mut |_| true).unwrap();
        let ops: Vec<u64> = phases.iter().map(|phase| phase.as_ref().unwrap().ops).collect();
        assert_eq!(ops, [256, 128, 128, 256, 128, 8000, 1024, 1024, 1024, 1024, 1024, 1024]);
        assert_eq!(phases[Phase::Rewrite as usize].as_ref().unwrap().bytes, 1 << 20);
        // Nothing is left.
        assert!(files.stat("Bonnie").is_err() && files.stat("0000000000abc").is_err());
        let line = csv(&Head { machine: "here", time: 0, parameters }, &phases);
        assert_eq!(line.split(',').count(), SEED.split(',').count());
    };
    let mut rig = Recorder::new(1 << 30);
    check(&mut LinuxWriteback::new(&mut rig, linux_writeback::Parameters::default()).unwrap());
    let root = std::env::temp_dir().join(format!("trueline-bonnie-{}", std::process::id()));
    std::fs::create_dir(&root).unwrap();
    check(&mut Directory::new(&root).unwrap());
    std::fs::remove_dir(&root).unwrap();
}

#[test]
fn a_run_that_is_stopped_takes_its_files_away() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = LinuxWriteback::new(&mut rig, linux_writeback::Parameters::default()).unwrap();
    let parameters = Parameters { size: 0, kilo_files: 1 };
    let phases = run(&mut files, &parameters, 1, &mut |asked| asked < 100).unwrap();
    assert_eq!(phases[Phase::CreateSequential as usize].as_ref().unwrap().ops, 100);
    assert_eq!(phases[Phase::DeleteSequential as usize].as_ref().unwrap().ops, 100);
    assert!(files.stat("0000000000abc").is_err());
}
