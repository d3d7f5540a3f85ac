export const STYLE = `
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2430;--soft:#556070;--line:#d5dae1;--bar:#2f6fb3;
--cold:#f0f5fa;--hot:#4f8fc6;--good:#1d6b3a;--bad:#a3231b;--hatch:#a3231b40}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e8ecf1;--soft:#a9b3bf;--line:#39424d;--bar:#6fa8dc;
--cold:#1b222b;--hot:#285f92;--good:#7fd6a0;--bad:#ff9c92;--hatch:#ff9c9238}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,header{max-width:88rem;margin:0 auto;padding:0 1.25rem}
h1{font-size:2rem;line-height:1.2;margin:1rem 0 .75rem;overflow-wrap:break-word}h1 span{display:block;font-size:1.3rem;font-weight:400;color:var(--soft)}
.verdict{padding:.5rem .9rem;border:2px solid;border-radius:.4rem;margin:0 0 .75rem}.verdict p{margin:.25rem 0;max-width:none;overflow-wrap:anywhere;font-size:1.2rem;font-weight:600}
.verdict .why,.verdict .next{font-size:1rem;font-weight:400;color:var(--ink)}
.reasons,.failures{margin:.25rem 0 .75rem;padding-left:1.25rem;max-width:60rem}.failures li{margin:.4rem 0;overflow-wrap:anywhere}
.whole{color:var(--good)}.lacking{color:var(--bad);background:repeating-linear-gradient(45deg,var(--hatch) 0 1px,transparent 1px 9px)}
h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
p{margin:.25rem 0 .75rem;max-width:60rem}
.soft,caption{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(var(--wide),1fr);gap:.75rem;margin:1rem 0;padding:0;list-style:none}
.figures li{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .75rem}
.figures b{display:block;white-space:nowrap;font-size:1.3rem;font-variant-numeric:tabular-nums}
.scroll{margin:.5rem 0;overflow-x:auto}
.scroll:focus-visible{outline:2px solid var(--bar);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.25rem 0;white-space:nowrap}
th,td{padding:.2rem .5rem;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
td.n,th.n{text-align:right}
th{font-weight:600}
.bars tbody th{max-width:24rem;white-space:normal;overflow-wrap:anywhere}.bars th,.bars td{vertical-align:middle}
.bar{width:60%;border:0}.bar::before{content:"";display:block;height:.9rem;width:calc(var(--s)*1%);background-color:var(--bar)}
.chart{margin:1.5rem 0 .5rem;max-width:calc(var(--n)*7rem)}figcaption{color:var(--soft);font-size:.875rem}
.months{display:flex;align-items:flex-end;gap:1px;height:8rem;margin:0;padding:0;list-style:none;border-bottom:1px solid var(--soft)}
.months li{flex:1 1 0;min-width:0;position:relative;height:calc(var(--s)*1%);min-height:1px;background-color:var(--bar)}
.months .part{background-image:repeating-linear-gradient(45deg,var(--paper) 0 2px,transparent 2px 6px)}
.months b{position:absolute;bottom:100%;width:100%;text-align:center;font-size:.68rem;font-weight:400}
.axis{display:flex;gap:1px}.axis span{min-width:0;overflow:hidden;white-space:nowrap;font-size:.72rem;color:var(--soft);text-align:center}
.axis:last-of-type span{text-align:left;border-left:1px solid var(--line);padding-left:2px}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
code{font-size:.8rem}
.heat td,.heat thead :not(:first-child){text-align:center}
.heat td{font-size:.72rem;border:1px solid var(--paper);padding:.15rem .2rem;background-color:color-mix(in srgb,var(--hot) calc(var(--h,0)*1%),var(--cold))}
.heat thead th{padding:.1rem .25rem;font-size:.75rem}
tbody th,tfoot th{font-weight:400}
.heat .sum,.heat tfoot th{background-color:var(--paper);font-weight:600}
.heat th:first-child{position:sticky;left:0;z-index:1;background:var(--paper);max-width:26rem;overflow:hidden;text-overflow:ellipsis}
.many th:first-child{max-width:14rem}
.heat td b{font-weight:600}
.heat td.failed{background-image:repeating-linear-gradient(45deg,var(--hatch) 0 3px,transparent 3px 8px);outline:1px solid var(--bad);outline-offset:-1px}
.heat td.partial{background-image:repeating-linear-gradient(-45deg,var(--hatch) 0 1px,transparent 1px 8px)}
.heat td.pending{background-color:transparent;color:var(--soft);outline:1px dashed var(--soft);outline-offset:-2px}
.many .pending b{font-size:0}.many .pending b::before{content:"○";font-size:.72rem}
main{padding-bottom:2rem}
@media (max-width:70rem){.figures{grid-template-columns:repeat(var(--narrow),1fr)}}
@media screen and (max-width:40rem){h1{font-size:1.4rem;margin:.5rem 0}h1 span{font-size:1rem}.verdict p,.verdict .why,.verdict .next,.reasons{font-size:.9rem}main,header{padding:0 .75rem}.figures{grid-template-columns:repeat(3,minmax(0,1fr));gap:.3rem}.figures li{padding:.3rem .4rem;font-size:.8rem}.figures b{font-size:.85rem;white-space:normal}dl{grid-template-columns:1fr}dt{margin-top:.4rem}caption{white-space:normal;min-width:12rem;max-width:calc(100vw - 1.5rem);position:sticky;left:0}.bars th{min-width:7rem}.bar{width:40%}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#333;--line:#bbb;--bar:#2f6fb3;--cold:#f0f5fa;--hot:#4f8fc6;--good:#1d6b3a;--bad:#a3231b;--hatch:#a3231b40}
body{font-size:10pt}main,header{max-width:none;padding:0}.scroll{overflow:visible}.heat th:first-child{position:static}
table{font-size:7.5pt}th,td,caption{white-space:normal;padding:.1rem .25rem}tbody th,td code{overflow-wrap:anywhere}td.n{white-space:nowrap}.heat td,.heat thead th,code{font-size:6.5pt}
tfoot{display:table-row-group}h2,caption,thead{break-after:avoid}tr,li,.chart{break-inside:avoid}tbody tr:first-child{break-before:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
@page{size:A4;margin:14mm 12mm 16mm;@bottom-right{content:counter(page) " / " counter(pages);font:8pt system-ui,sans-serif}}
`
