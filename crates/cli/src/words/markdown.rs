//! The Markdown of rule pages as HTML: headings, paragraphs, lists, tables as they stand, code,
//! emphasis.
//!
//! Everything is escaped before it is marked up, so a page can bring no element of its own.

use super::escape;

/// The block that the current line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    List,
    Code,
    Table,
}

/// A page as HTML. Its headings begin at `<h4>`: a page is part of a section.
pub(crate) fn html(page: &str) -> String {
    let (mut out, mut block) = (String::new(), Block::None);
    for line in page.lines() {
        let trimmed = line.trim();
        if block == Block::Code {
            if trimmed.starts_with("```") {
                close(&mut out, &mut block);
            } else {
                out.push_str(&escape::xml(line));
                out.push('\n');
            }
        } else if trimmed.starts_with("```") {
            open(&mut out, &mut block, Block::Code);
        } else if trimmed.is_empty() {
            close(&mut out, &mut block);
        } else if let Some(heading) = trimmed.strip_prefix('#') {
            close(&mut out, &mut block);
            out.push_str(&format!("<h4>{}</h4>\n", inline(heading.trim_start_matches('#').trim())));
        } else if trimmed.starts_with('|') {
            open(&mut out, &mut block, Block::Table);
            out.push_str(&escape::xml(trimmed));
            out.push('\n');
        } else if let Some(item) = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* "))
        {
            open(&mut out, &mut block, Block::List);
            out.push_str(&format!("<li>{}", inline(item)));
        } else {
            let continued = matches!(block, Block::Paragraph | Block::List);
            if continued {
                out.push('\n');
            } else {
                open(&mut out, &mut block, Block::Paragraph);
            }
            out.push_str(&inline(trimmed));
        }
    }
    close(&mut out, &mut block);
    out
}

fn open(out: &mut String, block: &mut Block, new: Block) {
    if *block == new {
        return;
    }
    close(out, block);
    out.push_str(match new {
        Block::None => "",
        Block::Paragraph => "<p>",
        Block::List => "<ul>",
        Block::Code | Block::Table => "<pre>",
    });
    *block = new;
}

fn close(out: &mut String, block: &mut Block) {
    out.push_str(match block {
        Block::None => "",
        Block::Paragraph => "</p>\n",
        Block::List => "</ul>\n",
        Block::Code | Block::Table => "</pre>\n",
    });
    *block = Block::None;
}

/// Code between backticks and strong text between double stars, if both marks are on the line.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (nth, part) in pairs(text, "`").into_iter().enumerate() {
        if nth.is_multiple_of(2) {
            for (nth, part) in pairs(part, "**").into_iter().enumerate() {
                let part = escape::xml(part);
                out.push_str(&if nth.is_multiple_of(2) {
                    part
                } else {
                    format!("<strong>{part}</strong>")
                });
            }
        } else {
            out.push_str(&format!("<code>{}</code>", escape::xml(part)));
        }
    }
    out
}

/// `text` cut at `mark`: every second part lies between a pair of marks. One part if the marks do
/// not pair.
fn pairs<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let parts: Vec<&str> = text.split(mark).collect();
    if parts.len().is_multiple_of(2) { vec![text] } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page() {
        let page = "# A & B\n\nOne `x<y` **two**\nthree.\n- item `a`\n  more\n- \
            last\n\n```\n<b>\n```\n| a | b |\n";
        let want = "<h4>A &amp; B</h4>\n<p>One <code>x&lt;y</code> <strong>two</strong>\nthree.</p>\
            \n<ul><li>item <code>a</code>\nmore<li>last</ul>\n<pre>&lt;b&gt;\n</pre>\n<pre>| a | b \
            |\n</pre>\n";
        assert_eq!(html(page), want);
        assert_eq!(html("a ` b ** c"), "<p>a ` b ** c</p>\n");
    }
}
