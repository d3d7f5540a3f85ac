// `npm run build`: the command and the library in dist/, parts for tests in build/. With --alone, dist/ keeps nothing
// of earlier builds, as the package needs it.
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { publishBuild } from './publish-build.mjs'

const NEXT = 'dist.next'
const isAlone = process.argv.includes('--alone')

process.chdir(import.meta.dirname)
// Tests that are running load build/sources.
for (const folder of [NEXT, 'build/parts', 'build/types']) rmSync(folder, { recursive: true, force: true })
run('src/transform/scan/assembly/assemble.mjs')
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json')
if (isAlone) installExtractor()
const { build } = await import('rolldown')
const [parts, main] = (await import('./rolldown.config.js')).default
await build(parts)
await build({ ...main, output: { ...main.output, dir: NEXT } })
// The package has no sources, of which this is the digest.
const { encoderDigest } = await import('./build/parts/encoder-build.js')
for (const folder of ['build/parts', `${NEXT}/chunks`]) {
  writeFileSync(`${folder}/encoder-build.txt`, encoderDigest())
  copyFileSync('src/transform/scan/item-walker.wasm', `${folder}/item-walker.wasm`)
}
publishBuild(NEXT, 'dist', { alone: isAlone })

/** It merges the types, which the package alone needs. */
function installExtractor() {
  const name = '@microsoft/api-extractor'
  if (['.', 'test/thorough'].some((project) => existsSync(`${project}/node_modules/${name}`))) return
  const { dependencies } = JSON.parse(readFileSync('test/thorough/package.json', 'utf8'))
  const words = ['install', '--no-save', '--no-audit', '--no-fund', `${name}@${dependencies[name]}`]
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function run(...words) {
  execFileSync(process.execPath, words, { stdio: 'inherit' })
}
