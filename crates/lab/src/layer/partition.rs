//! `partition`: a partition of what is beneath, as a guest has one in an image.
//!
//! A request is moved by the first byte of the partition, and is otherwise the same. Tables are
//! tasted where a disk has them; this is a layer's place within a stack, where there is no table
//! to taste.

use super::steps::Steps;
use super::{Layer, LayerKind, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use serde::Deserialize;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::is_whole;
use trueline_sim::model::keys::names;

/// The layer `partition` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "partition",
    title: "a partition of what is beneath, from a byte of it on",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(Partition(parameters(keys)?))),
};

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The first byte of the partition.
    pub start: u64,
}

impl Default for Keys {
    /// The first MiB is left to the table, as partition editors do today.
    fn default() -> Keys {
        Keys { start: 1 << 20 }
    }
}

/// A partition with its place.
struct Partition(Keys);

impl Layer for Partition {
    fn length(&self, beneath: u64) -> u64 {
        beneath.saturating_sub(self.0.start)
    }

    fn attach(&mut self, _length: u64, sector: u64) -> Result<(), Error> {
        let Keys { start } = self.0;
        if is_whole(start, sector) {
            return Ok(());
        }
        Err(Error::new(format!("start = {start}: not whole sectors of {sector} bytes")))
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        let moved = match ask.op {
            Op::Flush => ask.offset,
            Op::Read | Op::Write => ask.offset.checked_add(self.0.start).ok_or(Errno::Range)?,
        };
        steps.add(Ask { offset: moved, ..ask });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::LayerStack;
    use crate::layer::ask;
    use crate::rig::{Op, Request, Rig};
    use crate::streams::Ask;
    use crate::workload::recorder::Recorder;

    #[test]
    fn requests_are_moved_and_the_rest_is_not_there() {
        let mut inner = Recorder::new(1 << 20);
        let stack = |start: &str| {
            let keys = start.parse().unwrap();
            LayerStack::new(vec![("partition".into(), keys)]).unwrap()
        };
        let mut rig = stack("start = 32256").over(&mut inner).ok().unwrap();
        assert_eq!(rig.length(), (1 << 20) - 32256);
        let Ask { op, offset, length, fua } = ask(Op::Write, 4096, 4096);
        rig.push(Request { tag: 1, op, offset, length, fua }).unwrap();
        rig.wait(1, &mut Vec::new()).unwrap();
        assert_eq!(inner.asked, [(Op::Write, 32256 + 4096, 4096)]);
        let refused = |start: &str| stack(start).over(&mut Recorder::new(1 << 20)).err().unwrap();
        let message = refused("start = 100").message;
        assert_eq!(message, "layer partition: start = 100: not whole sectors of 512 bytes");
        let message = refused("start = 1048576").message;
        assert_eq!(message, "layer partition: 1048576 bytes beneath are too few");
    }
}
