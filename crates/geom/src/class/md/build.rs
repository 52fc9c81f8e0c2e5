//! The choice of members, and the set that they make.

use super::*;
use crate::mapping::raid::fault::{Exclusion, Fault};
use crate::mapping::raid::layout::Mirror;

/// Events by which a member may be behind: it missed the last write of superblocks alone.
const MARGIN: u64 = 1;

/// Members of one set while it is decided what to make of them.
pub(super) struct Building<'a> {
    /// Index among those present, length of the provider, superblock.
    all: &'a [(usize, u64, &'a Superblock)],
    /// The superblock that counts.
    newest: &'a Superblock,
    /// Members in use, by role; more than one where one replaces another.
    roles: Vec<Vec<(usize, &'a Superblock)>>,
    findings: Vec<(usize, Finding)>,
}

impl<'a> Building<'a> {
    /// The members sorted into their roles; `None` if there are none.
    pub(super) fn new(all: &'a [(usize, u64, &'a Superblock)]) -> Option<Building<'a>> {
        let most = all.iter().map(|(_, _, sb)| sb.events).max()?;
        let newest = all.iter().map(|(_, _, sb)| *sb).find(|sb| sb.events == most)?;
        let disks = usize::try_from(newest.most_disks()).ok()?;
        let mut building =
            Building { all, newest, roles: vec![Vec::new(); disks], findings: Vec::new() };
        building.sort();
        Some(building)
    }

    fn sort(&mut self) {
        for &(at, length, sb) in self.all {
            let Role::Active(role) = sb.role else { continue };
            if let Err(why) = self.place(at, length, sb, role) {
                self.leave(at, sb, &why);
            }
        }
        // Of two holders of one role that which has all of it comes first.
        for holders in &mut self.roles {
            holders.sort_by_key(|(_, sb)| std::cmp::Reverse(sb.recovered));
        }
    }

    /// Gives a member its role, or says why it is left out.
    fn place(
        &mut self,
        at: usize,
        length: u64,
        sb: &'a Superblock,
        role: u32,
    ) -> Result<(), Exclusion> {
        let newest = self.newest;
        if (sb.shape, sb.size, &sb.version) != (newest.shape, newest.size, &newest.version)
            && sb.events.saturating_add(MARGIN) >= newest.events
        {
            return Err(Exclusion::Contradicts);
        }
        if sb.events.saturating_add(MARGIN) < newest.events {
            return Err(Exclusion::Stale { seen: sb.events, newest: newest.events });
        }
        if !newest.active.contains(&sb.number) {
            return Err(Exclusion::Failed);
        }
        let starts = [sb.data_offset, sb.reshape.map(|reshape| reshape.data_offset)];
        let start = starts.into_iter().flatten().max();
        let needed = start.and_then(|start| start.checked_add(sb.used()));
        if needed.is_none_or(|end| end > length) {
            return Err(Exclusion::Short { length, end: needed.unwrap_or(u64::MAX) });
        }
        let slot = usize::try_from(role).ok().and_then(|role| self.roles.get_mut(role));
        let Some(holders) = slot else {
            return Err(Exclusion::Role { role, members: newest.most_disks() });
        };
        let replaces = |sb: &Superblock| sb.features & feature::REPLACEMENT != 0;
        if let Some((_, other)) = holders.iter().find(|(_, other)| replaces(other) == replaces(sb))
        {
            return Err(if other.device == sb.device {
                Exclusion::Copy(role)
            } else {
                Exclusion::Taken(role)
            });
        }
        holders.push((at, sb));
        Ok(())
    }

    fn leave(&mut self, at: usize, sb: &Superblock, why: &Exclusion) {
        let message = format!("left out of the md set {}: {why}", sb.short_name());
        let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, sb.at, message);
        self.findings.push((at, finding));
    }

    /// The set, if all its roles are filled, or with `degraded` enough of them.
    pub(super) fn assembly(mut self, degraded: bool) -> Option<Assembly> {
        let missing = self.roles.iter().filter(|holders| !is_filled(holders)).count();
        if missing > 0 && !degraded {
            return None;
        }
        let used: Vec<(usize, &Superblock)> = self.roles.iter().flatten().copied().collect();
        let here: Vec<usize> = used.iter().map(|(at, _)| *at).collect();
        let findings = std::mem::take(&mut self.findings);
        if !self.has_enough(missing) {
            // Members that are left out have their reasons; others are only missing.
            return (!findings.is_empty()).then_some(Assembly {
                layers: Vec::new(),
                findings,
                here,
            });
        }
        let mut assembly = Assembly { layers: Vec::new(), findings, here };
        match self.set(missing) {
            Ok(set) => {
                let below = assembly.here.iter().map(|&at| Below::Member(at)).collect();
                assembly.layers.push(Layer::new(Arc::new(set), below));
            }
            Err(why) => {
                let name = self.newest.short_name();
                let message = format!("the md set {name} is not made: {why}");
                let sb = self.newest;
                let mut finding =
                    Finding::new(&finding::INCOMPLETE, Severity::Warning, sb.at, message);
                if why == Fault::Unsaid {
                    finding = finding.fix(
                        "if a kernel before 3.14 wrote it, it is the original \
                        layout; on Linux: mdadm --assemble --update=layout-original, else \
                        --update=layout-alternate",
                    );
                }
                let first = assembly.here.first().copied().unwrap_or(0);
                assembly.findings.push((first, finding));
            }
        }
        Some(assembly)
    }

    /// True if the level can do without as many members as are missing.
    fn has_enough(&self, missing: usize) -> bool {
        let least = |shape: &RaidShape| match shape.level {
            1 => self.roles.iter().any(|holders| is_filled(holders)),
            4 | 5 => missing <= 1,
            6 => missing <= 2,
            10 => match self.layout(shape) {
                Ok(Layout::Copies(copies)) => {
                    copies.has_all(|role| self.roles.get(role).is_some_and(|r| is_filled(r)))
                }
                _ => missing == 0,
            },
            _ => missing == 0,
        };
        let old = self.newest.reshape.map(|reshape| reshape.old);
        least(&self.newest.shape) && old.is_none_or(|old| least(&old))
    }

    fn layout(&self, shape: &RaidShape) -> Result<Layout, Fault> {
        let shape = self.newest.shape(*shape);
        let rooms: Vec<u64> = self
            .roles
            .iter()
            .take(usize::try_from(shape.disks).unwrap_or(usize::MAX))
            .map(|holders| holders.first().map_or(0, |(_, sb)| sb.used()))
            .collect();
        let least = self.roles.iter().flatten().map(|(_, sb)| sb.used()).min().unwrap_or(0);
        let mut layout = Layout::new(&shape, least, &rooms)?;
        if let Layout::Mirror(Mirror { order, .. }) = &mut layout {
            let late =
                |role: &usize| self.roles[*role].first().is_some_and(|(_, sb)| sb.write_mostly);
            order.sort_by_key(late);
        }
        Ok(layout)
    }

    /// The set of the members in use.
    fn set(&self, missing: usize) -> Result<Set, Fault> {
        let mut consumers = 0;
        let roles: Vec<Vec<Half>> = self
            .roles
            .iter()
            .map(|holders| {
                let half = |(_, sb): &(usize, &Superblock)| {
                    let offset = sb.data_offset.unwrap_or(u64::MAX);
                    consumers += 1;
                    Half {
                        consumer: consumers - 1,
                        offset,
                        new_offset: sb.reshape.map_or(offset, |reshape| reshape.data_offset),
                        recovered: sb.recovered,
                        bad: sb.bad.iter().map(|&(at, n)| (at, at.saturating_add(n))).collect(),
                    }
                };
                holders.iter().map(half).collect()
            })
            .collect();
        let new = self.layout(&self.newest.shape)?;
        let parts = match self.newest.reshape {
            None => Part::whole(new),
            Some(reshape) => {
                let old = self.layout(&reshape.old)?;
                Part::around(reshape.position, reshape.backwards, old, new)
            }
        };
        let length = parts.last().map_or(0, |part| part.end);
        if length == 0 {
            return Err(Fault::Empty);
        }
        let name = format!("md/{}", self.newest.short_name());
        let read_only = self.read_only(&parts, missing);
        let shape = self.newest.shape(self.newest.shape);
        let arrangement = Arrangement {
            level: shape.level_name(),
            layout: shape.layout_name(),
            chunk: Some(shape.chunk).filter(|&chunk| chunk > 0 && shape.level != 1),
            members: roles.len(),
            present: roles.len() - missing,
        };
        let arrangement = Some(arrangement);
        Ok(Set { name, length, parts, roles, arrangement, read_only })
    }

    /// The reason for which the set is not written, the first of several.
    fn read_only(&self, parts: &[Part], missing: usize) -> Option<&'static str> {
        let holders = || self.roles.iter().flatten();
        let unsynced = holders().any(|(_, sb)| sb.recovered != u64::MAX);
        let parity = parts.iter().any(|part| matches!(part.layout, Layout::Parity(_)));
        let redundant = parts.iter().any(|part| part.layout.copies() > 1);
        if parity {
            Some("a write would have to change its parity as well")
        } else if parts.len() > 1 {
            Some("a reshape of it is under way")
        } else if missing > 0 && !unsynced {
            Some("members of it are missing, and would be stale")
        } else if unsynced || self.roles.iter().any(|holders| holders.len() > 1) {
            Some("a member of it is being rebuilt")
        } else if holders().any(|(_, sb)| !sb.bad.is_empty()) {
            Some("members of it have bad blocks")
        } else if redundant && !self.newest.clean {
            Some("it was not stopped in order, so its copies may differ")
        } else {
            None
        }
    }
}

/// True if a holder of a role has all of it: one that is being rebuilt keeps no set alive.
fn is_filled(holders: &[(usize, &Superblock)]) -> bool {
    holders.iter().any(|(_, sb)| sb.recovered == u64::MAX)
}
