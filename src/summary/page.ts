import {
  counted,
  countText,
  IDENTITY_POLICIES,
  kindOfRows,
  rulesOf,
  SECRET_POLICIES,
  SUMMARY_PAGE_START,
} from '../core/index.ts'
import { allColumns } from '../rows/index.ts'
import type { Manifest, Verdict } from '../state/index.ts'
import { heatMap, heatTable, monthChart, monthsOf } from './charts.ts'
import {
  byText,
  failuresOf,
  figuresOf,
  type Groups,
  maskingWords,
  naturally,
  periodOf,
  quarantineReasons,
  type RowFacts,
  rangeText,
  reasonsOf,
  type SummaryInput,
  time,
  whoFailed,
} from './contents.ts'
import { Html, html, inlineJson } from './html.ts'
import { STYLE } from './style.ts'

const MAX_QUERIES = 50
const MAX_RUNS = 20
const MAX_FAILURES = 20
const MAX_SHARDS = 100
const MAX_FIELDS = 50

const ROWS_START = '<script type="application/json" id="rows">'

/** The complete page: it needs no network, and permits no script. */
export function summaryPage(input: SummaryInput): string {
  const { manifest, rows, verdict } = input
  const { text } = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
${titleOf(manifest.pipeline, verdict)}
<style>${new Html(STYLE)}</style>
</head>
<body>
${headOf(manifest.pipeline, verdict)}
<main>
${tiles(figuresOf(input))}
${failures(manifest)}
${rowsByTime(manifest, rows)}
${heat(manifest)}
${rows === null ? '' : factsOf(rows)}
${groups('Why items were quarantined', 'field', { groups: quarantineReasons(manifest), more: 0, others: 0 }, 'items in all runs')}
${runs(manifest)}
${scope(input)}
${shards(manifest)}
</main>
${rows === null ? '' : html`${new Html(ROWS_START)}${inlineJson(rows)}</script>`}
</body>
</html>
`
  return SUMMARY_PAGE_START + text
}

/** A page with another verdict. In texts that it quotes no element begins. */
export function withVerdict(page: string, pipeline: string, verdict: Verdict): string {
  return page
    .replace(/<title>.*?<\/title>/s, () => titleOf(pipeline, verdict).text)
    .replace(/<header>.*?<\/header>/s, () => headOf(pipeline, verdict).text)
}

function titleOf(pipeline: string, { headline }: Verdict): Html {
  return html`<title>${pipeline}: ${headline}</title>`
}

function headOf(pipeline: string, verdict: Verdict): Html {
  const { state, headline, why, next } = verdict
  const period = periodOf(verdict)
  const reasons = reasonsOf(verdict)
  return html`<header>
<h1><bdi>${pipeline}</bdi>${period === null ? '' : html` <span>${period}</span>`}</h1>
<div class="verdict ${state === 'complete' ? 'whole' : 'lacking'}"><p>${headline.replace(/^complete/, 'Complete')}</p>
${why === '' ? '' : html`<p class="why">${why}.</p>`}${next === '' ? '' : html`<p class="next">${next}</p>`}</div>
${reasons.length === 0 ? '' : html`<ul class="reasons">${reasons.map((line) => html`<li>${line}</li>`)}</ul>`}
</header>`
}

/** In rows of the same number, as far as that is possible. */
function tiles(figures: ReturnType<typeof figuresOf>): Html {
  const across = (most: number): number => Math.ceil(figures.length / Math.ceil(figures.length / most))
  return html`<ul class="figures" style="--wide:${across(7)};--narrow:${across(4)}">${figures.map(([name, value]) => html`<li><b>${value}</b>${name}</li>`)}</ul>`
}

function failures(manifest: Manifest): Html | string {
  const all = failuresOf(manifest)
  if (all.length === 0) return ''
  const more = all.slice(MAX_FAILURES).reduce((sum, { partitions }) => sum + partitions.length, 0)
  return html`<section aria-labelledby="failed"><h2 id="failed">What failed</h2>
<ul class="failures">${all.slice(0, MAX_FAILURES).map(
    (
      group,
    ) => html`<li><b><bdi>${whoFailed(group)}</bdi></b>: ${group.cause}. <span class="soft">${group.next}</span></li>
`,
  )}</ul>${more > 0 ? html`<p class="soft">${counted(more, 'partition')} more, for other causes; spillway status has every one.</p>` : ''}</section>`
}

function rowsByTime(manifest: Manifest, rows: RowFacts | null): Html | string {
  const months = monthsOf(manifest, rows === null || rows.months.length === 0 ? null : rows.months)
  if (months.every(({ rows }) => rows === 0)) return ''
  return html`<section aria-labelledby="months"><h2 id="months">Rows by month</h2>
${monthChart(months)}${rows === null ? '' : comparison(rows.months)}</section>`
}

function comparison(months: RowFacts['months']): Html | string {
  const of = new Map(months.map((each) => [each.month, each]))
  const before = (month: string) =>
    of.get(`${String(Number(month.slice(0, 4)) - 1).padStart(4, '0')}${month.slice(4)}`)
  const shown = months.slice(-12).filter(({ month }) => before(month) !== undefined)
  if (shown.length === 0) return ''
  const hasPeople = shown.some(({ people }) => people !== null)
  const names = ['month', 'rows', 'a year before', ...(hasPeople ? ['people', 'a year before'] : [])]
  return table(
    'The last months and the same months a year before',
    names,
    shown.map(({ month, rows, people }) => {
      const then = before(month)!
      return [month, rows, then.rows, ...(hasPeople ? [people ?? 0, then.people ?? 0] : [])]
    }),
  )
}

function heat(manifest: Manifest): Html | string {
  const map = heatMap(manifest)
  if (map.lines.length === 0) return ''
  const waiting = map.rows - manifest.totals.rows
  return html`<section aria-labelledby="heat"><h2 id="heat">Rows by query and window</h2>
${scroll('Rows by query and window', heatTable(map))}${waiting > 0 ? html`<p class="soft">${counted(waiting, 'row')} of these ${waiting === 1 ? 'is' : 'are'} in no file yet.</p>` : ''}</section>`
}

function factsOf({ sources, hash_types, secrets }: RowFacts): Html {
  return html`${groups('Where it leaked', 'source', sources)}${groups('How secrets were hashed', 'kind of hash', hash_types)}${groups('What the secrets are', 'secret', secrets)}`
}

/** A table of groups. A bar beside each number shows its share of the largest. */
function groups(title: string, what: string, { groups, more, others }: Groups, unit = 'rows'): Html | string {
  if (groups.length === 0) return ''
  const largest = Math.max(1, ...groups.map(({ rows }) => rows))
  const line = (name: Html | string, rows: number, bar: Html): Html =>
    html`<tr><th scope="row">${name}</th><td class="n">${countText(rows)}</td>${bar}</tr>
`
  return html`<section><h2>${title}</h2>${scroll(
    title,
    html`<table class="bars"><thead><tr><th scope="col">${what}</th><th scope="col" class="n">${unit}</th><td></td></tr></thead>
<tbody>${groups.map(({ name, rows }) =>
      line(
        html`<bdi>${name}</bdi>`,
        rows,
        html`<td class="bar" style="--s:${((100 * rows) / largest).toFixed(1)}"></td>`,
      ),
    )}${more === 0 ? '' : line(`and ${countText(more)} more`, others, html`<td></td>`)}</tbody></table>`,
  )}</section>`
}

function runs({ runs }: Manifest): Html {
  const shown = runs.slice(-MAX_RUNS)
  const names = [
    ...['run', 'rows', 'requests', 'retries', 'searches spent', 'searches left'],
    ...['failed', 'quarantined', 'status', 'by', 'spillway'],
  ]
  const caption = runs.length > shown.length ? `The last ${shown.length} of ${countText(runs.length)}` : ''
  return html`<section aria-labelledby="runs"><h2 id="runs">Runs</h2>
${table(
  caption,
  names,
  shown.map((run) => [
    time(run.started_at),
    run.rows,
    run.requests,
    run.retries,
    run.searches_spent ?? '–',
    run.searches_remaining ?? '–',
    run.failures,
    run.quarantined,
    run.status,
    byText(run.by),
    run.version,
  ]),
  'Runs',
)}</section>`
}

function scope(input: SummaryInput): Html {
  const { manifest, manifestSha256, version } = input
  const { scope, masking, columns, config_digest, retired, resource, format, prunes } = manifest
  const { queries, windows, service } = scope
  const names = [...queries].sort(naturally).slice(0, MAX_QUERIES)
  const more = queries.length - names.length
  const partitions = prunes.reduce((sum, prune) => sum + prune.partitions, 0)
  return html`<section aria-labelledby="scope"><h2 id="scope">Scope</h2>
<dl>
<dt>Queries</dt><dd>${names.map((name, i) => html`${i > 0 ? ', ' : ''}<bdi>${name}</bdi>`)}${more > 0 ? ` and ${countText(more)} more` : ''}</dd>
${retired.length > 0 ? html`<dt>Retired queries</dt><dd>${countText(retired.length)}; their files are kept</dd>` : ''}
<dt>Windows</dt><dd>${windows === null ? 'none: all there is' : `${rangeText(windows.from, windows.until)}${windows.every === null ? '' : `, every ${windows.every}`}`}</dd>
${partitions === 0 ? '' : html`<dt>Pruned</dt><dd>${counted(partitions, 'partition')}, the last before ${time(prunes.at(-1)!.before)}</dd>`}
${!rulesOf(resource).holdsPeople ? '' : html`<dt>E-mail addresses</dt><dd>${maskingWords(IDENTITY_POLICIES, masking.identity)}</dd><dt>Passwords</dt><dd>${maskingWords(SECRET_POLICIES, masking.secret)}</dd>`}
${notExported(manifest)}
<dt>Format</dt><dd>${kindOfRows(resource)}, as ${format}, columns ${columns.map(({ name }) => name).join(', ')}</dd>
<dt>Service</dt><dd>${service}</dd>
<dt>SHA-256 of the settings</dt><dd><code>${config_digest}</code></dd>
<dt>SHA-256 of the manifest</dt><dd><code>${manifestSha256}</code></dd>
</dl>
<p class="soft">Made by spillway ${version} of this manifest, which lists every partition and file. Times are UTC. The page names queries, and small counts may concern few people; it holds no row and no identity besides.</p></section>`
}

/** Columns that the settings leave out, and fields that no column holds. */
function notExported({ columns, unknown_fields, resource }: Manifest): Html {
  const exported = new Set(columns.map(({ name }) => name))
  const left = allColumns(resource, []).flatMap(({ name }) => (exported.has(name) ? [] : [name]))
  const fields = Object.entries(unknown_fields)
  const shown = fields.slice(0, MAX_FIELDS).map(([name, items]) => `${name} (in ${counted(items, 'item')})`)
  const more = fields.length > shown.length ? ` and ${countText(fields.length - shown.length)} more` : ''
  return html`${left.length === 0 ? '' : html`<dt>Columns left out</dt><dd>${left.join(', ')}</dd>`}${
    fields.length === 0
      ? ''
      : html`<dt>Fields not exported</dt><dd><bdi>${shown.join(', ')}</bdi>${more}; transform.extra_columns adds them</dd>`
  }`
}

function shards({ shards, partitions }: Manifest): Html {
  const shown = shards.slice(0, MAX_SHARDS)
  const empty = partitions.filter(({ state, rows }) => state === 'done' && rows === 0).length
  return html`<section aria-labelledby="shards"><h2 id="shards">Files</h2>
<p class="soft">${countText(shards.length)} in all${shards.length > shown.length ? `, of which the first ${countText(shown.length)} are here` : ''}${empty === 0 ? '' : `; ${counted(empty, 'partition')} without rows ${empty === 1 ? 'has' : 'have'} none`}. <code>spillway verify</code> compares them with these checksums.</p>
${table(
  'Files with their SHA-256',
  ['file', 'rows', 'bytes', 'SHA-256'],
  shown.map(({ path, rows, bytes, sha256 }) => [path, rows, bytes, html`<code>${sha256}</code>`]),
)}</section>`
}

/** Numbers are on the right. */
function table(
  caption: string,
  names: readonly string[],
  lines: readonly (readonly (string | number | Html)[])[],
  label = caption,
): Html {
  const isNumber = (i: number): boolean => lines.some((line) => typeof line[i] === 'number')
  const right = (i: number): Html => new Html(isNumber(i) ? ' class="n"' : '')
  return scroll(
    label,
    html`<table>${caption === '' ? '' : html`<caption>${caption}</caption>`}<thead><tr>${names.map((name, i) => html`<th scope="col"${right(i)}>${name}</th>`)}</tr></thead>
<tbody>${lines.map(
      ([first = '', ...rest]) =>
        html`<tr><th scope="row"><bdi>${first}</bdi></th>${rest.map((value, i) => html`<td${right(i + 1)}>${typeof value === 'number' ? countText(value) : value}</td>`)}</tr>
`,
    )}</tbody></table>`,
  )
}

/** Content that may be wider than the screen; it can then be scrolled by keyboard. */
function scroll(label: string, content: Html): Html {
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${label}, table">${content}</div>`
}
