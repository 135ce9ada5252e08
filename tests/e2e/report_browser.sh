#!/usr/bin/env bash
# Opens reports of runs that try to make a browser run their text (hostile.inc). Checks that nothing
# of it runs, with the page's policy and without it, also with the pointer on a chart, and that the
# page's own script and style work. Modified pages prove that a failure of either defence would be
# noticed.
. "$SOURCE/tests/e2e/common.inc"
. "$SOURCE/tests/e2e/hostile.inc"
browser=
for name in chromium chromium-browser google-chrome; do [ -n "$browser" ] || browser=$(command -v $name) || true; done
[ -n "$browser" ] || skip "no browser is installed (Debian: chromium)"
mark="document.documentElement.setAttribute(String.name,1)" # <html string="1">
hostile_pages "$mark"
for page in one two; do sed 's|<meta http-equiv="Content-Security-Policy"[^>]*>||' $page.html > $page-bare.html; done
! grep -q Content-Security-Policy one-bare.html && grep -q Content-Security-Policy one.html || bad "the policy is not where it was removed"
spoil() { awk -v p="<img src=x onerror=$mark>" '{ if (!done && sub(/<h1>/, "<h1>" p)) done = 1; print }' "$1"; }
spoil one-bare.html > seen.html # a payload that is not escaped, without another defence
spoil one.html > held.html # the same under the policy
# A tooltip that is HTML.
sed 's|tip.replaceChildren(.step .+Math.round(at),...parts)|tip.innerHTML=parts.map(t=>t.outerHTML\|\|t).join("")|' two-bare.html > tip.html
cmp -s two-bare.html tip.html && bad "the tooltip's script has changed, so that the rest checks nothing"
cat > all.html <<'HTML'
<!doctype html><meta charset="utf-8"><body><script>
const pages = ["one", "one-bare", "two", "two-bare", "seen", "held", "tip"], told = [];
const frames = pages.map(p => { const f = document.createElement("iframe"); f.width = 1000; f.height = 800; f.src = p + ".html"; document.body.append(f); return f; });
const wait = ms => new Promise(r => setTimeout(r, ms));
onload = async () => {
    for (const [i, f] of frames.entries()) {
        const d = f.contentDocument, w = f.contentWindow, charts = [...d.querySelectorAll("svg[data-x]")].filter(s => s.querySelector("path[data-n]")), texts = [];
        for (const s of charts) {
            const r = s.getBoundingClientRect();
            s.dispatchEvent(new w.PointerEvent("pointermove", {clientX: r.left + r.width / 2, clientY: r.top + 5, bubbles: true}));
            const tip = d.getElementById("tip");
            if (tip && tip.style.display == "block") texts.push(tip.textContent, ...[...tip.querySelectorAll(":not(b)")].map(e => "element " + e.tagName));
            s.dispatchEvent(new w.PointerEvent("pointerleave"));
        }
        for (const e of d.querySelectorAll("details")) e.open = true;
        await wait(300);
        told.push(`PAGE ${pages[i]} ran=${d.documentElement.getAttribute("string") || 0} charts=${charts.length} tips=${texts.filter(t => t.startsWith("step ")).length} ` +
            `elements=${texts.filter(t => t.startsWith("element ")).length} names=${texts.filter(t => t.includes("onerror=")).length > 0} width=${w.getComputedStyle(d.body).maxWidth} END`);
    }
    document.body.textContent = told.join("\n");
};
</script>
HTML
HOME=$WORK timeout 600 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$WORK/profile" --allow-file-access-from-files \
    --virtual-time-budget=20000 --dump-dom "file://$WORK/all.html" > dom.txt 2> browser.txt || bad "the browser: $(tail -n 3 browser.txt)"
page() { grep -o "PAGE $1 .* END" dom.txt || echo "no answer"; }
for name in one one-bare two two-bare; do
    case "$(page $name)" in *' ran=0 '*' elements=0 '*' width=1240px '*) ok ;; *) bad "$(page $name)" ;; esac
    charts=$(page $name | sed 's/.*charts=\([0-9]*\).*/\1/') tips=$(page $name | sed 's/.*tips=\([0-9]*\).*/\1/')
    [ "${charts:-0}" -gt 5 ] && [ "$charts" = "$tips" ] && ok || bad "the page's script did not run on each chart: $(page $name)"
done
case "$(page two)" in *' names=true '*) ok ;; *) bad "no tooltip has the name of a run, so this test checks nothing: $(page two)" ;; esac
case "$(page held)" in *' ran=0 '*' width=1240px '*) ok ;; *) bad "the policy blocks nothing: $(page held)" ;; esac
for name in seen tip; do case "$(page $name)" in *' ran=1 '*) ok ;; *) bad "a payload that runs is not noticed: $(page $name)" ;; esac; done
done_
