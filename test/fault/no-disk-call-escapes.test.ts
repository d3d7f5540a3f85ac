import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { diskFault } from './support.ts'
import { scenario, trial } from './trial.ts'

function exitOf(code: string): { readonly status: number | null; readonly stderr: string } {
  const folder = scratchFolder()
  const root = join(folder, 'data')
  mkdirSync(root)
  writeFileSync(join(root, 'file'), 'content')
  writeFileSync(join(folder, 'outside'), 'content')
  const script = `
    import fs from 'node:fs'
    import { appendFile, open, writeFile } from 'node:fs/promises'
    const [inside, outside] = ${JSON.stringify([join(root, 'file'), join(folder, 'outside')])}
    ${code}
  `
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: process.env.PATH, ...diskFault(root, 'count', join(folder, 'calls')) },
    encoding: 'utf8',
  })
  return { status, stderr }
}

const CALLS = [
  ['fs.promises.writeFile', 'await writeFile(inside, "x").catch(() => {})'],
  ['fs.promises.copyFile', 'await fs.promises.copyFile(outside, inside)'],
  ['fs.writeFileSync', 'try { fs.writeFileSync(new URL("file://" + inside), "x") } catch {}'],
  ['fs.openSync', 'fs.openSync(inside, "a")'],
] as const

test.each(some(CALLS, 1))('%s ends the process, even if the code ignores errors', (name, code) => {
  const { status, stderr } = exitOf(code)
  expect(stderr).toContain(`disk-fault: ${name} changes`)
  expect(status).toBe(99)
})

test('reads, counted calls and changes elsewhere are allowed', () => {
  const { status, stderr } = exitOf(`
    fs.readFileSync(inside)
    fs.closeSync(fs.openSync(inside))
    for await (const _ of fs.createReadStream(inside));
    const file = fs.openSync(inside, fs.constants.O_RDWR)
    fs.writevSync(file, [Buffer.from('x')])
    await new Promise((done) => fs.fsync(file, done))
    fs.closeSync(file)
    await appendFile(outside, 'x')
    fs.writeFileSync(outside, 'x')
    await fs.promises.rm(inside)
  `)
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

test('every call of an export is counted, from its first to its last', async () => {
  await trial(scenario({ format: 'parquet' }), async ({ run, workspace }) => {
    // Kills at no call, so it is the built command, and guarded to its end.
    await exits(0, run({ env: diskFault(workspace.output, 'kill:0') }))
  })
})
