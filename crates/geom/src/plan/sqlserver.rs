//! SQL Server: pages of 8 KiB, handed out eight at a time, on NTFS clusters of such an extent.
//!
//! # Sources
//! Microsoft Learn, "Pages and extents architecture guide" (8 KiB, 64 KiB); "Disk Partition
//! Alignment Best Practices for SQL Server" (allocation unit of 64 KiB); "Troubleshoot errors
//! related to system disk sector size greater than 4 KB" (KB 5009930: log writes on sectors above
//! 4096 bytes fail, `ForcedPhysicalSectorSizeInBytes`).

use super::{Above, Choice, Layer, LayerBase, Plan, Value, database, describe_unit, unit_size};

/// Page of a data file, in bytes.
pub(super) const PAGE: u64 = 8192;
pub(super) const EXTENT: u64 = 65536;
/// Largest physical sector in bytes that the log is written on.
const SECTOR: u64 = 4096;

pub(super) struct SqlServer;

impl Layer for SqlServer {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let why = format!(
            "fixed; pages begin on any {} bytes; {}",
            database::grid(base, PAGE),
            describe_unit(t)
        );
        plan.choose(
            Choice::new("sqlserver", "page", Value::Bytes(PAGE), why)
                .costing(database::price(base, PAGE)),
        );
        let why = "eight pages, written together at a checkpoint where they can be; the cluster \
            beneath is to be one";
        plan.choose(
            Choice::new("sqlserver", "extent", Value::Bytes(EXTENT), why)
                .costing(database::price(base, EXTENT)),
        );
        let sector = unit_size(t).clamp(512, SECTOR);
        let why = "the log is written in whole physical sectors, padded, as the drive says them";
        plan.choose(
            Choice::new("sqlserver", "log sector", Value::Bytes(sector), why)
                .costing(database::price(base, sector)),
        );
        if unit_size(t) > SECTOR {
            plan.note(format!(
                "sqlserver: a drive that says physical sectors of {} bytes is refused by Windows versions that believe it: ForcedPhysicalSectorSizeInBytes 4095 in stornvme's registry key, or trace flag 1800 between replicas of 512 and 4096",
                unit_size(t)
            ));
        }
        plan.note(
            "sqlserver: on Windows the volume is made by Format-Volume -FileSystem NTFS \
            -AllocationUnitSize 65536; on Linux XFS is supported",
        );
        base.clone()
    }
}
