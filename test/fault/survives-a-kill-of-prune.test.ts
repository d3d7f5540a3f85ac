import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { spillway } from '../cli/spillway.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { concurrently, diskFault, runCli, treeHashes } from './support.ts'
import { type Sample, sampledCalls, scenario, trial } from './trial.ts'

const figures = faultFigures('prune killed or without power at every sort of disk call')

/** The age that begins at noon of a day. */
function since(day: string): string {
  return `${Math.floor((Date.now() - Date.parse(`${day}T12:00:00Z`)) / 86_400_000)}d`
}

const CUTS = [
  // Between the ends of the second and the third window.
  { what: 'some partitions', age: since('2024-01-17'), samples: 1 },
  { what: 'all partitions', age: since('2024-02-01'), samples: 1 },
]

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls of prune itself. Those for the lock are the same in every run. */
const OWN_WORK = /checkpoint|manifest|_SUCCESS|^rm |_state\/(?:log|sealed)|credentials|_quarantine|^sync $/

/** Everything in a data set except the checkpoint, which holds the times of runs and prunes. */
async function dataOf(output: string) {
  const tree = await treeHashes(output)
  // These files hold the time of a run.
  const dated = ['_manifest.json', '_report.html']
  const files = [...tree].filter(([path]) => !path.startsWith('_state') && !dated.includes(path))
  const { runs: _, prunes, ...manifest } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  const counts = prunes.map(({ pruned_at: _, before: __, ...counts }: Record<string, unknown>) => counts)
  return { files: files.filter(([, hash]) => hash !== ''), manifest, counts }
}

test.each(some(CUTS, 1))(
  'a killed prune of $what has pruned nothing or all of them, after the next prune or run',
  async ({ age, samples }) => {
    const prune = ['prune', 'pipeline.yaml', '--older-than', age, '--yes']
    const export_ = scenario({ format: 'csv', partitionBy: '[query, window]', sandbox: { invalidRate: 0.2 } })
    await trial(export_, async ({ workspace, run, sandbox }) => {
      await exits(0, run())
      const whole = await dataOf(workspace.output)
      const sent = sandbox.requests.length

      /** Works on a copy of the export. */
      const onCopy = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
        const folder = await mkdtemp(join(tmpdir(), 'spillway-prune-'))
        try {
          await cp(workspace.folder, folder, { recursive: true })
          return await work(folder)
        } finally {
          await rm(folder, { recursive: true, force: true })
        }
      }
      const inProcess = async (folder: string, args: readonly string[], about: string) => {
        const { code, stdout, stderr } = await spillway(args, folder, workspace.env)
        expect(code, `${about}: ${args.join(' ')}\n${stdout}${stderr}`).toBe(0)
      }
      const struck = (folder: string, fault: string) =>
        runCli({
          args: prune,
          cwd: folder,
          env: { ...workspace.env, ...diskFault(join(folder, 'out'), fault, join(folder, 'calls')) },
        })

      const { clean, calls } = await onCopy(async (folder) => {
        expect((await struck(folder, 'count')).code).toBe(0)
        const clean = await dataOf(join(folder, 'out'))
        return { clean, calls: (await readFile(join(folder, 'calls'), 'utf8')).split('\n') }
      })
      expect(clean.files.length).toBeLessThan(whole.files.length)

      const faults = sampledCalls(calls, ONE).flatMap((number) => {
        const call = calls[number - 1]!
        // Shards are removed concurrently: the progress of the others at a power cut is not known.
        const isFlush = /^sync (?!credentials)/.test(call)
        return OWN_WORK.test(call) ? [{ fault: `${isFlush ? 'power' : 'kill'}:${number}`, call }] : []
      })
      expect(faults.length).toBeGreaterThan(7)
      await concurrently([...some(faults, samples).entries()], ([index, { fault, call }]) =>
        onCopy(async (folder) => {
          const about = `${fault} ${call}`
          const output = join(folder, 'out')
          const ended = await struck(folder, fault)
          // Files are removed side by side, so a call's number may stand for another one, or for none.
          if (ended.signal === 'SIGKILL') figures.kills++
          else expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
          figures.exports++
          if (index % 2 === 0) {
            await inProcess(folder, ['run', 'pipeline.yaml'], about)
            const after = await dataOf(output)
            expect([whole, clean], about).toContainEqual(after)
            await inProcess(folder, ['verify', 'pipeline.yaml'], about)
          }
          await inProcess(folder, prune, about)
          expect(await dataOf(output), about).toEqual(clean)
          await inProcess(folder, ['verify', 'pipeline.yaml', '--complete'], about)
        }),
      )
      expect(sandbox.requests).toHaveLength(sent)
    })
  },
)
