mod contexts;

use super::*;
use crate::export::BlockSizes;
use std::collections::BTreeSet;
use std::sync::Arc;
use trueline_geom::base::store::Sparse;
use trueline_geom::base::topology::Grain;
use trueline_geom::base::topology::announced::Boundary;
use trueline_host::nbd::contexts::{ALLOCATION, GRAIN, told_by};

/// A disk of 1 MiB, and of it a partition whose units begin with its byte 512.
fn exports() -> Exports {
    let export = |name: &str, description: &str, length, grain: Option<Grain>| Export {
        name: name.into(),
        description: description.into(),
        store: Arc::new(Sparse::new(length)),
        read_only: false,
        rotational: false,
        sizes: BlockSizes { least: 512, preferred: 4096, most: 32 << 20 },
        boundaries: grain
            .map(|grain| Boundary { why: Why::Physical, grain: Some(grain) })
            .into_iter()
            .collect(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    };
    Exports(vec![
        export("", "disk", 1 << 20, Grain::new(4096, 0)),
        export("p1", "partition", 4096, Grain::new(4096, 512)),
    ])
}

const TOO_LONG: Step = Step::CutOff("an option of more than 65536 bytes");

/// A session behind its greeting, with client flags 3.
fn session(tls: Tls) -> Haggle {
    greeted(tls, 3)
}

fn greeted(tls: Tls, flags: u32) -> Haggle {
    let (mut haggle, mut out) = (Haggle::new(tls), Vec::new());
    assert_eq!(haggle.take(&exports(), &flags.to_be_bytes(), &mut out), (4, Step::Answered));
    assert!(out.is_empty());
    haggle
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of `INFO` and `GO`.
fn asking(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut data = string(name.as_bytes());
    data.extend(u16::try_from(kinds.len()).unwrap().to_be_bytes());
    kinds.iter().for_each(|kind| data.extend(kind.to_be_bytes()));
    data
}

/// The data of the context options.
fn querying(name: &str, queries: &[&[u8]]) -> Vec<u8> {
    let mut data = string(name.as_bytes());
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// One reply as it must be.
fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9];
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(string(data));
    bytes
}

/// Sends one option. Returns the answer and the next step.
fn say(haggle: &mut Haggle, number: u32, data: &[u8]) -> (Vec<u8>, Step) {
    let (message, mut out) = (option(number, data), Vec::new());
    let (taken, step) = haggle.take(&exports(), &message, &mut out);
    assert!(taken == message.len() || step == Step::Close);
    (out, step)
}

/// The kinds of the replies in `out`.
fn kinds(mut out: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    while !out.is_empty() {
        let mut fields = Fields(out);
        assert_eq!(fields.u64(), Some(wire::OPTION_REPLY_MAGIC));
        fields.u32().unwrap();
        kinds.push(fields.u32().unwrap());
        fields.string().unwrap();
        out = fields.0;
    }
    kinds
}

const ACK: u32 = reply::ACK;

#[test]
fn the_greeting_is_fixed_newstyle() {
    assert_eq!(greeting(), *b"NBDMAGICIHAVEOPT\0\x03");
    // Unknown flags end the session ("Client flags").
    for flags in [4, 1 << 31, u32::MAX] {
        let mut out = Vec::new();
        assert_eq!(
            Haggle::new(Tls::None).take(&exports(), &u32::to_be_bytes(flags), &mut out),
            (4, Step::Close)
        );
        assert!(out.is_empty());
    }
    assert_eq!(Haggle::new(Tls::None).take(&exports(), &[0; 3], &mut Vec::new()), (0, Step::More));
}

#[test]
fn nothing_is_answered_before_it_has_come() {
    let whole = option(option::GO, &asking("p1", &[info::NAME]));
    for length in 0..whole.len() {
        let (mut haggle, mut out) = (session(Tls::None), Vec::new());
        assert_eq!(
            haggle.take(&exports(), &whole[..length], &mut out),
            (0, Step::More),
            "{length}"
        );
        assert!(out.is_empty());
    }
    // What comes behind it is left.
    let two = [whole.clone(), option(option::ABORT, &[])].concat();
    let (taken, step) = session(Tls::None).take(&exports(), &two, &mut Vec::new());
    assert_eq!((taken, matches!(step, Step::Transmission(_))), (whole.len(), true));
}

#[test]
fn the_old_way_has_no_errors() {
    let size_and_flags = |headers| {
        let agreed = Agreed { headers, ..Agreed::default() };
        [&1_048_576u64.to_be_bytes()[..], &flags(&exports().0[0], &agreed).to_be_bytes()].concat()
    };
    assert_eq!(
        say(&mut session(Tls::None), option::EXPORT_NAME, b"").0,
        size_and_flags(Headers::Simple)
    );
    // A client that does not say that it can do without them gets 124 zeros; one that does not know
    // of options has just this one.
    for flags in [0, 1] {
        let (out, step) = say(&mut greeted(Tls::None, flags), option::EXPORT_NAME, b"");
        assert_eq!(
            (out.len(), &out[..10], step),
            (134, &size_and_flags(Headers::Simple)[..], Step::Transmission(Agreed::default()))
        );
        assert!(out[10..].iter().all(|&byte| byte == 0));
    }
    assert_eq!(say(&mut greeted(Tls::None, 2), option::LIST, b""), (vec![], Step::Close));
    assert_eq!(say(&mut session(Tls::None), option::EXPORT_NAME, b"absent"), (vec![], Step::Close));
    assert_eq!(
        say(&mut session(Tls::None), option::EXPORT_NAME, &[0; LONGEST + 1]),
        (vec![], TOO_LONG)
    );
    let mut haggle = session(Tls::None);
    say(&mut haggle, option::STRUCTURED_REPLY, b"");
    let agreed = Agreed { export: 0, headers: Headers::Structured, contexts: vec![] };
    assert_eq!(
        say(&mut haggle, option::EXPORT_NAME, b""),
        (size_and_flags(Headers::Structured), Step::Transmission(agreed))
    );
}

#[test]
fn exports_are_listed() {
    let one = |name: &str, description: &str| {
        reply(
            option::LIST,
            reply::SERVER,
            &[string(name.as_bytes()), description.as_bytes().to_vec()].concat(),
        )
    };
    let all = [one("", "disk"), one("p1", "partition"), reply(option::LIST, ACK, &[])].concat();
    assert_eq!(say(&mut session(Tls::None), option::LIST, b""), (all, Step::Answered));
    assert_eq!(kinds(&say(&mut session(Tls::None), option::LIST, b"x").0), [reply::ERR_INVALID]);
}

#[test]
fn an_export_is_described() {
    let told = |kind: u16, data: &[u8]| {
        reply(option::INFO, reply::INFO, &[&kind.to_be_bytes(), data].concat())
    };
    let export = told(
        0,
        &[&4096u64.to_be_bytes()[..], &flags(&exports().0[1], &Agreed::default()).to_be_bytes()]
            .concat(),
    );
    let sizes = told(3, &[512u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());
    let done = reply(option::INFO, ACK, &[]);
    assert_eq!(
        say(&mut session(Tls::None), option::INFO, &asking("p1", &[])).0,
        [&export[..], &sizes, &done].concat()
    );
    // Asked repeatedly, and for unknown kinds: each known kind is reported once.
    let (name, description) = (told(1, b"p1"), told(2, b"partition"));
    let (out, step) =
        say(&mut session(Tls::None), option::INFO, &asking("p1", &[2, 1, 77, 1, 3, 2, 2, 3]));
    assert_eq!(
        (out, step),
        ([&export[..], &name, &description, &sizes, &done].concat(), Step::Answered)
    );
    let many = say(&mut session(Tls::None), option::INFO, &asking("p1", &[2; 30_000])).0;
    assert!(many.len() < 300, "{}", many.len());
    let (out, step) = say(&mut session(Tls::None), option::GO, &asking("p1", &[]));
    let agreed = Agreed { export: 1, headers: Headers::Simple, contexts: vec![] };
    assert_eq!(
        (kinds(&out), step),
        (vec![reply::INFO, reply::INFO, ACK], Step::Transmission(agreed))
    );
    for number in [option::INFO, option::GO] {
        let unknown = say(&mut session(Tls::None), number, &asking("absent", &[]));
        assert_eq!((kinds(&unknown.0), unknown.1), (vec![reply::ERR_UNKNOWN], Step::Answered));
        let good = asking("p1", &[1]);
        let ill: [&[u8]; 6] = [
            &good[..good.len() - 1],
            &good[1..],
            &[],
            &[0; 4],
            &[255; 6],
            &[&good[..], &[0]].concat(),
        ];
        for ill in ill {
            assert_eq!(
                kinds(&say(&mut session(Tls::None), number, ill).0),
                [reply::ERR_INVALID],
                "{ill:?}"
            );
        }
    }
}

/// The transmission flags that `GO` reports, and what was agreed.
fn gone(haggle: &mut Haggle) -> (u16, Agreed) {
    let (out, step) = say(haggle, option::GO, &asking("p1", &[]));
    let Step::Transmission(agreed) = step else { panic!("{step:?}") };
    (u16::from_be_bytes([out[30], out[31]]), agreed)
}

#[test]
fn extended_headers_are_more_than_structured_replies() {
    let (extended, structured) = (option::EXTENDED_HEADERS, option::STRUCTURED_REPLY);
    let ack = |number| (reply(number, ACK, &[]), Step::Answered);
    // With or without the other first, and once.
    for before in [&[][..], &[structured], &[structured, structured]] {
        let mut haggle = session(Tls::None);
        before.iter().for_each(|&number| assert_eq!(say(&mut haggle, number, b""), ack(number)));
        assert_eq!(say(&mut haggle, extended, b""), ack(extended));
        let (again, step) = say(&mut haggle, extended, b"");
        assert_eq!((kinds(&again), step), (vec![reply::ERR_INVALID], Step::Answered));
        assert_eq!(
            gone(&mut haggle).1,
            Agreed { export: 1, headers: Headers::Extended, contexts: vec![] }
        );
    }
    // There is no way back, and none to an export that has no answer ("NBD_OPT_EXTENDED_HEADERS").
    let mut haggle = session(Tls::None);
    say(&mut haggle, extended, b"");
    assert_eq!(kinds(&say(&mut haggle, structured, b"").0), [reply::ERR_EXT_HEADER_REQD]);
    assert_eq!(kinds(&say(&mut haggle, structured, b"x").0), [reply::ERR_INVALID]);
    assert_eq!(
        kinds(
            &say(&mut haggle, option::SET_META_CONTEXT, &querying("p1", &[b"base:allocation"])).0
        ),
        [reply::META_CONTEXT, ACK]
    );
    assert_eq!(
        gone(&mut haggle).1,
        Agreed { export: 1, headers: Headers::Extended, contexts: vec![ALLOCATION] }
    );
    assert_eq!(say(&mut haggle, option::EXPORT_NAME, b""), (vec![], Step::Close));
}

#[test]
fn tls_comes_first_where_it_must() {
    let mut haggle = session(Tls::Required);
    let go = asking("", &[]);
    for (number, data) in
        [(option::LIST, &[][..]), (option::GO, &go), (option::STRUCTURED_REPLY, &[]), (99, &[])]
    {
        assert_eq!(kinds(&say(&mut haggle, number, data).0), [reply::ERR_TLS_REQD]);
    }
    assert_eq!(say(&mut session(Tls::Required), option::EXPORT_NAME, b""), (vec![], Step::Close));
    assert_eq!(
        say(&mut session(Tls::Required), option::ABORT, b""),
        (reply(option::ABORT, ACK, &[]), Step::Close)
    );
    assert_eq!(kinds(&say(&mut haggle, option::STARTTLS, b"x").0), [reply::ERR_INVALID]);
    assert_eq!(
        say(&mut haggle, option::STARTTLS, b""),
        (reply(option::STARTTLS, ACK, &[]), Step::StartTls)
    );
    let mut haggle = haggle.encrypted();
    assert_eq!(kinds(&say(&mut haggle, option::STARTTLS, b"").0), [reply::ERR_INVALID]);
    assert!(matches!(say(&mut haggle, option::GO, &go).1, Step::Transmission(_)));
    assert_eq!(kinds(&say(&mut session(Tls::None), option::STARTTLS, b"").0), [reply::ERR_POLICY]);
}

/// An attacker may have sent what came before TLS, so it is forgotten ("NBD_OPT_STARTTLS").
#[test]
fn tls_forgets_what_came_before() {
    let mut haggle = session(Tls::Offered);
    say(&mut haggle, option::EXTENDED_HEADERS, b"");
    say(&mut haggle, option::SET_META_CONTEXT, &querying("", &[b"base:allocation"]));
    assert_eq!(say(&mut haggle, option::STARTTLS, b"").1, Step::StartTls);
    let step = say(&mut haggle.encrypted(), option::GO, &asking("", &[])).1;
    assert_eq!(
        step,
        Step::Transmission(Agreed { export: 0, headers: Headers::Simple, contexts: vec![] })
    );
}

#[test]
fn what_ends_and_what_does_not() {
    let mut haggle = session(Tls::None);
    for unknown in [0, 4, 12, 13, u32::MAX] {
        assert_eq!(kinds(&say(&mut haggle, unknown, b"some data").0), [reply::ERR_UNSUP]);
    }
    for number in [option::STRUCTURED_REPLY, option::EXTENDED_HEADERS] {
        assert_eq!(kinds(&say(&mut haggle, number, b"x").0), [reply::ERR_INVALID]);
    }
    assert_eq!(
        say(&mut haggle, option::STRUCTURED_REPLY, b""),
        (reply(option::STRUCTURED_REPLY, ACK, &[]), Step::Answered)
    );
    let (out, step) = say(&mut haggle, option::LIST, &[0; LONGEST + 1]);
    assert_eq!((kinds(&out), step), (vec![reply::ERR_TOO_BIG], TOO_LONG));
    assert_eq!(
        session(Tls::None).take(&exports(), &[b'X'; 16], &mut Vec::new()),
        (16, Step::Close)
    );
    let mut haggle = session(Tls::None);
    for _ in 0..OPTIONS {
        assert_eq!(say(&mut haggle, 0, b"").1, Step::Answered);
    }
    assert_eq!(say(&mut haggle, 0, b"").1, Step::CutOff("more than 10000 options, and no request"));
}

#[test]
fn a_server_that_ends_refuses() {
    let mut haggle = session(Tls::Offered);
    haggle.shut_down();
    for (number, data) in
        [(option::LIST, vec![]), (option::GO, asking("", &[])), (option::STARTTLS, vec![])]
    {
        assert_eq!(kinds(&say(&mut haggle, number, &data).0), [reply::ERR_SHUTDOWN]);
    }
    assert_eq!(say(&mut haggle, option::ABORT, b""), (reply(option::ABORT, ACK, &[]), Step::Close));
    assert_eq!(say(&mut haggle, option::EXPORT_NAME, b""), (vec![], Step::Close));
}
