import type { PartitionCounts, RunCounts, ServiceFigures } from '../../core/index.ts'

/** The figures of a pipeline: of its last run, or of the present one. */
export type PipelineFigures = RunCounts & {
  readonly pipeline: string
  readonly isRunning: boolean
  /** Whether that run exported everything; null: it has not ended. */
  readonly isSuccess: boolean | null
  /** When these figures were taken, seconds since the epoch. */
  readonly at: number
  readonly durationSeconds: number
  readonly service: ServiceFigures | null
  /** null: not known, as the run could not begin. */
  readonly partitions: Omit<PartitionCounts, 'total'> | null
}

type Metrics = {
  readonly version: string
  readonly pipelines: readonly PipelineFigures[]
  /** The time of the last complete run, by pipeline, in seconds since the epoch. Has other pipelines as well. */
  readonly successes: ReadonlyMap<string, number>
  /** null: the command has not ended. */
  readonly exitCode: number | null
}

/** Text in the exposition format of Prometheus, version 0.0.4. */
export function metricsText({ version, pipelines, successes, exitCode }: Metrics): string {
  const families = [
    family('spillway_info', 'Version of spillway, by pipeline; always 1.', (add) => {
      for (const { pipeline } of pipelines) add({ pipeline, version }, 1)
    }),
    ...FAMILIES.map(([name, help, figureOf]) =>
      family(name, help, (add) => {
        for (const figures of pipelines) add({ pipeline: figures.pipeline }, figureOf(figures))
      }),
    ),
    family('spillway_partitions', 'Partitions of the pipeline by state.', (add) => {
      for (const { pipeline, partitions } of pipelines) {
        for (const [state, value] of Object.entries(partitions ?? {})) add({ pipeline, state }, value)
      }
    }),
    family(LAST_SUCCESS, 'When a run last exported everything that was requested.', (add) => {
      for (const [pipeline, time] of successes) add({ pipeline }, time)
    }),
    family('spillway_exit_code', 'Exit code of the command that wrote this file.', (add) =>
      add({}, exitCode),
    ),
  ]
  return families.join('')
}

/** The time of each pipeline's last success, as {@link metricsText} wrote it. */
export function lastSuccesses(text: string): ReadonlyMap<string, number> {
  const found = text.matchAll(
    /^spillway_last_success_timestamp_seconds\{pipeline="([a-z0-9-]+)"\} ([\d.]+)$/gm,
  )
  return new Map(Array.from(found, ([, pipeline, seconds]) => [pipeline!, Number(seconds)]))
}

const LAST_SUCCESS = 'spillway_last_success_timestamp_seconds'

type Labels = Readonly<Record<string, string>>

type Family = readonly [name: string, help: string, value: (figures: PipelineFigures) => number | null]

/** A null is left out. */
const FAMILIES: readonly Family[] = [
  ['spillway_running', 'Whether a run is in progress: 1 or 0.', ({ isRunning }) => Number(isRunning)],
  [
    'spillway_last_run_timestamp_seconds',
    'When these figures were taken: at the end of the last run, or during it.',
    ({ at }) => at,
  ],
  [
    'spillway_last_run_success',
    'Whether the last run exported everything that was requested: 1 or 0.',
    ({ isSuccess }) => (isSuccess === null ? null : Number(isSuccess)),
  ],
  [
    'spillway_last_run_duration_seconds',
    'How long the last run took.',
    ({ durationSeconds }) => durationSeconds,
  ],
  ['spillway_last_run_rows', 'Rows that the last run exported.', ({ rows }) => rows],
  [
    'spillway_last_run_requests',
    'Requests that the last run sent, retries among them.',
    ({ requests }) => requests,
  ],
  [
    'spillway_last_run_searches',
    'Searches of the quota that the last run spent, by the number of searches left.',
    ({ searchesSpent }) => searchesSpent,
  ],
  [
    'spillway_searches_per_request',
    'Searches of the quota that a request was measured to cost.',
    ({ service }) => service?.searchesPerRequest ?? null,
  ],
  [
    'spillway_searches_per_thousand_rows',
    'Searches of the quota that 1,000 rows were measured to cost.',
    ({ service }) => service?.searchesPer1000Rows ?? null,
  ],
  [
    'spillway_page_size_rows',
    'Rows requested with the last page.',
    ({ service }) => service?.pageSize ?? null,
  ],
  ['spillway_last_run_retries', 'Requests that the last run sent again.', ({ retries }) => retries],
  ['spillway_last_run_quarantined', 'Items that the last run quarantined.', ({ quarantined }) => quarantined],
  [
    'spillway_last_run_failures',
    'Partitions that failed in the last run.',
    ({ partitions }) => partitions?.failed ?? 0,
  ],
  [
    'spillway_searches_left',
    'Searches left, as the service last reported.',
    ({ searchesRemaining }) => searchesRemaining,
  ],
]

function family(
  name: string,
  help: string,
  samples: (add: (labels: Labels, value: number | null) => void) => void,
): string {
  const lines: string[] = []
  samples((labels, value) => {
    if (value !== null) lines.push(sampleLine(name, labels, value))
  })
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`
}

function sampleLine(name: string, labels: Labels, value: number): string {
  const parts = Object.entries(labels).map(
    ([label, text]) => `${label}="${text.replace(/[\\"\n]/g, escaped)}"`,
  )
  return `${name}${parts.length === 0 ? '' : `{${parts.join(',')}}`} ${value}\n`
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`
}
