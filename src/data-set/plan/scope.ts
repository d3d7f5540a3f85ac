import {
  formatInstant,
  isSearch,
  type NamedPipeline,
  type Pipeline,
  parseInstant,
  type Query,
  SEARCHES,
  type WindowLength,
  type WindowSettings,
} from '../../core/index.ts'
import { parseWindowLength, unreadable } from '../../pipeline/index.ts'
import type { Manifest, Scope } from '../../state/index.ts'
import { allowedOf, limitFrom } from './left-out.ts'
import { asInFile } from './plan-state.ts'

/** What the pipeline file requests, without the flags of a run, as the manifest lists it. */
export function scopeOf(given: NamedPipeline): Scope {
  const { service, extract, transform, load } = asInFile(given)
  const { queries, windows } = extract
  return {
    service: new URL(service.baseUrl).host,
    queries: queries.map(({ name }) => name),
    windows:
      windows === null
        ? null
        : {
            from: formatInstant(windows.from),
            until: windows.until === 'now' ? 'now' : formatInstant(windows.until),
            every: windows.every === null ? null : everyText(windows.every),
            lag_seconds: windows.lagMs / 1000,
          },
    on_invalid: transform.onInvalid,
    max_quarantined: allowedOf(transform.maxQuarantined).text,
    shard_rows: load.shardRows,
  }
}

/** `month`, `6h`, as in the pipeline file. */
function everyText(every: WindowLength): string {
  return 'count' in every ? `${every.count}${every.unit[0]}` : every.unit
}

/** The pipeline as one that requests this; reads what {@link scopeOf} wrote. @throws ExportError `damaged` */
export function withScope(pipeline: Pipeline, scope: Scope): Pipeline {
  const { service, extract, transform, load } = pipeline
  return {
    ...pipeline,
    service: { ...service, baseUrl: `https://${scope.service}` },
    extract: { ...extract, queries: scope.queries.map(queryNamed), windows: windowsOf(scope) },
    transform: {
      ...transform,
      onInvalid: scope.on_invalid as Pipeline['transform']['onInvalid'],
      maxQuarantined: limitFrom(scope.max_quarantined),
    },
    load: { ...load, shardRows: scope.shard_rows },
  }
}

/** The query of a name. Under `as` it keeps the name, whatever the policy hides: no mask key is needed. */
function queryNamed(name: string): Query {
  const dot = name.indexOf('.')
  const type = name.slice(0, dot)
  const label = decodeURIComponent(name.slice(dot + 1))
  if (isSearch(type)) return { type, [SEARCHES[type].by]: label, as: label } as unknown as Query
  switch (type) {
    case 'report':
      return { type, id: Number(label) }
    case 'reports':
      return { type }
    case 'feed':
      return label === 'tenant' ? { type: 'tenant' } : { type: 'identifier', id: Number(label) }
    default:
      return noScope()
  }
}

function windowsOf({ windows }: Scope): WindowSettings | null {
  if (windows === null) return null
  const { from, until, every, lag_seconds } = windows
  return {
    from: parseInstant(from) ?? noScope(),
    until: until === 'now' ? until : (parseInstant(until) ?? noScope()),
    every: every === null ? null : (parseWindowLength(every) ?? noScope()),
    lagMs: lag_seconds * 1000,
    perChain: null,
  }
}

function noScope(): never {
  throw unreadable('scope')
}

/** How what a data set covers differs from what the file requests; null: it does not. */
export function otherScope(scope: Scope, pipeline: NamedPipeline): string | null {
  const now = scopeOf(pipeline)
  const known = new Set(scope.queries)
  const missing = now.queries.filter((name) => !known.has(name))
  const [first] = missing
  if (first !== undefined) {
    const more = missing.length === 1 ? '' : ` and ${missing.length - 1} more queries`
    return `does not cover ${first}${more}, which the pipeline requests`
  }
  const [was, is] = [scope, now].map(({ windows }) => windowsText(windows))
  return was === is ? null : `covers ${was}, and the pipeline requests ${is}`
}

function windowsText(windows: Scope['windows']): string {
  if (windows === null) return 'one window over everything'
  const { from, until, every } = windows
  return `windows from ${from} until ${until}${every === null ? '' : `, every ${every}`}`
}

/** Why the manifest's earlier signature is gone or stale: what `forget` or `prune` did after the last run; else empty. */
export function whyStale(manifest: Manifest | null): string {
  const forgotten = manifest?.forgotten.at(-1)?.at ?? ''
  const pruned = manifest?.prunes.at(-1)?.pruned_at ?? ''
  const at = forgotten > pruned ? forgotten : pruned
  if (at <= (manifest?.runs.at(-1)?.finished_at ?? '')) return ''
  const what = at === forgotten ? 'People were forgotten' : 'Partitions were pruned'
  return `. ${what} at ${at}, which makes earlier signatures stale: sign it again`
}
