"""Lays the pages of the site out for mdBook, and checks the links of what it made.

    pages.py stage OUT [--labs PAGE] [--bench RESULTS]
    pages.py links SITE

The pages are the Markdown files of the repository, at their places in it, so that their links hold. SUMMARY.md is made of
what is there: a page that is added is in the contents without being named anywhere.
"""

import html.parser
import pathlib
import re
import shutil
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
# Parts of the contents: a heading, a page that its pages stand beneath, and where they are.
PARTS = [
    ("For", None, ["docs/for/*.md"]),
    ("Manual", None, ["docs/manual/*.md"]),
    ("Topics", None, ["docs/topics/*.md"]),
    ("Reference", "docs/rules/index.md", ["docs/rules/*.md"]),
    ("Measured", None, ["docs/comparison.md", "benches/README.md", "labs/index.md"]),
    ("Inside", None, ["CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/PLAN.md", "docs/versions.md",
                      "tests/README.md", "contrib/*.md", "contrib/*/index.md", "crates/*/README.md"]),
    (None, "docs/decisions/README.md", ["docs/decisions/*.md"]),
]
FIRST = ["README.md", "docs/tour.md"]


def title(page):
    """Heading of a page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    raise SystemExit(f"{page}: no heading")


def outside_of_code(text, change):
    """`text` with `change` done to what is in no block of code."""
    fenced, indented = False, True
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            fenced = not fenced
        # Indented lines are code behind an empty line; behind a line of text they go on with it.
        indented = not line.strip() or (indented and line.startswith("    "))
        yield line if fenced or indented else change(line)


def listing(directory):
    """Page that lists a directory, for links to it."""
    entries = sorted(entry for entry in directory.iterdir() if entry.name != "index.md")
    if all(entry.suffix == ".md" for entry in entries):
        lines = [f"- [{title(entry)}]({entry.name})\n" for entry in entries]
        return f"# {directory.name.capitalize()}\n\n" + "".join(lines)
    return f"# {directory.relative_to(ROOT)}\n\n" + "".join(f"- `{entry.name}`\n" for entry in entries)


class Stage:
    """Pages on their way to the site, in `out`."""

    def __init__(self, out, names):
        self.out = out
        self.names = set(names)
        self.pages = []

    def add(self, name, text):
        """A page, with its links made fit for the site and the files that it names beside it."""
        place = pathlib.PurePosixPath(name).parent

        def point(match):
            target = urllib.parse.urlsplit(match[2])
            if target.scheme or not target.path:
                return match[0]
            path = (ROOT / place / target.path).resolve()
            if not path.exists():
                raise SystemExit(f"{name}: {match[2]} leads nowhere")
            inside = path.relative_to(ROOT)
            if path.is_dir():
                return match[1] + self.directory(place, inside) + match[3]
            if path.suffix != ".md":
                self.file(inside)
            elif inside.as_posix() not in self.names:
                raise SystemExit(f"{name}: {match[2]} is no page of the site")
            return match[0]

        self.write(name, "".join(outside_of_code(text, lambda line: LINK.sub(point, line))))
        self.pages.append(name)

    def directory(self, place, inside):
        """Link from `place` to a directory: to its README, or to a list of what is in it."""
        page = inside / "README.md"
        if not (ROOT / page).exists():
            page = inside / "index.md"
            if page.as_posix() not in self.pages:
                self.pages.append(page.as_posix())
                self.write(page, listing(ROOT / inside))
        up = len(place.parts)
        return "../" * up + page.as_posix()

    def file(self, inside):
        (self.out / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / inside, self.out / inside)

    def write(self, name, text):
        (self.out / name).parent.mkdir(parents=True, exist_ok=True)
        (self.out / name).write_text(text, encoding="utf-8")

    def summary(self):
        """Contents: the parts in their order, and in each the pages in that in which README.md names them."""
        readme = (ROOT / "README.md").read_text(encoding="utf-8")

        def order(name):
            named = readme.find(f"]({name})")
            return (named < 0, named, name)

        left = set(self.pages) - set(FIRST)
        lines = [f"[{title(self.out / name)}]({name})\n" for name in FIRST]
        for heading, above, patterns in PARTS:
            names = sorted(
                (name for name in left if any(pathlib.PurePosixPath(name).match(p) for p in patterns)), key=order
            )
            if heading:
                lines.append(f"\n# {heading}\n\n")
            if above:
                lines.append(f"- [{title(self.out / above)}]({above})\n")
            left -= set(names) | {above}
            lines += [f"{'  ' if above else ''}- [{title(self.out / n)}]({n})\n" for n in names if n != above]
        lines += [f"- [{title(self.out / name)}]({name})\n" for name in sorted(left)]
        self.write("SUMMARY.md", "".join(lines))


def labs_page(stage, results):
    """Page of the labs: what each is, and the results as `trueline lab --html` draws them."""
    lines = ["# The labs\n\n", "Published measurements, repeated on simulated drives ([the manual](../docs/manual/lab.md)). "]
    if results:
        (stage.out / "labs").mkdir(exist_ok=True)
        shutil.copyfile(results, stage.out / "labs/results.html")
        lines.append("**[All results, drawn](results.html)**, by `trueline lab run --all --html`.\n\n")
    else:
        lines.append("The page of `trueline lab run --all --html` was not made for this site.\n\n")
    lines += ["| file | what it repeats |\n", "|---|---|\n"]
    for path in sorted((ROOT / "labs").glob("*.toml")):
        stage.file(path.relative_to(ROOT))
        found = re.search(r'^title = "(.*)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        lines.append(f"| [{path.name}]({path.name}) | {found[1] if found else ''} |\n")
    stage.write("labs/index.md", "".join(lines))
    stage.pages.append("labs/index.md")


def benches_page(text, results):
    """The tables of benches/README.md, or before them those of the last `make bench`."""
    if not results:
        note = "The tables are those of the repository: no `make bench` ran where this site was made.\n"
        return text.replace("\n## Figures\n", f"\n## Figures\n\n{note}", 1)
    last = results.read_text(encoding="utf-8")
    return text.replace(
        "\n## Figures\n",
        f"\n## The last `make bench`\n\nOn the machine that made this site:\n\n```text\n{last}```\n\n## Figures\n",
        1,
    )


def stage(out, labs, bench):
    """Lays all pages out in `out`."""
    names = {f"{name}.md" for name in ["README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"]}
    names |= {f"{folder}/README.md" for folder in ["benches", "contrib", "tests"]}
    for folder in ["docs", "crates"]:
        names |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.md")}
    stage = Stage(out, names)
    labs_page(stage, labs)
    for name in sorted(names):
        text = (ROOT / name).read_text(encoding="utf-8")
        stage.add(name, benches_page(text, bench) if name == "benches/README.md" else text)
    stage.directory(pathlib.PurePosixPath(), pathlib.PurePosixPath("docs/rules"))
    stage.summary()
    print(f"{len(stage.pages)} pages; bench tables: {'target/bench.txt' if bench else 'benches/README.md'}")


class Page(html.parser.HTMLParser):
    """Places and links of a page of the site."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.ids |= {names[key] for key in ("id", "name") if names.get(key)}
        for key in ("href", "src"):
            if names.get(key):
                loads = key == "src" or tag == "link"
                (self.loaded if loads else self.links).append(names[key])


