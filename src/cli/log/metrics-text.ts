import type { ServiceFigures } from '../../core/index.ts'

/** What there is to measure of a pipeline; figures are of its last run, or of the one at work. */
export type PipelineFigures = {
  readonly pipeline: string
  readonly isRunning: boolean
  /** Whether that run brought everything; null: it is at work. */
  readonly isSuccess: boolean | null
  /** When these figures were taken, seconds since the epoch. */
  readonly at: number
  readonly durationSeconds: number
  readonly rows: number
  readonly requests: number
  /** What of the quota it spent, by the service's own count; null: the service does not tell. */
  readonly searches: number | null
  readonly service: ServiceFigures | null
  /** As the service said last; null: it has not. */
  readonly searchesLeft: number | null
  readonly retries: number
  readonly quarantined: number
  readonly failures: number
  /** null: not known, as the run could not begin. */
  readonly partitions: { readonly done: number; readonly failed: number; readonly pending: number } | null
}

type Metrics = {
  readonly version: string
  readonly pipelines: readonly PipelineFigures[]
  /** When a run last brought everything, by pipeline, seconds since the epoch; of others than the above as well. */
  readonly successes: ReadonlyMap<string, number>
  /** null: the command is at work. */
  readonly exitCode: number | null
}

/** Text in the exposition format of Prometheus, version 0.0.4. */
export function metricsText({ version, pipelines, successes, exitCode }: Metrics): string {
  const families = FAMILIES.map(({ name, help, samples }) => {
    const lines = pipelines.flatMap((figures) =>
      samples(figures, version).map(([value, labels]) =>
        sampleLine(name, { pipeline: figures.pipeline, ...labels }, value),
      ),
    )
    return family(name, help, lines)
  })
  const times = Array.from(successes, ([pipeline, time]) => sampleLine(LAST_SUCCESS, { pipeline }, time))
  families.push(family(LAST_SUCCESS, 'When a run last brought everything that was asked for.', times))
  const codes = exitCode === null ? [] : [sampleLine(EXIT_CODE, {}, exitCode)]
  families.push(family(EXIT_CODE, 'Exit code of the command that wrote this file.', codes))
  return families.join('')
}

/** Whether {@link metricsText} wrote it. */
export function isMetricsText(text: string): boolean {
  return /^# HELP spillway_[a-z_]+ /.test(text)
}

/** The time of each pipeline's last success, as {@link metricsText} wrote it. */
export function lastSuccesses(text: string): ReadonlyMap<string, number> {
  const found = text.matchAll(
    /^spillway_last_success_timestamp_seconds\{pipeline="([a-z0-9-]+)"\} ([\d.]+)$/gm,
  )
  return new Map(Array.from(found, ([, pipeline, seconds]) => [pipeline!, Number(seconds)]))
}

const LAST_SUCCESS = 'spillway_last_success_timestamp_seconds'
const EXIT_CODE = 'spillway_exit_code'

type Labels = Readonly<Record<string, string>>
type Sample = readonly [value: number, labels?: Labels]

type Family = {
  readonly name: string
  readonly help: string
  readonly samples: (figures: PipelineFigures, version: string) => readonly Sample[]
}

const FAMILIES: readonly Family[] = [
  {
    name: 'spillway_info',
    help: 'Version of spillway, by pipeline; always 1.',
    samples: (_figures, version) => [[1, { version }]],
  },
  {
    name: 'spillway_running',
    help: 'Whether a run is at work: 1 or 0.',
    samples: ({ isRunning }) => [[Number(isRunning)]],
  },
  {
    name: 'spillway_last_run_timestamp_seconds',
    help: 'When these figures were taken: at the end of the last run, or while it is at work.',
    samples: ({ at }) => [[at]],
  },
  {
    name: 'spillway_last_run_success',
    help: 'Whether the last run brought everything that was asked for: 1 or 0.',
    samples: ({ isSuccess }) => (isSuccess === null ? [] : [[Number(isSuccess)]]),
  },
  {
    name: 'spillway_last_run_duration_seconds',
    help: 'How long the last run took.',
    samples: ({ durationSeconds }) => [[durationSeconds]],
  },
  {
    name: 'spillway_last_run_rows',
    help: 'Rows that the last run exported.',
    samples: ({ rows }) => [[rows]],
  },
  {
    name: 'spillway_last_run_requests',
    help: 'Requests that the last run sent, retries among them.',
    samples: ({ requests }) => [[requests]],
  },
  {
    name: 'spillway_last_run_searches',
    help: 'Searches of the quota that the last run spent, by what the service said was left.',
    samples: ({ searches }) => maybe(searches),
  },
  {
    name: 'spillway_searches_per_request',
    help: 'Searches of the quota that a request was measured to cost.',
    samples: ({ service }) => maybe(service?.searchesPerRequest ?? null),
  },
  {
    name: 'spillway_searches_per_thousand_rows',
    help: 'Searches of the quota that 1,000 rows were measured to cost.',
    samples: ({ service }) => maybe(service?.searchesPer1000Rows ?? null),
  },
  {
    name: 'spillway_page_size_rows',
    help: 'Rows that the last page was asked for with.',
    samples: ({ service }) => maybe(service?.pageSize ?? null),
  },
  {
    name: 'spillway_last_run_retries',
    help: 'Requests that the last run sent again.',
    samples: ({ retries }) => [[retries]],
  },
  {
    name: 'spillway_last_run_quarantined',
    help: 'Items that the last run set aside.',
    samples: ({ quarantined }) => [[quarantined]],
  },
  {
    name: 'spillway_last_run_failures',
    help: 'Partitions that failed in the last run.',
    samples: ({ failures }) => [[failures]],
  },
  {
    name: 'spillway_searches_left',
    help: 'Searches that the service said were left.',
    samples: ({ searchesLeft }) => maybe(searchesLeft),
  },
  {
    name: 'spillway_partitions',
    help: 'Partitions of the pipeline by state.',
    samples: ({ partitions }) => Object.entries(partitions ?? {}).map(([state, value]) => [value, { state }]),
  },
]

function maybe(value: number | null): readonly Sample[] {
  return value === null ? [] : [[value]]
}

function family(name: string, help: string, lines: readonly string[]): string {
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
