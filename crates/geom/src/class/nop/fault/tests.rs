use super::*;

fn plan(rules: &[&str]) -> FaultPlan {
    FaultPlan { rules: rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect(), seed: 1 }
}

/// Request `number`, where all requests are of one kind.
fn asked(op: Op, number: u64) -> NumberedRequest {
    NumberedRequest { number, of_all: number, op, offset: 1 << 20, length: 4096 }
}

/// The numbers of the first `count` requests that fail.
fn failing(plan: &FaultPlan, op: Op, count: u64) -> Vec<u64> {
    (1..=count).filter(|&number| plan.decide(&asked(op, number)).failure.is_some()).collect()
}

#[test]
fn numbers_decide() {
    assert_eq!(failing(&plan(&["write:torn,every=1000"]), Op::Write, 3500), [1000, 2000, 3000]);
    assert_eq!(failing(&plan(&["write:torn,every=1000"]), Op::Read, 3500), []);
    assert_eq!(failing(&plan(&["write:error=enospc,after=3"]), Op::Write, 6), [4, 5, 6]);
    assert_eq!(failing(&plan(&["write:error=eio,after=3,every=2"]), Op::Write, 8), [5, 7]);
    // `*` counts all requests, whatever they are.
    let of_all = NumberedRequest { number: 1, of_all: 501, ..asked(Op::Write, 1) };
    let readonly = plan(&["*:readonly,after=500"]);
    assert_eq!(readonly.decide(&of_all).failure, Some(Failure::Error(Errno::ReadOnly)));
    assert_eq!(readonly.decide(&NumberedRequest { op: Op::Read, ..of_all }).failure, None);
    assert_eq!(readonly.decide(&NumberedRequest { op: Op::Flush, ..of_all }).failure, None);
    assert_eq!(readonly.decide(&NumberedRequest { of_all: 500, ..of_all }).failure, None);
    // Reads count although they cannot be hit; where no rule counts them they need not be examined.
    assert!(readonly.concerns(Op::Read) && !plan(&["write:readonly,after=500"]).concerns(Op::Read));
}

#[test]
fn chance_is_the_seeds() {
    let rare = plan(&["read:error=eio,probability=1%"]);
    let found = failing(&rare, Op::Read, 100_000);
    assert!((900..1100).contains(&found.len()), "{}", found.len());
    assert_eq!(found, failing(&rare, Op::Read, 100_000));
    assert_ne!(found, failing(&FaultPlan { seed: 2, ..rare.clone() }, Op::Read, 100_000));
    // Two rules of the same probability do not hit the same requests.
    let both = plan(&["read:delay=1ms,probability=1%", "read:error=eio,probability=1%"]);
    assert_ne!(found, failing(&both, Op::Read, 100_000));
}

#[test]
fn ranges_are_touched_or_not() {
    let plan = plan(&["*:error=eio,offset=1m..2m"]);
    let fails = |offset, length| {
        plan.decide(&NumberedRequest { offset, length, ..asked(Op::Write, 1) }).failure.is_some()
    };
    let mib = 1 << 20;
    assert!(
        fails(mib, 512)
            && fails(2 * mib - 512, 512)
            && fails(mib - 512, 1024)
            && fails(0, u64::MAX)
    );
    assert!(!fails(mib - 512, 512) && !fails(2 * mib, 512));
    assert_eq!(plan.decide(&asked(Op::Flush, 1)).failure, None);
}

#[test]
fn delays_add_up_and_the_first_failure_counts() {
    let plan = plan(&[
        "write:delay=10ms",
        "*:error=enospc,delay=1.5us",
        "write:torn",
        "write:error=eio,delay=1ns",
    ]);
    let decision = plan.decide(&asked(Op::Write, 1));
    assert_eq!(decision.failure, Some(Failure::Error(Errno::NoSpace)));
    assert_eq!((decision.delay_ns, decision.rules.as_slice()), (10_001_501, &[0, 1, 3][..]));
}

#[test]
fn a_torn_write_keeps_whole_sectors_and_never_all() {
    let plan = plan(&["write:torn"]);
    let kept: Vec<u64> = (1..200).map(|number| plan.kept(&asked(Op::Write, number), 512)).collect();
    assert!(kept.iter().all(|&kept| kept % 512 == 0 && kept < 4096));
    assert!(kept.contains(&0) && kept.contains(&3584));
    assert_eq!(plan.kept(&NumberedRequest { length: 512, ..asked(Op::Write, 1) }, 512), 0);
}

#[test]
fn what_is_no_rule_says_how_one_is_written() {
    for wrong in [
        "",
        "read",
        "read:",
        "reads:torn",
        "read:torn",
        "flush:readonly",
        "write:torn,error=eio",
        "read:error=what",
        "read:every=2",
        "read:error=eio,every=0",
        "read:delay=1",
        "read:delay=2h",
        "read:delay=3601s",
        "read:error=eio,probability=101%",
        "read:error=eio,probability=0",
        "read:error=eio,offset=2m..1m",
        "read:error=eio,offset=1m",
        "write:torn=1",
        "read:nonsense",
    ] {
        let said = Rule::parse(wrong).unwrap_err().to_string();
        assert!(said.contains("WHAT") || said.contains("a rule for each"), "{wrong}: {said}");
    }
    assert_eq!(Rule::parse("write:torn,every=1000").unwrap().to_string(), "write:torn,every=1000");
    assert!(Rule::parse("read:delay=3600s").unwrap().delays());
}
