import type { Pipeline } from '../../core/index.ts'

/** What a scheduler is told of a pipeline. All paths are absolute. */
export type Scheduled = {
  readonly pipeline: Pipeline
  /** The pipeline file, and its text. */
  readonly file: string
  readonly text: string
  /** Whether the file names others: `extends`, `domains_file`. */
  readonly namesOthers: boolean
  /** Where it runs: `load.path` may be relative to it. */
  readonly folder: string
  /** Holds the variables, one a line; mode 0600. */
  readonly envFile: string
  readonly variables: readonly string[]
  /** The command as a scheduler without a search path calls it: Node.js, the script. */
  readonly command: readonly string[]
  /** Who owns the files, as systemd and cron name it. */
  readonly user: string
  readonly version: string
}

/** When: every night. */
export const AT = { minute: 15, hour: 2 }

/** Flags of a run that nobody watches. */
export const UNATTENDED = ['--log-format', 'json', '--no-progress']

/** What each exit code of a run means to whoever is on duty. */
const EXIT_CODES = [
  '0 all done; 4 budget or quota used up, 143 stopped: the next run goes on',
  '1 some partitions failed; 5 another run is at work: the next run tries again',
  '2 the file, 3 the credentials: a person has to change something',
]

/**
 * The comment before a schedule: how to install it, and what exit codes mean.
 * @param steps after that of writing the variables; lines after the first of each are indented
 * @param after more lines behind the steps
 */
export function instructions(
  scheduled: Scheduled,
  title: string,
  values: 'plain' | 'quoted',
  steps: readonly (readonly string[])[],
  after: readonly string[] = [],
): readonly string[] {
  const lines = [
    title,
    ...numbered([variablesToWrite(scheduled, values), ...steps]),
    ...after,
    'Exit codes of a run:',
    ...EXIT_CODES.map((line) => `  ${line}`),
  ]
  return lines.map((line) => `# ${line}`)
}

/** A shell and systemd read quotes, and take some characters of a plain value for their own; kubectl does neither. */
function variablesToWrite(
  { envFile, variables, user }: Scheduled,
  values: 'plain' | 'quoted',
): readonly string[] {
  const [how, value] = values === 'plain' ? ['without quotes', '…'] : ['in single quotes', "'…'"]
  return [
    `Write the variables into ${envFile} (mode 0600, owner ${user}), one a line, ${how}:`,
    ...variables.map((name) => `  ${name}=${value}`),
  ]
}

function numbered(steps: readonly (readonly string[])[]): readonly string[] {
  return steps.flatMap((lines, i) => lines.map((line, at) => (at === 0 ? `${i + 1}. ${line}` : `   ${line}`)))
}
