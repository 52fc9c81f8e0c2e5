use super::*;
use crate::export::BlockSizes;
use std::sync::Arc;
use trueline_geom::base::store::Sparse;
use trueline_host::nbd::block_sizes::LARGEST_REQUEST;

const MIB: u64 = 1 << 20;

fn export(read_only: bool) -> Export {
    Export {
        name: String::new(),
        description: String::new(),
        store: Arc::new(Sparse::new(64 * MIB)),
        read_only,
        rotational: false,
        sizes: BlockSizes { least: 1, preferred: 4096, most: LARGEST_REQUEST },
        boundaries: Vec::new(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    }
}

fn agreed(headers: Headers, contexts: &[u32]) -> Agreed {
    Agreed { export: 0, headers, contexts: contexts.to_vec() }
}

fn asked(command: u16, flags: u16, offset: u64, length: u64) -> Request {
    Request { flags, command, cookie: 7, offset, length }
}

#[test]
fn a_request_is_28_bytes() {
    let request = Request {
        flags: 0x0102,
        command: 0x0304,
        cookie: 0x0506_0708_090a_0b0c,
        offset: 0x0d0e_0f10_1112_1314,
        length: 0x1516_1718,
    };
    let bytes = b"\x25\x60\x95\x13\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18";
    for headers in [Headers::Simple, Headers::Structured] {
        assert_eq!(
            (request.compact(), Request::read(bytes, headers), headers.request()),
            (Some(*bytes), Some(request), bytes.len())
        );
        let mut wrong = *bytes;
        wrong[3] ^= 1;
        assert_eq!(Request::read(&wrong, headers), None);
        let payload = |command| asked(command, flag::PAYLOAD_LEN, 0, 9).payload(headers);
        assert_eq!((payload(command::WRITE), payload(command::READ)), (9, 0));
    }
    assert_eq!(asked(command::TRIM, 0, 0, 1 << 32).compact(), None);
}

#[test]
fn an_extended_request_is_32_bytes() {
    let length = 0x1516_1718_191a_1b1c;
    let request = Request {
        flags: 0x0102,
        command: 0x0304,
        cookie: 0x0506_0708_090a_0b0c,
        offset: 0x0d0e_0f10_1112_1314,
        length,
    };
    let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap().saturating_sub(3));
    let bytes = [&b"\x21\xe4\x1c\x71"[..], &bytes[4..]].concat();
    assert_eq!(
        (&request.extended()[..], Request::read(&bytes, Headers::Extended)),
        (&bytes[..], Some(request))
    );
    assert_eq!(Headers::Extended.request(), bytes.len());
    // What the other kind of header begins with is nothing here.
    assert_eq!(Request::read(&bytes, Headers::Structured), None);
    assert_eq!(
        Request::read(
            &[&asked(command::READ, 0, 0, 0).compact().unwrap()[..], &[0; 4]].concat(),
            Headers::Extended
        ),
        None
    );
    // The flag says whether something follows, but of a write it always does.
    for command in [command::READ, command::WRITE, command::BLOCK_STATUS, 99] {
        assert_eq!(
            asked(command, flag::PAYLOAD_LEN, 0, 1 << 63).payload(Headers::Extended),
            1 << 63
        );
        let follows = if command == command::WRITE { 9 } else { 0 };
        assert_eq!(asked(command, flag::FUA, 0, 9).payload(Headers::Extended), follows);
    }
}

