//! Lists of names under `--help`: a name a line, its meaning beside it, broken to fit a terminal of 80 columns.

/// Columns of a terminal that everybody has.
const WIDTH: usize = 80;

/// `title` and a line for each name with what it means; a meaning that is too long goes on beneath itself.
pub(crate) fn listed<'a>(title: &str, names: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let wide = names.clone().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{title}:");
    for (name, about) in names {
        text += &format!("\n  {name:wide$} ");
        let mut at = wide + 3;
        for word in about.split_whitespace() {
            let length = word.chars().count();
            if at > wide + 3 && at + 1 + length > WIDTH {
                text += &format!("\n  {:wide$} ", "");
                at = wide + 3;
            }
            text = text + " " + word;
            at += 1 + length;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_long_goes_on_beneath_itself() {
        let long = "word ".repeat(20);
        let text = super::listed("Uses", [("a", "short"), ("long-name", long.as_str())].into_iter());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["Uses:", "  a          short"]);
        assert!(lines.iter().all(|line| line.chars().count() <= 80) && lines[3].starts_with("             word"), "{text}");
    }
}
