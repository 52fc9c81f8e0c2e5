//! Swap: the kernel's page.
//!
//! # Sources
//! mkswap(8): `-p`, needed only where the page is not that of the running kernel.

use super::{Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe_unit, written};
use crate::base::topology::Topology;

/// Parameters of mkswap, as `-p` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Page of the kernel, in bytes.
    pub page: u64,
}

impl Parameters {
    /// The page, which does not depend on the device.
    pub fn for_topology(_topology: &Topology) -> Parameters {
        Parameters { page: PAGE }
    }

    /// Arguments of mkswap: `-p`, in bytes.
    pub fn options(&self) -> Vec<String> {
        ["-p".to_owned(), self.page.to_string()].into()
    }
}

pub(super) struct Swap;

impl Layer for Swap {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let price = |size| Price::amplified(written(t, size, size));
        let page = Choice::new(
            "swap",
            "page",
            Value::Bytes(p.page),
            format!(
                "the kernel's; {}; neighbours are written together where they can be",
                describe_unit(t)
            ),
        )
        .typed(format!("-p {}", p.page))
        .costing(price(p.page))
        .or(Value::Bytes(16384), price(16384), "only with a kernel of 16 KiB pages (arm64)")
        .or(
            Value::Bytes(65536),
            price(65536),
            "only with a kernel of 64 KiB pages (arm64, ppc64)",
        );
        plan.choose(page);
        base.make("swap", "mkswap", &p.options(), plan);
        if !base.is_image() {
            plan.run(format!("swapon {}", base.arguments()));
        }
        LayerBase::device(t.clone(), "swap")
    }
}
