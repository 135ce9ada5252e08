/* The style sheet and the script of a report. They use no network and only system fonts. */
#include "lab/report/page.h"

/* Cell strengths of a heat map (svg_heat_print) as classes, because the page's policy forbids
 * inline styles. */
#define HEAT(N) ".h" #N "{--t:" #N "%}"
#define HEATS(A, B, C, D, E) HEAT(A) HEAT(B) HEAT(C) HEAT(D) HEAT(E)

const char REPORT_STYLE[] =
    ":root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--fg:#1d2127;--dim:#5d6673;--rule:#e3e5e8;--heat:#2f6fb5;--c0:#2b6cb0;--c1:#c8581a;--c2:#23804f;--c3:#a8327a;--c4:#6a4fb8;--c5:#8a6d0b;--c6:#0f8294;--c7:#6b7280}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1b1f25;--fg:#e4e7eb;--dim:#9aa4b1;--rule:#303740;--heat:#4f97e0;--c0:#6cb0f5;--c1:#f39a5d;--c2:#5cc48d;--c3:#e87fc0;--c4:#ad97f0;--c5:#d9b84a;--c6:#4cc4d6;--c7:#a3adba}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;padding:20px 16px 60px;max-width:1240px;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5em;margin:.2em 0}h2{font-size:1.15em;margin:2em 0 .6em;border-bottom:1px solid var(--rule);padding-bottom:.3em}h3{font-size:1em;margin:1.2em 0 .4em}p{margin:.5em 0}.dim,small{color:var(--dim);font-weight:normal}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,350px),1fr));gap:14px}.charts+.charts,.charts+figure{margin-top:14px}.two{grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr))}\n"
    "figure{margin:0;padding:10px 12px;background:var(--card);border:1px solid var(--rule);border-radius:8px;min-width:0}figcaption{font-weight:600;font-size:.93em;margin-bottom:4px}figure.wide,figure:has(table){grid-column:1/-1}\n"
    "svg{display:block;width:100%;height:auto;overflow:visible}svg text{font:12px system-ui,sans-serif;fill:var(--dim)}text.y{text-anchor:end}text.x{text-anchor:middle}.grid{stroke:var(--rule);fill:none}.axis{stroke:var(--dim);fill:none}\n"
    ".line{fill:none;stroke:var(--k);stroke-width:1.8;stroke-linejoin:round}.line.faint{stroke-width:1;opacity:.4}.d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}.band{fill:var(--k);opacity:.15}.area{fill:var(--k);opacity:.75}.dot{fill:var(--k)}.dot.faint{opacity:.45}\n"
    ".c0{--k:var(--c0)}.c1{--k:var(--c1)}.c2{--k:var(--c2)}.c3{--k:var(--c3)}.c4{--k:var(--c4)}.c5{--k:var(--c5)}.c6{--k:var(--c6)}.c7{--k:var(--c7)}\n"
    ".key{font-size:.86em;display:flex;flex-wrap:wrap;gap:2px 14px;margin:.5em 0}.key i{display:inline-block;width:18px;height:0;border-top:3px solid var(--k);vertical-align:middle;margin-right:5px}.key i.d1{border-top-style:dashed}.key i.d2{border-top-style:dotted}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:8px 14px;min-width:130px;flex:1 1 auto}.tiles b{display:block;font-size:1.3em;font-weight:600}.tiles span{color:var(--dim);font-size:.84em}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.88em;font-variant-numeric:tabular-nums}th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}th:first-child,td:first-child{text-align:left}th{font-weight:600;white-space:normal;vertical-align:bottom}td:first-child,th:first-child{white-space:normal;overflow-wrap:anywhere;min-width:7em}tr.best td{font-weight:600}.heat td{text-align:center;background:color-mix(in srgb,var(--heat) var(--t,0%),transparent);border:1px solid var(--card)}.heat th{text-align:center}.none{color:var(--dim)}\n" HEATS(
        8, 10, 12, 14, 16) HEATS(18, 20, 22, 24, 26) HEATS(28, 30, 32, 34, 36) HEATS(38, 40, 42, 44, 46) HEATS(48, 50, 52, 54, 56)
        HEATS(58, 60, 62, 64, 66) HEAT(68) HEAT(
            70) "\n"
                "details{margin:.6em 0}summary{cursor:pointer;color:var(--dim)}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0;font:13px/1.45 ui-monospace,monospace}\n"
                ".sample{margin-bottom:12px}.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,300px),1fr));gap:12px}.pair>div{border-left:3px solid var(--rule);padding-left:10px;min-width:0}.verdict{font-size:.82em;font-weight:600;padding:1px 7px;border-radius:9px;border:1px solid var(--k);color:var(--k)}\n"
                "#tip{position:fixed;pointer-events:none;display:none;background:var(--card);border:1px solid var(--dim);border-radius:6px;padding:4px 8px;font-size:12px;line-height:1.4;z-index:9;white-space:pre}#tip b{color:var(--k)}\n"
                "@media(max-width:500px){body{padding:14px 10px 40px}th,td{padding:4px 6px}.tiles div{min-width:40%}.stack,.stack tbody{display:block}.stack tr{display:block;padding:6px 0;border-bottom:1px solid var(--rule)}.stack tr:first-child,.stack td:empty{display:none}.stack td{display:flex;justify-content:space-between;border:0;padding:1px 0}.stack td:first-child{font-weight:600}.stack td[data-h]::before{content:attr(data-h);color:var(--dim)}}\n"
                "@media print{body{max-width:none}figure{break-inside:avoid}}\n";

