import type { ArgumentsCamelCase, Argv } from 'yargs'
import {
  type Command,
  CommandCall,
  type CommonArgs,
  HOW_IT_RUNS,
  WHAT_IS_SHOWN,
} from '../command-line/command.ts'
import type { OneFile } from '../work/several.ts'

/** Help lists these groups first: a command's own options before those that several share. */
const OWN_GROUPS = ['Positionals:', 'Options:', WHAT_IS_SHOWN, HOW_IT_RUNS]

/** Every command, in the order in which help lists them. A new one is a file here and an entry. */
export const COMMANDS: Readonly<Record<string, AddCommand>> = {
  run: lazyCommand(
    'run <pipeline..>',
    'Export; resumes automatically where an earlier run stopped',
    async () => (await import('./run.ts')).run,
  ),
  plan: lazyCommand(
    'plan <pipeline..>',
    'Show what a run would do and at least cost; sends nothing',
    async () => severally((await import('./plan.ts')).plan),
  ),
  status: lazyCommand(
    'status <pipeline..>',
    'Show the checkpoint: what is done, by query or by partition',
    async () => severally((await import('./status.ts')).status),
  ),
  verify: lazyCommand(
    'verify <pipeline..>',
    'Read every file again and compare it with the checkpoint; exit 1 if something differs',
    async () => severally((await import('./verify.ts')).verify),
  ),
  sign: lazyCommand(
    'sign <pipeline>',
    'Sign the manifest, as evidence that the export is complete and unchanged',
    async () => (await import('./sign.ts')).sign,
  ),
  evidence: lazyCommand(
    'evidence <pipeline>',
    'Pack manifest, signature, settings and checksums for an auditor; never rows',
    async () => (await import('./evidence.ts')).evidence,
  ),
  prune: lazyCommand(
    'prune <pipeline>',
    'Remove partitions beyond their maximum age; asks first',
    async () => (await import('./prune.ts')).prune,
  ),
  compact: lazyCommand(
    'compact <pipeline>',
    'Write the small shards of each folder together; sends nothing',
    async () => (await import('./compact.ts')).compact,
  ),
  forget: lazyCommand(
    'forget <pipeline>',
    'Take people out of the exported files, and keep them out; reads identities from stdin',
    async () => (await import('./forget.ts')).forget,
  ),
  summary: lazyCommand(
    'summary <pipeline>',
    'Write _report.html: whether all is exported, scope, result, runs; counts only',
    async () => (await import('./summary.ts')).summary,
  ),
  load: lazyCommand(
    'load <pipeline>',
    'Load the exported shards into a database, each once',
    async () => (await import('./load.ts')).load,
  ),
  query: lazyCommand(
    'query <pipeline> [sql]',
    'Query the exported files in SQL, read-only; without SQL: columns and first rows',
    async () => (await import('./query.ts')).query,
  ),
  ddl: lazyCommand(
    'ddl <pipeline>',
    'Print the tables, and how to load or mount the data set, for an engine',
    async () => (await import('./load.ts')).ddl,
  ),
  tables: lazyCommand(
    'tables <pipeline>',
    'Bring the Iceberg and Delta tables over the files in line with the manifest',
    async () => (await import('./tables.ts')).tables,
  ),
  submit: lazyCommand(
    'submit <pipeline..>',
    'Put pipelines into a queue, one job for each organization, for workers on any machine',
    async () => (await import('./submit.ts')).submit,
  ),
  worker: lazyCommand(
    'worker',
    'Run submitted pipelines, an organization at a time and several side by side, until a signal comes',
    async () => (await import('./worker.ts')).worker,
  ),
  check: lazyCommand(
    'check <pipeline..>',
    'Validate the file, the environment, what was exported so far, and the token if the service has a test',
    async () => severally((await import('./check.ts')).check, 1000),
  ),
  report: lazyCommand(
    'report <id..>',
    'Fetch threat-flow reports by id and print them',
    async () => (await import('./report.ts')).report,
  ),
  sandbox: lazyCommand(
    'sandbox',
    'Serve an emulation of the service with made-up data, until a signal comes',
    async () => (await import('./sandbox.ts')).sandbox,
  ),
  init: lazyCommand(
    'init [file]',
    'Write a commented pipeline file to begin with',
    async () => (await import('./init.ts')).init,
  ),
  schema: lazyCommand(
    'schema',
    'Print the JSON Schema of pipeline files, for editors',
    async () => (await import('./init.ts')).schema,
  ),
  demo: lazyCommand(
    'demo',
    'Export made-up data into output/demo, and show it',
    async () => (await import('./demo.ts')).demo,
  ),
}

/** The groups of the list of commands, by what people want. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Export: ['run', 'plan', 'submit', 'worker'],
  Inspect: ['status', 'verify', 'summary', 'query'],
  Deliver: ['load', 'ddl', 'tables', 'compact'],
  Comply: ['sign', 'evidence', 'prune', 'forget'],
  Tools: ['init', 'check', 'schema', 'report', 'sandbox', 'demo'],
}

/** Of several pipeline files, such a command prints a line each. */
async function severally<Args extends OneFile>(one: Command<Args>, pauseMs?: number): Promise<Command<Args>> {
  return (await import('../work/several.ts')).severally(one, pauseMs)
}

/** Adds one command to the command line. */
type AddCommand = ((yargs: Argv<CommonArgs>) => void) & {
  /** With placeholders: `report <id..>` */
  readonly usage: string
  readonly describe: string
  /** Loads it before it is called, for the completion of its options. */
  readonly load: () => Promise<void>
}

/**
 * A command whose module is loaded when it is called, so that it does not wait for those of other commands.
 * @param usage with placeholders, as yargs writes them: `report <id..>`
 */
function lazyCommand<Args extends CommonArgs>(
  usage: string,
  describe: string,
  load: () => Promise<Command<Args>>,
): AddCommand {
  let loaded: Command<Args> | null = null
  const add = (yargs: Argv<CommonArgs>): void => {
    const builder = (yargs: Argv<CommonArgs>): Argv<Args> | Promise<Argv<Args>> => {
      // Help lists groups in the order in which they were named first.
      const options = OWN_GROUPS.reduce((given, group) => given.group([], group), yargs)
      return loaded === null ? load().then((found) => found.options(options)) : loaded.options(options)
    }
    const handler = (args: ArgumentsCamelCase<Args>) => {
      throw new CommandCall(args, async (io) => (await load()).run(args, io))
    }
    yargs.command(usage, describe, builder, handler)
  }
  const loadNow = async (): Promise<void> => {
    loaded = await load()
  }
  return Object.assign(add, { usage, describe, load: loadNow })
}
