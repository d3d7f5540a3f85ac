import type { Command } from '../command-line/command.ts'

/** Every command, by what people want of it, in the order in which help lists them. A new one is a file here and an entry. */
// biome-ignore format: a table
const TABLE = {
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

export type CommandName = keyof typeof TABLE

export const COMMANDS: Readonly<Record<string, LazyCommand>> = TABLE

/** A command whose module is loaded where it is named, so that it does not wait for those of other commands. */
type LazyCommand = {
  readonly group: string
  /** With placeholders, as yargs writes them: `report <id..>` */
  readonly usage: string
  readonly describe: string
  readonly load: () => Promise<Command>
}

function commandsOf<Entries extends Readonly<Record<string, Entry<never>>>>(
  group: string,
  entries: Entries & { readonly [Name in keyof Entries]: Entry<Name> },
): Readonly<Record<keyof Entries, LazyCommand>> {
  return Object.fromEntries(
    Object.entries<Entry<string>>(entries).map(([name, [placeholders, describe, load]]) => {
      const usage = `${name} ${placeholders}`.trimEnd()
      return [name, { group, usage, describe, load: async () => (await load())[name]! }]
    }),
  ) as Record<keyof Entries, LazyCommand>
}

type Entry<Name extends PropertyKey> = readonly [
  placeholders: string,
  describe: string,
  load: () => Promise<{ readonly [Each in Name]: Command }>,
]
