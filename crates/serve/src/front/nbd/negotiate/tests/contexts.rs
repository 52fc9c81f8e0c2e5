//! Contexts: their list, their names, the one export they are of, and what selecting them changes.

use super::*;

#[test]
fn contexts_are_listed_and_set() {
    let context = |option, number: u32, name: &str| {
        reply(option, reply::META_CONTEXT, &[&number.to_be_bytes(), name.as_bytes()].concat())
    };
    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    let both = [
        context(list, 0, "base:allocation"),
        context(list, 0, "trueline:grain"),
        reply(list, ACK, &[]),
    ]
    .concat();
    let mut haggle = session(Tls::None);
    for number in [list, set] {
        assert_eq!(kinds(&say(&mut haggle, number, &querying("", &[])).0), [reply::ERR_INVALID]);
    }
    say(&mut haggle, option::STRUCTURED_REPLY, b"");
    let alls: [&[&[u8]]; 3] =
        [&[], &[b"base:", b"trueline:"], &[b"base:", b"trueline:grain", b"trueline:grain"]];
    for all in alls {
        assert_eq!(say(&mut haggle, list, &querying("p1", all)).0, both);
    }
    assert_eq!(
        kinds(&say(&mut haggle, list, &querying("", &[b"trueline:"])).0),
        [reply::META_CONTEXT, ACK]
    );
    for none in [&b"qemu:"[..], b"base:alloc", b"base:allocation:", b":"] {
        assert_eq!(say(&mut haggle, list, &querying("", &[none])).0, reply(list, ACK, &[]));
    }
    // To be set, each is named whole; every time replaces the one before.
    let grain = [context(set, GRAIN, "trueline:grain"), reply(set, ACK, &[])].concat();
    say(&mut haggle, set, &querying("p1", &[b"base:allocation"]));
    assert_eq!(
        say(&mut haggle, set, &querying("p1", &[b"base:", b"trueline:grain", b"x-own:1"])).0,
        grain
    );
    let step = say(&mut haggle, option::GO, &asking("p1", &[])).1;
    assert_eq!(
        step,
        Step::Transmission(Agreed {
            export: 1,
            headers: Headers::Structured,
            contexts: vec![GRAIN]
        })
    );
}

/// Contexts of each kind of boundary but conventions, which no unit of a device has.
#[test]
fn contexts_are_named_by_what_they_tell_of() {
    assert_eq!(CONTEXTS[0], ("base:allocation", None));
    assert_eq!(
        (told_by(0), told_by(ALLOCATION), told_by(GRAIN), told_by(13)),
        (None, None, Some(Why::Physical), None)
    );
    let kinds: BTreeSet<Why> = CONTEXTS[1..].iter().filter_map(|(_, why)| *why).collect();
    assert_eq!(kinds, Why::ALL.into_iter().filter(|&why| why != Why::Convention).collect());
    for (name, why) in &CONTEXTS[1..] {
        let called = if *why == Some(Why::Physical) { "grain" } else { why.map_or("", Why::name) };
        assert_eq!(*name, format!("trueline:{called}"));
    }
    // An export lists what it has.
    let mut exports = exports();
    let chunk = Boundary { why: Why::Chunk, grain: Grain::new(65536, 0) };
    exports.0[0].boundaries.extend([chunk, Boundary { why: Why::Erase, grain: None }]);
    let listed: Vec<(u32, &str)> = contexts(&exports.0[0]);
    assert_eq!(
        listed,
        [
            (1, "base:allocation"),
            (2, "trueline:grain"),
            (6, "trueline:chunk"),
            (9, "trueline:erase")
        ]
    );
}

#[test]
fn contexts_are_of_one_export() {
    let mut haggle = session(Tls::None);
    say(&mut haggle, option::STRUCTURED_REPLY, b"");
    let set =
        |haggle: &mut Haggle, data: &[u8]| kinds(&say(haggle, option::SET_META_CONTEXT, data).0);
    let contexts = |haggle: &mut Haggle| match say(haggle, option::GO, &asking("", &[])).1 {
        Step::Transmission(agreed) => agreed.contexts,
        step => panic!("{step:?}"),
    };
    assert_eq!(
        set(&mut haggle, &querying("p1", &[b"base:allocation"])),
        [reply::META_CONTEXT, ACK]
    );
    assert!(contexts(&mut haggle).is_empty());
    assert_eq!(
        set(&mut haggle, &querying("", &[b"trueline:grain", b"base:allocation"])),
        [reply::META_CONTEXT, reply::META_CONTEXT, ACK]
    );
    assert_eq!(contexts(&mut haggle), [ALLOCATION, GRAIN]);
    // What fails sets none.
    let good = querying("", &[b"base:allocation"]);
    let wrong: [(&[u8], u32); 7] = [
        (&querying("absent", &[b"base:allocation"]), reply::ERR_UNKNOWN),
        (&querying("", &[b"allocation"]), reply::ERR_INVALID),
        (&querying("", &[b"base:\xff"]), reply::ERR_INVALID),
        (&querying("", &[&[b':'; wire::STRING + 1]]), reply::ERR_INVALID),
        (&good[..good.len() - 1], reply::ERR_INVALID),
        (&[&good[..], &[0]].concat(), reply::ERR_INVALID),
        (&[&string(b"")[..], &[255; 4]].concat(), reply::ERR_INVALID),
    ];
    for (data, error) in wrong {
        assert_eq!(set(&mut haggle, &good), [reply::META_CONTEXT, ACK]);
        assert_eq!(set(&mut haggle, data), [error]);
        assert!(contexts(&mut haggle).is_empty());
    }
}

/// Statuses of selected contexts are offered to a client that selected some, of that export
/// ("Transmission flags").
#[test]
fn a_status_of_some_contexts_is_offered() {
    let offered = |options: &[(u32, &[u8])]| {
        let mut haggle = session(Tls::None);
        options.iter().for_each(|(number, data)| {
            assert_eq!(say(&mut haggle, *number, data).1, Step::Answered)
        });
        let (flags, _) = gone(&mut haggle);
        (flags & transmission::SEND_DF != 0, flags & transmission::BLOCK_STATUS_PAYLOAD != 0)
    };
    let (extended, structured) =
        ((option::EXTENDED_HEADERS, &b""[..]), (option::STRUCTURED_REPLY, &b""[..]));
    let (own, other) = (querying("p1", &[b"base:allocation"]), querying("", &[b"base:allocation"]));
    let (own, other) =
        ((option::SET_META_CONTEXT, &own[..]), (option::SET_META_CONTEXT, &other[..]));
    assert_eq!(offered(&[]), (false, false));
    assert_eq!(offered(&[structured, own]), (true, false));
    assert_eq!(offered(&[extended]), (true, false));
    assert_eq!(offered(&[extended, other]), (true, false));
    assert_eq!(offered(&[extended, own]), (true, true));
    assert_eq!(offered(&[structured, own, extended]), (true, true));
}
