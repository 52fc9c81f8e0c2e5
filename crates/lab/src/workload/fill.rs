//! `fill`: writes everything from the offset to the end, in order.

use super::{Blocks, Needs, Parameters, Watch, WorkloadKind, watched, whole};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use crate::streams::{Ask, Limit};
use trueline_geom::base::topology::round_down;

/// Writes until it is full.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "fill",
    title: "writes everything, from the beginning to the end",
    needs: Needs::Blocks(make),
};

const BLOCK: u64 = 1 << 20;

struct Fill {
    bs: u64,
    offset: u64,
    depth: usize,
    limit: Limit,
    sync: bool,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let limit = match (parameters.count, parameters.seconds) {
        (None, None) => Limit::Source,
        _ => parameters.limit(0)?,
    };
    Ok(Box::new(Fill {
        bs: parameters.block(BLOCK)?,
        offset: parameters.offset,
        depth: parameters.depth(1)?,
        limit,
        sync: parameters.sync,
    }))
}

impl Blocks for Fill {
    fn writes(&self) -> bool {
        true
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn largest(&self) -> u64 {
        self.bs
    }

    fn extent(&self, length: u64) -> Option<u64> {
        let all = length.saturating_sub(self.offset).div_ceil(self.bs);
        match self.limit {
            Limit::Count(count) => Some(count.min(all)),
            Limit::Source => Some(all),
            Limit::Time(_) => None,
        }
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        whole(rig, "fill", self.bs, self.offset)?;
        let end = round_down(rig.length(), rig.sector());
        if self.offset >= end {
            return Err(Error::new(format!(
                "fill from {}: the target has {} bytes",
                self.offset,
                rig.length()
            )));
        }
        let mut at = self.offset;
        watched(rig, self.depth, self.limit, watch, &mut |_| {
            let length = self.bs.min(end - at);
            let ask =
                (length > 0).then_some(Ask { op: Op::Write, offset: at, length, fua: self.sync });
            at += length;
            ask
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::recorder::{Recorder, made, ran, refused};

    #[test]
    fn every_sector_is_written_once_and_the_last_block_is_short() {
        let mut rig = Recorder::new(10_000);
        let fill = Parameters { offset: 512, bs: Some(4096), ..Parameters::default() };
        let run = ran(&KIND, &fill, &mut rig);
        assert_eq!(
            rig.asked,
            [(Op::Write, 512, 4096), (Op::Write, 4608, 4096), (Op::Write, 8704, 1024)]
        );
        assert_eq!((run.bytes, made(&KIND, &fill).extent(10_000)), (9216, Some(3)));
        let mut rig = Recorder::new(10_000);
        ran(&KIND, &Parameters { count: Some(1), ..fill.clone() }, &mut rig);
        assert_eq!(rig.asked, [(Op::Write, 512, 4096)]);
        assert_eq!(
            refused(&KIND, &fill, &mut Recorder::new(512)),
            "fill from 512: the target has 512 bytes"
        );
    }
}
