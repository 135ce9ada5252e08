#!/usr/bin/env bash
# What a dataset, a model or a folder's name says is text in a report: no element, no attribute and no script of its own, and the page's policy lets
# a browser run the page's one script alone.
. "$SOURCE/tests/e2e/common.inc"
tiny_config
x='"><img src=x onerror=alert(1)><script>alert(2)</script>'
folder="run'\"><script>alert(3)<"
json_x=${x//\"/\\\"}
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"id\":\"$json_x $i\",\"prompt\":\"$i+1=\",\"answer\":\"$((i + 1))\",\"subject\":\"$json_x\"}"
done > rows.jsonl
keys=(run.dir="$folder" run.name="$x" data.train=rows.jsonl data.eval=rows.jsonl train.steps=4 train.minibatch=32)
"$TARE" -q train tiny.ini "${keys[@]}" > /dev/null 2> err.txt && ok || bad "train: $(cat err.txt)"
"$TARE" -q train tiny.ini "${keys[@]}" run.dir=plain estimator.plugin=grpo > /dev/null 2> err.txt && ok || bad "train: $(cat err.txt)"
# What a model wrote cannot be chosen here: it is put into the record of the rollouts as if it had been written.
for f in "$folder"/rollouts/*.jsonl; do sed -i "s|\"completion\": *\"|&$(printf '%s' "$json_x" | sed 's/[\\&|]/\\&/g')|" "$f"; done
"$TARE" -q eval "$folder" data.eval=rows.jsonl > /dev/null 2> err.txt && ok || bad "eval: $(cat err.txt)"
"$TARE" -q report "$folder" -o one.html 2> err.txt && ok || bad "report: $(cat err.txt)"
"$TARE" -q report "$folder" plain -o two.html 2> err.txt && ok || bad "report of two: $(cat err.txt)"
grep -qF 'alert(1)' one.html && grep -qF 'alert(3)' one.html && ok || bad "the report shows neither the rows nor the folder, so this test tests nothing"
cat > look.py <<'PY'
import base64, hashlib, html.parser, re, sys
class Page(html.parser.HTMLParser):
    tags, policy, scripts, inside = set(), None, [], False
    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        names = dict(attributes)
        assert not [n for n in names if n.startswith("on")], (tag, attributes)
        if tag == "meta" and names.get("http-equiv") == "Content-Security-Policy":
            self.policy = names["content"]
        if tag == "script":
            assert not attributes, attributes
            self.scripts.append("")
            self.inside = True
    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"
    def handle_data(self, text):
        if self.inside:
            self.scripts[-1] += text
page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
assert not page.tags & {"img", "iframe", "object", "embed", "link", "a", "form", "base"}, page.tags
assert len(page.scripts) == 1, len(page.scripts)
rules = dict(r.strip().split(" ", 1) for r in page.policy.split(";"))
assert rules["default-src"] == "'none'", rules
digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
assert rules["script-src"] == f"'sha256-{digest}'", (rules["script-src"], digest)
PY
if has_python; then
    for f in one.html two.html; do python3 look.py $f 2> err.txt && ok || bad "$f: $(tail -1 err.txt)"; done
    sed "s|<h1>|<h1>$x|" one.html > spoilt.html
    python3 look.py spoilt.html 2> /dev/null && bad "the check does not see an element that does not belong" || ok
fi
done_
