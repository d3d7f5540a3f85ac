// `npm run build`: the command and the library in dist/, parts for tests in build/. With --alone, dist/ keeps nothing
// of earlier builds, as the package needs it.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { publishBuild } from './publish-build.mjs'

const NEXT = 'dist.next'

process.chdir(import.meta.dirname)
for (const folder of [NEXT, 'build']) rmSync(folder, { recursive: true, force: true })
run('src/transform/scan/assembly/assemble.mjs')
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json')
const { build } = await import('rolldown')
const [parts, main] = (await import('./rolldown.config.js')).default
// In this order: the second build imports a file of the first.
await build(parts)
await build({ ...main, output: { ...main.output, dir: NEXT } })
publishBuild(NEXT, 'dist', { alone: process.argv.includes('--alone') })

function run(...words) {
  execFileSync(process.execPath, words, { stdio: 'inherit' })
}
