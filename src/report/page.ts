import { REPORT_START } from '../core/index.ts'
import type { Bars } from './charts.ts'
import type { Groups, ReportData, ReportRun, Share, Shown } from './data.ts'
import { CLASSES, LEAST_ROWS } from './disclosure.ts'
import { Html, html, inlineJson } from './html.ts'
import { STYLE } from './style.ts'

/** Draws a chart as SVG; null: there is nothing to draw with, and tables have to do. */
export type Draw = ((bars: Bars) => string) | null

/** The page, whole: it needs no network and runs no script. */
export function reportPage(data: ReportData, draw: Draw): string {
  const { text } = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>${data.pipeline}: what was exported</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<header>
<h1>${data.pipeline}: what was exported</h1>
<p class="soft">Written ${time(data.written_at)} by spillway ${data.spillway}${
    data.from === 'manifest'
      ? '. The data set was moved without its state: this is what its manifest and its files tell'
      : ''
  }.</p>
</header>
<main>
${asked(data)}
${came(data, draw)}
${went(data, draw)}
${shards(data)}
</main>
<footer><p>Counts only: no row and no identity of one stands here. Of groups with fewer than ${LEAST_ROWS} rows no count is told;
they are among the others, or shown as “&lt; ${LEAST_ROWS}”. Times are UTC.</p></footer>
<script type="application/json" id="data">${inlineJson(data)}</script>
</body>
</html>
`
  return REPORT_START + text
}

function asked({ asked, resource, format }: ReportData): Html {
  const { queries, queries_total, windows, masking, columns, config_digest, retired } = asked
  const more = queries_total - queries.length
  return html`<section aria-labelledby="asked"><h2 id="asked">What was asked</h2>
<dl>
<dt>Queries</dt><dd>${queries.map((name, i) => html`${i > 0 ? ', ' : ''}<bdi>${name}</bdi>`)}${more > 0 ? ` and ${number(more)} more` : ''}</dd>
${retired > 0 ? html`<dt>No longer asked for</dt><dd>${number(retired)}, what was exported of them is kept</dd>` : ''}
<dt>Windows</dt><dd>${windows === null ? 'none: all there is' : `${time(windows.from)} to ${windows.until === 'now' ? 'now' : time(windows.until)}, ${windows.every}`}</dd>
<dt>Masking</dt><dd>secrets: ${masking.secret}; identities: ${masking.identity}</dd>
<dt>Kept</dt><dd>${resource}, as ${format}, columns ${columns.join(', ')}</dd>
<dt>Settings digest</dt><dd><code>${config_digest}</code></dd>
</dl></section>`
}

function came({ came }: ReportData, draw: Draw): Html {
  const { rows, new_rows, bytes, shards, quarantined, repeated, counted_rows } = came
  const figures: readonly (readonly [string, string])[] = [
    ['rows', few(rows)],
    ['of them with the last run', few(new_rows)],
    [shards === 1 ? 'file' : 'files', number(shards)],
    ['size', size(bytes)],
    ['set aside', few(quarantined)],
    ['sent again, kept once', few(repeated)],
  ]
  const isPart = counted_rows !== rows
  return html`<section aria-labelledby="came"><h2 id="came">What came</h2>
<ul class="figures">${figures.map(([name, value]) => html`<li><b>${value}</b>${name}</li>`)}</ul>
${heat(came.heat)}
${isPart ? html`<p class="warn">What follows counts ${few(counted_rows)} of ${few(rows)} rows: files were given up or come from an earlier version. <code>spillway summary</code> counts all of them.</p>` : ''}
${groups('When it was imported', came.timeline.unit, 'When rows were imported', came.timeline, 'up', draw)}
${groups('Where it leaked', 'source', 'Rows by source', came.sources, 'along', draw)}
${groups('How secrets were hashed', 'kind of hash', 'Rows by kind of hash', came.hash_types, 'along', draw)}
${nulls(came.nulls)}
</section>`
}

function heat(map: ReportData['came']['heat']): Html {
  if (map === null || map.rows.length === 0) return html``
  const legend = CLASSES.map((name, i) => html`<span class="c${i}">&nbsp;${name}&nbsp;</span> `)
  return html`<h3>Rows by query and window</h3>
<p>${legend} rows. An empty place was not exported yet.</p>
${scroll(
  'Rows by query and window',
  html`<table class="heat"><caption>How many rows each query has in each window</caption>
<thead><tr><th scope="col">query</th>${map.columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${map.rows.map(
    ({ query, cells }) => html`<tr><th scope="row"><bdi>${query}</bdi></th>${cells.map((place) =>
      place === null ? html`<td></td>` : html`<td class="c${place}">${CLASSES[place]!}</td>`,
    )}</tr>
`,
  )}</tbody></table>`,
)}`
}

/** A chart of groups, with its numbers as a table for who can't see it, or wants to copy them. */
function groups(
  title: string,
  what: string,
  caption: string,
  { groups, others, axis }: Groups & { readonly axis?: readonly string[] },
  direction: Bars['direction'],
  draw: Draw,
): Html {
  if (groups.length === 0 && others === 0) return html``
  const rowsOf = new Map(groups.map(({ name, rows }) => [name, rows]))
  const names = axis ?? [...rowsOf.keys()]
  const series = [{ name: 'rows', values: names.map((name) => rowsOf.get(name) ?? 0) }]
  const rest =
    others === 0 ? '' : html`<tr><th scope="row">all others</th><td class="n">${few(others)}</td></tr>`
  const table = html`<table><caption>${caption}</caption><thead><tr><th scope="col">${what}</th><th scope="col" class="n">rows</th></tr></thead>
<tbody>${groups.map(({ name, rows }) => html`<tr><th scope="row"><bdi>${name}</bdi></th><td class="n">${number(rows)}</td></tr>`)}${rest}</tbody></table>`
  return html`<h3>${title}</h3>${figure(caption, { names, series, direction, unit: '' }, table, draw)}${
    others === 0 ? '' : html`<p class="soft">All others: ${few(others)}.</p>`
  }`
}

function figure(caption: string, bars: Bars, table: Html, draw: Draw): Html {
  if (draw === null || bars.names.length === 0) return scroll(caption, table)
  return html`<figure style="margin:0">${scroll(`${caption}, chart`, new Html(draw(bars)))}
<details><summary>${caption}, as a table</summary>${scroll(caption, table)}</details></figure>`
}

function nulls(columns: ReportData['came']['nulls']): Html {
  const some = columns.filter(({ share }) => share !== 'none')
  if (columns.length === 0) return html``
  return html`<h3>Columns without a value</h3>${
    some.length === 0
      ? html`<p>Every column has a value in every row.</p>`
      : scroll(
          'Columns without a value',
          html`<table><caption>Rows in which a column is null; every other column has a value in every row</caption>
<thead><tr><th scope="col">column</th><th scope="col" class="n">null</th></tr></thead>
<tbody>${some.map(({ column, share }) => html`<tr><th scope="row">${column}</th><td class="n">${shareText(share)}</td></tr>`)}</tbody></table>`,
        )
  }`
}

function shareText(share: Share): string {
  if (typeof share === 'number') return `${share} %`
  return share === 'few' ? `< ${LEAST_ROWS} rows` : share
}

function went({ went }: ReportData, draw: Draw): Html {
  const { runs, runs_total, reasons, failures, failures_total } = went
  const known = runs.filter(({ least }) => least !== null)
  const bars: Bars = {
    names: known.map(({ started_at }) => time(started_at)),
    series: [
      { name: 'searches spent', values: known.map(({ searches }) => searches) },
      { name: 'least possible', values: known.map(({ least }) => least ?? 0) },
    ],
    direction: 'along',
    unit: '',
  }
  const names = [
    'run',
    'status',
    'rows',
    'searches',
    'least',
    'left',
    'retries',
    'failed',
    'again',
    'set aside',
    'spillway',
  ]
  return html`<section aria-labelledby="went"><h2 id="went">How it went</h2>
${draw !== null && known.length > 1 ? scroll('Searches of each run, chart', new Html(draw(bars))) : ''}
${scroll(
  'Runs',
  html`<table><caption>${runs_total > runs.length ? `The last ${runs.length} of ${number(runs_total)} runs` : 'Runs'}: searches spent, the fewest that the rows could have come with, and what the service said was left</caption>
<thead><tr>${names.map((name, i) => html`<th scope="col"${new Html(i < 2 || i === 10 ? '' : ' class="n"')}>${name}</th>`)}</tr></thead>
<tbody>${runs.map(runRow)}</tbody></table>`,
)}
${
  reasons.groups.length === 0 && reasons.others === 0
    ? ''
    : groups('Why items were set aside', 'reason', 'Items set aside, by reason', reasons, 'along', null)
}
${
  failures_total === 0
    ? ''
    : html`<h3>What failed</h3><p>${number(failures_total)} ${failures_total === 1 ? 'partition' : 'partitions'} failed; the next run asks for them again.</p>
<ul>${failures.map(({ partition, kind }) => html`<li><bdi>${partition}</bdi>: ${kind}</li>`)}</ul>`
}</section>`
}

function runRow(run: ReportRun): Html {
  const figures = [
    few(run.rows),
    number(run.searches),
    run.least === null ? '–' : number(run.least),
    run.left === null ? '–' : number(run.left),
    number(run.retries),
    number(run.failures),
    few(run.repeated),
    few(run.quarantined),
  ]
  return html`<tr><th scope="row">${time(run.started_at)}</th><td>${run.status}</td>${figures.map((text) => html`<td class="n">${text}</td>`)}<td>${run.spillway}</td></tr>
`
}

function shards({ shards, came }: ReportData): Html {
  const more = came.shards - shards.length
  return html`<section aria-labelledby="shards"><h2 id="shards">Files</h2>
<p class="soft">${number(came.shards)} in all${more > 0 ? `, of which the first ${number(shards.length)} are here; _manifest.json has every one` : ''}. <code>spillway verify</code> holds them against these checksums.</p>
${scroll(
  'Files and checksums',
  html`<table><caption>Files with their SHA-256</caption><thead><tr><th scope="col">file</th><th scope="col" class="n">rows</th><th scope="col" class="n">kB</th><th scope="col">SHA-256</th></tr></thead>
<tbody>${shards.map(
    ({ path, rows, kilobytes, sha256 }) =>
      html`<tr><th scope="row"><bdi>${path}</bdi></th><td class="n">${CLASSES[rows]!}</td><td class="n">${number(kilobytes)}</td><td><code>${sha256}</code></td></tr>
`,
  )}</tbody></table>`,
)}</section>`
}

/** What may be wider than the screen, and is reached by keyboard then. */
function scroll(label: string, content: Html): Html {
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${label}">${content}</div>`
}

function few(rows: Shown): string {
  return rows === null ? `< ${LEAST_ROWS}` : number(rows)
}

function number(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

function size(bytes: number): string {
  const units = ['kB', 'MB', 'GB', 'TB']
  let value = bytes / 1000
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${value >= 10 ? Math.ceil(value) : Math.ceil(value * 10) / 10} ${units[unit]}`
}

/** `2024-07-22 19:25`, a date alone for midnights. */
function time(text: string): string {
  return text.slice(0, 16).replace('T00:00', '').replace('T', ' ')
}
