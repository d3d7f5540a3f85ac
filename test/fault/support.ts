import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { atTheEnd } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { type Ended, type RunArgs, runCli as startCli } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { withDiskFault } from './disk-fault-here.ts'

export { CLI, type Ended, type RunArgs } from '../support/run-cli.ts'

/** Faults after which the process goes on, and can remove its lock. */
const GOES_ON = /^(?:count$|eio:|room:)/

/**
 * Runs the command. With `onStart` it is the built one, as a child process that does not outlive the tests of the file.
 * A disk that fails, or has little room, is that of a process only in thorough runs.
 */
export async function runCli({ onStart, ...args }: RunArgs): Promise<Ended> {
  const { NODE_OPTIONS: _, DISK_FAULT, ...env } = args.env ?? {}
  if (!THOROUGH && onStart === undefined && DISK_FAULT !== undefined && GOES_ON.test(DISK_FAULT))
    return withFaultHere(DISK_FAULT, { ...args, env })
  if (onStart === undefined) return carryOut(args)
  return startCli({
    ...args,
    onStart(kill, pid) {
      atTheEnd(() => kill('SIGKILL'))
      onStart(kill, pid)
    },
  })
}

async function withFaultHere(fault: string, args: RunArgs & { readonly env: object }): Promise<Ended> {
  const { DISK_FAULT_ROOT = '', DISK_FAULT_COUNT = '' } = args.env as Record<string, string>
  const settings = { DISK_FAULT: fault, DISK_FAULT_ROOT }
  const { result, calls } = await withDiskFault(settings, () => carryOut(args))
  if (DISK_FAULT_COUNT !== '') await writeFile(DISK_FAULT_COUNT, calls.join('\n'))
  return result
}

const DISK_FAULT = join(import.meta.dirname, 'disk-fault.mjs')

/** The environment in which a child's file-system calls are counted or fail; see disk-fault.mjs. */
export function diskFault(root: string, fault: string, countFile = ''): Record<string, string> {
  return {
    NODE_OPTIONS: `--import ${DISK_FAULT}`,
    DISK_FAULT_ROOT: root,
    DISK_FAULT: fault,
    DISK_FAULT_COUNT: countFile,
    // Threads only compute, and their start takes a fifth of the time of such a small export.
    ...(THOROUGH ? {} : { DISK_FAULT_ONE_THREAD: '1' }),
  }
}

/**
 * The environment of a process of another machine, as far as this one can know: its lock file names another boot from
 * the first heartbeat on. @param env variables of {@link diskFault}
 */
export function onAnotherMachine(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const OTHER_BOOT = join(import.meta.dirname, 'other-boot.mjs')
  return { ...env, NODE_OPTIONS: `--import ${OTHER_BOOT} ${env.NODE_OPTIONS ?? ''}` }
}

/** Waits until a process is stopped. @returns false: it ended before */
export async function untilStopped(pid: number): Promise<boolean> {
  for (;;) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') X')
    // The letter by which Linux names its state: T for stopped, Z for ended, X for none.
    const state = stat[stat.lastIndexOf(')') + 2]!
    if ('TZX'.includes(state)) return state === 'T'
    await delay(2)
  }
}

/** SHA-256 of every file below a folder by its relative path; folders have ''. */
export async function treeHashes(folder: string): Promise<Map<string, string>> {
  const hashes = new Map<string, string>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    const path = join(entry.parentPath, entry.name)
    const hash = entry.isFile()
      ? createHash('sha256')
          .update(await readFile(path))
          .digest('hex')
      : ''
    hashes.set(relative(folder, path), hash)
  }
  return new Map([...hashes].sort())
}

/** What a start leaves that could not begin: why, and the verdict in the page. */
export const RECORD_OF_A_START = ['_state/failed-start.json', '_report.html']

/** The same, but for {@link RECORD_OF_A_START}. */
export async function hashesBesideRecord(folder: string): Promise<Map<string, string>> {
  const hashes = await treeHashes(folder)
  for (const path of RECORD_OF_A_START) hashes.delete(path)
  return hashes
}

/** SHA-256 of every shard by its path in the data set. */
export async function shardHashes(output: string): Promise<Map<string, string>> {
  const all = await treeHashes(output)
  return new Map([...all].filter(([path, hash]) => hash !== '' && !path.startsWith('_')))
}

/**
 * The manifest without what differs between exports of the same data: runs, `data_set_id`, the port of the sandbox, and
 * the partition that counts an item without a readable time (its chain's current one). `totals` counts them all.
 */
export async function dataManifest(output: string): Promise<unknown> {
  const json = await readFile(join(output, '_manifest.json'), 'utf8')
  const { runs: _, data_set_id: __, scope, partitions, ...data } = JSON.parse(json)
  return {
    ...data,
    scope: { ...scope, service: scope.service.replace(/:\d+$/, '') },
    partitions: partitions.map(({ quarantined: _, ...partition }: { quarantined: number }) => partition),
  }
}

/** Does the work for every item, two at a time, for machines with two processors. */
export async function concurrently<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  concurrency = 2,
): Promise<void> {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}
