import { nearest } from '../../config/index.ts'

/** Commands by their names in other tools. */
const COMMANDS: Readonly<Record<string, string>> = {
  export: 'run',
  download: 'run',
  fetch: 'run',
  resume: 'run',
  start: 'run',
  validate: 'check',
  test: 'check',
  lint: 'check',
  'dry-run': 'plan',
  estimate: 'plan',
  show: 'status',
  ls: 'status',
  list: 'status',
  sql: 'query',
  select: 'query',
  import: 'load',
  clean: 'prune',
  delete: 'prune',
  html: 'summary',
}

/** Flags by their names in other tools, with the equivalent here. */
const FLAGS: Readonly<Record<string, string>> = {
  'dry-run': 'Use `spillway plan`: it shows what a run would do, and sends nothing.',
  resume: 'A run resumes by itself where an earlier one stopped.',
  continue: 'A run resumes by itself where an earlier one stopped.',
  since: 'Did you mean --from?',
  start: 'Did you mean --from?',
  to: 'Did you mean --until?',
  end: 'Did you mean --until?',
  limit: 'Did you mean --max-requests?',
  force: 'Did you mean --yes, or --fresh?',
  verbose: 'Did you mean --log-level debug?',
  debug: 'Did you mean --log-level debug?',
  quiet: 'Did you mean --no-progress, or --log-level error?',
  silent: 'Did you mean --no-progress, or --log-level silent?',
}

/** The command that an unknown one probably means; null: none is similar. */
export function suggestCommand(word: string): string | null {
  return Object.hasOwn(COMMANDS, word) ? `Did you mean ${COMMANDS[word]}?` : null
}

/**
 * The same for a flag.
 * @param help of the command, which names its flags
 */
export function suggestFlag(flag: string, help: string): string | null {
  const known = new Set([...help.matchAll(/^ +--([a-z][a-z-]*)/gm)].map(([, name = '']) => name))
  // --no-json does not mean --json.
  const alike = [...known].filter((name) => name.startsWith('no-') === flag.startsWith('no-'))
  const near = alike.find((name) => name.startsWith(flag)) ?? nearest(flag, alike)
  const isKnown = (advice: string): boolean => {
    const [, name] = /--([a-z-]+)/.exec(advice) ?? []
    return name === undefined || known.has(name)
  }
  const usual = Object.hasOwn(FLAGS, flag) ? FLAGS[flag]! : null
  if (usual !== null && isKnown(usual)) return usual
  return near === null ? null : `Did you mean --${near}?`
}
