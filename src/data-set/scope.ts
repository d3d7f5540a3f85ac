import { formatInstant, type NamedPipeline, type Pipeline } from '../core/index.ts'
import type { Manifest, Scope } from '../state/index.ts'
import { asInFile } from './plan-state.ts'
import { allowedOf } from './quarantine-limit.ts'

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
function everyText(every: NonNullable<NonNullable<Pipeline['extract']['windows']>['every']>): string {
  return 'count' in every ? `${every.count}${every.unit[0]}` : every.unit
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
