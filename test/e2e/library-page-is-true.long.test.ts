import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { blocksOf, ROOT } from '../docs/page.ts'
import { PACKAGE } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const execute = promisify(execFile)

/** What each example prints on stdout, in the order of the page. */
const PRINTS: readonly RegExp[] = [
  /^complete \d+\n$/,
  /^true 150\n$/,
  /settings\): Correct|extract\.domains\[0\]: expected a domain name .* a name without a dot/,
  /^complete 100\n$/,
]

it('every example compiles with all checks on, and does what the page says', async () => {
  const here = await newWorkspace({ extract: { domains: ['scatterholt.com'], page_size: 50 } })
  const examples = blocksOf('docs/library.md').filter(({ language }) => language === 'ts')
  expect(examples).toHaveLength(PRINTS.length)
  const modules = join(here.folder, 'node_modules')
  await mkdir(modules)
  await symlink(PACKAGE, join(modules, 'spillway'))
  await symlink(join(ROOT, 'node_modules/@types'), join(modules, '@types'))
  await writeFile(join(here.folder, 'package.json'), '{"type":"module"}')
  const files = examples.map((_, i) => `example-${i}.ts`)
  await Promise.all(files.map((file, i) => writeFile(join(here.folder, file), examples[i]!.text)))
  await writeFile(join(here.folder, 'types.ts'), TYPES)
  const project = { compilerOptions: STRICT, files: [...files, 'types.ts'] }
  await writeFile(join(here.folder, 'tsconfig.json'), JSON.stringify(project))
  for (const compiler of ['test/thorough/node_modules/oldest-typescript', 'node_modules/typescript']) {
    const tsc = join(ROOT, compiler, 'bin/tsc')
    const compiled = await execute(process.execPath, [tsc], { cwd: here.folder }).catch((error) => error)
    expect(compiled.stdout, compiler).toBe('')
  }
  const options = { cwd: here.folder, env: { PATH: process.env.PATH, ...here.env } }
  for (const [i, prints] of PRINTS.entries()) {
    const { stdout } = await execute(process.execPath, [`example-${i}.js`], options)
    expect(stdout, examples[i]!.under.join(': ')).toMatch(prints)
  }
})

const TYPES = `import type { RunSummary } from 'spillway'
declare const summary: RunSummary
// @ts-expect-error: an unknown field of the summary is an error, not any
export const nothing = summary.nothing
`

const STRICT = {
  strict: true,
  skipLibCheck: false,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: 'es2022',
  module: 'nodenext',
  types: ['node'],
}
