"""The look of the report: one style sheet, system fonts, light and printable."""

from __future__ import annotations

CSS = """
:root { --ink:#1f2933; --muted:#5b6770; --line:#dde3e8; --soft:#f5f7f9; --blue:#0072b2; --ok:#00694c; --ok-soft:#e4f3ee;
  --bad:#a63d00; --bad-soft:#fbece4; --mid:#7a5300; --mid-soft:#fdf3dc; }
* { box-sizing:border-box; }
html { scroll-behavior:smooth; scroll-padding-top:3.4rem; }
body { margin:0; color:var(--ink); background:#fff; line-height:1.5; font-size:15px;
  font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
header, main, footer { max-width:1120px; margin:0 auto; padding:0 1.5rem; }
header { padding-top:1.8rem; }
h1 { font-size:1.7rem; margin:0 0 .2rem; font-weight:650; overflow-wrap:anywhere; }
h2 { font-size:1.25rem; margin:2.6rem 0 .6rem; padding-bottom:.3rem; border-bottom:1px solid var(--line); font-weight:650; }
h3 { font-size:1.02rem; margin:1.6rem 0 .4rem; font-weight:650; overflow-wrap:anywhere; }
p { margin:.5rem 0; max-width:78ch; }
.lead, .note, caption, figcaption, footer { color:var(--muted); }
.lead { margin:0; }
.note { font-size:.9rem; }
nav { position:sticky; top:0; z-index:2; background:#fffffff5; border-bottom:1px solid var(--line); margin-top:1.4rem; }
nav ul { max-width:1120px; margin:0 auto; padding:.55rem 1.5rem; list-style:none;
  display:flex; flex-wrap:wrap; gap:.2rem 1.1rem; }
nav a { color:var(--muted); text-decoration:none; font-size:.86rem; }
nav a:hover, nav a:focus { color:var(--blue); text-decoration:underline; }
.banner { margin:1.2rem 0 .9rem; padding:.9rem 1.1rem; border-left:6px solid; border-radius:4px; }
.banner strong { display:block; font-size:1.15rem; }
.banner p { margin:.1rem 0 0; max-width:none; }
.banner.ok { background:var(--ok-soft); border-color:var(--ok); }
.banner.mid { background:var(--mid-soft); border-color:#e69f00; }
.banner.bad { background:var(--bad-soft); border-color:var(--bad); }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(165px,1fr)); gap:.7rem; margin:0; padding:0; }
.cards div { background:var(--soft); border:1px solid var(--line); border-radius:6px; padding:.6rem .8rem; }
.cards dt { font-size:.8rem; color:var(--muted); }
.cards dd { margin:0; font-size:1.35rem; font-weight:620; font-variant-numeric:tabular-nums; }
.cards dd small { display:block; font-size:.78rem; font-weight:400; color:var(--muted); line-height:1.3; }
.scroll { overflow-x:auto; margin:.6rem 0 1rem; }
table { border-collapse:collapse; width:100%; font-size:.88rem; }
caption { text-align:left; padding:.1rem 0 .35rem; font-size:.86rem; }
th, td { padding:.3rem .6rem; border-bottom:1px solid var(--line); text-align:left; vertical-align:top;
  overflow-wrap:break-word; }
thead th { background:var(--soft); font-weight:600; border-bottom:1px solid #c3ccd3; white-space:nowrap; }
tbody th { font-weight:500; }
tfoot td, tfoot th { font-weight:620; border-top:1px solid #c3ccd3; }
.num { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
.short { white-space:nowrap; }
td.wide { min-width:22rem; }
code, .mono { font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; font-size:.82rem; overflow-wrap:anywhere; }
.badge { display:inline-block; padding:0 .5em; border-radius:3px; font-size:.8rem; white-space:nowrap; background:var(--soft);
  color:var(--muted); border:1px solid var(--line); }
.badge.ok { background:var(--ok-soft); color:var(--ok); border-color:#b5ddd0; }
.badge.mid { background:var(--mid-soft); color:var(--mid); border-color:#f0dca6; }
.badge.bad { background:var(--bad-soft); color:var(--bad); border-color:#efc9b6; }
.map td, .map thead th { text-align:center; padding:.22rem .35rem; }
.map thead th:first-child { text-align:left; }
.map td.alone { background:#cfe6f4; } .map td.combined { background:#eef5fa; } .map td.never { color:#8a949c; }
.map { width:auto; }
.legend span { margin-right:1.2rem; }
figure { margin:.8rem 0 1.4rem; }
figure img { display:block; width:100%; height:auto; }
figure.narrow { max-width:720px; }
figcaption { font-size:.86rem; }
details { margin:.7rem 0; }
summary { cursor:pointer; font-weight:600; padding:.25rem 0; }
ul.plain { padding-left:1.2rem; margin:.4rem 0; } ul.plain li { margin:.15rem 0; overflow-wrap:anywhere; }
footer { margin-top:3rem; padding-top:.8rem; padding-bottom:2rem; border-top:1px solid var(--line); font-size:.85rem; }
@media print {
  nav { display:none; } body { font-size:10.5pt; } header, main, footer { max-width:none; padding:0; }
  figure, tr, .cards div, .banner { break-inside:avoid; } h2, h3 { break-after:avoid; } .scroll { overflow:visible; }
  .short { white-space:nowrap; }
td.wide { min-width:0; } details::details-content { content-visibility:visible; block-size:auto; }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact; }
}
"""