/* Shows the values of a chart's lines under the pointer, computed back from the coordinates. Names
 * reach the page as text, never as HTML. */
const char REPORT_SCRIPT[] =

    "const tip=document.body.appendChild(document.createElement('div'));tip.id='tip';\n"
    "const num=s=>s.split(' ').map(Number),show=v=>Math.abs(v)>=1e4||v&&Math.abs(v)<1e-3?v.toExponential(2):+v.toPrecision(4)+'';\n"
    "document.querySelectorAll('svg[data-x]').forEach(s=>{let lines;const [x0,x1,a,b]=num(s.dataset.x),[y0,y1,c,d,log]=num(s.dataset.y);\n"
    "s.onpointermove=m=>{lines=lines||[...s.querySelectorAll('path[data-n]')].map(p=>({p,q:p.getAttribute('d').slice(1).split(' ').map(Number)}));\n"
    "const r=s.getBoundingClientRect(),w=s.viewBox.baseVal.width,x=(m.clientX-r.left)/r.width*w,parts=[];let at=null;\n"
    "lines.slice(0,12).forEach(({p,q})=>{let k=0;for(let i=0;i<q.length;i+=2)if(Math.abs(q[i]-x)<Math.abs(q[k]-x))k=i;\n"
    "let v=c+(q[k+1]-y0)/(y1-y0)*(d-c);if(log)v=10**v;at=at??a+(q[k]-x0)/(x1-x0)*(b-a);\n"
    "const e=document.createElement('b');e.className=p.classList[1];e.textContent='\\u25a0';\n"
    "parts.push('\\n',e,` ${p.dataset.n} ${show(v)}`)});\n"
    "if(at===null)return;tip.replaceChildren('step '+Math.round(at),...parts);tip.style.display='block';\n"
    "tip.style.left=Math.max(4,Math.min(m.clientX+14,innerWidth-tip.offsetWidth-8))+'px';tip.style.top=Math.max(4,Math.min(m.clientY+14,innerHeight-tip.offsetHeight-8))+'px'};\n"
    "s.onpointerleave=()=>tip.style.display='none'});\n";

/* SHA-256 of REPORT_SCRIPT and REPORT_STYLE in base64, as named by the page's policy. When a text
 * changes, e2e/report_hostile prints the new digest. */
const char REPORT_SCRIPT_SHA256[] = "brMEKbkZyFVWoJdxWCbtG4djwL8k5GKUbvZLCUVlRKg=";
const char REPORT_STYLE_SHA256[] = "u5qZwcbWYmgks2V/8Pkl5ikld8hXnylP07LujY3fc1U=";
