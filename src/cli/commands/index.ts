import type { ArgumentsCamelCase, Argv, PositionalOptions } from 'yargs'
import {
  type Command,
  CommandCall,
  type CommonArgs,
  checkFlags,
  HOW_IT_RUNS,
  unmarkedArgs,
  WHAT_IS_SHOWN,
} from '../command-line/command.ts'
import { folded } from '../terminal/screen.ts'

/** Help lists these groups first: a command's own options before those that several share. */
const OWN_GROUPS = ['Positionals:', 'Options:', WHAT_IS_SHOWN, HOW_IT_RUNS]

/** Every command, by what people want of it, in the order in which help lists them. A new one is a file here and an entry. */
// biome-ignore format: a table
export const COMMANDS: Readonly<Record<string, LazyCommand>> = {
  ...commandsOf('Export', {
    run: ['<pipeline..>', 'Export; resumes automatically where an earlier run stopped', () => import('./run.ts')],
    plan: ['<pipeline..>', 'Show what a run would do and at least cost; sends nothing', () => import('./plan.ts')],
    submit: ['<pipeline..>', 'Put pipelines into a queue, one job for each organization, for workers on any machine', () => import('./submit.ts')],
    worker: ['', 'Run submitted pipelines, an organization at a time and several side by side, until a signal comes', () => import('./worker.ts')],
  }),
  ...commandsOf('Inspect', {
    status: ['<pipeline..>', 'Show how the last run ended, what is overdue, what to type next, and what is done', () => import('./status.ts')],
    verify: ['<pipeline..>', 'Read every file again and compare it with the manifest; exit 1 if something differs', () => import('./verify.ts')],
    summary: ['<pipeline>', 'Write _report.html: whether all is exported, scope, result, runs; counts only', () => import('./summary.ts')],
    query: ['<pipeline> [sql]', 'Query the exported files in SQL, read-only; without SQL: columns and first rows', () => import('./query.ts')],
    match: ['<pipeline>', 'Find which people of a directory are in the data set, with what; sends nothing', () => import('./match.ts')],
    digest: ['', 'Print the digests of identities from stdin, for `match --digests`', () => import('./digest.ts')],
  }),
  ...commandsOf('Deliver', {
    load: ['<pipeline>', 'Load the exported shards into a database, each once', () => import('./load.ts')],
    ddl: ['<pipeline>', 'Print the tables, and how to load or mount the data set, for an engine', () => import('./ddl.ts')],
    tables: ['<pipeline>', 'Bring the Iceberg and Delta tables over the files in line with the manifest', () => import('./tables.ts')],
    compact: ['<pipeline>', 'Write the small shards of each folder together; sends nothing', () => import('./compact.ts')],
  }),
  ...commandsOf('Comply', {
    sign: ['<pipeline>', 'Sign the manifest, as evidence that the export is complete and unchanged', () => import('./sign.ts')],
    evidence: ['<pipeline>', 'Pack manifest, signature, settings and checksums for an auditor; never rows', () => import('./evidence.ts')],
    prune: ['<pipeline>', 'Remove partitions beyond their maximum age; asks first', () => import('./prune.ts')],
    forget: ['<pipeline>', 'Take people out of the exported files, and keep them out; reads identities from stdin', () => import('./forget.ts')],
  }),
  ...commandsOf('Tools', {
    init: ['[file]', 'Write a commented pipeline file to begin with', () => import('./init.ts')],
    check: ['<pipeline..>', 'Validate the file, the environment, what was exported so far, and the token if the service has a test', () => import('./check.ts')],
    schema: ['', 'Print the JSON Schema of pipeline files, for editors', () => import('./schema.ts')],
    report: ['<id..>', 'Fetch threat-flow reports by id and print them', () => import('./report.ts')],
    sandbox: ['', 'Serve an emulation of the service with made-up data, until a signal comes', () => import('./sandbox.ts')],
    demo: ['', 'Export made-up data into output/demo, and show it', () => import('./demo.ts')],
  }),
}

/** A command whose module is loaded when it is called, so that it does not wait for those of other commands. */
type LazyCommand = {
  readonly group: string
  /** With placeholders, as yargs writes them: `report <id..>` */
  readonly usage: string
  readonly describe: string
  /** Adds it to the command line, whose help is so wide. */
  readonly add: (yargs: Argv<CommonArgs>, width: number) => void
  /** Loads it before it is called, for the completion of its options. */
  readonly load: () => Promise<void>
}

/** @param entries by name: placeholders, what it does, and the module that exports it under that name */
function commandsOf<Entries extends Readonly<Record<string, Entry<never>>>>(
  group: string,
  entries: Entries & { readonly [Name in keyof Entries]: Entry<Name> },
): Readonly<Record<string, LazyCommand>> {
  return Object.fromEntries(
    Object.entries<Entry<string>>(entries).map(([name, [placeholders, describe, load]]) => {
      const usage = `${name} ${placeholders}`.trimEnd()
      return [name, { group, usage, describe, ...lazily(usage, describe, async () => (await load())[name]!) }]
    }),
  )
}

type Entry<Name extends PropertyKey> = readonly [
  placeholders: string,
  describe: string,
  load: () => Promise<{ readonly [Each in Name]: Command }>,
]

function lazily(
  usage: string,
  describe: string,
  load: () => Promise<Command>,
): Pick<LazyCommand, 'add' | 'load'> {
  let loaded: Command | null = null
  return {
    add(yargs, width) {
      const builder = (yargs: Argv<CommonArgs>): Argv<CommonArgs> | Promise<Argv<CommonArgs>> => {
        return loaded === null
          ? load().then((found) => declared(found, yargs, width))
          : declared(loaded, yargs, width)
      }
      const handler = (given: ArgumentsCamelCase<CommonArgs>) => {
        const args = unmarkedArgs(given)
        throw new CommandCall(args, async (io) => {
          const command = await load()
          if (command.eachFile === null) return command.run(args, io)
          return (await import('../work/several.ts')).runSeverally(command, command.eachFile, args, io)
        })
      }
      yargs.command(usage, describe, builder, handler)
    },
    async load() {
      loaded = await load()
    },
  }
}

function declared(command: Command, yargs: Argv<CommonArgs>, width: number): Argv<CommonArgs> {
  // Help lists groups in the order in which they were named first.
  for (const group of OWN_GROUPS) yargs.group([], group)
  for (const [name, each] of Object.entries(command.positionals))
    yargs.positional(name, each as PositionalOptions)
  yargs.options(command.flags)
  yargs.epilogue(examplesText(command.examples, width))
  if (command.epilogue !== null) yargs.epilogue(`\n${folded(command.epilogue, width)}`)
  return yargs.check((args) => checkFlags(args, command))
}

/** Examples that can be copied: what each is for is a comment above it, and a long line ends in a backslash. */
function examplesText(examples: Command['examples'], width: number): string {
  const all = examples.map(([line, meaning]) => {
    // Room for the indent and the backslash.
    const command = folded(line.replaceAll('$0', 'spillway'), width - 6).replaceAll('\n', ' \\\n    ')
    return `  # ${folded(meaning, width - 4).replaceAll('\n', '\n  # ')}\n  ${command}`
  })
  return `Examples:\n${all.join('\n')}`
}
