use super::*;

const ZONE: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// Two conventional zones, three others, the last of which is half as long and ends within a block.
fn zones() -> Zones {
    Zones::new(ZONE, 2, 4 * ZONE + ZONE / 2 + 512, BLOCK)
}

fn write(zones: &mut Zones, offset: u64, length: u64) -> Result<(), ZoneRule> {
    zones.judge(Op::Write, offset, length)?;
    zones.take(Op::Write, offset, length);
    Ok(())
}

#[test]
fn a_sequential_zone_takes_its_bytes_once_and_in_order() {
    let mut zones = zones();
    let first = 2 * ZONE;
    assert_eq!(write(&mut zones, first + BLOCK, BLOCK), Err(ZoneRule::WritePointer));
    assert_eq!(write(&mut zones, first, 512), Err(ZoneRule::PhysicalBlock));
    assert_eq!(write(&mut zones, first, BLOCK), Ok(()));
    assert_eq!(write(&mut zones, first, BLOCK), Err(ZoneRule::WritePointer));
    assert_eq!(write(&mut zones, first + BLOCK, ZONE), Err(ZoneRule::WriteBoundary));
    assert_eq!(write(&mut zones, first + BLOCK, ZONE - BLOCK), Ok(()));
    assert_eq!(write(&mut zones, first, BLOCK), Err(ZoneRule::Full));
    // The zones beside it have pointers of their own.
    assert_eq!(write(&mut zones, first + ZONE, 2 * BLOCK), Ok(()));
    zones.reset(first, ZONE);
    assert_eq!(write(&mut zones, first, BLOCK), Ok(()));
    assert_eq!(write(&mut zones, first + ZONE, BLOCK), Err(ZoneRule::WritePointer));
}

#[test]
fn a_reset_takes_whole_zones_alone() {
    let mut zones = zones();
    for zone in [2 * ZONE, 3 * ZONE, 4 * ZONE] {
        write(&mut zones, zone, BLOCK).unwrap();
    }
    zones.reset(2 * ZONE + 1, 2 * ZONE - 1);
    assert_eq!(write(&mut zones, 2 * ZONE, BLOCK), Err(ZoneRule::WritePointer));
    assert_eq!(write(&mut zones, 3 * ZONE, BLOCK), Ok(()));
    // The last one ends with the drive.
    zones.reset(4 * ZONE, ZONE / 2 + 511);
    assert_eq!(write(&mut zones, 4 * ZONE, BLOCK), Err(ZoneRule::WritePointer));
    zones.reset(0, u64::MAX);
    assert_eq!(write(&mut zones, 4 * ZONE, ZONE / 2 + 512), Ok(()));
    assert_eq!(write(&mut zones, 4 * ZONE, BLOCK), Err(ZoneRule::Full));
}

#[test]
fn conventional_zones_take_anything_but_what_leaves_them() {
    let mut zones = zones();
    assert_eq!(write(&mut zones, ZONE - 512, 1024), Ok(()));
    assert_eq!(write(&mut zones, 512, 512), Ok(()));
    assert_eq!(write(&mut zones, 2 * ZONE - 512, 1024), Err(ZoneRule::WriteBoundary));
    assert_eq!(zones.judge(Op::Read, 2 * ZONE - 512, 1024), Err(ZoneRule::ReadBoundary));
    assert_eq!(zones.judge(Op::Read, 2 * ZONE, 2 * ZONE), Ok(()));
    assert_eq!(zones.judge(Op::Flush, 0, 0), Ok(()));
}

/// The answers of Linux's `scsi_debug` (tests/kernel/zones.sh): a line for each command, with the
/// sense key and the additional sense code of its answer. Its zones are of 1 MiB, four of them
/// conventional, on 16 MiB in blocks of 512 bytes, and it does not ask for whole physical blocks.
#[test]
fn answers_are_those_of_scsi_debug() {
    let text = include_str!("../../../../../tests/kernel/zones/scsi-debug-6.1.txt");
    let mut zones = Zones::new(ZONE, 4, 16 << 20, 512);
    let (mut commands, mut refused) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [op, lba, blocks, answer] = words[..] else { panic!("{line}") };
        let bytes = |word: &str| word.parse::<u64>().unwrap() * 512;
        let (offset, length) = (bytes(lba), bytes(blocks));
        let ours = match op {
            "r" => zones.judge(Op::Read, offset, length),
            "w" => write(&mut zones, offset, length),
            // The zone that begins there; all of them at a count of 0.
            "z" if length == 0 => {
                zones.reset(0, u64::MAX);
                Ok(())
            }
            "z" => {
                zones.reset(offset, ZONE);
                Ok(())
            }
            _ => panic!("{line}"),
        };
        let code = match ours {
            Ok(()) => "0/00/00",
            Err(ZoneRule::WritePointer | ZoneRule::PhysicalBlock) => "5/21/04",
            Err(ZoneRule::WriteBoundary) => "5/21/05",
            Err(ZoneRule::ReadBoundary) => "5/21/06",
            Err(ZoneRule::Full) => "5/24/00",
        };
        assert_eq!(code, answer, "command {commands}: {line}");
        commands += 1;
        refused += usize::from(ours.is_err());
    }
    assert!(commands >= 1000 && refused >= 300, "{commands} commands, {refused} refused");
}
