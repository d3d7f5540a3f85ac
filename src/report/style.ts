/** The page's own, for screens wide and narrow, light and dark, and for paper. */
export const STYLE = `
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--soft:#556070;--line:#d5dae1;--bar:#2f6fb3;--bar2:#b8741a;--warn:#8a3b00;
--c0:#f3f5f7;--c1:#e3eef8;--c2:#c9def1;--c3:#abcce9;--c4:#8cb9e0;--c5:#6ea6d6;--c6:#5b98cc;--c7:#4f8fc6}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e8ecf1;--soft:#a9b3bf;--line:#39424d;--bar:#6fa8dc;--bar2:#e0a458;--warn:#ffb27a;
--c0:#1b2027;--c1:#1b2a3a;--c2:#1d3349;--c3:#1f3d59;--c4:#21476a;--c5:#23517a;--c6:#255b8a;--c7:#285f92}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,header,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}
h1{font-size:1.6rem;margin:1.5rem 0 .25rem}
h2{font-size:1.2rem;margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
p{margin:.25rem 0 .75rem;max-width:46rem}
.soft,caption,footer{color:var(--soft)}
.warn{color:var(--warn)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.75rem;margin:1rem 0;padding:0;list-style:none}
.figures li{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .75rem}
.figures b{display:block;font-size:1.3rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;margin:.5rem 0}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
svg{display:block;width:100%;min-width:34rem;height:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.25rem 0}
th,td{padding:.2rem .5rem;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
td.n,th.n{text-align:right}
th{font-weight:600}
code{font-size:.8rem}
.heat td{text-align:center;font-size:.75rem;border:1px solid var(--paper);padding:.15rem .3rem}
tbody th{font-weight:400}
.heat tbody th{max-width:18rem;overflow:hidden;text-overflow:ellipsis}
${Array.from({ length: 8 }, (_, i) => `.c${i}{background:var(--c${i})}`).join('')}
summary{cursor:pointer;color:var(--soft)}
footer{margin-top:3rem;padding-bottom:2rem;font-size:.875rem}
@media (max-width:40rem){dl{grid-template-columns:1fr}dt{margin-top:.4rem}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#333;--line:#bbb;--bar:#2f6fb3;--bar2:#b8741a;--c0:#f3f5f7;--c1:#e3eef8;--c2:#c9def1;--c3:#abcce9;--c4:#8cb9e0;--c5:#6ea6d6;--c6:#5b98cc;--c7:#4f8fc6}
body{font-size:10pt}main,header,footer{max-width:none;padding:0}.scroll{overflow:visible}svg{min-width:0}
table{font-size:7.5pt}th,td{white-space:normal;overflow-wrap:anywhere;padding:.1rem .25rem}td.n{white-space:nowrap;overflow-wrap:normal}.heat td,code{font-size:6.5pt}
section,figure{break-inside:auto}h2,h3,caption{break-after:avoid}tr,svg{break-inside:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
`
