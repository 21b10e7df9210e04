"""How pages look: light, dark, on paper, on a phone."""

__all__ = ["BLUE", "FONT", "GREY", "ORANGE", "STYLE"]

BLUE, ORANGE = "#2b7bba", "#cc5f14"  # both are seen on white and on black
GREY = "#808080"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"

STYLE = (
    """
:root { --text: #1b1f24; --dim: #565c64; --page: #f3f5f8; --panel: #ffffff; --line: #dde1e6;
  --stripe: #f7f8fa; --link: #1f5f94; --good: #176b35; --fair: #7a5200; --bad: #a3261c; --none: #565c64; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --dim: #a5abb3; --page: #0e1013; --panel: #171a1f; --line: #2f343b;
    --stripe: #1c2026; --link: #7db8e8; --good: #6fcf8e; --fair: #e0b45c; --bad: #f28b82; --none: #a5abb3; }
}
@media print {
  :root { --text: #000000; --dim: #444444; --page: #ffffff; --panel: #ffffff; --line: #cccccc;
    --stripe: #ffffff; --link: #000000; --good: #176b35; --fair: #7a5200; --bad: #a3261c; --none: #444444; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { font: 16px/1.5 FONT; color: var(--text); background: var(--page);
  max-width: 960px; margin: 0 auto; padding: 1.2rem 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.2rem 0 0.6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 0.3rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 0.2rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; overflow-wrap: anywhere; }
p.dim, figcaption { color: var(--dim); font-size: 0.9rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--link);
  outline-offset: 2px; }
ul { margin: 0.4rem 0; padding-left: 1.2rem; }
nav ul { list-style: none; padding: 0; margin: 0.9rem 0 0; display: flex; flex-wrap: wrap; gap: 0.4rem;
  font-size: 0.88rem; }
nav a { display: inline-block; padding: 0.2rem 0.7rem; border: 1px solid var(--line); border-radius: 1rem;
  background: var(--panel); text-decoration: none; }
nav a:hover { border-color: var(--link); }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: 1rem 1.2rem; margin: 1rem 0; scroll-margin-top: 0.5rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(10.5rem, 1fr)); gap: 0.7rem;
  margin: 0.9rem 0 0; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: 0.6rem 0.9rem; min-width: 0; }
.card span, .card small { display: block; color: var(--dim); font-size: 0.85rem; overflow-wrap: anywhere; }
.card strong { display: block; font-size: 1.6rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
.shares { display: flex; height: 0.8rem; margin: 0.75rem 0 0.5rem; border-radius: 0.4rem; overflow: hidden;
  background: var(--line); }
.shares i { display: block; } .shares .won { background: BLUE; } .shares .lost { background: ORANGE; }
.shares .level { background: var(--line); }
.scroll { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
caption { text-align: left; color: var(--dim); padding-bottom: 0.3rem; }
th, td { padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; vertical-align: top; }
tr { border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; }
th.text, td.text { text-align: left; white-space: normal; min-width: 6.5rem; }
th.name, td.name { text-align: left; }
td.text { overflow-wrap: anywhere; }
tbody tr:nth-child(even) { background: var(--stripe); }
td small { display: block; color: var(--dim); font-size: 0.82rem; }
td.gap { text-align: center; color: var(--dim); padding: 0; }
figure { margin: 0.8rem 0 0; }
.plot { overflow: hidden; }
.plot text { fill: var(--text) !important; }
.plot .gridlayer path, .plot .zerolinelayer path { stroke: var(--line) !important; }
.plot .zerolinelayer path { stroke: var(--dim) !important; }
.plot .hoverlayer .hovertext path { fill: var(--panel) !important; stroke: var(--dim) !important; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0; padding: 0 0.7rem; }
summary { cursor: pointer; padding: 0.45rem 0; overflow-wrap: anywhere; }
.status { display: inline-block; font-weight: 700; border: 2px solid currentColor; border-radius: 6px;
  padding: 0 0.5rem; }
.good, .proven { color: var(--good); } .conditional { color: var(--fair); }
.bad, .refuted { color: var(--bad); } .open { color: var(--none); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.6rem 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 1.5rem; }
@media (max-width: 600px) {
  body { padding: 0.7rem; }
  section { padding: 0.8rem 0.75rem; }
  h1 { font-size: 1.35rem; }
  .cards { grid-template-columns: 1fr 1fr; gap: 0.5rem; }
  .card { padding: 0.5rem 0.7rem; }
  .card strong { font-size: 1.3rem; }
  th, td { padding: 0.25rem 0.3rem; font-size: 0.8rem; }
  th:first-child, td:first-child { padding-left: 0; }
  th:last-child, td:last-child { padding-right: 0; }
  th.text, td.text { min-width: 4.5rem; }
  td small { white-space: normal; font-size: 0.72rem; max-width: 4.2rem; margin-left: auto; }
  .wide { display: none; }
}
@media print {
  body { max-width: none; font-size: 11px; padding: 0; }
  nav, .plot .hoverlayer { display: none; }
  section, .card { border: 0; padding: 0; }
  .plot { zoom: 0.7; }
  h2 { break-after: avoid; } figure, tr, details { break-inside: avoid; }
  .scroll { overflow: visible; }
}
""".replace("FONT", FONT)
    .replace("BLUE", BLUE)
    .replace("ORANGE", ORANGE)
)
