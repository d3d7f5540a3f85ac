import { createHash } from 'node:crypto'
import { kindOfRows, SUMMARY_PAGE_START } from '../core/index.ts'
import type { Groups, Shown, SummaryPageData, SummaryPageRun } from './data.ts'
import { CLASSES, MIN_ROWS } from './disclosure.ts'
import { heatTable, needsSearch, SEARCH_SCRIPT } from './heat-table.ts'
import { Html, html, inlineJson, STYLE } from './html.ts'
import {
  counted,
  FAILURES,
  few,
  IDENTITIES,
  lastOf,
  NOT_SHOWN,
  number,
  rangeText,
  SECRETS,
  shareText,
  size,
  time,
  verdictText,
} from './words.ts'

/**
 * The complete page: it needs no network, and permits no script but the search for queries.
 */
export function summaryPage(data: SummaryPageData): string {
  const verdict = verdictText(data.verdict)
  const script = needsSearch(data.rows.heat) ? SEARCH_SCRIPT : null
  const policy =
    script === null ? '' : `; script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`
  const { text } = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'${new Html(policy)}">
<meta name="referrer" content="no-referrer">
<title>${data.pipeline}: ${verdict}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<header>
<h1 class="${data.verdict.complete ? 'whole' : 'lacking'}"><bdi>${data.pipeline}</bdi>: ${verdict}</h1>
<p class="soft">Written ${time(data.written_at)} by spillway ${data.spillway}${
    data.from === 'manifest'
      ? '. The data set was moved without its state: this page is made of its manifest and its files'
      : ''
  }. Times are UTC. Counts only: the page holds no row and no identity. Counts of fewer than ${MIN_ROWS} rows or items are not shown, nor are
others by which they could be worked out: these are among the others, “≥”, or “${NOT_SHOWN}”.</p>
</header>
<main>
${scope(data)}
${result(data)}
${runs(data)}
${shards(data)}
</main>
<script type="application/json" id="data">${inlineJson(data)}</script>
${script === null ? '' : html`<script>${new Html(script)}</script>`}
</body>
</html>
`
  return SUMMARY_PAGE_START + text
}

function scope({ request, provenance, resource, format }: SummaryPageData): Html {
  const { queries, queries_total, windows, masking, columns, config_digest, retired } = request
  const { host, organization, manifest, signed, pruned } = provenance
  const more = queries_total - queries.length
  const names = html`${queries.map((name, i) => html`${i > 0 ? ', ' : ''}<bdi>${name}</bdi>`)}${more > 0 ? ` and ${number(more)} more` : ''}`
  const many = html`<details><summary>${number(queries_total)}</summary>${names}</details>`
  return html`<section aria-labelledby="scope"><h2 id="scope">Scope</h2>
<dl>
<dt>Queries</dt><dd>${queries_total > 10 ? many : names}</dd>
${retired > 0 ? html`<dt>Retired queries</dt><dd>${number(retired)}; their files are kept</dd>` : ''}
<dt>Windows</dt><dd>${windows === null ? 'none: all there is' : `${rangeText(windows.from, windows.until)}, ${windows.every}`}</dd>
${pruned === null ? '' : html`<dt>Pruned</dt><dd>${counted(pruned.partitions, 'partition')} that ended before ${time(pruned.before)}</dd>`}
${resource === 'reports' ? '' : html`<dt>E-mail addresses</dt><dd>${IDENTITIES[masking.identity] ?? masking.identity}</dd><dt>Passwords</dt><dd>${SECRETS[masking.secret] ?? masking.secret}</dd>`}
<dt>Format</dt><dd>${kindOfRows(resource)}, as ${format}, columns ${columns.join(', ')}</dd>
<dt>Service</dt><dd>${host}${organization === null ? '' : html`, organization <bdi>${organization}</bdi>`}</dd>
<dt>SHA-256 of how rows are requested and written</dt><dd><code>${config_digest}</code>; queries and windows are in the manifest, not in this</dd>
${manifest === null ? '' : html`<dt>SHA-256 of the manifest</dt><dd><code>${manifest}</code></dd>`}
<dt>Signature</dt><dd>${signed ? '_manifest.sig; spillway verify --signature --key checks it' : 'none when this page was written'}</dd>
</dl></section>`
}

function result({ rows: counts, verdict }: SummaryPageData): Html {
  const { rows, rows_at_most, rows_at_least, new_rows, bytes, shards, quarantined, repeated } = counts
  const { forgotten, counted_rows } = counts
  const isBegun = (verdict.partitions?.partial ?? 0) > 0
  const figures: readonly (readonly [string, string])[] = [
    [
      isBegun ? 'rows in finished files' : 'rows',
      rows_at_least !== null
        ? `at least ${number(rows_at_least)}`
        : rows_at_most === null
          ? few(rows)
          : `at most ${number(rows_at_most)}`,
    ],
    ['new in the last run', few(new_rows)],
    [shards === 1 ? 'file' : 'files', number(shards)],
    ['size', size(bytes)],
    ['quarantined', few(quarantined)],
    ['duplicates removed', few(repeated)],
    ...(forgotten === 0 ? [] : [['of forgotten people, left out', few(forgotten)] as const]),
  ]
  const isPart = counted_rows !== null && counted_rows !== rows
  return html`<section aria-labelledby="result"><h2 id="result">Result</h2>
<ul class="figures">${figures.map(([name, value]) => html`<li><b>${value}</b>${name}</li>`)}</ul>
${isBegun ? html`<p class="soft">Partitions that are not finished have more rows, which are kept and get into files as the export goes on. “New in the last run” and the table below count them; the figure of rows, and what follows the table, do not.</p>` : ''}
${heat(counts.heat)}
${isPart ? html`<p class="warn">What follows counts ${few(counted_rows)} of ${few(rows)} rows: shards were invalidated since they were counted. <code>spillway summary</code> counts all of them.</p>` : ''}
${groups('When it was imported', counts.timeline.unit, 'When rows were imported', counts.timeline)}
${groups('Where it leaked', 'source', 'Rows by source', counts.sources)}
${groups('How secrets were hashed', 'kind of hash', 'Rows by kind of hash', counts.hash_types)}
${counts.rows === 0 ? '' : nulls(counts.nulls)}
</section>`
}

function heat(map: SummaryPageData['rows']['heat']): Html {
  if (map === null || map.rows.length === 0) return html``
  const states = new Set(map.rows.flatMap(({ cells }) => cells.map((cell) => cell?.state)))
  const legend = [
    ...(states.has('failed') ? [html`<span class="key failed">failed</span> its last run failed; `] : []),
    ...(states.has('partial') ? [html`<span class="key partial">partial</span> begun, not finished; `] : []),
    ...(states.has('pending') ? [html`<span class="key pending">pending</span> not begun; `] : []),
  ]
  return html`<h3>Rows by query and window</h3>
<p>${legend}${legend.length > 0 ? 'numbers' : 'Numbers'} are exact, except where one would reveal a count below ${MIN_ROWS}: there 1.2k has its first two digits, and ≥100 means 100 or more; – is not known yet, ○ pending; an empty cell was not requested.${map.rows.length > 1 ? ' First come queries with failed windows, then those that are not finished, then new ones, each in order of their names.' : ''}</p>
${needsSearch(map) ? html`<p hidden><label for="find">Find a query</label> <input id="find" type="search" autocomplete="off"></p>` : ''}
${scroll('Rows by query and window', heatTable(map))}`
}

type CountedGroups = (SummaryPageData['runs']['reasons'] | Groups) & {
  /** All names in order, also those without a shown number. Default: those of the groups. */
  readonly axis?: readonly string[]
  readonly incomplete?: readonly string[]
}

/** A table of groups. A bar beside each number shows its share of the largest. */
function groups(title: string, what: string, caption: string, counts: CountedGroups): Html {
  const { groups, others, axis, incomplete = [] } = counts
  if (groups.length === 0 && others === 0) return html``
  const rowsOf = new Map<string, Shown>(groups.map(({ name, rows }) => [name, rows]))
  const largest = Math.max(1, others ?? 0, ...groups.map(({ rows }) => rows ?? 0))
  const names = axis ?? [...rowsOf.keys()]
  const isPart = (name: string): boolean => incomplete.includes(name)
  const line = (name: Html | string, rows: Shown | undefined, part = false): Html =>
    html`<tr><th scope="row">${name}${part ? ' (not complete)' : ''}</th><td class="n">${rows === undefined ? '' : few(rows)}</td><td class="bar${part ? ' part' : ''}" style="--s:${((100 * (rows ?? 0)) / largest).toFixed(1)}"></td></tr>
`
  return html`<h3>${title}</h3>${scroll(
    caption,
    html`<table class="bars"><caption>${caption}</caption><thead><tr><th scope="col">${what}</th><th scope="col" class="n">rows</th><td></td></tr></thead>
<tbody>${names.map((name) => line(html`<bdi>${name}</bdi>`, rowsOf.get(name), isPart(name)))}${others === 0 ? '' : line('all others', others)}</tbody></table>`,
  )}${names.some(isPart) ? html`<p class="soft">Hatched: not everything of it is exported.</p>` : ''}${
    names.length === rowsOf.size
      ? ''
      : html`<p class="soft">Without a number: no rows, or too few to be shown.</p>`
  }`
}

function nulls(columns: SummaryPageData['rows']['nulls']): Html {
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

function runs({ runs: history }: SummaryPageData): Html {
  const { runs, runs_total, reasons } = history
  const names = [
    'run',
    'status',
    'rows',
    'requests',
    'least',
    'quota units spent',
    'quota units left',
    'retries',
    'failed',
    'duplicates removed',
    'quarantined',
    'spillway',
  ]
  return html`<section aria-labelledby="runs"><h2 id="runs">Runs</h2>
${failures(history)}
${scroll(
  'Runs, table',
  html`<table><caption>${runs_total > runs.length ? `The last ${runs.length} of ${number(runs_total)} runs` : 'Runs'}: requests sent, the least number of requests for the rows, and the quota units spent and left, by the service’s count</caption>
<thead><tr>${names.map((name, i) => html`<th scope="col"${new Html(i < 2 || i === 11 ? '' : ' class="n"')}>${name}</th>`)}</tr></thead>
<tbody>${runs.map(runRow)}</tbody></table>`,
)}
${
  reasons.groups.length === 0 && reasons.others === 0
    ? ''
    : groups('Why items were quarantined', 'reason', 'Items quarantined, by reason', reasons)
}
</section>`
}

function failures({ failures, failures_total }: SummaryPageData['runs']): Html {
  if (failures_total === 0) return html``
  const more = failures_total - failures.length
  return html`<h3>What failed</h3>${scroll(
    'Failed partitions',
    html`<table class="wrap"><caption>${counted(failures_total, 'partition')} failed${more > 0 ? `, of which the first ${failures.length} are here; spillway status has every one` : ''}</caption>
<thead><tr><th scope="col">query</th><th scope="col">period</th><th scope="col">reason</th><th scope="col">what next</th></tr></thead>
<tbody>${failures.map(({ partition, kind }) => {
      const cut = partition.lastIndexOf('/')
      const [reason, next] = FAILURES[kind] ?? [kind, 'spillway status says more; run again']
      const period = partition
        .slice(cut + 1)
        .replace(/\.\.(\d{4}-\d\d-\d\d)$/, (_, until) => ` to ${lastOf(until)}`)
        .replace('..', ' to ')
      return html`<tr><th scope="row"><bdi>${partition.slice(0, cut)}</bdi></th><td>${period}</td><td>${reason}</td><td>${next}</td></tr>
`
    })}</tbody></table>`,
  )}`
}

function runRow(run: SummaryPageRun): Html {
  const figures = [
    few(run.rows),
    number(run.requests),
    run.min_requests === null ? '–' : number(run.min_requests),
    run.searches === null ? '–' : number(run.searches),
    run.left === null ? '–' : number(run.left),
    number(run.retries),
    number(run.failures),
    few(run.repeated),
    few(run.quarantined),
  ]
  return html`<tr><th scope="row">${time(run.started_at)}</th><td>${run.status}</td>${figures.map((text) => html`<td class="n">${text}</td>`)}<td>${run.spillway}</td></tr>
`
}

function shards({ shards, rows: counts }: SummaryPageData): Html {
  const more = counts.shards - shards.length
  return html`<section aria-labelledby="shards"><h2 id="shards">Files</h2>
<p class="soft">${number(counts.shards)} in all${more > 0 ? `, of which the first ${number(shards.length)} are here; _manifest.json has every one` : ''}. <code>spillway verify</code> compares them with these checksums.</p>
<details><summary>Files and checksums</summary>${scroll(
    'Files and checksums',
    html`<table><caption>Files with their SHA-256</caption><thead><tr><th scope="col">file</th><th scope="col" class="n">rows</th><th scope="col" class="n">kB</th><th scope="col">SHA-256</th></tr></thead>
<tbody>${shards.map(
      ({ path, rows, kilobytes, sha256 }) =>
        html`<tr><th scope="row"><bdi>${path}</bdi></th><td class="n">${CLASSES[rows]!}</td><td class="n">${number(kilobytes)}</td><td><code>${sha256}</code></td></tr>
`,
    )}</tbody></table>`,
  )}</details></section>`
}

/** Content that may be wider than the screen; it can then be scrolled by keyboard. */
function scroll(label: string, content: Html): Html {
  return html`<div class="wide"><div class="scroll" role="region" tabindex="0" aria-label="${label}">${content}</div></div>`
}
