//! Lists of names under `--help`: a name a line, its meaning beside it.

/// `title`, then a line for each name with its meaning; [`crate::words::after_help`] breaks lines
/// that are too long.
use crate::words::width::columns_of;

pub(crate) fn listed<'a>(
    title: &str,
    names: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> String {
    let wide = names.clone().map(|(name, _)| columns_of(name)).max().unwrap_or(0);
    names.fold(format!("{title}:"), |text, (name, about)| {
        text + &format!("\n  {name:wide$}  {about}")
    })
}
