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

/** Every command, in the order in which help lists them. A new one is a file here and an entry. */
export const COMMANDS: Readonly<Record<string, AddCommand>> = {
  run: lazyCommand(
    'Export',
    'run <pipeline..>',
    'Export; resumes automatically where an earlier run stopped',
    async () => (await import('./run.ts')).run,
  ),
  plan: lazyCommand(
    'Export',
    'plan <pipeline..>',
    'Show what a run would do and at least cost; sends nothing',
    async () => severally((await import('./plan.ts')).plan),
  ),
  submit: lazyCommand(
    'Export',
    'submit <pipeline..>',
    'Put pipelines into a queue, one job for each organization, for workers on any machine',
    async () => (await import('./submit.ts')).submit,
  ),
  worker: lazyCommand(
    'Export',
    'worker',
    'Run submitted pipelines, an organization at a time and several side by side, until a signal comes',
    async () => (await import('./worker.ts')).worker,
  ),
  status: lazyCommand(
    'Inspect',
    'status <pipeline..>',
    'Show the checkpoint: what is done, by query or by partition',
    async () => severally((await import('./status.ts')).status),
  ),
  verify: lazyCommand(
    'Inspect',
    'verify <pipeline..>',
    'Read every file again and compare it with the manifest; exit 1 if something differs',
    async () => severally((await import('./verify.ts')).verify),
  ),
  summary: lazyCommand(
    'Inspect',
    'summary <pipeline>',
    'Write _report.html: whether all is exported, scope, result, runs; counts only',
    async () => (await import('./summary.ts')).summary,
  ),
  query: lazyCommand(
    'Inspect',
    'query <pipeline> [sql]',
    'Query the exported files in SQL, read-only; without SQL: columns and first rows',
    async () => (await import('./query.ts')).query,
  ),
  match: lazyCommand(
    'Inspect',
    'match <pipeline>',
    'Find which people of a directory are in the data set, with what; sends nothing',
    async () => (await import('./match.ts')).match,
  ),
  digest: lazyCommand(
    'Inspect',
    'digest',
    'Print the digests of identities from stdin, for `match --digests`',
    async () => (await import('./digest.ts')).digest,
  ),
  load: lazyCommand(
    'Deliver',
    'load <pipeline>',
    'Load the exported shards into a database, each once',
    async () => (await import('./load.ts')).load,
  ),
  ddl: lazyCommand(
    'Deliver',
    'ddl <pipeline>',
    'Print the tables, and how to load or mount the data set, for an engine',
    async () => (await import('./ddl.ts')).ddl,
  ),
  tables: lazyCommand(
    'Deliver',
    'tables <pipeline>',
    'Bring the Iceberg and Delta tables over the files in line with the manifest',
    async () => (await import('./tables.ts')).tables,
  ),
  compact: lazyCommand(
    'Deliver',
    'compact <pipeline>',
    'Write the small shards of each folder together; sends nothing',
    async () => (await import('./compact.ts')).compact,
  ),
  sign: lazyCommand(
    'Comply',
    'sign <pipeline>',
    'Sign the manifest, as evidence that the export is complete and unchanged',
    async () => (await import('./sign.ts')).sign,
  ),
  evidence: lazyCommand(
    'Comply',
    'evidence <pipeline>',
    'Pack manifest, signature, settings and checksums for an auditor; never rows',
    async () => (await import('./evidence.ts')).evidence,
  ),
  prune: lazyCommand(
    'Comply',
    'prune <pipeline>',
    'Remove partitions beyond their maximum age; asks first',
    async () => (await import('./prune.ts')).prune,
  ),
  forget: lazyCommand(
    'Comply',
    'forget <pipeline>',
    'Take people out of the exported files, and keep them out; reads identities from stdin',
    async () => (await import('./forget.ts')).forget,
  ),
  init: lazyCommand(
    'Tools',
    'init [file]',
    'Write a commented pipeline file to begin with',
    async () => (await import('./init.ts')).init,
  ),
  check: lazyCommand(
    'Tools',
    'check <pipeline..>',
    'Validate the file, the environment, what was exported so far, and the token if the service has a test',
    async () => severally((await import('./check.ts')).check, 1000),
  ),
  schema: lazyCommand(
    'Tools',
    'schema',
    'Print the JSON Schema of pipeline files, for editors',
    async () => (await import('./schema.ts')).schema,
  ),
  report: lazyCommand(
    'Tools',
    'report <id..>',
    'Fetch threat-flow reports by id and print them',
    async () => (await import('./report.ts')).report,
  ),
  sandbox: lazyCommand(
    'Tools',
    'sandbox',
    'Serve an emulation of the service with made-up data, until a signal comes',
    async () => (await import('./sandbox.ts')).sandbox,
  ),
  demo: lazyCommand(
    'Tools',
    'demo',
    'Export made-up data into output/demo, and show it',
    async () => (await import('./demo.ts')).demo,
  ),
}

/** Such a command is called for each of several pipeline files. */
async function severally(one: Command, pauseMs?: number): Promise<Command> {
  return (await import('../work/several.ts')).severally(one, pauseMs)
}

/** What people want of commands, by which help groups them. */
type Group = 'Export' | 'Inspect' | 'Deliver' | 'Comply' | 'Tools'

/** Adds one command to the command line, whose help is so wide. */
type AddCommand = ((yargs: Argv<CommonArgs>, width: number) => void) & {
  readonly group: Group
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
function lazyCommand(
  group: Group,
  usage: string,
  describe: string,
  load: () => Promise<Command>,
): AddCommand {
  let loaded: Command | null = null
  const add = (yargs: Argv<CommonArgs>, width: number): void => {
    const builder = (yargs: Argv<CommonArgs>): Argv<CommonArgs> | Promise<Argv<CommonArgs>> => {
      return loaded === null
        ? load().then((found) => declared(found, yargs, width))
        : declared(loaded, yargs, width)
    }
    const handler = (given: ArgumentsCamelCase<CommonArgs>) => {
      const args = unmarkedArgs(given)
      throw new CommandCall(args, async (io) => (await load()).run(args, io))
    }
    yargs.command(usage, describe, builder, handler)
  }
  const loadNow = async (): Promise<void> => {
    loaded = await load()
  }
  return Object.assign(add, { group, usage, describe, load: loadNow })
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
