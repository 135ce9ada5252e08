#!/usr/bin/env bash
# Checks that text of a data set, a model or a folder's name stays text in a report: it makes no
# element, attribute or script, and the page's policy lets a browser run only the page's own script.
# e2e/report_browser opens the same pages in a browser.
. "$SOURCE/tests/e2e/common.inc"
. "$SOURCE/tests/e2e/hostile.inc"
hostile_pages "alert(1)"
cat > look.py <<'PY'
import base64, hashlib, html.parser, re, sys
class Page(html.parser.HTMLParser):
    tags, policy, texts, inside = set(), None, {"script": [], "style": []}, None
    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        names = dict(attributes)
        assert not [n for n in names if n.startswith("on") or n == "style"], (tag, attributes)
        if tag == "meta" and names.get("http-equiv") == "Content-Security-Policy":
            self.policy = names["content"]
        if tag in self.texts:
            assert not attributes, attributes
            self.texts[tag].append("")
            self.inside = tag
    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None
    def handle_data(self, text):
        if self.inside:
            self.texts[self.inside][-1] += text
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
assert not page.tags & {"img", "iframe", "object", "embed", "link", "a", "form", "base"}, page.tags
rules = dict(r.strip().split(" ", 1) for r in page.policy.split(";"))
assert rules["default-src"] == "'none'" and "unsafe" not in page.policy, rules
for kind, texts in page.texts.items():
    assert len(texts) == 1, (kind, len(texts))
    digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
    assert rules[kind + "-src"] == f"'sha256-{digest}'", (kind, rules[kind + "-src"], digest)
PY
if has_python; then
    for f in one.html two.html; do python3 look.py $f 2> err.txt && ok || bad "$f: $(tail -1 err.txt)"; done
    sed "s|<h1>|<h1><img src=x>|" one.html > spoilt.html
    python3 look.py spoilt.html 2> /dev/null && bad "the check does not see a foreign element" || ok
fi
done_
