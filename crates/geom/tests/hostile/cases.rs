//! Disks built to be followed for ever: tables that hold themselves, and sets of sets.

use crate::repair::repair;
use crate::volumes;
use trueline_geom::base::store::Sparse;

/// MiB.
const MIB: u64 = 1 << 20;

/// Every built-in disk with its name; what is in one list is tasted together.
pub fn all() -> Vec<(&'static str, Vec<Sparse>)> {
    let one = |disk| vec![disk];
    vec![
        ("empty", one(Sparse::new(0))),
        ("one byte", one(filled(1, 0xff))),
        ("one sector of ones", one(filled(512, 0xff))),
        ("ones", one(filled(64 << 10, 0xff))),
        ("longest", one(Sparse::new(u64::MAX))),
        ("gpt of 4096 overlapping", one(gpt_overlapping())),
        ("gpt in itself", one(gpt_in_itself())),
        (
            "mbr in itself",
            one(mbr(&[
                (0, 0xa5, 0, 2048),
                (0, 0x07, 0, u32::MAX),
                (0, 0x83, 1, 1),
                (0, 0xa5, 0, 1),
            ])),
        ),
        (
            "extended in itself",
            one(mbr(&[(0, 0x05, 0, 2048), (0, 0x0f, 0, u32::MAX), (0, 0x85, 1, 1)])),
        ),
        ("ebr loop of one", one(ebr_chain(1, 0))),
        ("ebr loop of ten", one(ebr_chain(10, 3))),
        ("ebr chain of a thousand", one(ebr_chain(1000, 999))),
        ("label in itself", one(label_in_itself())),
        ("mbr and gpt nested 40 deep", one(mbr_and_gpt_nested(40))),
        ("gpt nested 40 deep", one(gpt_nested(40))),
        ("stripe of 65535", set_of_many(STRIPE, 65535)),
        ("concat of 65535", set_of_many(CONCAT, 65535)),
        ("stripe of its own number twice", set_of_many(STRIPE, 1)),
        ("mirrors of mirrors", one(mirrors_of_mirrors(12, 10))),
        ("sets of sets", one(sets_of_sets(8, 12))),
        ("mirror in mirror 1000 deep", one(mirror_chain(1000))),
        (
            "volumes of every kind",
            one(volumes::group(volumes::TEXT.as_bytes(), &volumes::thin_pool())),
        ),
        (
            "volumes of no disk here",
            one(volumes::group(volumes::TEXT.replace("012345-", "543210-").as_bytes(), &[])),
        ),
        (
            "volumes of no disk at all",
            one(volumes::group(volumes::TEXT.replace("pv0 {", "} others { pv0 {").as_bytes(), &[])),
        ),
        ("volumes of volumes", one(volumes::group(volumes_of_volumes(3000).as_bytes(), &[]))),
    ]
}

/// A group of `count` volumes, each of them a mirror of the one before and of nothing else.
fn volumes_of_volumes(count: usize) -> String {
    let mut text = volumes::TEXT.split("logical_volumes").next().unwrap().to_string();
    text.push_str(
        "logical_volumes \
        {\n l0 { segment1 { start_extent = 0 extent_count = 1 type = \"zero\" } }\n",
    );
    for nth in 1..count {
        let below = format!("raids = [\"-\", \"l{}\"]", nth - 1);
        let segment = format!("start_extent = 0 extent_count = 1 type = \"raid1\" {below}");
        text.push_str(&format!(" l{nth} {{ status = [\"VISIBLE\"] segment1 {{ {segment} }} }}\n"));
    }
    text + "} }\n"
}

fn filled(length: u64, byte: u8) -> Sparse {
    let mut disk = Sparse::new(length);
    disk.put(0, &vec![byte; usize::try_from(length).unwrap()]);
    disk
}

