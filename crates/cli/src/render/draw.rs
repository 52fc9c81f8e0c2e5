//! Drawings of a stack: trees, pictures to scale, magnifications, SVG.

pub(crate) mod canvas;
pub(crate) mod inset;
pub(crate) mod members;
pub(crate) mod miss;
pub(crate) mod picture;
pub(crate) mod places;
pub(crate) mod scale;
pub(crate) mod stack;
pub(crate) mod svg;
pub(crate) mod tree;
pub(crate) mod zoom;
