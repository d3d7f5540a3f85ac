import { formatInstant, type NamedPipeline, type Pipeline, UNKNOWN_SERVICE } from '../core/index.ts'
import type { CheckpointState, Manifest, ManifestScope } from '../state/index.ts'
import { asInFile, planAsOfLastRun } from './plan-state.ts'
import { allowedOf } from './quarantine-limit.ts'

/** What the pipeline file requests, without the flags of a run, as the manifest lists it. */
export function scopeOf(given: NamedPipeline): ManifestScope {
  const { service, extract, transform } = asInFile(given)
  const { queries, windows } = extract
  return {
    service: hostOf(service) ?? '',
    queries: queries.map(({ name }) => name).sort(),
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
  }
}

/** Host of the service; null: the pipeline was read without. */
export function hostOf({ baseUrl }: Pipeline['service']): string | null {
  return baseUrl === UNKNOWN_SERVICE ? null : new URL(baseUrl).host
}

/** `month`, `6h`, as in the pipeline file. */
function everyText(every: NonNullable<NonNullable<Pipeline['extract']['windows']>['every']>): string {
  return 'count' in every ? `${every.count}${every.unit[0]}` : every.unit
}

/** Keys of the partitions that the file plans as of the last run. */
export function* plannedKeys(pipeline: NamedPipeline, state: CheckpointState): Generator<string> {
  for (const { key } of planAsOfLastRun(pipeline, state)?.partitions() ?? []) yield key
}

/**
 * How what a manifest covers differs from what the file requests: a signature says nothing about the rest.
 * @returns null: it does not
 */
export function otherScope({ scope }: Manifest, pipeline: NamedPipeline): string | null {
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

function windowsText(windows: ManifestScope['windows']): string {
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
