//! Cures of the layers that miss, as the page shows them: the fixes of the check, and commands for this very disk.

use crate::out::escape;
use crate::report::{Provider, Target, Verdict};
use crate::target;
use serde::Serialize;
use trueline_geom::finding;

/// Fixes of one provider, the best first; one that begins with `trueline` is a command.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cure {
    /// The provider's name.
    provider: String,
    /// The rule that they are for.
    rule: &'static str,
    fix: Vec<String>,
}

/// Cures for every provider of `stack` that misses a boundary.
pub(super) fn of(stack: &Target) -> Vec<Cure> {
    stack.providers.iter().flat_map(|provider| cures(stack, provider)).collect()
}

fn cures(stack: &Target, provider: &Provider) -> Vec<Cure> {
    let cure = |rule, fix| Cure { provider: provider.provider.clone(), rule, fix };
    let own = stack.findings.iter().filter(|found| found.provider == provider.provider && !found.fix.is_empty());
    let mut cures: Vec<Cure> = own.map(|found| cure(found.rule, found.fix.iter().map(|fix| escape::plain(fix)).collect())).collect();
    let Some(command) = moved(stack, provider) else { return cures };
    match cures.iter_mut().find(|cure| cure.rule == finding::START.id) {
        // The check may name the command itself.
        Some(start) if start.fix.iter().any(|fix| fix.contains("trueline move")) => {}
        Some(start) => start.fix.insert(0, command),
        None => cures.push(cure(finding::START.id, vec![command])),
    }
    cures
}

/// The command that moves a provider to a boundary, if it is a partition of a single disk and begins off one.
fn moved(stack: &Target, provider: &Provider) -> Option<String> {
    let (disks, _) = target::split(&stack.target);
    let [disk] = disks[..] else { return None };
    let off = provider.verdict == Verdict::Misaligned || provider.grains.iter().any(|grain| grain.why == "physical" && grain.phase != 0);
    let partition = matches!(provider.class, "gpt" | "mbr" | "ebr" | "bsd") && provider.parent.is_some();
    let target = escape::plain(&format!("{disk}#{}", provider.provider)).replace('\'', r"'\''");
    (off && partition).then(|| format!("trueline move '{target}' --align"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn what_begins_off_a_boundary_has_a_command_for_this_disk() {
        let cures = of(&samples::openbsd());
        let find = |name: &str, rule: &str| cures.iter().find(|cure| cure.provider == name && cure.rule == rule);
        let swap = find("s4b", "TL0001").unwrap();
        assert_eq!(swap.fix[0], "trueline move 'openbsd.img#s4b' --align");
        assert!(swap.fix[1].starts_with("start it at byte "), "{swap:?}");
        // The slice has no finding of that rule, and begins off a boundary all the same.
        assert_eq!(find("s4", "TL0001").unwrap().fix, ["trueline move 'openbsd.img#s4' --align"]);
        assert_eq!((find("s4d", "TL0001"), find("", "TL0001")), (None, None));
        assert_eq!(of(&samples::gpt()), []);
        // Of a set no command is known.
        assert!(of(&samples::stripe()).iter().flat_map(|cure| &cure.fix).all(|fix| !fix.contains("trueline move")));
    }
}
