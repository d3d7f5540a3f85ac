import type { Command } from '../command-line/command.ts'

type Entry = readonly [group: string, placeholders: string, describe: string, load: () => Promise<Command>]

/** Every command, by what people want of it, in the order in which help lists them. A new one is a file here and an entry. */
// biome-ignore format: a table
const TABLE = {
  run: ['Export', '<pipeline..>', 'Export; resumes automatically where an earlier run stopped', async () => (await import('./run.ts')).run],
  plan: ['Export', '<pipeline..>', 'Show what a run would do and at least cost; sends nothing', async () => (await import('./plan.ts')).plan],
  submit: ['Export', '<pipeline..>', 'Put pipelines into a queue, one job for each organization, for workers on any machine', async () => (await import('./submit.ts')).submit],
  worker: ['Export', '', 'Run submitted pipelines, an organization at a time and several side by side, until a signal comes', async () => (await import('./worker.ts')).worker],
  status: ['Inspect', '<pipeline..>', 'Show how the last run ended, what is overdue, what to type next, and what is done', async () => (await import('./status.ts')).status],
  verify: ['Inspect', '<pipeline..>', 'Read every file again and compare it with the manifest; exit 1 if something differs', async () => (await import('./verify.ts')).verify],
  summary: ['Inspect', '<pipeline>', 'Write _report.html: whether all is exported, scope, result, runs; counts only', async () => (await import('./summary.ts')).summary],
  query: ['Inspect', '<pipeline> [sql]', 'Query the exported files in SQL, read-only; without SQL: columns and first rows', async () => (await import('./query.ts')).query],
  match: ['Inspect', '<pipeline>', 'Find which people of a directory are in the data set, with what; sends nothing', async () => (await import('./match.ts')).match],
  digest: ['Inspect', '', 'Print the digests of identities from stdin, for `match --digests`', async () => (await import('./digest.ts')).digest],
  load: ['Deliver', '<pipeline>', 'Load the exported shards into a database, each once', async () => (await import('./load.ts')).load],
  ddl: ['Deliver', '<pipeline>', 'Print the tables, and how to load or mount the data set, for an engine', async () => (await import('./ddl.ts')).ddl],
  tables: ['Deliver', '<pipeline>', 'Bring the Iceberg and Delta tables over the files in line with the manifest', async () => (await import('./tables.ts')).tables],
  compact: ['Deliver', '<pipeline>', 'Write the small shards of each folder together; sends nothing', async () => (await import('./compact.ts')).compact],
  sign: ['Comply', '<pipeline>', 'Sign the manifest, as evidence that the export is complete and unchanged', async () => (await import('./sign.ts')).sign],
  evidence: ['Comply', '<pipeline>', 'Pack manifest, signature, settings and checksums for an auditor; never rows', async () => (await import('./evidence.ts')).evidence],
  prune: ['Comply', '<pipeline>', 'Remove partitions beyond their maximum age; asks first', async () => (await import('./prune.ts')).prune],
  forget: ['Comply', '<pipeline>', 'Take people out of the exported files, and keep them out; reads identities from stdin', async () => (await import('./forget.ts')).forget],
  init: ['Tools', '[file]', 'Write a commented pipeline file to begin with', async () => (await import('./init.ts')).init],
  check: ['Tools', '<pipeline..>', 'Validate the file, the environment, what was exported so far, and the token if the service has a test', async () => (await import('./check.ts')).check],
  schema: ['Tools', '', 'Print the JSON Schema of pipeline files, for editors', async () => (await import('./schema.ts')).schema],
  report: ['Tools', '<id..>', 'Fetch threat-flow reports by id and print them', async () => (await import('./report.ts')).report],
  sandbox: ['Tools', '', 'Serve an emulation of the service with made-up data, until a signal comes', async () => (await import('./sandbox.ts')).sandbox],
  demo: ['Tools', '', 'Export made-up data into output/demo, and show it', async () => (await import('./demo.ts')).demo],
} satisfies Record<string, Entry>

export type CommandName = keyof typeof TABLE

/** A command whose module is loaded where it is named, so that it does not wait for those of other commands. */
type LazyCommand = {
  readonly group: string
  /** With placeholders, as yargs writes them: `report <id..>` */
  readonly usage: string
  readonly describe: string
  readonly load: () => Promise<Command>
}

export const COMMANDS: Readonly<Record<string, LazyCommand>> = Object.fromEntries(
  Object.entries<Entry>(TABLE).map(([name, [group, placeholders, describe, load]]) => {
    return [name, { group, usage: `${name} ${placeholders}`.trimEnd(), describe, load }]
  }),
)
