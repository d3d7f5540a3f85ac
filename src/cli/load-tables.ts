import { readMaskKey, readSecret } from '../config/index.ts'
import { type Pipeline, systemClock } from '../core/index.ts'
import {
  type LoadedAhead,
  type LoadOptions,
  type LoadSummary,
  loadWarehouse,
  SealedLoader,
} from '../run/index.ts'
import type { Target } from '../warehouse/index.ts'
import type { Io } from './io.ts'
import { plainJson, plainLine } from './plain-text.ts'
import { count, counted, duration } from './quantities.ts'

export type LoadSettings = Pick<LoadOptions, 'schema' | 'table' | 'mode' | 'evolve'> & {
  /** Prints the result as JSON. */
  readonly json: boolean
  /** What a {@link loaderBeside} has loaded of them; null: nothing. */
  readonly ahead: LoadedAhead | null
}

/** What `load` does when nothing else is said. */
export const PLAIN_LOAD: LoadSettings = {
  schema: null,
  table: null,
  mode: 'append',
  evolve: false,
  json: false,
  ahead: null,
}

/** Loads what is exported into a database, shows how far it is, and prints what came of it. @throws ExportError */
export async function loadTables(
  pipeline: Pipeline,
  target: Target,
  { json, ahead, ...settings }: LoadSettings,
  stop: AbortSignal,
  { env, screen, stdout }: Io,
): Promise<void> {
  const options = {
    ...settings,
    ...surroundings(pipeline, stop, env),
    onWait: () =>
      screen.write(`Another load is at work in ${plainLine(target.label)}; waiting for it to end.\n`),
    onShard: (path: string, number: number, of: number) => {
      if (!screen.canRedraw) return
      screen.show(`shard ${count(number)} of ${count(of)}: ${plainLine(path)}`.slice(0, screen.columns - 1))
    },
  }
  const loading = loadWarehouse(pipeline, target, options, ahead ?? undefined)
  const summary = await loading.finally(() => screen.clear())
  await stdout.line(json ? plainJson(summaryJson(summary)) : summaryText(summary))
}

/** What loads the shards of a run while it goes on, as {@link loadTables} does afterwards. */
export function loaderBeside(
  pipeline: Pipeline,
  target: Target,
  stop: AbortSignal,
  { env, log }: Io,
): SealedLoader {
  return new SealedLoader(pipeline, target, { ...PLAIN_LOAD, ...surroundings(pipeline, stop, env), log })
}

function surroundings(pipeline: Pipeline, stop: AbortSignal, env: Io['env']) {
  return {
    clock: systemClock,
    stop,
    readSecret: (name: string) => readSecret(name, env),
    readMaskKey: () => readMaskKey(pipeline, env),
  }
}

function summaryJson({ target, table, shards, removed, rows, replacedTexts, durationMs }: LoadSummary) {
  return { target, table, shards, removed, rows, replaced_texts: replacedTexts, duration_ms: durationMs }
}

function summaryText(summary: LoadSummary): string {
  const { target, table, shards, removed, rows, replacedTexts, durationMs } = summary
  const { loaded, skipped, replaced } = shards
  const lines = [
    `${plainLine(table)} in ${plainLine(target)}: ${counted(rows, 'row')} loaded in ${duration(durationMs)}`,
    `shards: ${count(loaded)} loaded, ${count(replaced)} replaced, ${count(skipped)} there already${removed === 0 ? '' : `, ${count(removed)} gone with their rows`}`,
  ]
  if (replacedTexts > 0) {
    lines.push(
      `${counted(replacedTexts, 'row')} held a NUL, which PostgreSQL does not take: it is U+FFFD there`,
    )
  }
  return lines.join('\n')
}