#[test]
fn what_lies_outside_is_refused() {
    let (end, all) = (64 * MIB, agreed(Headers::Structured, &[1]));
    let checked =
        |command, offset, length| check(&asked(command, 0, offset, length), &export(false), &all);
    for inside in [(0, 512), (end - 1, 1), (end, 0), (0, u64::from(LARGEST_REQUEST))] {
        for command in
            [command::READ, command::WRITE, command::TRIM, command::CACHE, command::WRITE_ZEROES]
        {
            assert_eq!(checked(command, inside.0, inside.1), Ok(()), "{command} {inside:?}");
        }
    }
    // "Error values": what would have to be put behind the end has no room; the rest is not a
    // sensible question.
    for outside in
        [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX, 1 << 31), (1, u64::MAX), (u64::MAX, 0)]
    {
        for command in [command::WRITE, command::WRITE_ZEROES] {
            assert_eq!(
                checked(command, outside.0, outside.1),
                Err(error::ENOSPC),
                "{command} {outside:?}"
            );
        }
        for command in [command::READ, command::TRIM, command::CACHE, command::BLOCK_STATUS] {
            assert_eq!(
                checked(command, outside.0, outside.1),
                Err(error::EINVAL),
                "{command} {outside:?}"
            );
        }
    }
    // What has no payload may be as long as the disk.
    assert_eq!(checked(command::TRIM, 0, 64 << 20), Ok(()));
    assert_eq!(checked(command::READ, 0, u64::from(LARGEST_REQUEST) + 1), Err(error::EINVAL));
    assert_eq!(checked(command::WRITE, 0, u64::from(LARGEST_REQUEST) + 1), Err(error::EINVAL));
    let whole = asked(command::READ, flag::DF, 0, u64::from(LARGEST_REQUEST) + 1);
    assert_eq!(check(&whole, &export(false), &all), Err(error::EOVERFLOW));
}

#[test]
fn every_flag_has_its_commands() {
    use command as c;
    let allowed = |command, headers, contexts: &[u32]| -> u16 {
        let length = if command == c::FLUSH { 0 } else { 512 };
        let passes = |flag: &u16| {
            check(&asked(command, *flag, 0, length), &export(false), &agreed(headers, contexts))
                .is_ok()
        };
        (0..16).map(|bit| 1 << bit).filter(passes).sum()
    };
    for headers in [Headers::Simple, Headers::Structured] {
        let all = |command| allowed(command, headers, &[]);
        assert_eq!(
            all(c::READ),
            if headers.are_chunks() { flag::FUA | flag::DF } else { flag::FUA }
        );
        assert_eq!([all(c::WRITE), all(c::TRIM), all(c::FLUSH), all(c::CACHE)], [flag::FUA; 4]);
        assert_eq!(all(c::WRITE_ZEROES), flag::FUA | flag::NO_HOLE | flag::FAST_ZERO);
        // Without a context there is no status to be had ("Metadata querying").
        assert_eq!(all(c::BLOCK_STATUS), 0);
        assert!([c::DISC, 8, 9, u16::MAX].iter().all(|&unknown| all(unknown) == 0));
    }
    assert_eq!(allowed(c::BLOCK_STATUS, Headers::Structured, &[1]), flag::FUA | flag::REQ_ONE);
    let unknown = check(&asked(99, 0, 0, 0), &export(false), &agreed(Headers::Structured, &[1]));
    assert_eq!(unknown, Err(error::EINVAL));
}

#[test]
fn what_is_read_only_is_not_written() {
    let checked = |command, offset| {
        check(&asked(command, 0, offset, 512), &export(true), &agreed(Headers::Structured, &[1]))
    };
    for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(
            (checked(command, 0), checked(command, u64::MAX)),
            (Err(error::EPERM), Err(error::EPERM))
        );
    }
    for command in [command::READ, command::CACHE, command::BLOCK_STATUS] {
        assert_eq!(checked(command, 0), Ok(()));
    }
    assert_eq!(
        check(&asked(command::FLUSH, 0, 0, 0), &export(true), &agreed(Headers::Simple, &[])),
        Ok(())
    );
}

#[test]
fn requests_of_nothing() {
    let checked = |command, offset, length| {
        check(
            &asked(command, 0, offset, length),
            &export(false),
            &agreed(Headers::Structured, &[1]),
        )
    };
    assert_eq!(checked(command::FLUSH, 0, 0), Ok(()));
    for (offset, length) in [(1, 0), (0, 1)] {
        assert_eq!(checked(command::FLUSH, offset, length), Err(error::EINVAL));
    }
    // A status of nothing would have no descriptor, and there must be one.
    assert_eq!(checked(command::BLOCK_STATUS, 0, 0), Err(error::EINVAL));
}

fn extended(
    command: u16,
    flags: u16,
    offset: u64,
    length: u64,
    contexts: &[u32],
) -> Result<(), u32> {
    check(
        &asked(command, flags, offset, length),
        &export(false),
        &agreed(Headers::Extended, contexts),
    )
}

