//! The example `relocate`: a partition is moved, interrupted and resumed, and the example itself
//! compares every byte.

#[path = "../examples/relocate.rs"]
mod relocate;

#[test]
fn the_example_moves_a_partition_and_loses_nothing() {
    relocate::main().expect("the example ends well");
}
