import { execFile } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { chunksFolder } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const ROOT = join(import.meta.dirname, '../..')
const execute = promisify(execFile)

it('an export goes on while the package that it was started from is built again', async () => {
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  const here = await newWorkspace({}, { faults: [{ kind: 'hold', until: held, requests: [1] }] })
  const clone = newClone()
  const words = [join(clone, 'dist/cli/main.js'), 'run', 'pipeline.yaml', '--json']
  const options = { cwd: here.folder, env: { ...process.env, ...here.env } }
  const exported = execute(process.execPath, words, options)
  while (here.searches().length === 0 && exported.child.exitCode === null) await setTimeout(5)
  await build(clone, 'next')
  expect(exported.child.exitCode).toBe(null)
  letGo()
  const { stdout } = await exported
  expect(JSON.parse(stdout)).toMatchObject({ status: 'complete', rows: 150 })
  // The next command starts from the new build.
  expect(readFileSync(join(clone, 'dist/index.js'), 'utf8')).toContain(`/${chunksFolder(clone)}/`)
  expect(await versionOf(clone)).toMatch(/^\d/)
})

it('chunks of earlier builds go a day after they were replaced, and at once when the package is made', async () => {
  const clone = newClone()
  const first = chunksFolder(clone)
  await build(clone, 'second')
  const second = chunksFolder(clone)
  await build(clone, 'third')
  const third = chunksFolder(clone)
  expect(chunkFolders(clone)).toEqual([first, second, third].sort())

  const yesterday = Date.now() / 1000 - 25 * 60 * 60
  utimesSync(join(clone, 'dist', first), yesterday, yesterday)
  // The same build once more: its chunks have the same name, and stay.
  await build(clone, 'third')
  expect(chunkFolders(clone)).toEqual([second, third].sort())
  expect(await versionOf(clone)).toMatch(/^\d/)

  writeFileSync(join(clone, 'dist/of-an-earlier-build.txt'), '')
  await build(clone, 'fourth', { alone: true })
  expect(chunkFolders(clone)).toEqual([chunksFolder(clone)])
  expect(readdirSync(join(clone, 'dist'))).not.toContain('of-an-earlier-build.txt')
  expect(await versionOf(clone)).toMatch(/^\d/)
})

/** A folder with a build, as a clone has it in which the command was linked. */
function newClone(): string {
  const clone = scratchFolder()
  copyBuild(join(clone, 'dist'), chunksFolder(ROOT))
  cpSync(join(ROOT, 'package.json'), join(clone, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  return clone
}

/** Publishes what a build makes of a changed source. */
async function build(clone: string, change: string, options = {}): Promise<void> {
  copyBuild(join(clone, 'dist.next'), 'chunks')
  appendFileSync(join(clone, 'dist.next/chunks/worker.js'), `// ${change}\n`)
  const script = `import { publishBuild } from ${JSON.stringify(join(ROOT, 'publish-build.mjs'))}
    publishBuild('dist.next', 'dist', ${JSON.stringify(options)})`
  await execute(process.execPath, ['--input-type=module', '-e', script], { cwd: clone })
}

/** Copies the build of this repository, without what it keeps of earlier ones. */
function copyBuild(to: string, chunks: string): void {
  const own = chunksFolder(ROOT)
  for (const name of readdirSync(join(ROOT, 'dist'))) {
    if (name === own) cpSync(join(ROOT, 'dist', own), join(to, chunks), { recursive: true })
    else if (!name.startsWith('chunks')) cpSync(join(ROOT, 'dist', name), join(to, name), { recursive: true })
  }
  for (const entry of ['index.js', 'cli/main.js']) {
    const text = readFileSync(join(to, entry), 'utf8')
    writeFileSync(join(to, entry), text.replaceAll(own, chunks))
  }
}

function chunkFolders(clone: string): readonly string[] {
  return readdirSync(join(clone, 'dist'))
    .filter((name) => name.startsWith('chunks'))
    .sort()
}

async function versionOf(clone: string): Promise<string> {
  return (await execute(join(clone, 'dist/cli/main.js'), ['--version'])).stdout
}