def links(site):
    """Follows every link within the site; whatever a page loads has to be in it."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            target = urllib.parse.urlsplit(link)
            if target.scheme or target.netloc:
                if link in page.loaded and target.scheme != "data":
                    wrong.append(f"{path.relative_to(site)}: loads {link}")
                continue
            to = (path.parent / urllib.parse.unquote(target.path)).resolve() if target.path else path
            anchor = urllib.parse.unquote(target.fragment)
            if not to.exists() or to.is_dir():
                wrong.append(f"{path.relative_to(site)}: {link} leads nowhere")
            elif anchor and to in pages and anchor not in pages[to].ids:
                wrong.append(f"{path.relative_to(site)}: {link}: no such place there")
    for line in sorted(set(wrong)):
        print(line, file=sys.stderr)
    if wrong:
        raise SystemExit(f"{len(set(wrong))} links are wrong")
    print(f"{sum(len(page.links) for page in pages.values())} links of {len(pages)} pages are right")


def main():
    """Runs the verb on the command line."""
    verb, where, *options = sys.argv[1:]
    where = pathlib.Path(where).resolve()
    if verb == "links":
        return links(where)
    given = dict(zip(options[::2], map(pathlib.Path, options[1::2])))
    return stage(where, given.get("--labs"), given.get("--bench"))


if __name__ == "__main__":
    main()