/// Section "Command flags": a write has the flag of a payload, the rest has not, but a status that
/// names its contexts.
#[test]
fn a_payload_is_announced() {
    let carries = flag::PAYLOAD_LEN;
    assert_eq!(extended(command::WRITE, carries | flag::FUA, 0, 512, &[]), Ok(()));
    assert_eq!(extended(command::WRITE, carries, 0, 0, &[]), Ok(()));
    // QEMU's client leaves it out.
    assert_eq!(extended(command::WRITE, flag::FUA, 0, 512, &[]), Ok(()));
    for other in [
        command::READ,
        command::TRIM,
        command::WRITE_ZEROES,
        command::CACHE,
        command::BLOCK_STATUS,
        99,
    ] {
        assert_eq!(extended(other, carries, 0, 12, &[]), Err(error::EINVAL), "{other}");
    }
    assert_eq!(extended(command::FLUSH, carries, 0, 0, &[]), Err(error::EINVAL));
    for (length, contexts) in [(12, &[1][..]), (12, &[1, 2]), (16, &[1, 2])] {
        assert_eq!(
            extended(command::BLOCK_STATUS, carries | flag::REQ_ONE, u64::MAX, length, contexts),
            Ok(())
        );
    }
    for (length, contexts) in [
        (0, &[1][..]),
        (7, &[1]),
        (8, &[1]),
        (11, &[1]),
        (13, &[1, 2]),
        (16, &[1]),
        (20, &[1, 2]),
        (1 << 63, &[1]),
    ] {
        assert_eq!(
            extended(command::BLOCK_STATUS, carries, 0, length, contexts),
            Err(error::EINVAL),
            "{length}"
        );
    }
}

#[test]
fn what_lies_outside_is_refused_with_64_bits_too() {
    for command in [command::TRIM, command::CACHE, command::BLOCK_STATUS] {
        assert_eq!(extended(command, 0, 0, 64 * MIB, &[1]), Ok(()));
    }
    for (offset, length) in
        [(0, 1 << 32), (1, u64::MAX), (u64::MAX, u64::MAX), (0, 1 << 63), (1 << 63, 1 << 63)]
    {
        assert_eq!(extended(command::WRITE_ZEROES, 0, offset, length, &[]), Err(error::ENOSPC));
        for command in [command::READ, command::TRIM, command::CACHE, command::BLOCK_STATUS] {
            assert_eq!(extended(command, 0, offset, length, &[1]), Err(error::EINVAL), "{command}");
        }
    }
}

#[test]
fn a_status_names_its_contexts() {
    let all = agreed(Headers::Extended, &[1, 2]);
    let status = |flags, offset, length, payload: &[u8]| {
        let found = status(
            &asked(command::BLOCK_STATUS, flags, offset, length),
            payload,
            &export(false),
            &all,
        );
        found.map(|(request, contexts)| (request.flags, request.offset, request.length, contexts))
    };
    assert_eq!(status(flag::REQ_ONE, 5, 7, &[]), Ok((flag::REQ_ONE, 5, 7, vec![1, 2])));
    let named = |length: u64, numbers: &[u32]| {
        let payload = [
            &length.to_be_bytes()[..],
            &numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>(),
        ]
        .concat();
        status(flag::PAYLOAD_LEN | flag::REQ_ONE, 5, payload.len() as u64, &payload)
    };
    assert_eq!(named(7, &[2]), Ok((flag::REQ_ONE, 5, 7, vec![2])));
    assert_eq!(named(64 * MIB - 5, &[2, 1]), Ok((flag::REQ_ONE, 5, 64 * MIB - 5, vec![2, 1])));
    // Twice the same, one that was not set, none of the export's bytes, and such as lie outside.
    for (length, numbers) in
        [(7, [1, 1]), (7, [1, 3]), (7, [0, 1]), (0, [1, 2]), (64 * MIB, [1, 2]), (u64::MAX, [1, 2])]
    {
        assert_eq!(named(length, &numbers), Err(error::EINVAL), "{length} {numbers:?}");
    }
}