/// Writes an MBR at `at`; entries are status, type, first sector, sectors.
fn put_mbr(disk: &mut Sparse, at: u64, entries: &[(u8, u8, u32, u32)]) {
    let mut sector = [0; 512];
    for (nth, &(status, kind, start, size)) in entries.iter().enumerate() {
        let entry = &mut sector[446 + 16 * nth..462 + 16 * nth];
        (entry[0], entry[4]) = (status, kind);
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..16].copy_from_slice(&size.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(at, &sector);
}

fn mbr(entries: &[(u8, u8, u32, u32)]) -> Sparse {
    let mut disk = Sparse::new(MIB);
    put_mbr(&mut disk, 0, entries);
    disk
}

/// Links of logical partitions, 2 sectors each; the last leads back to link `to`.
fn ebr_chain(links: u32, to: u32) -> Sparse {
    let mut disk = mbr(&[(0, 0x05, 2, 2040)]);
    for link in 0..links {
        let next = if link + 1 == links { to } else { link + 1 };
        put_mbr(
            &mut disk,
            u64::from(2 + 2 * link) * 512,
            &[(0, 0x83, 1, 1), (0, 0x05, 2 * next, 2)],
        );
    }
    disk
}

/// A label whose first partition is the whole of what it is on, offsets counted either way.
fn label_in_itself() -> Sparse {
    let mut disk = mbr(&[(0x80, 0xa5, 0, 2048)]);
    let mut label = [0; 404];
    for magic in [0, 132] {
        label[magic..magic + 4].copy_from_slice(&0x8256_4557u32.to_le_bytes());
    }
    label[40..44].copy_from_slice(&512u32.to_le_bytes()); // d_secsize
    label[138..140].copy_from_slice(&16u16.to_le_bytes()); // d_npartitions
    for partition in 0..16 {
        let entry = &mut label[148 + 16 * partition..164 + 16 * partition];
        entry[..4].copy_from_slice(&2048u32.to_le_bytes()); // p_size
        entry[12] = 7; // p_fstype
    }
    disk.put(512, &label);
    repair(&mut disk, 512);
    disk
}

/// Writes a GPT header at sector 1 of a disk of `length` bytes that begins at `base`, with `count`
/// entries of first and last sector in front of it.
fn put_gpt(disk: &mut Sparse, base: u64, length: u64, entries: &[(u64, u64)]) {
    put_mbr(disk, base, &[(0, 0xee, 1, u32::MAX)]);
    let mut table = vec![0; 128 * entries.len()];
    for (nth, &(first, last)) in entries.iter().enumerate() {
        let entry = &mut table[128 * nth..128 * (nth + 1)];
        entry[..16].fill(0x11);
        entry[16..20].copy_from_slice(&u32::try_from(nth + 1).unwrap().to_le_bytes());
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
    }
    disk.put(base + 1024, &table);
    let mut header = [0; 92];
    header[..8].copy_from_slice(b"EFI PART");
    header[8..16].copy_from_slice(&[0, 0, 1, 0, 92, 0, 0, 0]);
    let usable = 2 + (table.len() as u64).div_ceil(512);
    // Own, alternate, first usable, last usable, disk GUID, table.
    for (at, value) in
        [(24, 1), (32, length / 512 - 1), (40, usable), (48, length / 512 - 1), (56, 7), (72, 2)]
    {
        header[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    for (at, value) in [(80, u32::try_from(entries.len()).unwrap()), (84, 128)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    disk.put(base + 512, &header);
    repair(disk, 512);
}

/// Partitions that all overlap, every one with the table's own sectors in it.
fn gpt_overlapping() -> Sparse {
    let mut disk = Sparse::new(64 * MIB);
    let entries: Vec<(u64, u64)> = (0..4096).map(|n| (n, 64 * MIB / 512 - 1 - n)).collect();
    put_gpt(&mut disk, 0, 64 * MIB, &entries);
    disk
}

/// Partitions 1 to 8 are the disk itself.
fn gpt_in_itself() -> Sparse {
    let mut disk = Sparse::new(MIB);
    put_gpt(&mut disk, 0, MIB, &[(0, MIB / 512 - 1); 8]);
    disk
}

/// A GPT in the first partition of a GPT, and so on.
fn gpt_nested(depth: u64) -> Sparse {
    let length = 4 * MIB;
    let mut disk = Sparse::new(length);
    for level in (0..depth).rev() {
        let (base, inner) = (level * 32 * 512, length - level * 32 * 512);
        put_gpt(&mut disk, base, inner, &[(32, inner / 512 - 1), (32, inner / 512 - 1)]);
    }
    disk
}

/// A GPT in an MBR's slice in a GPT's partition, and so on.
fn mbr_and_gpt_nested(depth: u64) -> Sparse {
    let length = 4 * MIB;
    let mut disk = Sparse::new(length);
    for level in (0..depth).rev() {
        let (base, inner) = (level * 32 * 512, length - level * 32 * 512);
        if level.is_multiple_of(2) {
            put_gpt(&mut disk, base, inner, &[(32, inner / 512 - 1), (32, inner / 512 - 1)]);
        } else {
            let size = u32::try_from(inner / 512 - 32).unwrap();
            put_mbr(&mut disk, base, &[(0, 0xa5, 32, size), (0, 0x83, 32, size)]);
        }
    }
    disk
}

const STRIPE: &[u8; 16] = b"GEOM::STRIPE\0\0\0\0";
const CONCAT: &[u8; 16] = b"GEOM::CONCAT\0\0\0\0";

/// gstripe or gconcat metadata for the last sector of a provider of `length` bytes.
fn member(magic: &[u8; 16], name: u8, number: u16, count: u16, length: u64) -> Vec<u8> {
    let mut md = magic.to_vec();
    let stripe = magic == STRIPE;
    md.extend(if stripe { 3u32 } else { 4 }.to_le_bytes());
    md.extend([name; 8]);
    md.extend([0; 8]);
    md.extend([name; 4]); // md_id
    md.extend(number.to_le_bytes());
    md.extend(count.to_le_bytes());
    if stripe {
        md.extend(65536u32.to_le_bytes());
    }
    md.extend([0; 16]);
    md.extend(length.to_le_bytes());
    md
}

/// As many disks as there is patience for, of a set that says it has `count` members.
fn set_of_many(magic: &[u8; 16], count: u16) -> Vec<Sparse> {
    let disk = |number| {
        let mut disk = Sparse::new(MIB);
        disk.put(MIB - 512, &member(magic, b'a', number, count.max(2), MIB));
        disk
    };
    (0..count.min(300)).chain([0, 0, 1]).map(disk).collect()
}

/// gmirror metadata of a provider of `length` bytes, all of it but the last sector being content.
fn mirror(name: u8, length: u64) -> Vec<u8> {
    let mut md = b"GEOM::MIRROR\0\0\0\0".to_vec();
    md.extend(4u32.to_le_bytes());
    md.extend([name; 8]);
    md.extend([0; 8]);
    md.extend([name; 4]); // md_mid
    md.extend([0; 4]);
    md.push(255); // md_all
    md.resize(59, 0);
    md.extend((length - 512).to_le_bytes()); // md_mediasize
    md.extend(512u32.to_le_bytes());
    md.resize(111, 0);
    md.extend(length.to_le_bytes()); // md_provsize
    md.extend(*md5::compute(&md));
    md
}

/// A GPT of `width` equal partitions, all members of one mirror, whose content is such a GPT, and
/// so on: if the paths were counted, there would be `width` to the power of `depth`.
fn mirrors_of_mirrors(depth: u64, width: usize) -> Sparse {
    let length = 4 * MIB;
    let mut disk = Sparse::new(length);
    let (mut base, mut room) = (0, length);
    for level in 0..depth {
        let (first, last) = (64, room / 512 - 2);
        put_gpt(&mut disk, base, room, &vec![(first, last); width]);
        let inner = (last - first + 1) * 512;
        base += first * 512;
        disk.put(base + inner - 512, &mirror(b'a' + u8::try_from(level).unwrap(), inner));
        room = inner - 512;
    }
    disk
}

/// A GPT of `width` partitions, all members of one concatenation, whose content is such a GPT, and
/// so on. What it maps to is the same few sectors again and again; the paths to them are `width` to
/// the power of `depth`.
fn sets_of_sets(depth: u64, width: u64) -> Sparse {
    let mut disk = Sparse::new(MIB);
    // In sectors: where the set's byte 0 is on the disk; its length and its first partition, on the
    // set.
    let (mut place, mut length, mut first, mut size) = (0, MIB / 512, 64, MIB / 512 - 300);
    for level in 0..depth {
        let entries: Vec<(u64, u64)> =
            (0..width).map(|n| (first + n, first + n + size - 1)).collect();
        put_gpt(&mut disk, place * 512, length * 512, &entries);
        // The first partition of the disk, and all later ones by way of each set's second member,
        // begin 65 sectors on.
        place += if level == 0 { 64 } else { 65 };
        for n in 0..width {
            let number = u16::try_from(n).unwrap();
            let label = member(
                CONCAT,
                b'a' + u8::try_from(level).unwrap(),
                number,
                u16::try_from(width).unwrap(),
                size * 512,
            );
            disk.put((place + n + size - 1) * 512, &label);
        }
        // The next set's partitions begin behind its first member, or that member alone would show
        // them as well.
        let share = size - 1;
        (length, first, size) = (width * share, share + 64, share - 64 - 2 * width);
    }
    disk
}

/// A mirror of one, whose content is a mirror of one, and so on.
fn mirror_chain(depth: u64) -> Sparse {
    let mut disk = Sparse::new(MIB);
    for level in 0..depth {
        let length = MIB - level * 512;
        let mut label = mirror(b'a' + u8::try_from(level % 26).unwrap(), length);
        label[20..24].copy_from_slice(format!("{level:04}").as_bytes());
        let sum = md5::compute(&label[..119]);
        label[119..].copy_from_slice(&*sum);
        disk.put(length - 512, &label);
    }
    disk
}
